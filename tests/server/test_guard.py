"""What the server refuses before it looks at what is said."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.settings import Settings
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 32


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    settings = dataclasses.replace(
        Settings(), allowed_hosts=("127.0.0.1",), allowed_origins=("https://app.example.com",)
    )
    async with staged(settings=settings) as stage:
        yield stage


async def refused(stage: Stage, body: str | bytes, **headers: str) -> tuple[int, str]:
    response = await stage.http.post(
        "/api/chat", content=body, headers={"content-type": "application/json"} | headers
    )
    answered = Answered.of(response)
    return answered.status, answered.error.get("code", "")


def said(**message: object) -> str:
    return json.dumps({"id": "c", "messages": [user_message("hi") | message]})


async def test_a_page_of_another_site_is_refused(stage: Stage) -> None:
    assert await refused(stage, said(), origin="https://evil.example") == (403, "bad_origin")
    assert await refused(stage, said(), **{"sec-fetch-site": "cross-site"}) == (403, "bad_origin")


async def test_our_own_and_allowed_pages_are_let_in(stage: Stage) -> None:
    assert await refused(stage, said(), origin=stage.url) == (200, "")
    assert await refused(stage, said(), origin="https://app.example.com") == (200, "")
    preflight = await stage.http.options(
        "/api/chat",
        headers={
            "origin": "https://app.example.com",
            "access-control-request-method": "POST",
        },
    )
    assert preflight.headers["access-control-allow-origin"] == "https://app.example.com"


async def test_a_host_that_is_not_ours_is_refused(stage: Stage) -> None:
    assert await refused(stage, said(), host="rebound.example") == (403, "bad_host")
    response = await stage.http.get("/api/chats", headers={"host": "rebound.example:81"})
    message = response.json()["error"]["message"]
    for part in ("'rebound.example'", "allowed_hosts", "ADK_STREAM_ALLOWED_HOSTS", "proxy"):
        assert part in message


# Behind a proxy that changes the Host: what the browser said of the page's origin still comes.

PAGE = "http://127.0.0.1:5173"
"""Where a development server shows its page."""


async def test_a_page_behind_a_proxy_that_changes_the_host_is_let_in(stage: Stage) -> None:
    same = {"sec-fetch-site": "same-origin"}
    assert await refused(stage, said(), origin=PAGE, **same) == (200, "")
    deleted = await stage.http.delete("/api/chats/c", headers={"origin": PAGE, **same})
    assert deleted.status_code == 204


@pytest.mark.parametrize(
    ("origin", "site"),
    [
        # Another page of this machine, straight to us: a browser tells it from ours.
        (PAGE, "same-site"),
        (PAGE, "cross-site"),
        (PAGE, "none"),
        # A browser that says nothing, or a socket of Chromium.
        (PAGE, None),
        # A name that was rebound to the proxy's address: same-origin, and not ours.
        ("http://rebound.example:5173", "same-origin"),
        ("http://127.0.0.1.rebound.example", "same-origin"),
        ("http://user@127.0.0.1:5173@rebound.example", "same-origin"),
        ("null", "same-origin"),
        ("", "same-origin"),
        ("127.0.0.1:5173", "same-origin"),
        ("file://127.0.0.1", "same-origin"),
        ("app://127.0.0.1", "same-origin"),
        ("http://[::1", "same-origin"),
    ],
)
async def test_what_a_browser_does_not_vouch_for_is_refused(
    stage: Stage, origin: str, site: str | None
) -> None:
    more = {} if site is None else {"sec-fetch-site": site}
    assert await refused(stage, said(), origin=origin, **more) == (403, "bad_origin")
    assert stage.model.prompts == []


async def test_an_app_without_hosts_takes_pages_of_its_machine_behind_a_proxy() -> None:
    same = {"sec-fetch-site": "same-origin"}
    async with staged(settings=Settings()) as stage:
        for name in ("localhost", "127.0.0.1", "[::1]"):
            assert await refused(stage, said(), origin=f"http://{name}:5173", **same) == (200, "")
        for origin in ("http://app.example.com", "http://192.168.0.7:5173"):
            assert await refused(stage, said(), origin=origin, **same) == (403, "bad_origin")


async def test_a_refused_origin_is_told_what_to_set(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    origin = "https://chat.example.com:8443"
    response = await stage.http.post("/api/chat", content=said(), headers={"origin": origin})
    host = urlsplit(stage.url).netloc
    for part in (f"'{origin}'", f"'{host}'", "allowed_origins", "ADK_STREAM_ALLOWED_ORIGINS"):
        assert part in response.text
    (line,) = [record for record in caplog.records if record.message == "origin not allowed"]
    assert (vars(line)["origin"], vars(line)["host"]) == (repr(origin), host)
    long = await stage.http.get("/api/chats", headers={"origin": "https://" + "x" * 5000})
    assert len(long.json()["error"]["message"]) < 1000


async def test_a_body_must_be_declared_as_json(stage: Stage) -> None:
    status, code = await refused(stage, said(), **{"content-type": "text/plain"})
    assert (status, code) == (415, "unsupported_media")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "not_json"),
        (b'{"id": "\xff"}', "not_json"),
        ('{"messages": NaN}', "not_json"),
        ('{"id": "a", "id": "b"}', "duplicate_key"),
        ("[" * 40 + "]" * 40, "too_deep"),
        ("[" * 100_000 + "]" * 100_000, "too_deep"),
        ("[]", "bad_request"),
        ('{"messages": []}', "no_messages"),
        ('{"messages": "hi"}', "no_messages"),
        ('{"messages": [{"role": "king"}]}', "bad_message"),
        ('{"messages": [{"role": "system", "parts": []}]}', "bad_message"),
        ('{"messages": [{"role": "assistant", "parts": []}]}', "nothing_to_answer"),
        ('{"messages": [{"role": "user", "parts": []}]}', "empty_message"),
        ('{"id": 7, "messages": [{"role": "user", "content": "hi"}]}', "bad_chat_id"),
        ('{"id": "a/b", "messages": [{"role": "user", "content": "hi"}]}', "bad_chat_id"),
        ('{"trigger": "x", "messages": [{"role": "user", "content": "hi"}]}', "bad_trigger"),
    ],
)
async def test_a_body_that_makes_no_sense_is_told_so(
    stage: Stage, body: str | bytes, code: str
) -> None:
    assert await refused(stage, body) == (400, code)
    assert stage.model.prompts == []


async def test_a_body_without_files_may_not_be_large(stage: Stage) -> None:
    padded = said(metadata={"x": "y" * 1024 * 1024})
    assert await refused(stage, padded) == (413, "too_large")
    huge = said(metadata={"x": "y" * 21 * 1024 * 1024})
    assert await refused(stage, huge) == (413, "too_large")


async def test_a_message_may_not_have_too_many_or_too_long_parts(stage: Stage) -> None:
    many = said(parts=[{"type": "text", "text": "x"}] * 65)
    assert await refused(stage, many) == (413, "too_large")
    long = said(parts=[{"type": "text", "text": "x" * (64 * 1024 + 1)}])
    assert await refused(stage, long) == (413, "too_large")


def file(url: str, kind: str = "image/png") -> dict[str, object]:
    return {"type": "file", "mediaType": kind, "url": url}


def inline(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("part", "status", "code"),
    [
        (file("https://example.com/a.png"), 400, "file_not_inline"),
        (file("gs://bucket/a.png"), 400, "file_not_inline"),
        (file("file:///etc/passwd"), 400, "file_not_inline"),
        (file("data:image/png,abc"), 400, "file_not_inline"),
        (file(inline(PNG), "image/jpeg"), 415, "unsupported_media"),
        (file(inline(b"MZ", "application/x-msdownload"), ""), 415, "unsupported_media"),
        (file(inline(b"not a png")), 415, "unsupported_media"),
        (file("data:image/png;base64,###"), 400, "bad_file"),
        (file(inline(PNG + b"0" * 5 * 1024 * 1024)), 413, "too_large"),
    ],
)
async def test_a_file_that_is_not_allowed_is_refused(
    stage: Stage, part: dict[str, object], status: int, code: str
) -> None:
    assert await refused(stage, said(parts=[part])) == (status, code)
    assert stage.model.prompts == []


async def test_an_allowed_file_reaches_the_model_and_history(stage: Stage) -> None:
    part = file(inline(PNG)) | {"filename": "a.png"}
    text = {"type": "text", "text": "hi"}
    assert await refused(stage, said(parts=[text, part])) == (200, "")
    blob = stage.model.prompts[0][0].parts[1].inline_data
    assert (blob.data, blob.mime_type) == (PNG, "image/png")
    history = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert history[0]["parts"][1] == part


async def test_an_unknown_sdk_is_told_so(stage: Stage) -> None:
    response = await stage.http.post(
        "/api/chat?sdk=5", content=said(), headers={"content-type": "application/json"}
    )
    assert response.status_code == 400
    assert response.headers["x-adk-stream-error"] == "bad_sdk"


async def test_only_v7_is_sent_what_only_v7_knows(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    await stage.post("/api/chat?sdk=7", asked.approving("c", True))
    resumed = Answered.of(await stage.http.get("/api/chat/c/stream?sdk=7"))
    assert "tool-approval-response" in resumed.types
    resumed = Answered.of(await stage.http.get("/api/chat/c/stream"))
    assert "tool-approval-response" not in resumed.types


async def test_health_and_openapi_are_served(stage: Stage) -> None:
    assert (await stage.http.get("/healthz")).json() == {"status": "ok"}
    assert (await stage.http.get("/readyz")).json() == {"status": "ready"}
    paths = (await stage.http.get("/openapi.json")).json()["paths"]
    assert {"/api/chat", "/stream", "/api/chats/{chat_id}", "/api/approvals"} <= set(paths)
    assert (await stage.http.get("/docs")).status_code == 200


async def test_a_bad_status_or_reason_is_told_so(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    url = f"/api/approvals/{asked.approvals[0]}"
    bad = [
        await stage.http.get("/api/approvals?status=maybe"),
        await stage.http.post(url, json={"approved": True, "reason": "x" * 501}),
        await stage.http.post(url, json={"approved": True, "decisionId": ""}),
        await stage.http.post(url, json=[True]),
    ]
    assert [response.status_code for response in bad] == [400] * 4
    assert (await stage.http.get(url)).json()["status"] == "pending"


async def test_an_idle_stream_sends_comments() -> None:
    settings = dataclasses.replace(Settings(), keep_alive_seconds=0.05)
    async with staged(settings=settings) as stage:
        body = {"id": "c", "messages": [user_message("long")]}
        async with stage.http.stream("POST", "/api/chat", json=body) as response:
            assert response.headers["x-vercel-ai-ui-message-stream"] == "v1"
            assert response.headers["content-type"].startswith("text/event-stream")
            seen = 0
            async for line in response.aiter_lines():
                seen += line == ": keep-alive"
                if seen == 2:
                    stage.more.set()
        assert seen >= 2


def test_settings_come_from_the_environment() -> None:
    settings = Settings.from_environment(
        {
            "ADK_STREAM_TURN_SECONDS": "1.5",
            "ADK_STREAM_MAX_TURNS": "2",
            "ADK_STREAM_ALLOWED_ORIGINS": "https://a.example, https://b.example",
        }
    )
    assert settings.turn_seconds == 1.5
    assert settings.max_turns == 2
    assert settings.allowed_origins == ("https://a.example", "https://b.example")
    assert settings.text_bytes == Settings().text_bytes


@pytest.mark.parametrize("value", ["soon", "0", "-3"])
def test_a_setting_that_makes_no_sense_is_named(value: str) -> None:
    with pytest.raises(BadRequest, match="ADK_STREAM_MAX_TURNS must be"):
        Settings.from_environment({"ADK_STREAM_MAX_TURNS": value})
