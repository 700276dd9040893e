"""JSON as the AI SDK's clients accept it, and as we accept it from them.

Going out, a value must be plain JSON: no `NaN`, no keys their secure parser rejects. Coming in, a
document must be unambiguous: no duplicate keys, no `NaN`, no absurd nesting.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from json.encoder import encode_basestring
from typing import TypeAlias, cast

from pydantic import BaseModel

from adk_stream_protocol.errors import BadRequest

__all__ = [
    "JsonObject",
    "JsonValue",
    "as_object",
    "as_text",
    "canonical_json",
    "check_storable",
    "digest",
    "dumps",
    "jsonable",
    "parse_json",
    "quoted",
]

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
JsonObject: TypeAlias = Mapping[str, JsonValue]

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""Strings, skipped as a whole, and brackets."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a character: JSON can name it, UTF-8 cannot."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""The escape of half a surrogate pair."""

_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    # What is encoded went through `jsonable`, or came as JSON.
    check_circular=False,
    separators=(",", ":"),
)

_DEEPEST = 24
"""Nesting beyond this is cut off on the way out; no client renders it, and recursion has an end."""

_WIDEST_INT = 1024
"""Bits; a longer integer is an infinity to JavaScript, and Python may refuse to write it."""


def jsonable(value: object, _depth: int = 0) -> JsonValue:
    """Return `value` as plain JSON that every AI SDK client parses.

    Tool results are whatever a Python function returned, so nothing is refused here: what JSON
    cannot say becomes its nearest text. `NaN` and infinities become null, and keys that the
    client's secure parser rejects (`__proto__`, `constructor.prototype`) are left out.
    """
    # A member of a str or int enum is its own value to `json`.
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _WIDEST_INT else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if _depth >= _DEEPEST:
        return "…"
    return _container(value, _depth + 1)


def _container(value: object, depth: int) -> JsonValue:
    # Nearly all are plain ones: whether something is a mapping at all takes long to ask.
    if type(value) is dict or isinstance(value, Mapping):
        plain: dict[str, JsonValue] = {}
        for key, item in value.items():
            name, said = key if isinstance(key, str) else str(key), jsonable(item, depth)
            if not _is_unsafe(name, said):
                plain[name] = said
        return plain
    if isinstance(value, (list, tuple, Set)):
        return [jsonable(item, depth) for item in cast("Iterable[object]", value)]
    return _scalar(value, depth)


def _scalar(value: object, depth: int) -> JsonValue:
    if isinstance(value, BaseModel):
        return jsonable(_model(value), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # Not `asdict`: it copies what it finds, and a lock or a client cannot be copied.
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return jsonable(named, depth)
    if isinstance(value, enum.Enum):
        return jsonable(value.value, depth)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode("ascii")
    return str(value)


def _model(value: BaseModel) -> dict[str, object]:
    try:
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    except ValueError:
        # A field that pydantic cannot write, such as bytes that are not UTF-8.
        return value.model_dump(by_alias=True, exclude_none=True)


def _is_unsafe(key: str, item: JsonValue) -> bool:
    if key == "__proto__":
        return True
    return key == "constructor" and isinstance(item, Mapping) and "prototype" in item


def dumps(value: JsonValue) -> str:
    """Encode a plain JSON value compactly, as text that UTF-8 can carry.

    Raises:
        ValueError: the value holds a `NaN` or an infinity, which `jsonable` would repair.
    """
    return _encodable(_ENCODER.encode(value))


def quoted(text: str) -> str:
    """Encode a text as `dumps` does, for JSON that is put together by hand."""
    written = encode_basestring(text)
    return written if written.isascii() else _encodable(written)


def canonical_json(value: JsonValue) -> str:
    """Encode a value so that equal values give equal text, whatever the order of their keys."""
    return _encodable(
        json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
        )
    )


def _encodable(text: str) -> str:
    # A tool may return half a character (a file name that is not UTF-8, a cut string).
    if text.isascii():
        return text
    return _LONE_SURROGATE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def digest(value: JsonValue) -> str:
    """Return the SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def parse_json(text: str, *, max_depth: int) -> JsonValue:
    """Parse a JSON document that came from a client.

    Raises:
        BadRequest: the text is not JSON, nests deeper than `max_depth`, has a duplicate key, or
            holds `NaN` or an infinity.
    """
    if _depth_of(text) > max_depth:
        raise BadRequest(f"The JSON nests deeper than {max_depth} levels.", code="too_deep")
    try:
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        return _mended(value) if _SURROGATE.search(text) else value
    except json.JSONDecodeError as error:
        raise BadRequest(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            code="not_json",
        ) from error
    except ValueError as error:
        # Python reads no integer of more than 4300 digits.
        raise BadRequest("The body holds a number that is too long.", code="not_json") from error


def check_storable(value: JsonValue, what: str) -> None:
    """Return if a client's value can be kept by every database.

    Args:
        value: what the client sent.
        what: how the message calls it.

    Raises:
        BadRequest: a text in it holds U+0000.
    """
    # PostgreSQL takes it neither in text nor in JSON.
    if _holds_nul(value):
        raise BadRequest(f"{what} holds the character U+0000. Leave it out.", code="bad_text")


def _holds_nul(value: JsonValue) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_holds_nul(key) or _holds_nul(item) for key, item in value.items())
    return isinstance(value, Sequence) and any(map(_holds_nul, value))


def _mended(value: JsonValue) -> JsonValue:
    """Return the value with halves of surrogate pairs replaced: no UTF-8 can say them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {str(_mended(key)): _mended(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mended(item) for item in value]
    return value


def _depth_of(text: str) -> int:
    """Return how deep brackets nest, before any recursive parser sees the text."""
    depth = deepest = 0
    for token in _BRACKETS.finditer(text):
        if token[0] in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadRequest("A JSON object holds the same key twice.", code="duplicate_key")
    return found


def _refuse_constant(name: str) -> JsonValue:
    raise BadRequest(f"{name} is not JSON; send null or a finite number.", code="not_json")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadRequest("A number in the body is too large.", code="not_json")
    return number


def as_object(value: JsonValue | None) -> JsonObject:
    """Return the value if it is an object, else an empty one: for lenient reading of parts."""
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def as_text(value: JsonValue | None) -> str:
    """Return the value if it is a string, else the empty string."""
    return value if isinstance(value, str) else ""
