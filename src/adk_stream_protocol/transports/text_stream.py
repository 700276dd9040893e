"""A reply as plain text: what the agent says, and nothing else.

For clients of the AI SDK's text protocol, which show every byte as the answer. So there is no room
for keep-alives, tool calls or errors. What text cannot carry is an HTTP error as long as nothing
was sent, and the last paragraph after that. A reply that did not finish also breaks the connection,
for a client to notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from adk_stream_protocol.engine.reply import Reply
from adk_stream_protocol.errors import AdkStreamError, Conflict, ReplyFailed
from adk_stream_protocol.ports import LOST
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.transports.lasting import serve_last
from adk_stream_protocol.transports.taping import Tape
from adk_stream_protocol.wire.chunks import AbortChunk, ErrorChunk, FinishChunk, TextDeltaChunk
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry
from adk_stream_protocol.wire.frames import UNNUMBERED, ChunkFrame, Ended, Started
from adk_stream_protocol.wire.profiles import Audience

__all__ = ["TEXT_HEADERS", "TextStream"]

TEXT_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "connection": "keep-alive",
    "x-accel-buffering": "no",
    # An agent's words are not a page, whatever they look like.
    "x-content-type-options": "nosniff",
}

_CLIENT_LEFT: Final = 499


class TextStream(Response):
    """Sends the text of a reply as it is written. A client that leaves ends only this response."""

    def __init__(
        self,
        reply: Reply,
        audience: Audience,
        *,
        meters: Meters,
        refuse: Callable[[Exception], Response],
        headers: Mapping[str, str],
        tape: Tape | None = None,
    ) -> None:
        """Prepare the response.

        Args:
            reply: what is sent.
            audience: the reader, for a recording.
            meters: where it is counted.
            refuse: makes the response to a reply that has no text and cannot be shown.
            headers: what the response carries, whatever becomes of it.
            tape: takes down what is sent; None: nobody records.
        """
        super().__init__(headers={**TEXT_HEADERS, **headers})
        del self.headers["content-length"]
        self._reading = _Reading(reply, audience, meters, tape)
        self._refuse = refuse
        self._more_headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        reading = self._reading
        # How the response begins depends on what the reply begins with.
        is_left = await _until_left(receive, reading.begin)
        fault = reading.early_fault()
        if is_left or fault is not None:
            refused = Response(status_code=_CLIENT_LEFT) if fault is None else self._refuse(fault)
            refused.headers.update(self._more_headers)
            reading.count()
            await refused(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await serve_last(scope, receive, send, serve=reading.serve)


@dataclass(slots=True)
class _Reading:
    """A reply, while its text is read and sent."""

    reply: Reply
    audience: Audience
    meters: Meters
    tape: Tape | None
    """None: nobody records."""
    text: str = ""
    """What was read and not sent."""
    held: dict[str, CallHeld] = field(default_factory=dict)
    """The calls that wait for an answer, by approval."""
    end: ErrorChunk | AbortChunk | FinishChunk | None = None
    """How the reply ended; None: it has not, or was cut off."""
    ended: bool = False
    """True once everything was read."""

    async def begin(self) -> None:
        """Read until there is some text, or nothing more will come."""
        if self.tape is not None:
            self.tape(Started(UNNUMBERED), self.reply.chat_id)
        while not self.text and not self.ended:
            await self._read()

    async def serve(self, receive: Receive, send: Send) -> None:
        """Send the text until the reply ends or the client leaves."""

        async def send_all() -> None:
            while not self.ended:
                await self._send(send)
                await self._read()
            fault = self.fault()
            self.text += "" if fault is None else f"\n\n{fault.public_message}"
            await self._send(send)
            if fault is not None and not isinstance(self.end, FinishChunk):
                # Servers break the connection then, so that no program takes half an answer for a
                # whole one. Some middleware hides that from them: then the text says it alone.
                raise fault
            await send({"type": "http.response.body", "body": b"", "more_body": False})

        self.meters.open_streams += 1
        try:
            await _until_left(receive, send_all)
        finally:
            self.meters.open_streams -= 1
            self.count()

    def count(self) -> None:
        """Count the reply as one that was read to its end, or left."""
        self.meters.count("replies", self.audience.profile, "complete" if self.ended else "left")

    def fault(self) -> AdkStreamError | None:
        """Return why the text of an ended reply is not all of an answer; None: it is."""
        match self.end:
            case None:
                return _failed(LOST.error_text)
            case ErrorChunk(text):
                return _failed(text)
            case AbortChunk():
                return Conflict("This reply was stopped.", code="reply_stopped")
            case FinishChunk():
                waits = self.held.values()
                return Conflict(_waiting_text(waits), code="answer_needed") if waits else None
            case _:
                assert_never(self.end)

    def early_fault(self) -> AdkStreamError | None:
        """Return why nothing should be sent at all; None: there is text to send, or will be."""
        if not self.ended or (self.text and isinstance(self.end, FinishChunk)):
            return None
        return self.fault()

    async def _read(self) -> None:
        batch = await self.reply.next()
        self.ended = batch.ended
        for entry in batch.entries:
            self._take(entry)
        if self.tape is not None:
            for chunk in self.audience.render(batch.entries):
                self.tape(ChunkFrame(UNNUMBERED, 0, chunk), self.reply.chat_id)
            if self.ended:
                self.tape(Ended(UNNUMBERED), self.reply.chat_id)

    def _take(self, entry: Entry) -> None:
        match entry:
            case TextDeltaChunk():
                self.text += entry.delta
            case CallHeld():
                self.held[entry.approval_id] = entry
            case CallAnswered():
                self.held.pop(entry.approval_id, None)
            case ErrorChunk() | AbortChunk() | FinishChunk():
                self.end = entry
            case _:
                pass

    async def _send(self, send: Send) -> None:
        if self.text:
            # A lone surrogate, half of a pair a model was cut off in, has no UTF-8.
            body, self.text = self.text.encode("utf-8", "replace"), ""
            await send({"type": "http.response.body", "body": body, "more_body": True})


def _failed(text: str) -> ReplyFailed:
    return ReplyFailed("A reply that was read as text did not finish.", public_message=text)


def _waiting_text(waiting: Iterable[CallHeld]) -> str:
    """Return what a person should know of calls that a stream of text cannot show."""
    waits = list(waiting)
    text = f"This reply waits for {' and '.join(dict.fromkeys(_awaited(waits)))}."
    if any(call.approval for call in waits):
        return f"{text} Decide under /api/approvals: the chat then goes on by itself."
    return f"{text} A stream of text cannot ask for it: leave out ?stream=text."


def _awaited(waiting: Iterable[CallHeld]) -> Iterator[str]:
    for call in waiting:
        if call.approval:
            yield f"the approval of {call.tool_name}"
            continue
        match call.kind:
            case "tool" | "browser":
                yield f"the browser to run {call.tool_name}"
            case "input":
                yield "an answer to a question of the agent"
            case "credential":
                yield "a sign-in"
            case _:
                assert_never(call.kind)


async def _until_left(receive: Receive, work: Callable[[], Awaitable[None]]) -> bool:
    """Do something unless the client leaves before it is done; return whether it left."""
    is_left = False
    try:
        async with asyncio.TaskGroup() as tasks:
            leaving = tasks.create_task(_leave(receive))
            await work()
            leaving.cancel()
    except* _Gone:
        is_left = True
    return is_left


async def _leave(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    raise _Gone


class _Gone(Exception):
    """The client has left."""
