"""Text for a terminal: hidden characters made visible, columns that line up."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Final

from adk_stream_protocol.wire.values import JsonValue

__all__ = ["json_text", "table", "visible"]

_HIDDEN_KINDS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# Letters and marks that show nothing: joiners, fillers, a blank braille cell, variation selectors.
_HIDDEN: Final = frozenset(
    map(
        chr,
        [
            *(0x034F, 0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ],
    )
)


def visible(text: str) -> str:
    """Return text in which control, bidi, zero-width and tag characters show as `⟦U+202E⟧`."""
    return "".join(f"⟦U+{ord(char):04X}⟧" if _is_hidden(char) else char for char in text)


def json_text(value: JsonValue) -> str:
    """Return a value as JSON in which nothing is hidden."""
    return visible(json.dumps(value, ensure_ascii=False))


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the first row is its head."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _is_hidden(char: str) -> bool:
    return unicodedata.category(char) in _HIDDEN_KINDS or char in _HIDDEN


def _width(text: str) -> int:
    """Return how many columns a terminal gives the text: Japanese takes two for a character."""
    return sum(
        0
        if unicodedata.combining(char)
        else 2
        if unicodedata.east_asian_width(char) in {"W", "F"}
        else 1
        for char in text
    )
