"""Live chats over the real server's socket, and how many of their runs have ended."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import anyio
from typing_extensions import override

from support.socket import Socket, chunks_of, opened
from support.stage import Answered

__all__ = ["LiveChat", "LiveLog", "live_chat", "watching_lives"]

_LOGGER = "adk_stream_protocol.engine.live_runs"
_PATIENCE = 20.0
_numbers = count(1)


@dataclass
class LiveChat:
    """One chat on one socket."""

    socket: Socket
    chat: str

    async def say(self, text: str) -> Answered:
        """Say something and read the whole reply."""
        return await self.all(await self.begin(text))

    async def begin(self, text: str) -> str:
        """Say something; return the request."""
        name = f"r{next(_numbers)}"
        await self.socket.say(name, self.chat, text)
        return name

    async def answer(self, body: Mapping[str, object]) -> Answered:
        """Send an answered message and read the whole reply."""
        return await self.all(await self.begin_answer(body))

    async def begin_answer(self, body: Mapping[str, object]) -> str:
        """Send an answered message; return the request."""
        name = f"r{next(_numbers)}"
        await self.socket.ask(name, body)
        return name

    async def resume(self) -> Answered:
        """Read the newest reply."""
        name = f"r{next(_numbers)}"
        await self.socket.resume(name, self.chat)
        return await self.all(name)

    async def all(self, request: str) -> Answered:
        """Read the whole reply to a request."""
        frames = await self.socket.all(request)
        if frames[-1]["type"] == "error":
            return Answered(409, error={"message": frames[-1]["errorText"]})
        return Answered(200, chunks_of(frames))

    async def until_chunk(self, request: str, kind: str) -> dict[str, Any]:
        """Wait for a chunk of a type in the reply to a request."""
        frame = await self.socket.next(request)
        while frame.get("chunk", {}).get("type") != kind:
            assert frame["type"] in {"start", "chunk"}, frame
            frame = await self.socket.next(request)
        chunk: dict[str, Any] = frame["chunk"]
        return chunk


@asynccontextmanager
async def live_chat(url: str, chat: str, **headers: str) -> AsyncIterator[LiveChat]:
    """Open a chat over `/api/chat/live`; leaving the block closes the socket."""
    async with opened(url, route="live", headers=headers) as socket:
        yield LiveChat(socket, chat)


class LiveLog(logging.Handler):
    """Counts the live runs that end in this process, as its log tells."""

    def __init__(self) -> None:
        super().__init__()
        self.started: Counter[str] = Counter()
        self._ended: Counter[str] = Counter()
        self._news = anyio.Event()

    @override
    def emit(self, record: logging.LogRecord) -> None:
        chat = str(getattr(record, "chat", ""))
        match record.msg:
            case "live run started":
                self.started[chat] += 1
            case "live run ended":
                self._ended[chat] += 1
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until_ended(self, chat: str, times: int = 1) -> None:
        """Return when so many runs of a chat have ended."""
        with anyio.fail_after(_PATIENCE):
            while self._ended[chat] < times:
                await self._news.wait()

    def runs(self, chat: str) -> int:
        """Return how many runs of a chat go on."""
        return self.started[chat] - self._ended[chat]


@contextmanager
def watching_lives() -> Iterator[LiveLog]:
    """Watch the live runs of this process."""
    log = LiveLog()
    logger = logging.getLogger(_LOGGER)
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(log)
    try:
        yield log
    finally:
        logger.removeHandler(log)
        logger.setLevel(before)
