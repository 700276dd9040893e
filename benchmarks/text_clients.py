"""Clients of the servers that talk. They read bytes and look for little: they share the machine."""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from websockets.asyncio.client import connect

from benchmarks.talkers import APP, USER
from benchmarks.text_apps import BARE, FILL, past

__all__ = ["Heard", "Refused", "TextClient"]

_END: Final = b"0\r\n\r\n"
_LAST_FRAME: Final = b'{"type":"end"'
_ERROR_FRAME: Final = b'{"type":"error"'
_DUE: Final = re.compile(rb"due(\d+\.\d+) ")
_ASKED: Final = re.compile(rb'"approvalId":"([^"]+)"')
_CONFIRMATION: Final = "adk_request_confirmation"
_ASKED_BY_TOOL: Final = re.compile(
    rb'"toolCallId":"([^"]+)","toolName":"%b"' % _CONFIRMATION.encode()
)
_ADK_ASKED: Final = re.compile(rb'"id":"([^"]+)","args":\{"originalFunctionCall"')
_CALL: Final = re.compile(rb'"toolCallId":"([^"]+)"')
_MESSAGE: Final = re.compile(rb'"messageId":"([^"]+)"')


class Refused(Exception):
    """The server did not answer, or not to the end."""


@dataclass(slots=True)
class Heard:
    """What a client got of one reply."""

    first: float = 0.0
    """Seconds until the first byte of the body that says something."""
    late: list[float] = field(default_factory=list)
    """Seconds from when each piece was due until it was there, if pieces say when they are due."""
    body: bytes = b""

    def note(self, lines: Sequence[bytes], began: float) -> None:
        """Note when lines came that were asked for at a time."""
        now = time.monotonic()
        for line in lines:
            if not self.first and (b"word" in line or b"due" in line):
                self.first = time.perf_counter() - began
            # ADK repeats the whole answer at its end.
            if b'"partial":false' not in line:
                self.late += [now - float(due) for due in _DUE.findall(line)]


class TextClient:
    """Talks to one server of a kind."""

    def __init__(self, variant: str, url: str) -> None:
        self._variant = variant
        self._host, self._port = urlsplit(url).hostname or "", urlsplit(url).port or 0

    async def get(self, path: str) -> bytes:
        """Return the body of a route."""
        heard = await self._exchange("GET", path, None)
        return heard.body

    async def bare(self, text: str, clients: int, *, chat: str) -> tuple[float, float, float]:
        """Let the server's process run ADK's loop alone."""
        path = f"{BARE}?clients={clients}&text={text.replace(' ', '%20')}&chat={chat}"
        wall, cpu, first = json.loads(await self.get(path))
        return wall, cpu, first

    async def chat(self) -> str:
        """Return a new chat, made beforehand where the server wants that."""
        chat = f"chat-{uuid.uuid4()}"
        if self._variant == "adk":
            path = f"/apps/{APP}/users/{USER}/sessions/{chat}"
            await self._exchange("POST", path, {})
        return chat

    async def filled(self, events: int) -> str:
        """Return a chat in which something was said before, in as many events."""
        chat = f"chat-{uuid.uuid4()}"
        if self._variant == "adk":
            said = [event.model_dump(mode="json", exclude_none=True) for event in past(events)]
            body = {"session_id": chat, "events": said}
            await self._exchange("POST", f"/apps/{APP}/users/{USER}/sessions", body)
        else:
            await self.get(f"{FILL}?chat={chat}&events={events}")
        return chat

    async def say(self, chat: str, text: str) -> Heard:
        """Have a turn, an approval included; fails unless the reply came to its end."""
        if self._variant == "ag-ui-adk":
            heard = await self._post_to_ag_ui(chat, text)
            _check(heard, text)
            return heard
        if self._variant == "adk":
            heard = await self._post_to_adk(chat, {"text": text})
            if text == "approval":
                found = _ADK_ASKED.search(heard.body)
                assert found is not None, heard.body
                answer = {
                    "id": found[1].decode(),
                    "name": _CONFIRMATION,
                    "response": {"confirmed": True},
                }
                heard = await self._post_to_adk(chat, {"functionResponse": answer})
            _check(heard, text)
            return heard
        part: dict[str, object] = {"type": "text", "text": text}
        heard = await self._send_to_us(chat, f"user-{uuid.uuid4()}", "user", part)
        approval = _approval(heard.body) if text == "approval" else None
        if approval is not None:
            message = _MESSAGE.search(heard.body)
            assert message is not None
            heard = await self._send_to_us(chat, message[1].decode(), "assistant", approval)
        _check(heard, text)
        return heard

    async def _post_to_adk(self, chat: str, part: Mapping[str, object]) -> Heard:
        body = {
            "appName": APP,
            "userId": USER,
            "sessionId": chat,
            "newMessage": {"role": "user", "parts": [part]},
            "streaming": True,
        }
        return await self._exchange("POST", "/run_sse", body)

    async def _post_to_ag_ui(self, chat: str, text: str) -> Heard:
        body = {
            "threadId": chat,
            "runId": f"run-{uuid.uuid4()}",
            "state": {},
            "messages": [{"id": f"user-{uuid.uuid4()}", "role": "user", "content": text}],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        }
        return await self._exchange("POST", "/api/chat", body)

    async def _send_to_us(
        self, chat: str, message: str, role: str, part: Mapping[str, object]
    ) -> Heard:
        messages = [{"id": message, "role": role, "parts": [part]}]
        body = {"id": chat, "trigger": "submit-message", "messages": messages}
        if self._variant == "memory-ws":
            return await self._exchange_frames(body)
        path = "/stream" if self._variant == "memory-adk" else "/api/chat"
        return await self._exchange("POST", path, body)

    async def _exchange_frames(self, body: Mapping[str, object]) -> Heard:
        frame = {"type": "send", "requestId": "1", "headers": {}, "body": {}, **body}
        heard, got = Heard(), list[bytes]()
        began = time.perf_counter()
        async with connect(
            f"ws://{self._host}:{self._port}/api/chat/ws", compression=None, proxy=None
        ) as connection:
            await connection.send(json.dumps(frame))
            while not (line := await connection.recv(decode=False)).startswith(_LAST_FRAME):
                if line.startswith(_ERROR_FRAME):
                    raise Refused(line)
                heard.note([line], began)
                got.append(line)
        heard.body = b"".join(got)
        return heard

    async def _exchange(self, method: str, path: str, body: object) -> Heard:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=2**22)
        payload = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {self._host}\r\nconnection: close\r\n"
            f"content-type: application/json\r\ncontent-length: {len(payload)}\r\n\r\n"
        )
        began = time.perf_counter()
        writer.write(head.encode() + payload)
        heard = Heard()
        try:
            heard.body = await _read(reader, heard, began)
        finally:
            writer.close()
        return heard


async def _read(reader: asyncio.StreamReader, heard: Heard, began: float) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.partition(b"\r\n")[0]:
        raise Refused(head + await reader.read())
    chunked = b"chunked" in head.lower()
    got: list[bytes] = []
    begun = b""  # A line whose end has not come.
    while data := await reader.read(2**20):
        *lines, begun = (begun + data).split(b"\n")
        heard.note(lines, began)
        got.append(data)
        if chunked and data.endswith(_END):
            break
    return b"".join(got)


def _approval(body: bytes) -> Mapping[str, object] | None:
    """Return the part that approves what a reply asks for; None: it asks for nothing."""
    by_tool = _ASKED_BY_TOOL.search(body)
    if by_tool is not None:
        return {
            "type": f"tool-{_CONFIRMATION}",
            "toolCallId": by_tool[1].decode(),
            "state": "output-available",
            "input": {},
            "output": {"confirmed": True},
        }
    asked, call = _ASKED.search(body), _CALL.search(body)
    if asked is None or call is None:
        return None
    return {
        "type": "tool-pay",
        "toolCallId": call[1].decode(),
        "state": "approval-responded",
        "approval": {"id": asked[1].decode(), "approved": True},
    }


def _check(heard: Heard, text: str) -> None:
    kind, *numbers = text.split()
    if kind == "paced":
        is_complete = len(heard.late) >= int(numbers[0])
    else:
        last = int(numbers[0]) - 1 if numbers else 49
        is_complete = b"word%d " % last in heard.body
    if not is_complete:
        raise Refused(heard.body[-500:])
