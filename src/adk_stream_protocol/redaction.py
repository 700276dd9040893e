"""What a recording does not tell: texts, arguments and results, or at least secrets.

A line keeps its shape: ids, types, tool names, states, keys, booleans, how many words there are.
Whatever is not known to be part of the protocol counts as said by somebody, and is masked.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adk_stream_protocol.recording import Line
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, as_text

__all__ = ["Redaction", "masked_text"]

_NAMES: Final = frozenset(
    {
        "approvalId",
        "decisionId",
        "finishReason",
        "id",
        "kind",
        "messageId",
        "parentId",
        "role",
        "sourceId",
        "state",
        "toolCallId",
        "toolName",
        "trigger",
        "type",
    }
)
"""Fields of chunks, parts and messages that name things."""

_CARD: Final = frozenset(
    {"createdAt", "decidedAt", "expiresAt", "risk", "status", "toolCallId", "toolName"}
)
"""Fields of a `data-approval` part that name things."""

_LISTS: Final = frozenset({"content", "messages", "parts"})
_OBJECTS: Final = frozenset({"approval", "chunk"})
_DELTAS: Final = {"text-delta": "text-end", "reasoning-delta": "reasoning-end"}
_HIDDEN: Final = "x" * 8
_ASCII: Final = 128
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}", re.ASCII)
_SCHEME: Final = re.compile(r"(?:https?:)?//", re.IGNORECASE)

_WORDS: Final = (
    r"pass(?:word|wd|phrase)|secret|token|authorization|api[ _-]?key|cookie|credential|"
    r"(?:private|access)[ _-]?key"
)
_SECRET_KEY: Final = re.compile(_WORDS, re.IGNORECASE)
_TOKEN_KEY: Final = re.compile(r"token", re.IGNORECASE)
_SECRETS: Final = (
    # Keys as their makers mark them, and JSON Web Tokens.
    re.compile(
        r"(?<![A-Za-z0-9])()((?:sk-|AIza|eyJ|gh[opsu]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ya29\.)"
        r"[\w\-.=+/]+)"
    ),
    re.compile(r"(\b(?:bearer|basic)\s+)(\S+)", re.IGNORECASE),
    re.compile(r"(\bcookie\s*[:=]\s*)([^\r\n]+)", re.IGNORECASE),
    re.compile(rf"((?:{_WORDS})\w*[\"']?\s*[:=]\s*[\"']?)([^\s\"'&,;}}]+)", re.IGNORECASE),
)
"""What looks like a secret: what comes before it, and itself."""

_CONTEXT: Final = 8192
"""How much of a text block before a piece is looked at: a secret may come in pieces."""


def masked_text(text: str) -> str:
    """Return the text with letters as `x` and digits as `0`; only spaces and ASCII signs stay."""
    return "".join(map(_masked_character, text))


def _masked_character(character: str) -> str:
    if unicodedata.category(character).startswith("N"):
        return "0"
    if character.isspace() or (ord(character) < _ASCII and not character.isalpha()):
        return character
    return "x"


class Redaction:
    """Redacts the lines of one recording, in order."""

    def __init__(self, *, keep_text: bool) -> None:
        """Mask everything, or keep the words and hide what looks like a secret."""
        self._keep_text = keep_text
        self._text: Callable[[str], str] = _without_secrets if keep_text else masked_text
        # What the open text blocks said last, by request and block.
        self._before: dict[tuple[str | None, str], str] = {}

    def line(self, line: Line) -> Line:
        """Return the line as it may be written."""
        fields: dict[str, JsonValue] = {}
        for key, item in line.fields.items():
            if key == "chunk":
                fields[key] = self._chunk(as_object(item), line.request)
            elif key == "data":
                fields[key] = self._named(as_object(item))
            else:
                fields |= self._named({key: item})
        return dataclasses.replace(line, fields=fields)

    def _chunk(self, chunk: JsonObject, request: str | None) -> JsonObject:
        kind = as_text(chunk.get("type"))
        block = (request, f"{kind.partition('-')[0]} {as_text(chunk.get('id'))}")
        if kind == "tool-input-delta":
            # Pieces of JSON: which key a value belongs to is not seen in them.
            delta = masked_text(as_text(chunk.get("inputTextDelta")))
            return {**self._named(chunk), "inputTextDelta": delta}
        if self._keep_text and kind in _DELTAS:
            before = self._before.get(block, "")
            said = before + as_text(chunk.get("delta"))
            self._before[block] = said[-_CONTEXT:]
            return {**self._named(chunk), "delta": _without_secrets(said)[len(before) :]}
        if kind in _DELTAS.values():
            self._before.pop(block, None)
        return self._named(chunk)

    def _named(self, value: JsonObject) -> dict[str, JsonValue]:
        """Return an object of the protocol: a chunk, a message, a part."""
        return {key: self._field(value, key, item) for key, item in value.items()}

    def _field(self, value: JsonObject, key: str, item: JsonValue) -> JsonValue:
        kind = as_text(value.get("type"))
        if isinstance(item, str):
            return self._string(value, key, item)
        if key in _LISTS and isinstance(item, Sequence):
            return [
                self._named(each) if isinstance(each, Mapping) else self._content(each)
                for each in item
            ]
        if isinstance(item, Mapping):
            if key in _OBJECTS:
                return self._named(item)
            if key == "data" and kind == "data-approval":
                return self._card(item)
            if key == "input" and _asks(value):
                return self._confirmation(item)
        return self._content(item, key)

    def _string(self, value: JsonObject, key: str, text: str) -> str:
        if key in _NAMES or (key == "mediaType" and _MEDIA_TYPE.fullmatch(text)):
            return text
        if key == "url":
            return self._url(text, as_text(value.get("mediaType")))
        return self._text(text)

    def _url(self, url: str, media_type: str) -> str:
        if url[:5].lower() == "data:":
            named = media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"
            return f"data:{named};base64,AAAA"
        scheme = _SCHEME.match(url)
        head = scheme[0] if scheme else ""
        return head + self._text(url[len(head) :])

    def _card(self, card: JsonObject) -> JsonValue:
        told: dict[str, JsonValue] = {}
        for key, item in card.items():
            if key == "step":
                told[key] = {
                    name: each if name in {"n", "of"} else self._content(each, name)
                    for name, each in as_object(item).items()
                }
            else:
                told[key] = item if key in _CARD else self._content(item, key)
        return told

    def _confirmation(self, confirmation: JsonObject) -> JsonValue:
        """Return the input of `adk_request_confirmation`: it holds the call it asks for."""
        told: dict[str, JsonValue] = {}
        for key, item in confirmation.items():
            if key == "originalFunctionCall":
                told[key] = {
                    name: each if name in {"id", "name"} else self._content(each, name)
                    for name, each in as_object(item).items()
                }
            else:
                told[key] = self._content(item, key)
        return told

    def _content(self, value: JsonValue, key: str = "") -> JsonValue:
        """Return what somebody said or a tool was given, with its keys and its shape."""
        if value is None or isinstance(value, bool):
            return value
        if _SECRET_KEY.search(key) and not (self._keep_text and _is_count(key, value)):
            return _hidden(value)
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {name: self._content(item, name) for name, item in value.items()}
        if isinstance(value, Sequence):
            return [self._content(item) for item in value]
        return value if self._keep_text else type(value)(0)


def _asks(value: JsonObject) -> bool:
    """Whether this is, of the profile `adk`, the call that asks for another."""
    names = {as_text(value.get("toolName")), as_text(value.get("type")).removeprefix("tool-")}
    return CONFIRMATION_TOOL in names


def _is_count(key: str, value: JsonValue) -> bool:
    # `totalTokens: 12`; tokens that are secrets are texts.
    return isinstance(value, int | float) and _TOKEN_KEY.search(key) is not None


def _hidden(value: JsonValue) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _HIDDEN
    if isinstance(value, Mapping):
        return {key: _hidden(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_hidden(item) for item in value]
    return type(value)(0)


def _without_secrets(text: str) -> str:
    """Return the text with what looks like a secret masked, and as long as it was."""
    for secret in _SECRETS:
        text = secret.sub(lambda found: found[1] + "x" * len(found[2]), text)
    return text
