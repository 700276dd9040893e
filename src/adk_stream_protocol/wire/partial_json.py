"""A tool call's input while it streams: JSON that is not complete yet, read as far as it goes."""

from __future__ import annotations

import json
import re

from adk_stream_protocol.wire.values import JsonValue, as_object, jsonable

__all__ = ["input_in"]

_TOKEN = re.compile(r'[\[\]{},:]|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[^\s\[\]{},:"]+', re.DOTALL)
"""One token of JSON; the last string may lack its end."""
_STRING = re.compile(r'"(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*+("?)', re.DOTALL)
"""A string up to its end, or up to an escape that is cut off."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CLOSING = {"{": "}", "[": "]"}


def input_in(text: str) -> dict[str, JsonValue]:
    """Return `input` as a client reads it from the text so far; nothing if it cannot."""
    for read in (str, _completed):
        try:
            return {"input": _read_json(read(text))}
        except (ValueError, RecursionError):
            continue
    return {}


def _read_json(text: str) -> JsonValue:
    value: JsonValue = json.loads(
        text,
        object_pairs_hook=_safe_object,
        parse_float=lambda digits: jsonable(float(digits)),
        parse_constant=_refuse,
    )
    return value


def _safe_object(pairs: list[tuple[str, JsonValue]]) -> JsonValue:
    found = dict(pairs)
    if "__proto__" in found or "prototype" in as_object(found.get("constructor")):
        _refuse("a prototype")
    return found


def _refuse(what: str) -> JsonValue:
    raise ValueError(f"A client's parser refuses {what}.")


def _completed(text: str) -> str:
    """Return the JSON text cut after the last value that can stand, its brackets closed."""
    end, last, before = 0, "", ""
    closers: list[str] = []
    for token in _TOKEN.finditer(text):
        piece = token[0]
        is_key = piece.startswith('"') and before in {"{", ","} and closers[-1:] == ["}"]
        before = piece
        if piece in _CLOSING:
            closers.append(_CLOSING[piece])
        elif piece in {"}", "]"}:
            del closers[-1:]
        whole = "" if is_key else _whole(piece)
        if whole:
            end, last = token.start(), whole
    return text[:end] + last + "".join(reversed(closers))


def _whole(piece: str) -> str:
    """Return the token with what it lacks at its end; empty if it is no value yet."""
    string = _STRING.match(piece)
    if string is not None:
        return string[0] if string[1] else string[0] + '"'
    for literal in ("true", "false", "null"):
        if literal.startswith(piece):
            return literal
    number = _NUMBER.match(piece)
    if number is not None:
        return number[0]
    return "" if piece in {",", ":", "-"} else piece
