"""A WebSocket to `/live`, in envelopes, as the first clients would write and read them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from websockets.asyncio.client import ClientConnection, connect

from support.chunk_schema import check_chunk
from support.stage import Answered, user_message

__all__ = ["CONFIRM", "DONE", "Envelope", "enveloped"]

CONFIRM = "adk_request_confirmation"
DONE = "[DONE]"

_PATIENCE = 10.0
_ENDS = {"finish", "error", "abort"}


@dataclass
class Envelope:
    """One connection, and all that was said on it."""

    connection: ClientConnection
    heard: list[Any] = field(default_factory=list)
    """Chunks and `[DONE]`, in order."""

    async def write(self, kind: str, **data: object) -> None:
        """Send an envelope."""
        await self.put({"type": kind, "version": "1.0", "data": data})

    async def put(self, frame: Mapping[str, object] | str) -> None:
        """Send a frame."""
        await self.connection.send(frame if isinstance(frame, str) else json.dumps(frame))

    async def say(self, text: str, *, chat: str | None = "c") -> None:
        """Say something."""
        named = {} if chat is None else {"id": chat}
        await self.write("message", messages=[user_message(text)], **named)

    async def answer(self, call_id: str, result: object, name: str | None = None) -> None:
        """Send what came of a call."""
        named = {} if name is None else {"toolName": name}
        await self.write("tool_result", toolCallId=call_id, result=result, **named)

    async def confirm(self, confirmation: str, confirmed: bool) -> None:
        """Approve or deny a call."""
        await self.answer(confirmation, {"confirmed": confirmed}, CONFIRM)

    async def next(self) -> Any:
        """Return the next chunk, `[DONE]`, or another frame."""
        with anyio.fail_after(_PATIENCE):
            text = await self.connection.recv()
        assert isinstance(text, str), "frames are text"
        heard = _read(text)
        self.heard.append(heard)
        return heard

    async def reply(self) -> Answered:
        """Return the chunks up to the end of a reply, which may not be the end of the turn."""
        chunks = [await self.next()]
        while chunks[-1]["type"] not in _ENDS:
            chunks.append(await self.next())
        return Answered(200, chunks)

    async def turn(self) -> Answered:
        """Return the chunks up to the end of a turn."""
        chunks: list[Any] = []
        while (heard := await self.next()) != DONE:
            chunks.append(heard)
        return Answered(200, chunks)

    async def until_text(self, text: str) -> None:
        """Wait for a piece of text."""
        while text not in str((await self.next()).get("delta", "")):
            pass

    async def refused(self) -> str:
        """Return why something was refused, whatever comes before that."""
        while (heard := await self.next()) == DONE or heard["type"] != "refused":
            pass
        return str(heard["message"])

    async def broken_off(self) -> str:
        """Return the error that a reply broke off with, whatever comes before it."""
        while (heard := await self.next()) == DONE or heard["type"] != "error":
            pass
        return str(heard["errorText"])

    async def is_silent(self) -> bool:
        """Whether nothing comes before the answer to a ping."""
        await self.write("ping")
        return bool(await self.next() == {"type": "pong", "version": "1.0"})


def _read(text: str) -> Any:
    if not text.startswith("data: "):
        return json.loads(text)
    assert text.endswith("\n\n")
    body = text.removeprefix("data: ").removesuffix("\n\n")
    assert "\n" not in body
    if body == DONE:
        return body
    chunk = json.loads(body)
    check_chunk(chunk)
    return chunk


@asynccontextmanager
async def enveloped(
    url: str, *, headers: Mapping[str, str] | None = None, **query: str
) -> AsyncIterator[Envelope]:
    """Open a socket to a server."""
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    address = f"{url.replace('http', 'ws', 1)}/live{f'?{asked}' if asked else ''}"
    async with connect(
        address, additional_headers=headers, compression=None, max_size=None, proxy=None
    ) as connection:
        yield Envelope(connection)
