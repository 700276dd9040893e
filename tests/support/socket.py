"""A WebSocket to the real server, frame by frame, as `WebSocketChatTransport` would write them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from websockets.asyncio.client import ClientConnection, connect

from support.chunk_schema import check_chunk
from support.stage import user_message

__all__ = ["Frame", "Socket", "chunks_of", "opened", "socket_url"]

Frame = dict[str, Any]

_PATIENCE = 10.0


def socket_url(url: str, route: str = "ws", **query: str) -> str:
    """Return the address of a socket of a server: `ws` or `live`."""
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return f"{url.replace('http', 'ws', 1)}/api/chat/{route}{f'?{asked}' if asked else ''}"


def chunks_of(frames: Sequence[Frame]) -> list[Frame]:
    """Return the chunks of one request's frames; fails unless they are numbered without a gap."""
    chunks = [frame for frame in frames if frame["type"] == "chunk"]
    assert [frame["sequence"] for frame in chunks] == list(range(len(chunks)))
    return [frame["chunk"] for frame in chunks]


@dataclass
class Socket:
    """One connection, and the frames that came and were not asked for yet."""

    connection: ClientConnection
    unread: list[Frame] = field(default_factory=list)

    async def write(self, frame: Mapping[str, object] | str) -> None:
        """Send a frame."""
        await self.connection.send(frame if isinstance(frame, str) else json.dumps(frame))

    async def say(self, request_id: str, chat: str, text: str, **fields: object) -> None:
        """Send what a stock client sends for a message."""
        await self.ask(request_id, {"id": chat, "messages": [user_message(text)]}, **fields)

    async def ask(self, request_id: str, body: Mapping[str, object], **fields: object) -> None:
        """Send a chat request."""
        head = {"type": "send", "requestId": request_id}
        if "message" not in body:
            # Who sends a message alone, as the AI SDK's documentation shows, sends no trigger.
            head["trigger"] = "submit-message"
        await self.write(head | dict(body) | {"headers": {}, "body": {}} | fields)

    async def resume(self, request_id: str, chat: str) -> None:
        """Ask for the chat's newest reply."""
        head = {"type": "resume", "requestId": request_id, "id": chat}
        await self.write(head | {"headers": {}, "body": {}})

    async def abort(self, request_id: str) -> None:
        """Ask for no more of a reply."""
        await self.write({"type": "abort", "requestId": request_id})

    async def next(self, request_id: str) -> Frame:
        """Return the next frame for a request."""
        with anyio.fail_after(_PATIENCE):
            while True:
                for index, frame in enumerate(self.unread):
                    if frame["requestId"] == request_id:
                        return self.unread.pop(index)
                text = await self.connection.recv()
                assert isinstance(text, str), "a binary frame kills a stock client"
                heard = json.loads(text)
                if heard["type"] == "chunk":
                    check_chunk(heard["chunk"])
                self.unread.append(heard)

    async def all(self, request_id: str) -> list[Frame]:
        """Return the frames of a request up to its last."""
        frames = [await self.next(request_id)]
        while frames[-1]["type"] not in {"end", "error", "no-active"}:
            frames.append(await self.next(request_id))
        return frames

    async def until_text(self, request_id: str, text: str) -> None:
        """Wait for a piece of text in a request's reply."""
        frame = await self.next(request_id)
        while text not in str(frame.get("chunk", {}).get("delta", "")):
            assert frame["type"] in {"start", "chunk"}, frame
            frame = await self.next(request_id)


@asynccontextmanager
async def opened(
    url: str,
    *,
    route: str = "ws",
    query: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Socket]:
    """Open a socket to a server."""
    address = socket_url(url, route, **(query or {}))
    async with connect(
        address, additional_headers=headers, compression=None, max_size=None, proxy=None
    ) as connection:
        yield Socket(connection)
