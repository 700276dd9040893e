"""Entries as text, for a log that outlives its process."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Final, TypeAlias, cast

from adk_stream_protocol.wire.chunks import encode, parse_chunk
from adk_stream_protocol.wire.entries import (
    AnswersStep,
    CallAnswered,
    CallFinished,
    CallHeld,
    Entry,
    InputReleased,
    OwnBegins,
    Resumed,
)
from adk_stream_protocol.wire.values import JsonObject, as_text, dumps

__all__ = ["entry_text", "parse_entry"]

_Moment: TypeAlias = CallHeld | CallAnswered | CallFinished | OwnBegins

# No chunk type has a colon, so a moment cannot be taken for a chunk.
_NAMES: Final[dict[type[_Moment], str]] = {
    CallHeld: "moment:held",
    CallAnswered: "moment:answered",
    CallFinished: "moment:finished",
    OwnBegins: "moment:own",
}
_KINDS: Final = {name: kind for kind, name in _NAMES.items()}


def entry_text(entry: Entry) -> str:
    """Return an entry as one line of JSON."""
    assert not isinstance(entry, Resumed | InputReleased | AnswersStep), "made for one reader"
    if isinstance(entry, _Moment):
        fields = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
        return dumps({"type": _NAMES[type(entry)], **fields})
    return encode(entry)


def parse_entry(text: str) -> Entry:
    """Return the entry that `entry_text` wrote.

    Raises:
        BadRequest: the text is of no entry this version knows.
    """
    value: JsonObject = json.loads(text)
    kind = _KINDS.get(as_text(value.get("type")))
    if kind is None:
        return parse_chunk(value)
    known = {field.name for field in dataclasses.fields(kind)}
    # Fields of a newer version are left out: an older instance may read along during an upgrade.
    fields = {name: item for name, item in value.items() if name in known}
    return cast("Callable[..., Entry]", kind)(**fields)
