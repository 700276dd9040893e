"""A server that records: all routes, masked, in a file of its own, and never in a chat's way."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.recording import Line, read_recording
from adk_stream_protocol.server import recorder as recorder_module
from adk_stream_protocol.server.recorder import Recorder, check_new
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import create_app
from adk_stream_protocol.wire.frames import UNNUMBERED, Ended, Started
from support.envelope import enveloped
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.socket import chunks_of, opened
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio

CHAT = ChatId("chat-1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "chats.jsonl"


@pytest.fixture
def mine(file: Path) -> Path:
    file.write_text("mine")
    return file


@pytest.fixture
def full() -> Iterator[FileIO]:
    """A file that takes nothing: there is no space left for it."""
    with FileIO("/dev/full", "w") as file:
        yield file


@asynccontextmanager
async def recorded(file: Path, **settings: Any) -> AsyncIterator[Stage]:
    given = Settings(record=str(file), keep_alive_seconds=5.0, **settings)
    async with staged(settings=given, checked=False) as stage:
        yield stage


def text_of(file: Path) -> str:
    return file.read_text("utf-8")


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def lines_of(file: Path) -> tuple[Line, ...]:
    return read_recording(text_of(file).split("\n")).lines


def kinds(lines: tuple[Line, ...], request: str | None) -> list[str]:
    """Return what happened to a request: chunks by their own types."""
    return [
        str(chunk["type"]) if isinstance(chunk := line.fields.get("chunk"), dict) else line.type
        for line in lines
        if line.request == request
    ]


async def test_posts_resumes_and_stops_are_recorded(file: Path) -> None:
    async with recorded(file) as stage:
        asked = await stage.say("c", "pay 5")
        answered = await stage.post("/api/chat", asked.approving("c", True))
        await stage.http.get("/api/chat/c/stream")
        await stage.http.get("/api/chat/none/stream")
        await stage.http.post("/api/chat/c/stop")
    lines = lines_of(file)

    assert {line.chat for line in lines} == {"c", "none"}
    assert kinds(lines, "r1") == ["send", "start", *asked.types, "end"]
    assert kinds(lines, "r2") == ["send", "start", *answered.types, "end"]
    assert kinds(lines, "r3")[:2] == ["resume", "start"]
    assert kinds(lines, "r4") == ["resume", "no-active"]
    assert kinds(lines, "r5") == ["stop"]
    assert [line.at for line in lines] == sorted(line.at for line in lines)


async def test_a_request_that_is_refused_is_recorded_with_the_reason(file: Path) -> None:
    async with recorded(file, record_text=True) as stage:
        await stage.say("c", "hi")
        body = {"id": "c", "messages": [{"id": "x", "role": "assistant", "parts": []}]}
        refused = await stage.post("/api/chat", body)
    last = lines_of(file)[-1]

    assert refused.status == 400
    assert (last.type, last.fields["errorText"]) == ("error", refused.error["message"])


async def test_the_other_profile_and_decisions_elsewhere_are_recorded(file: Path) -> None:
    async with recorded(file) as stage:
        asked = await stage.say("c", "pay 5", path="/stream")
        approval = asked.calls[-1]
        decided = await stage.http.post(
            f"/api/approvals/{approval}", json={"approved": False, "reason": "Never ever"}
        )
    lines = lines_of(file)

    assert decided.status_code == 200
    assert kinds(lines, "r1") == ["send", "start", *asked.types, "end"]
    decision = next(line for line in lines if line.type == "decision")
    assert (decision.chat, decision.direction) == ("c", "in")
    assert decision.fields["data"] == {
        "approved": False,
        "reason": "xxxxx xxxx",
        "approvalId": approval,
    }


@pytest.mark.parametrize("route", ["ws", "live"])
async def test_sockets_are_recorded_by_request(file: Path, route: str) -> None:
    async with recorded(file) as stage, opened(stage.url, route=route) as socket:
        await socket.say("1", "c", "hi")
        told = chunks_of(await socket.all("1"))
        await socket.write({"type": "resume", "requestId": "2", "id": "nowhere"})
        await socket.all("2")
    lines = lines_of(file)

    types = [str(chunk["type"]) for chunk in told]
    assert kinds(lines, "r1-1") == ["send", "start", *types, "end"]
    assert kinds(lines, "r1-2") == ["resume", "no-active"]


async def test_envelopes_are_numbered_by_their_replies(file: Path) -> None:
    async with recorded(file) as stage, enveloped(stage.url) as envelope:
        await envelope.say("pay 5")
        asked = await envelope.reply()
        await envelope.confirm(asked.calls[-1], True)
        answered = await envelope.turn()
        await envelope.put("no frame")
        await envelope.next()
    lines = lines_of(file)

    assert kinds(lines, "r1-1") == ["send", "start", *asked.types, "end"]
    assert kinds(lines, "r1-2") == ["tool_result", "start", *answered.types, "end"]
    assert (lines[-1].type, lines[-1].request) == ("error", None)
    assert {line.chat for line in lines} == {"c"}


async def test_an_answer_given_again_takes_no_reply_of_another_request(file: Path) -> None:
    async with recorded(file) as stage, enveloped(stage.url) as envelope:
        await envelope.say("pay late")
        asked = await envelope.reply()
        for _ in range(2):
            await envelope.confirm(asked.calls[-1], True)
        await envelope.next()
        stage.more.set()
        await envelope.turn()
        await envelope.say("hi")
        told = await envelope.turn()
    lines = lines_of(file)

    assert kinds(lines, "r1-3") == ["tool_result"]
    assert kinds(lines, "r1-4") == ["send", "start", *told.types, "end"]


async def test_what_was_said_is_not_in_the_file_and_nobody_else_may_read_it(file: Path) -> None:
    async with recorded(file) as stage:
        await stage.say("c", "花子さんに50ドル送金してください")
        secret = {
            "id": "c2",
            "messages": [user_message("My password: hunter2")],
            "headers": {"authorization": "Bearer abcdef"},
        }
        await stage.http.post("/api/chat?key=abcdef", json=secret, headers={"x-key": "abcdef"})
    text = text_of(file)

    assert mode_of(file) == 0o600
    assert not [word for word in ("花子", "送金", "hunter2", "abcdef", "password") if word in text]
    assert '"redacted":true' in text.partition("\n")[0]


async def test_words_are_kept_where_asked_for_and_secrets_are_not(file: Path) -> None:
    async with recorded(file, record_text=True) as stage:
        await stage.say("c", "My password: hunter2")
        await stage.say("c2", "hi")
    text = text_of(file)

    assert "My password: xxxxxxx" in text
    assert '"delta":"Hel' in text
    assert "redacted" not in text


async def test_a_secret_in_an_argument_or_a_result_is_not_in_the_file(file: Path) -> None:
    def log_in(user: str, password: str) -> dict[str, str]:
        """Log in."""
        return {"greeting": f"Hello {user}", "session_token": password[::-1]}

    told = [call("log_in", user="ann", password="hunter2-is-it")]  # noqa: S106  # what must be hidden
    model = ScriptedModel(script={"go": [told, ["Done."]]})
    agent = LlmAgent(name="keys", model=model, tools=[FunctionTool(log_in)])
    settings = Settings(record=str(file), record_text=True)
    async with (
        serving(create_app(agent, settings=settings)) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        body = {"id": "c", "messages": [user_message("go")]}
        reply = Answered.of(await http.post("/api/chat", json=body))
    text = text_of(file)

    assert "hunter2-is-it" in reply.raw
    assert "ti-si-2retnuh" in reply.raw
    assert "Hello ann" in text
    assert "hunter2" not in text
    assert "2retnuh" not in text


async def test_a_file_that_is_there_is_never_touched(mine: Path) -> None:
    recorder = Recorder(mine)
    with pytest.raises(BadRequest, match=r"exists\. A recording is never added to"):
        async with recorder.serving():
            pass
    assert text_of(mine) == "mine"
    with pytest.raises(BadRequest, match="There is no folder"):
        check_new(mine.parent / "none" / "x.jsonl")


async def test_lines_that_come_too_fast_are_left_out_and_counted(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder(file, most=2)
    async with recorder.serving():
        tape = recorder.tape()
        for _ in range(5):
            tape(Started(UNNUMBERED), CHAT)
    lines = lines_of(file)

    assert [line.type for line in lines] == ["start", "start", "left-out"]
    assert lines[-1].fields == {"lines": 3}
    told = [record for record in caplog.records if record.msg == "recording left out lines"]
    assert [vars(record)["lines"] for record in told] == [3]


async def test_a_disk_that_fails_ends_the_recording_and_no_chat(
    full: FileIO, file: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(file)
    async with recorder.serving():
        # From here on the disk is full.
        monkeypatch.setattr(recorder_module, "_put", lambda _file, text: full.write(text.encode()))
        tape = recorder.tape()
        tape(Started(UNNUMBERED), CHAT)
        with anyio.fail_after(5):
            while not caplog.records:
                await anyio.lowlevel.checkpoint()
        tape(Ended(UNNUMBERED), CHAT)

    assert [record.msg for record in caplog.records] == ["recording ended: %s"]
    assert "OSError" in caplog.text
    assert lines_of(file) == ()


async def test_a_server_that_does_not_record_has_no_recorder() -> None:
    assert Recorder.of(Settings()) is None
    assert Settings.from_environment({"ADK_STREAM_RECORD": "x.jsonl"}).record == "x.jsonl"
    assert Settings.from_environment({"ADK_STREAM_RECORD_TEXT": "true"}).record_text is True
