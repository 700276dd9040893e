"""Clients of one server each, that can also read a part of a stream and leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx

from support.cluster import Instance
from support.stage import Answered, user_message

__all__ = ["Stream", "Tab", "open_tab", "saying"]

_PATIENCE_SECONDS = 180


class Stream:
    """A response that is read as far as a test wants."""

    def __init__(self, response: httpx.Response, pieces: AsyncIterator[bytes]) -> None:
        self.status = response.status_code
        # All that was read so far.
        self.got = b""
        self._pieces = pieces

    async def until(self, text: str) -> bytes:
        """Read until this text has come; return all so far."""
        wanted = text.encode()
        with anyio.fail_after(_PATIENCE_SECONDS):
            while wanted not in self.got:
                self.got += await anext(self._pieces)
        return self.got

    async def first(self, count: int) -> bytes:
        """Return the first bytes, as soon as there are so many."""
        with anyio.fail_after(_PATIENCE_SECONDS):
            while len(self.got) < count:
                self.got += await anext(self._pieces)
        return self.got[:count]

    async def all(self) -> bytes:
        """Read to the end; return everything."""
        with anyio.fail_after(_PATIENCE_SECONDS):
            async for piece in self._pieces:
                self.got += piece
        return self.got


@dataclass(frozen=True)
class Tab:
    """A client of one server."""

    http: httpx.AsyncClient

    async def say(self, chat: str, text: str, message_id: str | None = None) -> Answered:
        """Say something and read the whole reply."""
        return await self.post(saying(chat, text, message_id))

    async def post(self, body: dict[str, Any]) -> Answered:
        """Post a chat request and read the whole reply."""
        return Answered.of(await self.http.post("/api/chat", json=body))

    @asynccontextmanager
    async def posting(self, body: dict[str, Any]) -> AsyncIterator[Stream]:
        """Post a chat request; leaving the block is closing the tab."""
        async with self._stream("POST", "/api/chat", json=body) as stream:
            yield stream

    @asynccontextmanager
    async def resuming(self, chat: str) -> AsyncIterator[Stream]:
        """Resume the newest reply; leaving the block is closing the tab."""
        async with self._stream("GET", f"/api/chat/{chat}/stream") as stream:
            yield stream

    @asynccontextmanager
    async def _stream(self, method: str, path: str, **given: Any) -> AsyncIterator[Stream]:
        # Leaving ends the connection, as a closed tab does: the rest is not read.
        async with self.http.stream(method, path, **given) as response:
            yield Stream(response, response.aiter_raw())

    async def resume(self, chat: str) -> Answered:
        """Read the newest reply, to its end."""
        return Answered.of(await self.http.get(f"/api/chat/{chat}/stream"))

    async def stop(self, chat: str) -> bool:
        """Stop the running reply, or give up what waits."""
        response = await self.http.post(f"/api/chat/{chat}/stop")
        return bool(response.json()["stopped"])

    async def decide(self, approval: str, approved: bool, **more: object) -> httpx.Response:
        """Decide away from the chat."""
        body = {"approved": approved, **more}
        return await self.http.post(f"/api/approvals/{approval}", json=body)

    async def approval(self, approval: str) -> dict[str, Any]:
        """Return an approval as it stands."""
        shown: dict[str, Any] = (await self.http.get(f"/api/approvals/{approval}")).json()
        return shown

    async def history(self, chat: str) -> list[dict[str, Any]]:
        """Return the messages of a chat."""
        response = await self.http.get(f"/api/chats/{chat}")
        assert response.status_code == 200, response.text
        messages: list[dict[str, Any]] = response.json()["messages"]
        return messages


def saying(chat: str, text: str, message_id: str | None = None) -> dict[str, Any]:
    """Return the request that says something."""
    return {
        "id": chat,
        "trigger": "submit-message",
        "messages": [user_message(text, message_id)],
    }


@asynccontextmanager
async def open_tab(instance: Instance) -> AsyncIterator[Tab]:
    """Return a client of a server."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=50)
    patient = httpx.Timeout(_PATIENCE_SECONDS)
    async with httpx.AsyncClient(base_url=instance.url, timeout=patient, limits=limits) as http:
        yield Tab(http)
