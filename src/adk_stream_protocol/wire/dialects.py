"""Two ways to spell frames: the AI SDK's own, and the envelope 1.0 of the first ADK bridges.

What a client wrote wrongly is a `BadFrame` that says what; nothing here knows what a frame does.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, assert_never

from adk_stream_protocol.errors import BadFrame, BadRequest
from adk_stream_protocol.identifiers import RequestId
from adk_stream_protocol.wire.chunks import ErrorChunk, encode
from adk_stream_protocol.wire.frames import (
    NOBODY,
    UNNUMBERED,
    Abort,
    Active,
    Audio,
    AudioControl,
    ChatFrame,
    ChunkFrame,
    Ended,
    EnvelopeFrame,
    Failed,
    Interrupt,
    NoActive,
    Ping,
    Pong,
    Refused,
    Resume,
    Send,
    ServerFrame,
    Started,
    ToolResult,
)
from adk_stream_protocol.wire.requests import parse_chat_id, parse_request
from adk_stream_protocol.wire.values import (
    JsonObject,
    JsonValue,
    as_object,
    as_text,
    dumps,
    parse_json,
    quoted,
)

__all__ = ["AiSdkDialect", "Dialect", "EnvelopeDialect"]

_LONGEST_ID: Final = 128

_STOCK_HEAD: Final = re.compile(
    r'\s*\{\s*"type"\s*:\s*"\w+"\s*,\s*"requestId"\s*:\s*"([^"\\]{1,128})"'
)
"""How every frame of a stock client begins."""


FrameT_co = TypeVar("FrameT_co", covariant=True)


class Dialect(Protocol[FrameT_co]):
    """One way to write frames as text; generic in what a client can say in it."""

    def parse(self, text: str) -> FrameT_co:
        """Return what the client said.

        Raises:
            BadFrame: it cannot be understood; the message says why.
        """
        ...

    def request_of(self, text: str) -> RequestId | None:
        """Return the request that a frame names, as far as that is seen without reading it."""
        ...

    def render(self, frame: ServerFrame) -> str | None:
        """Return the text of a frame, or None if this dialect has no word for it."""
        ...


@dataclass(frozen=True, slots=True)
class AiSdkDialect:
    """The frames of `WebSocketChatTransport` of ai 7."""

    max_depth: int = 32
    """How deep a frame's JSON may nest."""

    def parse(self, text: str) -> ChatFrame:
        frame = _object(text, self.max_depth)
        kind = _text_of(frame, "type")
        request_id = self._request_id(frame)
        try:
            return self._parsed(kind, request_id, frame)
        except BadFrame:
            raise
        except BadRequest as error:
            raise BadFrame(error.message, request_id=request_id, code=error.code) from error

    def request_of(self, text: str) -> RequestId | None:
        found = _STOCK_HEAD.match(text)
        return None if found is None else RequestId(found[1])

    def render(self, frame: ServerFrame) -> str | None:
        match frame:
            case ChunkFrame(request_id, sequence, chunk):
                # Put together by hand: the chunk is JSON already, and there are many.
                name = quoted(request_id)
                return (
                    f'{{"type":"chunk","requestId":{name},"sequence":{sequence},'
                    f'"chunk":{encode(chunk)}}}'
                )
            case Started(request_id):
                return dumps({"type": "start", "requestId": request_id})
            case Ended(request_id):
                return dumps({"type": "end", "requestId": request_id})
            case NoActive(request_id):
                return dumps({"type": "no-active", "requestId": request_id})
            case Failed(request_id, error):
                return dumps({"type": "error", "requestId": request_id, "errorText": error})
            case Active(chat_id):
                return dumps({"type": "active", "requestId": NOBODY, "id": chat_id})
            case Pong() | Refused():
                return None
            case _:
                assert_never(frame)

    def _request_id(self, frame: JsonObject) -> RequestId:
        request_id = _text_of(frame, "requestId")
        if not 0 < len(request_id) <= _LONGEST_ID or request_id == NOBODY:
            raise BadFrame(
                f'"requestId" must be 1 to {_LONGEST_ID} characters, and not {NOBODY!r}.'
            )
        return RequestId(request_id)

    def _parsed(self, kind: str, request_id: RequestId, frame: JsonObject) -> ChatFrame:
        match kind:
            case "abort":
                return Abort(request_id, leave=frame.get("leave") is True)
            case "resume":
                if frame.get("lastSequence") is not None:
                    # The numbers of another request's reply mean nothing here: it may have begun
                    # in the middle of the message.
                    raise BadFrame(
                        'A reply is resumed from its beginning. Leave out "lastSequence".',
                        request_id=request_id,
                    )
                return Resume(request_id, parse_chat_id(_text_of(frame, "id", request_id)))
            case "send":
                _text_of(frame, "id", request_id)
                # What a POST has beside the messages, a frame has in an object of its own.
                return Send(request_id, parse_request({**as_object(frame.get("body")), **frame}))
            case _:
                raise BadFrame('"type" must be "send", "resume" or "abort".', request_id=request_id)


_MESSAGE_HEAD: Final = re.compile(r'\s*\{\s*"type"\s*:\s*"message"')
"""How every message of the first clients begins."""

_VERSION: Final = "1.0"
_ABOUT_FRAME: Final = frozenset({"type", "version", "timestamp"})
"""What a frame says of itself; in one without `data`, all else is the data."""
_MOST_AUDIO: Final = 64 * 1024
_MOST_SAMPLES: Final = 192_000


@dataclass(frozen=True, slots=True)
class EnvelopeDialect:
    """`{"type", "version": "1.0", "data"}` in, the text of an event stream out.

    The fields of `data` may also stand in the frame itself: later clients write it flat.
    """

    max_depth: int = 32
    """How deep a frame's JSON may nest."""

    def parse(self, text: str) -> EnvelopeFrame:
        frame = _object(text, self.max_depth)
        version = frame.get("version")
        if version != _VERSION:
            named = dumps(version) if isinstance(version, str) and len(version) <= 20 else "that"
            raise BadFrame(
                f'This server speaks version "{_VERSION}", not {named}.', code="bad_version"
            )
        kind = _text_of(frame, "type")
        try:
            return self._parsed(kind, _data(frame), frame.get("timestamp"))
        except BadFrame:
            raise
        except BadRequest as error:
            raise BadFrame(error.message, code=error.code) from error

    def request_of(self, text: str) -> RequestId | None:
        """Return the one request there is, if a frame is a message; None: it asks for no turn."""
        return UNNUMBERED if _MESSAGE_HEAD.match(text) else None

    def render(self, frame: ServerFrame) -> str | None:
        match frame:
            case ChunkFrame(_, _, chunk):
                return f"data: {encode(chunk)}\n\n"
            case Ended():
                return "data: [DONE]\n\n"
            case Failed(_, error):
                return f"data: {encode(ErrorChunk(error))}\n\n"
            case Pong(timestamp):
                told = {} if timestamp is None else {"timestamp": timestamp}
                return dumps({"type": "pong", "version": _VERSION, **told})
            case Refused(text, code, call_id):
                about = {"code": code, "message": text, "toolCallId": call_id}
                named = {name: value for name, value in about.items() if value}
                return dumps({"type": "refused", "version": _VERSION, **named})
            case Started() | NoActive() | Active():
                return None
            case _:
                assert_never(frame)

    def _parsed(self, kind: str, data: JsonObject, timestamp: JsonValue) -> EnvelopeFrame:
        match kind:
            case "message":
                return Send(UNNUMBERED, parse_request(data))
            case "tool_result":
                return _tool_result(data)
            case "interrupt":
                return Interrupt()
            case "ping":
                return Ping(_moment(data.get("timestamp", timestamp)))
            case "audio_chunk":
                return _audio(data)
            case "audio_control":
                return _audio_control(data)
            case _:
                raise BadFrame(
                    '"type" must be "message", "tool_result", "interrupt", "ping", "audio_chunk" '
                    'or "audio_control".'
                )


def _data(frame: JsonObject) -> JsonObject:
    """Return what a frame carries, in its `data` or beside its type."""
    if "data" not in frame:
        return {name: value for name, value in frame.items() if name not in _ABOUT_FRAME}
    data = frame["data"]
    if not isinstance(data, Mapping):
        raise BadFrame('"data" must be an object.')
    return data


def _moment(value: JsonValue) -> float | None:
    """Return a client's time as it gave it; None: it gave none."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _audio_control(data: JsonObject) -> AudioControl:
    match data.get("action"):
        case "start":
            return AudioControl("start")
        case "stop":
            return AudioControl("stop")
        case _:
            raise BadFrame('"action" of an "audio_control" must be "start" or "stop".')


def _tool_result(data: JsonObject) -> ToolResult:
    call_id = _text_of(data, "toolCallId")
    if not 0 < len(call_id) <= _LONGEST_ID:
        raise BadFrame('"toolCallId" must be the id of a call.')
    if "result" not in data:
        raise BadFrame('A "tool_result" needs a "result".')
    return ToolResult(call_id, as_text(data.get("toolName")), data["result"])


def _audio(data: JsonObject) -> Audio:
    chunk = _text_of(data, "chunk")
    if len(chunk) > _MOST_AUDIO * 4 // 3 + 4:
        raise BadFrame(f'"chunk" is longer than {_MOST_AUDIO} bytes. Send smaller ones.')
    try:
        pcm = base64.b64decode(chunk, validate=True)
    except binascii.Error:
        raise BadFrame('"chunk" must be base64.') from None
    return Audio(
        pcm,
        sample_rate=_count(data, "sampleRate", default=16_000, most=_MOST_SAMPLES),
        channels=_count(data, "channels", default=1, most=2),
        bit_depth=_count(data, "bitDepth", default=16, most=32),
    )


def _count(data: JsonObject, name: str, *, default: int, most: int) -> int:
    value = data.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
        raise BadFrame(f'"{name}" must be a whole number from 1 to {most}.')
    return value


def _object(text: str, max_depth: int) -> JsonObject:
    try:
        value: JsonValue = parse_json(text, max_depth=max_depth)
    except BadRequest as error:
        raise BadFrame(error.message.replace("body", "frame"), code=error.code) from error
    if not isinstance(value, Mapping):
        raise BadFrame("A frame must be a JSON object.")
    return value


def _text_of(frame: JsonObject, name: str, request_id: RequestId | None = None) -> str:
    value = frame.get(name)
    if not isinstance(value, str):
        raise BadFrame(f'A frame needs "{name}", a string.', request_id=request_id)
    return value
