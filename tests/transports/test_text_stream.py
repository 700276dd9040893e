"""A reply as text alone: what it holds, and what becomes of all that text cannot say."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents.llm_agent import LlmAgent
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from adk_stream_protocol import create_router
from adk_stream_protocol.engine.reply import ToldReply
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.recording import read_recording
from adk_stream_protocol.server.faults import fault_response
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.transports.text_stream import TextStream
from adk_stream_protocol.wire.chunks import FinishChunk, StartChunk, TextDeltaChunk
from adk_stream_protocol.wire.entries import CallHeld, Entry
from adk_stream_protocol.wire.profiles import Audience
from support.scripted import ScriptedModel
from support.serving import serving
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio

TEXT = "/api/chat?stream=text"
ORIGIN = "https://app.example.com"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    settings = dataclasses.replace(Settings(), allowed_origins=(ORIGIN,))
    async with staged(settings=settings) as stage:
        late = {
            "break late": [["Some ", stage.more, RuntimeError("SECRET model")]],
            "wait": [[stage.more, "At last."]],
        }
        stage.model.script = {**stage.model.script, **late}
        yield stage


async def ask(stage: Stage, text: str, path: str = TEXT, **headers: str) -> httpx.Response:
    body = {"id": "c", "messages": [user_message(text)]}
    return await stage.http.post(path, json=body, headers=headers)


class Reader:
    """Reads a stream of text."""

    def __init__(self, response: httpx.Response) -> None:
        self.text = ""
        self._pieces = response.aiter_text()

    async def first(self) -> str:
        """Wait for some text."""
        self.text += await anext(self._pieces)
        return self.text

    async def rest(self) -> str:
        """Read to the end."""
        async for piece in self._pieces:
            self.text += piece
        return self.text


# What is said


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("hi", "Hello."),
        ("think", "Done."),
        ("add", "It is 3."),
        ("花子さんに50ドル送金してください", None),
    ],
)
@pytest.mark.parametrize("path", [TEXT, "/stream?stream=text"])
async def test_only_the_words_of_the_answer_are_sent(
    stage: Stage, said: str, text: str | None, path: str
) -> None:
    response = await ask(stage, said, path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-adk-stream-chat"] == "c"
    assert "x-vercel-ai-ui-message-stream" not in response.headers
    if text is not None:
        assert response.text == text
    else:
        assert response.text.startswith("送金します。\n\nThis reply waits for the approval of pay.")


async def test_text_is_sent_as_it_is_said(stage: Stage) -> None:
    body = {"id": "c", "messages": [user_message("long")]}
    async with stage.http.stream("POST", TEXT, json=body) as response:
        reader = Reader(response)
        assert await reader.first() == "One. "
        stage.more.set()
        assert await reader.rest() == "One. Two."


async def test_a_reply_is_resumed_as_text_from_its_beginning(stage: Stage) -> None:
    await ask(stage, "hi", "/api/chat")
    resumed = await stage.http.get("/api/chat/c/stream?stream=text")
    assert (resumed.status_code, resumed.text) == (200, "Hello.")
    assert (await stage.http.get("/api/chat/none/stream?stream=text")).status_code == 204


async def test_a_client_that_leaves_ends_only_its_response(stage: Stage) -> None:
    body = {"id": "c", "messages": [user_message("long")]}
    async with stage.http.stream("POST", TEXT, json=body) as response:
        assert await Reader(response).first() == "One. "
    stage.more.set()
    resumed = await stage.http.get("/api/chat/c/stream?stream=text")
    assert resumed.text == "One. Two."


async def test_a_client_that_leaves_before_any_text_ends_only_its_response(stage: Stage) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, stage, "wait")
        with anyio.fail_after(60):
            while (await stage.http.get("/api/chats")).json() == {"chats": []}:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    stage.more.set()
    resumed = await stage.http.get("/api/chat/c/stream?stream=text")
    assert resumed.text == "At last."


async def test_another_kind_of_stream_is_a_400(stage: Stage) -> None:
    response = await ask(stage, "hi", "/api/chat?stream=sound")
    assert (response.status_code, response.headers["x-adk-stream-error"]) == (400, "bad_parameter")
    assert "stream" in response.text


async def test_the_data_stream_is_the_default(stage: Stage) -> None:
    assert Answered.of(await ask(stage, "hi", "/api/chat?stream=data")).text == "Hello."


# What cannot be said


async def test_a_reply_that_breaks_before_any_text_is_an_http_error(stage: Stage) -> None:
    response = await ask(stage, "break at once")
    assert (response.status_code, response.headers["x-adk-stream-error"]) == (500, "reply_failed")
    assert response.text.count("(error ") == 1
    assert "SECRET" not in response.text
    asked = await ask(stage, "break at once", accept="application/json")
    assert asked.json()["error"]["code"] == "reply_failed"


FAILED = re.compile(
    r"Some \n\nThe agent could not finish this reply \(error \w+\)\. Please try again\."
)


async def test_a_reply_that_breaks_in_the_middle_says_so_and_breaks_the_connection(
    stage: Stage,
) -> None:
    body = {"id": "c", "messages": [user_message("break late")]}
    async with stage.http.stream("POST", TEXT, json=body) as response:
        assert response.status_code == 200
        reader = Reader(response)
        assert await reader.first() == "Some "
        stage.more.set()
        with pytest.raises(httpx.RemoteProtocolError):
            await reader.rest()
    assert FAILED.fullmatch(reader.text)
    assert "SECRET" not in reader.text


async def test_where_middleware_ends_every_body_the_text_still_says_that_it_broke() -> None:
    """Starlette's `BaseHTTPMiddleware` does; `@app.middleware` makes one."""
    stage = Stage()
    stage.model = ScriptedModel(script={"x": [["Some ", stage.more, RuntimeError("SECRET")]]})
    app = FastAPI()
    app.include_router(create_router(LlmAgent(name="stage", model=stage.model)))

    @app.middleware("http")
    async def look(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
        return await go_on(request)

    body = {"id": "c", "messages": [user_message("x")]}
    async with (
        serving(app) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
        http.stream("POST", TEXT, json=body) as response,
    ):
        reader = Reader(response)
        await reader.first()
        stage.more.set()
        assert FAILED.fullmatch(await reader.rest())


async def test_a_reply_that_is_stopped_is_no_whole_answer(stage: Stage) -> None:
    body = {"id": "c", "messages": [user_message("long")]}
    async with stage.http.stream("POST", TEXT, json=body) as response:
        reader = Reader(response)
        await reader.first()
        assert (await stage.http.post("/api/chat/c/stop")).json() == {"stopped": True}
        with pytest.raises(httpx.RemoteProtocolError):
            await reader.rest()
    assert reader.text == "One. \n\nThis reply was stopped."


async def test_a_reply_that_is_stopped_before_any_text_is_a_409(stage: Stage) -> None:
    answers: list[httpx.Response] = []

    async def wait() -> None:
        answers.append(await ask(stage, "wait"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        with anyio.fail_after(60):
            while not (await stage.http.post("/api/chat/c/stop")).json()["stopped"]:
                await anyio.lowlevel.checkpoint()
    (response,) = answers
    assert (response.status_code, response.headers["x-adk-stream-error"]) == (409, "reply_stopped")
    assert response.text == "This reply was stopped."


async def test_an_approval_before_any_text_is_a_409_that_says_what_waits(stage: Stage) -> None:
    response = await ask(stage, "pay")
    assert (response.status_code, response.headers["x-adk-stream-error"]) == (409, "answer_needed")
    assert response.text == (
        "This reply waits for the approval of pay. Decide under /api/approvals: the chat then goes "
        "on by itself."
    )
    chat = response.headers["x-adk-stream-chat"]
    (waiting,) = (await stage.http.get("/api/approvals?status=pending")).json()["approvals"]
    assert waiting["chatId"] == chat
    await stage.http.post(f"/api/approvals/{waiting['id']}", json={"approved": True})
    resumed = await stage.http.get(f"/api/chat/{chat}/stream?stream=text")
    assert (resumed.text, stage.payments) == ("Told.", [5])


async def test_an_approval_after_text_is_said_at_its_end(stage: Stage) -> None:
    response = await ask(stage, "pay 5")
    assert response.status_code == 200
    assert response.text == (
        "Paying. \n\nThis reply waits for the approval of pay. Decide under /api/approvals: the "
        "chat then goes on by itself."
    )


async def test_a_tool_of_the_browser_is_a_409(stage: Stage) -> None:
    response = await ask(stage, "play jazz")
    assert (response.status_code, response.headers["x-adk-stream-error"]) == (409, "answer_needed")
    assert response.text == (
        "This reply waits for the browser to run change_bgm. A stream of text cannot ask for it: "
        "leave out ?stream=text."
    )


def held(name: str, **more: Any) -> CallHeld:
    return CallHeld(f"approval-{name}", f"call-{name}", name, {}, "", **more)


@pytest.mark.parametrize(
    ("entries", "waits"),
    [
        ([held("pay"), held("pay")], "the approval of pay."),
        ([held("pay"), held("book")], "the approval of pay and the approval of book."),
        ([held("ask", approval=False, kind="input")], "an answer to a question of the agent."),
        ([held("login", approval=False, kind="credential")], "a sign-in."),
    ],
)
async def test_all_that_waits_is_named(entries: Sequence[Entry], waits: str) -> None:
    said = [StartChunk("m"), TextDeltaChunk("t", "Well."), *entries, FinishChunk("tool-calls")]
    stream = TextStream(
        ToldReply(ChatId("c"), said),
        Audience(),
        meters=Meters(),
        refuse=fault_response,
        headers={},
    )
    transport = httpx.ASGITransport(stream)
    async with httpx.AsyncClient(transport=transport, base_url="http://app") as http:
        response = await http.get("/")
    assert response.text.startswith(f"Well.\n\nThis reply waits for {waits}")


async def test_a_page_of_an_allowed_origin_can_read_it(stage: Stage) -> None:
    for said in ("hi", "pay"):
        response = await ask(stage, said, origin=ORIGIN)
        assert response.headers["access-control-allow-origin"] == ORIGIN


# Who asks by a prompt


@pytest.mark.parametrize("body", [{"prompt": "hi"}, "hi", {"prompt": "hi", "topic": "cats"}])
async def test_a_prompt_is_a_message_of_a_chat_of_its_own(stage: Stage, body: object) -> None:
    chats = set()
    for path in (TEXT, "/api/chat"):
        response = await stage.http.post(path, json=body)
        text = response.text if path == TEXT else Answered.of(response).text
        assert text == "Hello."
        chats.add(response.headers["x-adk-stream-chat"])
    assert len(chats) == 2


async def test_a_prompt_may_name_its_chat_and_be_the_same_again(stage: Stage) -> None:
    for _ in range(2):
        response = await stage.http.post(TEXT, json={"id": "c", "prompt": "hi"})
        assert response.text == "Hello."
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert len({message["id"] for message in messages}) == 4


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"prompt": 7}, "bad_prompt"),
        ({"prompt": None}, "bad_prompt"),
        ({"prompt": ""}, "empty_message"),
        ("", "empty_message"),
        ({"topic": "cats"}, "no_messages"),
        ({"prompt": "hi", "messages": []}, "no_messages"),
        ([], "bad_request"),
    ],
)
async def test_a_prompt_that_says_nothing_is_a_400(stage: Stage, body: object, code: str) -> None:
    response = await stage.http.post(TEXT, json=body)
    assert (response.status_code, response.headers["x-adk-stream-error"]) == (400, code)


# Others


async def test_an_agent_with_an_output_schema_is_sent_as_json() -> None:
    class City(BaseModel):
        name: str
        people: int

    model = ScriptedModel(script={"Tokyo": [['{"name": "Tokyo", ', '"people": 14}']]})
    agent = LlmAgent(name="cities", model=model, output_schema=City)
    app = FastAPI()
    app.include_router(create_router(agent))
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        response = await http.post(TEXT, json="Tokyo")
    assert City.model_validate_json(response.text) == City(name="Tokyo", people=14)


async def test_a_recording_has_the_whole_reply(tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    async with staged(settings=Settings(record=str(file))) as stage:
        assert (await ask(stage, "hi")).text == "Hello."
        told = Answered.of(await stage.http.get("/api/chat/c/stream"))
    lines = read_recording(file.read_text("utf-8").split("\n")).lines
    chunks = [
        line.fields["chunk"] for line in lines if line.request == "r1" and line.type == "chunk"
    ]
    assert [chunk["type"] for chunk in chunks if isinstance(chunk, dict)] == told.types
    assert [line.type for line in lines if line.request == "r1"][-1] == "end"
