"""How errors are answered: a sentence for people, JSON for programs, the code for both."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session

from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

ORIGIN = "https://app.example.com"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    settings = dataclasses.replace(Settings(), allowed_origins=(ORIGIN,))
    async with staged(settings=settings) as stage:
        yield stage


async def answered(stage: Stage, method: str, path: str, accept: str | None) -> tuple[str, str]:
    """Return the media type of a refusal and its message."""
    headers = {"accept": accept} if accept is not None else {}
    request = stage.http.build_request(method, path, headers=headers)
    if accept is None:
        del request.headers["accept"]
    response = await stage.http.send(request)
    assert response.status_code in {400, 404, 415}
    kind = response.headers["content-type"]
    code, error_id = (response.headers[f"x-adk-stream-error{end}"] for end in ("", "-id"))
    if kind != "application/json":
        assert (kind, response.headers["x-content-type-options"]) == (
            "text/plain; charset=utf-8",
            "nosniff",
        )
        return "text", response.text
    error = response.json()["error"]
    assert (error["code"], error["id"]) == (code, error_id)
    return "json", error["message"]


CHAT_ROUTES = (
    ("POST", "/api/chat", "Send the body as application/json."),
    ("GET", "/api/chat/a%00b/stream", "A chat id is 1 to 128 printable characters without '/'."),
    ("POST", "/api/chat/a%00b/stop", "A chat id is 1 to 128 printable characters without '/'."),
    ("POST", "/stream", "Send the body as application/json."),
    ("GET", "/stream/a%00b/stream", "A chat id is 1 to 128 printable characters without '/'."),
)
OTHER_ROUTES = (
    ("GET", "/api/chats/none", "No such chat."),
    ("GET", "/api/chats/c?profile=x", "Check the parameter profile: see /docs."),
    ("GET", "/api/approvals/none", "No such approval. Send the id that came with the request."),
)


@pytest.mark.parametrize(("method", "path", "message"), CHAT_ROUTES)
async def test_a_chat_route_answers_with_the_sentence_unless_json_is_asked_for(
    stage: Stage, method: str, path: str, message: str
) -> None:
    for accept in (
        "*/*",
        None,
        "",
        "text/event-stream",
        "text/html,*/*;q=0.8",
        "application/json;q=0, */*",
        "application/json;q=0.000",
    ):
        assert await answered(stage, method, path, accept) == ("text", message), accept
    for accept in (
        "application/json",
        "application/json, text/plain, */*",
        "text/event-stream, Application/JSON;q=0.5",
        "application/problem+json",
        "application/*",
    ):
        assert await answered(stage, method, path, accept) == ("json", message), accept


@pytest.mark.parametrize(("method", "path", "message"), OTHER_ROUTES)
async def test_another_route_answers_with_json_unless_only_text_is_accepted(
    stage: Stage, method: str, path: str, message: str
) -> None:
    for accept in (
        "*/*",
        None,
        "text/html,*/*;q=0.8",
        "text/plain, application/json;q=0.1",
        "application/x-ndjson",
    ):
        assert await answered(stage, method, path, accept) == ("json", message), accept
    for accept in ("text/plain", "text/html, text/plain;q=0.5"):
        assert await answered(stage, method, path, accept) == ("text", message), accept


class BrokenSessions(InMemorySessionService):
    """A session service that fails."""

    async def get_session(self, **_: object) -> Session | None:
        raise RuntimeError("SECRET")


async def test_an_error_of_the_server_names_its_id_in_the_sentence() -> None:
    async with staged(services=Services(sessions=BrokenSessions())) as stage:
        refused = await stage.say("c", "hi")
    assert (refused.status, refused.error["code"]) == (500, "internal")
    expected = f"The server failed. Please try again. (error {refused.error['id']})"
    assert refused.error["message"] == expected


async def test_a_page_of_an_allowed_origin_can_read_the_headers(stage: Stage) -> None:
    refused = await stage.http.get("/api/chats/none", headers={"origin": ORIGIN})
    exposed = {name.strip() for name in refused.headers["access-control-expose-headers"].split(",")}
    assert exposed == {
        "x-adk-stream-chat",
        "x-resumable-stream-id",
        "x-adk-stream-error",
        "x-adk-stream-error-id",
        "retry-after",
    }


async def test_a_reply_names_its_chat_for_those_who_resume_it(stage: Stage) -> None:
    body = {"id": "c", "messages": [{"role": "user", "content": "hi"}]}
    for path in ("/api/chat", "/stream"):
        response = await stage.http.post(path, json=body)
        named = {response.headers[name] for name in ("x-adk-stream-chat", "x-resumable-stream-id")}
        assert (response.status_code, named) == (200, {"c"})
    unnamed = await stage.http.post("/api/chat", json={"messages": body["messages"]})
    chat = unnamed.headers["x-resumable-stream-id"]
    resumed = await stage.http.get(f"/api/chat/{chat}/stream")
    assert "Hel" in resumed.text
