"""The page that the figures are written to, each section between its own markers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.rounds import Figure

__all__ = ["figure", "ratio", "table", "write_section"]


def write_section(page: Path, name: str, text: str) -> None:
    """Put a text between the markers of a section; what is around it is written by people."""
    begin, end = f"<!-- {name}: written by make bench -->", f"<!-- {name}: end -->"
    old = page.read_text("utf-8")
    section = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not section.search(old):
        raise RuntimeError(f"{page} has no section {name!r}.")
    page.write_text(section.sub(lambda _: f"{begin}\n{text.strip()}\n{end}", old), "utf-8")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table whose first column is words and the others numbers."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows)) + "\n"


def figure(found: Figure, factor: float = 1.0) -> str:
    """Return the median, and the lowest and the highest round."""
    median, low, high = (_short(value * factor) for value in (found.median, found.low, found.high))
    return median if low == high else f"{median} ({low}-{high})"


def ratio(found: Figure, floor: Figure) -> str:
    """Return how many times the other the one is."""
    return f"{figure(found.of(floor))} x" if floor.low else "-"


def _short(value: float) -> str:
    """Return a number with the digits that repeat from run to run, more or less."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
