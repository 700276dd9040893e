"""What was said on the chat routes, as JSON lines: the same whoever writes them, server or client.

The first line names the format, then each line is one thing that was said. Nothing here opens a
file, reads a clock or knows a route; what must not be written down is `redaction`'s matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, assert_never, cast

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.wire.chunks import to_json
from adk_stream_protocol.wire.frames import (
    Abort,
    Active,
    ChatFrame,
    ChunkFrame,
    Ended,
    EnvelopeFrame,
    Failed,
    Interrupt,
    NoActive,
    Resume,
    Send,
    ServerFrame,
    Started,
    ToolResult,
)
from adk_stream_protocol.wire.messages import UIMessage
from adk_stream_protocol.wire.requests import ChatRequest
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, as_text, dumps

__all__ = [
    "BY_SERVER",
    "Decided",
    "Header",
    "Line",
    "Recording",
    "Said",
    "header_text",
    "line_of",
    "line_text",
    "read_recording",
]

BY_SERVER: Final = "adk-stream-protocol"

_FORMAT: Final = 1
_COMMON: Final = ("at", "direction", "chat", "request", "type")

Direction: TypeAlias = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class Header:
    """The first line."""

    by: str
    started_at: str
    """The moment that `at` counts from, in ISO 8601."""
    redacted: bool = False
    """Whether texts are masked."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was said."""

    at: float
    """Seconds since the start."""
    direction: Direction
    """`in` is to the server, `out` is from it."""
    type: str
    chat: str | None = None
    """None: none was named, as with requests of older clients."""
    request: str | None = None
    """Ties a request and what answers it; None: it belongs to none."""
    fields: JsonObject = field(default_factory=dict)
    """What this type adds."""
    number: int = 0
    """Its line in the file, counted from 1; 0: it was not read from one."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording that was read."""

    header: Header
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Decided:
    """An approval was decided away from the chat."""

    data: JsonObject


Said: TypeAlias = ChatFrame | EnvelopeFrame | ServerFrame | Decided
"""What can be recorded. Sound and pings are not: there is nothing to read in them."""


def line_of(said: Said, at: float, *, chat: str | None, request: str | None) -> Line | None:
    """Return the line of what was said; None: it is not recorded."""
    match said:
        case Send() | Resume() | Abort() | ToolResult() | Interrupt() | Decided():
            kind, fields = _asked(said)
            direction: Direction = "in"
        case Started() | ChunkFrame() | Ended() | Failed() | NoActive() | Active():
            kind, fields = _told(said)
            direction = "out"
        case _:
            return None
    return Line(round(at, 3), direction, kind, chat, request, fields)


def _asked(
    said: Send | Resume | Abort | ToolResult | Interrupt | Decided,
) -> tuple[str, JsonObject]:
    match said:
        case Send(_, request):
            return "send", _request(request)
        case Resume():
            return "resume", {}
        case Abort():
            return "abort", {}
        case Interrupt():
            return "stop", {}
        case ToolResult(call_id, tool_name, result):
            named = {"toolName": tool_name} if tool_name else {}
            return "tool_result", {"data": {"toolCallId": call_id, **named, "result": result}}
        case Decided(data):
            return "decision", {"data": data}
        case _:
            assert_never(said)


def _request(request: ChatRequest) -> JsonObject:
    fields: dict[str, JsonValue] = {"trigger": request.trigger}
    if request.message_id is not None:
        fields["messageId"] = request.message_id
    if request.parent_id is not None:
        fields["parentId"] = request.parent_id or None
    # The history before it is in earlier lines.
    fields["messages"] = [_message(message) for message in request.messages[-1:]]
    return fields


def _told(
    said: Started | ChunkFrame | Ended | Failed | NoActive | Active,
) -> tuple[str, JsonObject]:
    match said:
        case Started():
            return "start", {}
        case ChunkFrame(_, _, chunk):
            return "chunk", {"chunk": to_json(chunk)}
        case Ended():
            return "end", {}
        case Failed(_, text):
            return "error", {"errorText": text}
        case NoActive():
            return "no-active", {}
        case Active():
            return "active", {}
        case _:
            assert_never(said)


def _message(message: UIMessage) -> JsonObject:
    written = message.to_json()
    if message.content:
        written["content"] = list(message.content)
    return written


def header_text(header: Header) -> str:
    """Return the first line of a recording."""
    written: dict[str, JsonValue] = {
        "recording": _FORMAT,
        "by": header.by,
        "startedAt": header.started_at,
    }
    if header.redacted:
        written["redacted"] = True
    return f"{dumps(written)}\n"


def line_text(line: Line) -> str:
    """Return a line of a recording."""
    common = {name: getattr(line, name) for name in _COMMON}
    written = {name: value for name, value in common.items() if value is not None}
    return f"{dumps({**written, **line.fields})}\n"


def read_recording(lines: Iterable[str]) -> Recording:
    """Read a recording. Types and fields that are not known are kept, and nobody looks at them.

    Raises:
        BadRequest: it is none, or of another format, or a line of it is not JSON; the message
            says which.
    """
    numbered = ((n, text) for n, text in enumerate(lines, start=1) if text.strip())
    first = next(numbered, None)
    if first is None:
        raise _bad("The file is empty.")
    return Recording(_header(_parsed(*first)), tuple(_lines(numbered)))


def _lines(numbered: Iterable[tuple[int, str]]) -> Iterator[Line]:
    for number, text in numbered:
        value = _parsed(number, text)
        at, direction = value.get("at", 0.0), value.get("direction")
        if isinstance(at, bool) or not isinstance(at, int | float):
            raise _bad(f'Line {number}: "at" must be a number of seconds.')
        if direction not in {"in", "out"}:
            raise _bad(f'Line {number}: "direction" must be "in" or "out".')
        yield Line(
            float(at),
            direction,
            as_text(value.get("type")),
            as_text(value.get("chat")) or None,
            as_text(value.get("request")) or None,
            {key: item for key, item in value.items() if key not in _COMMON},
            number,
        )


def _header(value: JsonObject) -> Header:
    found = value.get("recording")
    if found is None or isinstance(found, bool):
        raise _bad('Line 1: a recording begins with {"recording":1,...}; this is another file.')
    if found != _FORMAT:
        raise _bad(
            f"Line 1: this is a recording of format {dumps(found)}; this release reads format "
            f"{_FORMAT}."
        )
    return Header(
        as_text(value.get("by")), as_text(value.get("startedAt")), value.get("redacted") is True
    )


def _parsed(number: int, text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad(
            f"Line {number} is not JSON. If it is the last one, the recording was cut off there: "
            "delete it."
        ) from None
    if not isinstance(value, Mapping):
        raise _bad(f"Line {number} is not a JSON object.")
    return as_object(cast("JsonValue", value))


def _bad(message: str) -> BadRequest:
    return BadRequest(message, code="bad_recording")
