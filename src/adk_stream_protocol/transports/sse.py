"""A reply as Server-Sent Events. Knows bytes; knows nothing of ADK or of held calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adk_stream_protocol.engine.reply import Reply
from adk_stream_protocol.ports import Batch
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.transports.lasting import serve_last
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
        self._sending = _Sending(reply, audience, keep_alive, meters, tape)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        # What is open for long is the rest, without the response and its headers.
        await serve_last(scope, receive, send, serve=self._sending.serve)


@dataclass(slots=True)
class _Sending:
    """The body of one response, while it is sent."""

    reply: Reply
    audience: Audience
    keep_alive: float
    meters: Meters
    tape: Tape | None
    """None: nobody records."""
    is_complete: bool = False
    """True once the reply was sent to its end."""
    is_waiting: bool = False
    """True while there is nothing to send."""
    sent_at: float = 0.0
    """When something was sent last."""

    async def serve(self, receive: Receive, send: Send) -> None:
        """Send the reply until it ends or the client leaves."""
        self.meters.open_streams += 1
        self.sent_at = asyncio.get_running_loop().time()
        try:
            # Not anyio's: a group with one task takes 4 KiB there, for each open stream.
            async with asyncio.TaskGroup() as tasks:
                keeping = tasks.create_task(self._keep(receive, send))
                await self._send_all(send)
                keeping.cancel()
        except* _Gone:
            pass
        finally:
            self.meters.open_streams -= 1
            end = "complete" if self.is_complete else "left"
            self.meters.count("replies", self.audience.profile, end)

    async def _keep(self, receive: Receive, send: Send) -> None:
        """Keep the connection alive until the client has left; then end the sending."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                # Here and not around each wait for more: most are short, and there are many.
                async with asyncio.timeout_at(self.sent_at + self.keep_alive):
                    while (await receive())["type"] != "http.disconnect":
                        pass
            except TimeoutError:
                if not self.is_waiting:
                    # The client takes nothing: whatever is said is on its way already.
                    self.sent_at = loop.time()
                elif loop.time() >= self.sent_at + self.keep_alive:
                    await self._body(send, _ALIVE)
            else:
                raise _Gone

    async def _send_all(self, send: Send) -> None:
        self._note(Started(UNNUMBERED))
        await self._body(send, _OPEN)
        ended = False
        while not ended:
            self.is_waiting = True
            batch = await self.reply.next()
            self.is_waiting = False
            ended = batch.ended
            await self._body(send, self._events(batch))
            # Not kept until there is more to send.
            del batch
        self.reply.delivered()
        await send({"type": "http.response.body", "body": _DONE, "more_body": False})
        self._note(Ended(UNNUMBERED))
        self.is_complete = True

    def _events(self, batch: Batch) -> bytes:
        """Return all that is ready as one piece: a send per chunk costs more than the chunk."""
        chunks = list(self.audience.render(batch.entries))
        for chunk in chunks if self.tape is not None else ():
            self._note(ChunkFrame(UNNUMBERED, 0, chunk))
        text = "".join([f"data: {encode(chunk)}\n\n" for chunk in chunks])
        # A lone surrogate, half of a pair a model was cut off in, has no UTF-8.
        return text.encode("utf-8", "replace")

    def _note(self, frame: ServerFrame) -> None:
        if self.tape is not None:
            self.tape(frame, self.reply.chat_id)

    async def _body(self, send: Send, body: bytes) -> None:
        if body:
            self.sent_at = asyncio.get_running_loop().time()
            await send({"type": "http.response.body", "body": body, "more_body": True})


class _Gone(Exception):
    """The client has left."""
