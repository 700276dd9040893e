"""A reply as Server-Sent Events. Knows bytes; knows nothing of ADK or of held calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adk_stream_protocol.engine.reply import Reply
from adk_stream_protocol.ports import Batch
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.transports.taping import Tape
from adk_stream_protocol.wire.chunks import encode
from adk_stream_protocol.wire.frames import UNNUMBERED, ChunkFrame, Ended, ServerFrame, Started
from adk_stream_protocol.wire.profiles import Audience

__all__ = ["HEADERS", "EventStream"]

HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}

_OPEN: Final = b": stream-open\n\n"
_ALIVE: Final = b": keep-alive\n\n"
_DONE: Final = b"data: [DONE]\n\n"


class EventStream(Response):
    """Sends a reply as it is written. A client that leaves ends only this response."""

    def __init__(
        self,
        reply: Reply,
        audience: Audience,
        *,
        keep_alive: float,
        meters: Meters,
        tape: Tape | None = None,
    ) -> None:
        super().__init__(headers=dict(HEADERS))
        del self.headers["content-length"]
        self._reply = reply
        self._audience = audience
        self._keep_alive = keep_alive
        self._meters = meters
        self._tape = tape  # None: nobody records
        self._is_complete = False  # True once the reply was sent to its end
        self._is_waiting = False  # True while there is nothing to send
        self._sent_at = 0.0  # When something was sent last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        with self._meters.sending():
            try:
                await self._send_until_gone(receive, send)
            finally:
                end = "complete" if self._is_complete else "left"
                self._meters.count("replies", self._audience.profile, end)

    async def _send_until_gone(self, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as tasks:
            self._sent_at = anyio.current_time()
            tasks.start_soon(self._keep, receive, send, tasks.cancel_scope)
            await self._send_all(send)
            tasks.cancel_scope.cancel()

    async def _keep(self, receive: Receive, send: Send, sending: anyio.CancelScope) -> None:
        """Keep the connection alive until the client has left; then end the sending."""
        while True:
            # Here and not around each wait for more: most are short, and there are many.
            with anyio.CancelScope(deadline=self._sent_at + self._keep_alive):
                while (await receive())["type"] != "http.disconnect":
                    pass
                sending.cancel()
                return
            if not self._is_waiting:
                # The client takes nothing: whatever is said is on its way already.
                self._sent_at = anyio.current_time()
            elif anyio.current_time() >= self._sent_at + self._keep_alive:
                await self._body(send, _ALIVE)

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._note(Started(UNNUMBERED))
        await self._body(send, _OPEN)
        ended = False
        while not ended:
            self._is_waiting = True
            batch = await self._reply.next()
            self._is_waiting = False
            ended = batch.ended
            await self._body(send, self._events(batch))
        await send({"type": "http.response.body", "body": _DONE, "more_body": False})
        self._note(Ended(UNNUMBERED))
        self._is_complete = True

    def _events(self, batch: Batch) -> bytes:
        """Return all that is ready as one piece: a send per chunk costs more than the chunk."""
        chunks = list(self._audience.render(batch.entries))
        for chunk in chunks if self._tape is not None else ():
            self._note(ChunkFrame(UNNUMBERED, 0, chunk))
        text = "".join(f"data: {encode(chunk)}\n\n" for chunk in chunks)
        # A lone surrogate, half of a pair a model was cut off in, has no UTF-8.
        return text.encode("utf-8", "replace")

    def _note(self, frame: ServerFrame) -> None:
        if self._tape is not None:
            self._tape(frame, self._reply.chat_id)

    async def _body(self, send: Send, body: bytes) -> None:
        if body:
            self._sent_at = anyio.current_time()
            await send({"type": "http.response.body", "body": body, "more_body": True})
