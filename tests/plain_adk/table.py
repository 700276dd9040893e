"""The seven outcomes as a table, and where the documentation keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from plain_adk.failures import FAILURES, Outcome
from plain_adk.sides import Side
from support.conformance import NODE_DIR

__all__ = ["PAGE", "markdown", "page_table", "plain_name", "terminal"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "plain-adk.md"
_MARKED = re.compile(r"<!-- table: begin -->\n(.*?)<!-- table: end -->", re.DOTALL)

Outcomes = Mapping[tuple[str, Side], Outcome]


def plain_name(name: str) -> str:
    """Return what the plain side of a failure is made of, with its version."""
    if FAILURES[name].plainly == "ADK":
        return f"ADK {version('google-adk')}"
    packages = json.loads((NODE_DIR / "package.json").read_text("utf-8"))["dependencies"]
    return f"AI SDK {packages['ai7'].rpartition('@')[2]}"


def _rows(outcomes: Outcomes) -> list[tuple[str, str, str]]:
    return [
        (
            failure.name,
            f"{plain_name(name)}: {outcomes[name, 'plain']}",
            str(outcomes[name, "ours"]),
        )
        for name, failure in FAILURES.items()
    ]


def markdown(outcomes: Outcomes) -> str:
    """Return the table as the page has it."""
    lines = ["| what happens | without us | with us |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in _rows(outcomes)]
    return "".join(f"{line}\n" for line in lines)


def page_table() -> str:
    """Return the table that the page shows now."""
    found = _MARKED.search(PAGE.read_text("utf-8"))
    assert found is not None, "the page has lost its markers"
    return found[1]


def terminal(outcomes: Outcomes) -> str:
    """Return the table in columns, for people who run the tests."""
    rows = [("what happens", "without us", "with us"), *_rows(outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines)
