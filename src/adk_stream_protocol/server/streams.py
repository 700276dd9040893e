"""A reply as a response, in the form that its reader asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from adk_stream_protocol.engine.reply import Reply
from adk_stream_protocol.server.faults import fault_response, prefers_text
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.transports.sse import EventStream
from adk_stream_protocol.transports.taping import Tape
from adk_stream_protocol.transports.text_stream import TextStream
from adk_stream_protocol.wire.profiles import Audience

__all__ = ["StreamKind", "streamed"]

StreamKind: TypeAlias = Literal["data", "text"]
"""The AI SDK's names of its two protocols: the UI message stream, and the text alone."""


def streamed(
    request: Request,
    reply: Reply,
    audience: Audience,
    *,
    kind: StreamKind,
    keep_alive: float,
    meters: Meters,
    headers: Mapping[str, str] | None = None,
    tape: Tape | None = None,
) -> Response:
    """Return the response that sends a reply.

    Args:
        request: what is answered.
        reply: what is sent.
        audience: the reader.
        kind: the form of the stream.
        keep_alive: after how many idle seconds a comment is sent, where the form has any.
        meters: where it is counted.
        headers: what the response carries besides its own.
        tape: takes down what is sent; None: nobody records.
    """
    more = headers or {}
    if kind == "text":
        refuse = partial(fault_response, as_text=prefers_text(request, by_default=True))
        return TextStream(reply, audience, meters=meters, refuse=refuse, headers=more, tape=tape)
    response = EventStream(reply, audience, keep_alive=keep_alive, meters=meters, tape=tape)
    response.headers.update(more)
    return response
