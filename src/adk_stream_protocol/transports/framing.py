"""Frames on a WebSocket, in and out: what every socket of a chat does alike."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import anyio
import anyio.lowlevel
from starlette.types import Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from adk_stream_protocol.errors import BadFrame, TooLarge
from adk_stream_protocol.identifiers import RequestId

__all__ = ["RESTART", "FrameWriter", "SocketLimits", "text_of"]

logger = logging.getLogger(__name__)

RESTART: Final = 1012
"""The close code of a server that ends and comes back."""


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """What one socket may ask for."""

    frame_bytes: int = 1024 * 1024
    """The largest frame of a client."""
    send_seconds: float = 20.0
    """How long a client may take no frame before it is dropped."""
    requests: int = 32
    """How many requests may be open at a time."""
    chats: int = 16
    """How many chats are watched for turns that begin elsewhere: those used last."""
    look_seconds: float = 30.0
    """How often a watched chat is looked at without a hint: hints may be lost."""


def text_of(
    message: Message, limits: SocketLimits, request_of: Callable[[str], RequestId | None]
) -> str:
    """Return the text of a frame.

    Raises:
        BadFrame: it is binary or too large.
    """
    text = message.get("text")
    if not isinstance(text, str):
        raise BadFrame("Send text frames; this socket takes no binary ones.")
    if len(text.encode("utf-8", "replace")) > limits.frame_bytes:
        raise BadFrame(
            f"The frame is larger than {limits.frame_bytes} bytes. The server keeps the "
            "history: send only the last message (prepareSendMessagesRequest).",
            request_id=request_of(text),
            code=TooLarge.default_code,
        )
    return text


class FrameWriter:
    """Writes frames to a client that takes them."""

    def __init__(
        self, socket: WebSocket, *, send_seconds: float, leave: Callable[[], None]
    ) -> None:
        self._socket = socket
        self._send_seconds = send_seconds
        # Ends everything that runs for the socket.
        self._leave = leave

    async def send(self, *frames: str | bytes) -> None:
        """Send frames; does not return if the client has left, or takes none for too long.

        Those of others may come between them.
        """
        for number, frame in enumerate(frames):
            if number:
                # Others run meanwhile: a reply may be long, and a client takes it at once.
                await anyio.lowlevel.checkpoint()
            if isinstance(frame, str):
                await self._within_reason(self._socket.send_text(frame))
            else:
                await self._within_reason(self._socket.send_bytes(frame))

    async def close(self, code: int, reason: str | None = None) -> None:
        """Close the socket."""
        await self._within_reason(self._socket.close(code, reason))

    async def _within_reason(self, write: Awaitable[None]) -> None:
        # A timer, not a scope of anyio's: that takes longer than all else that is done for a frame.
        overdue = asyncio.get_running_loop().call_later(self._send_seconds, self._drop)
        try:
            await write
        except (WebSocketDisconnect, RuntimeError):
            # Starlette raises the second once the first was raised to another sender.
            pass
        else:
            return
        finally:
            overdue.cancel()
        self._leave()
        await anyio.sleep_forever()

    def _drop(self) -> None:
        # The log does not wait for readers, and neither does this socket: it can be resumed.
        logger.warning("socket dropped")
        self._leave()
