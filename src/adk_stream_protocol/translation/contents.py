"""What the client gives, as ADK takes it: a user's message, and the answers to ADK's requests.

Message parts are never passed on as they came: ADK would believe a forged function response.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from google.genai import types

from adk_stream_protocol.errors import BadRequest, TooLarge, UnsupportedMedia
from adk_stream_protocol.lifecycle import CallKind, HeldCall
from adk_stream_protocol.translation.cards import call_answered
from adk_stream_protocol.translation.held import CREDENTIAL_TOOL, INPUT_TOOL, WORKFLOW_PREFIX
from adk_stream_protocol.wire.messages import UIMessage
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL, outcome_text
from adk_stream_protocol.wire.values import (
    JsonObject,
    JsonValue,
    as_object,
    as_text,
    check_storable,
)

__all__ = ["ContentLimits", "answers_content", "has_words", "said_text", "user_content"]

_MAGIC: Final[dict[str, tuple[bytes, ...]]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "application/pdf": (b"%PDF-",),
    "audio/wav": (b"RIFF",),
    "audio/mpeg": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"\xff\xf2"),
    "text/plain": (b"",),
    "text/csv": (b"",),
    "text/markdown": (b"",),
    "application/json": (b"",),
}
_RIFF: Final = {"image/webp": b"WEBP", "audio/wav": b"WAVE"}
"""What a RIFF file says it is, eight bytes in."""


@dataclass(frozen=True, slots=True)
class ContentLimits:
    """How much one user message may hold."""

    parts: int = 64
    text_bytes: int = 64 * 1024
    file_bytes: int = 5 * 1024 * 1024
    media_types: frozenset[str] = frozenset(_MAGIC)


def user_content(message: UIMessage, limits: ContentLimits) -> types.Content:
    """Return a user's message as ADK takes it: its text and its allowed files, nothing else.

    Raises:
        BadRequest: it is empty, or a file is not inline data.
        TooLarge: it has too many parts, or one is too long.
        UnsupportedMedia: a file's type is not allowed, or its bytes are of another type.
    """
    given = _given(message)
    if len(given) > limits.parts:
        raise TooLarge(f"A message may have at most {limits.parts} parts, not {len(given)}.")
    parts = list(_parts(given, limits))
    if not parts:
        raise BadRequest("The message is empty: it needs text or a file.", code="empty_message")
    return types.Content(role="user", parts=parts)


def _given(message: UIMessage) -> Sequence[JsonObject]:
    return message.parts or message.content


def has_words(message: UIMessage) -> bool:
    """Whether a message brings text or a file; without either it only names one."""
    return any(part["type"] in {"text", "file"} for part in _given(message))


def said_text(message: UIMessage) -> str:
    """Return the text that `user_content` would take of a message, unchecked."""
    texts = (as_text(part.get("text")) for part in _given(message) if part["type"] == "text")
    return "".join(text for text in texts if text.strip())


def _parts(given: Iterable[JsonObject], limits: ContentLimits) -> Iterator[types.Part]:
    for part in given:
        match part["type"]:
            case "text":
                text = as_text(part.get("text"))
                if len(text.encode("utf-8", "replace")) > limits.text_bytes:
                    raise TooLarge(f"A text part may have at most {limits.text_bytes} bytes.")
                check_storable(text, "A text part")
                if text.strip():
                    yield types.Part(text=text)
            case "file":
                yield _file(part, limits)
            case _:
                continue


def _file(part: JsonObject, limits: ContentLimits) -> types.Part:
    url, kind = as_text(part.get("url")), as_text(part.get("mediaType"))
    header, comma, encoded = url.partition(",")
    if not header.startswith("data:") or not header.endswith(";base64") or not comma:
        raise BadRequest(
            "A file must come inline, as a base64 data URL; addresses are not fetched.",
            code="file_not_inline",
        )
    stated = header.removeprefix("data:").removesuffix(";base64").partition(";")[0]
    if kind and kind != stated:
        raise UnsupportedMedia(f"The file says it is {kind!r} and {stated!r}; they must agree.")
    if stated not in limits.media_types:
        allowed = ", ".join(sorted(limits.media_types))
        raise UnsupportedMedia(f"Files of type {stated!r} are not accepted; send one of {allowed}.")
    data = _decoded(encoded, limits)
    starts_right = any(data.startswith(magic) for magic in _MAGIC.get(stated, (b"",)))
    if not starts_right or not data[8:].startswith(_RIFF.get(stated, b"")):
        raise UnsupportedMedia(f"The file's bytes are not {stated!r}.")
    name = as_text(part.get("filename")) or None
    check_storable(name, "The name of a file")
    return types.Part(inline_data=types.Blob(data=data, mime_type=stated, display_name=name))


def _decoded(encoded: str, limits: ContentLimits) -> bytes:
    if len(encoded) > limits.file_bytes * 4 // 3 + 4:
        raise TooLarge(f"A file may have at most {limits.file_bytes} bytes.")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest("The file's data URL is not valid base64.", code="bad_file") from error
    if len(data) > limits.file_bytes:
        raise TooLarge(f"A file may have at most {limits.file_bytes} bytes.")
    return data


def answers_content(calls: Iterable[HeldCall]) -> types.Content:
    """Return the answers to ADK's requests, built from the ledger alone."""
    return types.Content(role="user", parts=[_answer(call) for call in calls])


def _answer(call: HeldCall) -> types.Part:
    name, response = _named_response(call)
    return types.Part(
        function_response=types.FunctionResponse(
            id=call.request_id, name=name, response=dict(response)
        )
    )


def _named_response(call: HeldCall) -> tuple[str, JsonObject]:
    if call.kind is CallKind.INPUT:
        return INPUT_TOOL, _reply(call)
    if call.kind is CallKind.CREDENTIAL:
        return CREDENTIAL_TOOL, _credential(call)
    asked_as_input = call.request_id.startswith(WORKFLOW_PREFIX)
    return (INPUT_TOOL if asked_as_input else CONFIRMATION_TOOL), _confirmation(call)


def _confirmation(call: HeldCall) -> JsonObject:
    # A strict bool and nothing from the client: ADK takes "yes" for true.
    response: dict[str, JsonValue] = {"confirmed": call.approved}
    if call.approved and call.payload is not None:
        response["payload"] = call.payload
    return response


def _reply(call: HeldCall) -> JsonObject:
    if not call.approved:
        return {"error": outcome_text(call_answered(call))}
    if call.error is not None:
        return {"error": call.error}
    return call.result if isinstance(call.result, dict) else {"result": call.result}


def _credential(call: HeldCall) -> JsonObject:
    """Return the auth config ADK asked with, plus where the sign-in led: all a client may add."""
    config = dict(as_object(call.arguments.get("authConfig")))
    exchanged = dict(as_object(config.get("exchangedAuthCredential")))
    given = as_object(call.result)
    oauth2 = dict(as_object(exchanged.get("oauth2")))
    for key in ("authResponseUri", "redirectUri"):
        if as_text(given.get(key)):
            oauth2[key] = as_text(given.get(key))
    return config | {"exchangedAuthCredential": exchanged | {"oauth2": oauth2}}
