"""Sound beside a live chat: what the microphone hears in, what the model says out.

Binary frames are PCM, 16 bits, one channel, little-endian: 16 kHz from the client, 24 kHz to it.
Text frames are JSON: the client says `{"type":"end"}` when the microphone is off, the server says
`{"type":"interrupted"}` when what was sent and not played yet is to be dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import anyio
from google.genai import types
from starlette.types import Message
from starlette.websockets import WebSocket

from adk_stream_protocol.bell import Bell
from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.errors import BadFrame, ClientFault
from adk_stream_protocol.identifiers import ChatId, UserId
from adk_stream_protocol.transports.framing import FrameWriter
from adk_stream_protocol.wire.values import as_object, dumps, parse_json

__all__ = ["AudioSocket", "heard"]

_KIND: Final = "audio/pcm;rate=16000"
_POLICY: Final = 1008
_TOO_SLOW: Final = 1013
_MOST_BYTES: Final = 64 * 1024
_MOST_UNSENT: Final = 60 * 24_000 * 2
"""How many bytes of sound may wait for a client: a minute."""


def heard(pcm: bytes) -> types.Blob:
    """Return what a microphone heard, as ADK takes it.

    Raises:
        BadFrame: these are no samples.
    """
    if len(pcm) > _MOST_BYTES:
        raise BadFrame(f"A piece of sound may have at most {_MOST_BYTES} bytes. Send smaller ones.")
    if len(pcm) % 2:
        raise BadFrame("Sound is 16-bit PCM: an even number of bytes.")
    return types.Blob(data=pcm, mime_type=_KIND)


@dataclass(slots=True)
class AudioSocket:
    """One socket of one user's chat."""

    socket: WebSocket
    conversations: Conversations
    user: UserId
    chat_id: ChatId
    explain: Callable[[Exception], str]
    """Logs a fault and returns what the client may know of it."""
    send_seconds: float = 20.0

    async def serve(self) -> None:
        """Carry sound both ways until the client leaves, or is dropped because it takes none."""
        try:
            await self.conversations.check_owner(self.chat_id, self.user)
        except ClientFault as fault:
            await self.socket.close(_POLICY, self.explain(fault))
            return
        unsent = _Unsent()
        with self.conversations.lives.listening(self.user, self.chat_id, unsent.put):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._send_all, unsent, tasks.cancel_scope)
                while (message := await self.socket.receive())["type"] != "websocket.disconnect":
                    try:
                        await self._take(message)
                    except Exception as error:  # noqa: BLE001  # the edge: the socket goes on
                        told = {"type": "error", "errorText": self.explain(error)}
                        unsent.say(dumps(told))
                tasks.cancel_scope.cancel()

    async def _take(self, message: Message) -> None:
        pcm, text = message.get("bytes"), message.get("text")
        if pcm:
            sound = heard(pcm)
            live = await self.conversations.hear(self.chat_id, self.user)
            # None: nobody would hear it, another reply runs in this chat.
            if live is not None:
                live.queue.send_realtime(sound)
        elif as_object(parse_json(text or "null", max_depth=4)).get("type") == "end":
            live = self.conversations.lives.of(self.chat_id)
            if live is not None and live.scope.owner == self.user:
                live.queue.send_audio_stream_end()
        else:
            raise BadFrame('Send binary frames of PCM, or the text {"type":"end"}.')

    async def _send_all(self, unsent: _Unsent, scope: anyio.CancelScope) -> None:
        writer = FrameWriter(self.socket, send_seconds=self.send_seconds, leave=scope.cancel)
        while (frame := await unsent.next()) is not None:
            await writer.send(frame)
        await writer.close(_TOO_SLOW, "Too slow. Connect again.")
        scope.cancel()


class _Unsent:
    """What waits to be sent; a client that takes nothing for too long is given up."""

    def __init__(self) -> None:
        self._frames: deque[bytes | str] = deque()
        self._bytes = 0  # Of sound, among them
        self._more = Bell()
        self._too_slow = False

    def put(self, sound: bytes | None) -> None:
        """Add what the model says; None: what waits is not to be heard any more."""
        if sound is None:
            self._frames.clear()
            self._bytes = 0
            self.say(dumps({"type": "interrupted"}))
            return
        self._bytes += len(sound)
        self._too_slow = self._too_slow or self._bytes > _MOST_UNSENT
        self.say(sound)

    def say(self, frame: bytes | str) -> None:
        """Add a frame."""
        self._frames.append(frame)
        self._more.ring()

    async def next(self) -> bytes | str | None:
        """Return the next frame; None: the client is too slow."""
        while not self._frames:
            await self._more.wait()
        if self._too_slow:
            return None
        frame = self._frames.popleft()
        if isinstance(frame, bytes):
            self._bytes -= len(frame)
        return frame
