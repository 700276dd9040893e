"""A chat with the real server, recorded and served back: every stock client shows the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from adk_stream_protocol.cli import main
from adk_stream_protocol.redaction import masked_text
from stories.connecting import Connect
from support.command import Served, run_command, served
from support.conformance import ChatState, StockChat
from support.socket import socket_url

pytestmark = pytest.mark.anyio

SERVED = ("--database", "memory:", "--delay", "0", "--record", "chats.jsonl")
OTHERS = [
    Connect("ai6"),
    Connect("ai7"),
    Connect("ai6", socket="live"),
    Connect("ai7", socket="ws"),
]
SAID = "Send 50 dollars to Hanako"


def page(server: Served, connect: Connect) -> StockChat:
    api = socket_url(server.url, connect.socket) if connect.socket else f"{server.url}/api/chat"
    return StockChat(api, connect.sdk, socket=bool(connect.socket))


async def told(server: Served, connect: Connect) -> ChatState:
    """Pay, and let it through."""
    async with page(server, connect) as chat:
        asked = await chat.send(SAID)
        return await chat.approve(asked.open_approvals[0])


async def recorded(tmp_path: Path, connect: Connect, *more: str) -> ChatState:
    async with served(*SERVED, *more, cwd=tmp_path) as server:
        state = await told(server, connect)
        assert await server.end() == 0
    assert "recording chats.jsonl" in server.welcome
    return state


@pytest.mark.parametrize("connect", [Connect("ai6"), Connect("ai7", socket="ws")], ids=str)
async def test_every_client_shows_what_one_of_them_saw(tmp_path: Path, connect: Connect) -> None:
    saw = await recorded(tmp_path, connect, "--record-text")
    replay = served("chats.jsonl", "--pace", "at-once", cwd=tmp_path, command="replay")
    async with replay as server, httpx.AsyncClient(base_url=server.url) as http:
        for other in OTHERS:
            shown = await told(server, other)
            assert shown.last["id"] == saw.last["id"], other
            assert shown.last["parts"] == saw.last["parts"], other
            assert shown.status == "ready", shown.error
        kept = (await http.get(f"/api/chats/{saw.chat_id}")).json()
        assert await server.end() == 0
    assert "replies   2, each at once" in server.welcome
    assert kept["messages"] == saw.messages
    assert server.log.read_text() == ""


async def test_a_masked_recording_shows_the_same_shape(tmp_path: Path) -> None:
    connect = Connect("ai7")
    saw = await recorded(tmp_path, connect)
    text = (tmp_path / "chats.jsonl").read_text("utf-8")
    replay = served("chats.jsonl", "--pace", "at-once", cwd=tmp_path, command="replay")
    async with replay as server:
        shown = await told(server, connect)

    assert "Hanako" not in text
    assert "Send" not in text
    assert shown.text == masked_text(saw.text)
    assert [part["state"] for part in shown.tool_parts] == ["output-available"]
    assert shown.tool_parts[0]["toolCallId"] == saw.tool_parts[0]["toolCallId"]
    assert shown.tool_parts[0]["input"] == {"amount": 0, "recipient": "xxxxxx", "currency": "xxx"}


async def test_what_a_client_recorded_is_served_too(tmp_path: Path) -> None:
    chunks: list[dict[str, Any]] = [
        {"type": "start", "messageId": "m1"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Recorded in a page."},
        {"type": "text-end", "id": "1"},
        {"type": "finish"},
    ]
    common = {"at": 0, "chat": "c", "request": "1"}
    message = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}
    lines: list[dict[str, Any]] = [
        {"recording": 1, "by": "adk-stream-client", "startedAt": "2026-11-16T09:00:00.000Z"},
        {**common, "direction": "in", "type": "send", "messages": [message]},
        *({**common, "direction": "out", "type": "chunk", "chunk": chunk} for chunk in chunks),
        {**common, "direction": "out", "type": "end"},
    ]
    (tmp_path / "page.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    async with (
        served("page.jsonl", cwd=tmp_path, command="replay") as server,
        page(server, Connect("ai6")) as chat,
    ):
        state = await chat.send("Hi")
        over = await chat.send("More")
    assert state.text == "Recorded in a page."
    assert over.error == "The recording is over: replies that it has for this chat: 1."
    assert "by adk-stream-client" in server.welcome


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "bad.jsonl cannot be read: No such file or directory."),
        (b"\xff\xfe", "bad.jsonl is no recording: not UTF-8."),
        (b"", "bad.jsonl cannot be replayed. The file is empty."),
        (b'{"recording":9}', "format 9; this release reads format 1."),
        (b'{"recording":1}\n{"at', "bad.jsonl cannot be replayed. Line 2 is not JSON."),
        (
            b'{"recording":1}\n'
            b'{"direction":"out","type":"chunk","request":"1","chunk":{"type":"no"}}',
            "bad.jsonl cannot be replayed. Line 2: Unknown chunk type 'no'.",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    tmp_path: Path,
    content: bytes | None,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "bad.jsonl").write_bytes(content)
    assert main(["replay", "bad.jsonl", "--port", "0"]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


async def test_a_recording_is_refused_where_a_file_is(tmp_path: Path) -> None:
    (tmp_path / "chats.jsonl").write_text("mine")
    taken = await run_command("serve", "--port", "0", *SERVED, cwd=tmp_path)
    unnamed = await run_command("serve", "--port", "0", "--record-text", cwd=tmp_path)
    assert (taken.code, unnamed.code) == (2, 2)
    assert "chats.jsonl exists. A recording is never added to" in taken.err
    assert "--record-text is for --record FILE" in unnamed.err
    assert (tmp_path / "chats.jsonl").read_text() == "mine"
