"""Where a server can be killed, and how to tell from outside that it is there.

The production code has no hooks: most points are statements on their way to the database, known by
their table and what they set.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

__all__ = ["BUSY", "LIVE", "MOMENTS", "Kill", "Moment", "Phase", "Point", "point_of"]

Phase: TypeAlias = Literal["ask", "answer", "busy", "recover"]
"""What the server is doing: answering a message, an approval, what comes while a reply runs, or
coming back from a kill."""

Moment: TypeAlias = Literal["before", "between", "after"]
"""Before the statement, between it and its COMMIT, or after the COMMIT."""

MOMENTS: Final[tuple[Moment, ...]] = ("before", "between", "after")


class Point(StrEnum):
    """A step that must not be lost or done twice."""

    REQUEST = "request row"
    LEASE = "turn lease"
    HOLD = "hold"
    FLUSH = "chunk flush"
    DECISION = "decision"
    HINT = "hint"
    DELIVERY = "delivery"
    CLAIM = "claim"
    EFFECT = "effect"
    FINISH = "finish"
    APPEND = "ADK append"
    END = "end marker"
    RELEASE = "release"
    LAPSE = "lapse"
    WAIT = "waiting row"
    STOP = "stop"
    GIVING_UP = "giving up"
    TAKING = "taking"
    STEERING = "steering"
    FORGETTING = "forgetting"
    OPENING = "live opening"
    RESUMING = "live release"
    CLOSING = "live end"

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The moments there are: only a statement has a COMMIT that follows it."""
        return ("before", "after") if self in _NO_STATEMENTS else MOMENTS


BUSY: Final = frozenset(
    {
        Point.WAIT,
        Point.STOP,
        Point.GIVING_UP,
        Point.TAKING,
        Point.STEERING,
        Point.FORGETTING,
    }
)
"""What only a story of a busy chat passes."""

LIVE: Final = frozenset({Point.OPENING, Point.RESUMING, Point.CLOSING})
"""What only a live run passes."""

_NO_STATEMENTS: Final = LIVE | {Point.EFFECT, Point.HINT}


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill the server when it comes to a point for the nth time in a phase."""

    point: Point
    moment: Moment
    nth: int = 1
    phase: Phase = "ask"

    def __str__(self) -> str:
        return f"{self.moment} {self.point} #{self.nth} ({self.phase})"


_STATES: Final[Mapping[str, Point]] = {
    "running": Point.CLAIM,
    "done": Point.FINISH,
    "failed": Point.FINISH,
    "unknown": Point.LAPSE,
    "approved": Point.LAPSE,  # of an idempotent tool, to run again
}


_ADDED: Final[Mapping[str, Point]] = {
    "adk_stream_request": Point.REQUEST,
    "adk_stream_turn": Point.LEASE,
    "adk_stream_call": Point.HOLD,
    "adk_stream_waiting": Point.WAIT,
    "events": Point.APPEND,
}


def point_of(statement: str, rows: Sequence[Mapping[str, Any]]) -> Point | None:
    """Return the point that a statement is, by its first words and what it sets, or None."""
    words = statement.split(maxsplit=3)
    match [word.strip('"') for word in words]:
        case ["INSERT", "INTO", "adk_stream_chunk", *_]:
            return _chunks(rows)
        case ["INSERT", "INTO", table, *_]:
            return _ADDED.get(table)
        case ["UPDATE", "adk_stream_waiting", *_]:
            return _waiting(rows)
        case ["DELETE", "FROM", "adk_stream_waiting", *_]:
            return Point.FORGETTING
        case ["UPDATE", "adk_stream_turn", *_]:
            return _turn(rows)
        case ["UPDATE", "adk_stream_call", *_]:
            return _call(rows)
    return None


def _chunks(rows: Sequence[Mapping[str, Any]]) -> Point:
    [values] = rows
    # As JSON to SQLite, as arrays to PostgreSQL.
    packed = values.get("rows")
    entries = values["entries"] if packed is None else [row[2] for row in json.loads(packed)]
    return Point.END if None in entries else Point.FLUSH


def _turn(rows: Sequence[Mapping[str, Any]]) -> Point | None:
    row = rows[0] if rows else {}
    if row.get("running") is False:
        return Point.RELEASE
    return Point.STOP if row.get("stopping") else None


def _waiting(rows: Sequence[Mapping[str, Any]]) -> Point | None:
    row = rows[0] if rows else {}
    if row.get("stopping"):
        return Point.GIVING_UP
    if row.get("taken_in") is None:
        return None
    # A turn takes its own request by name, and others by what they are for.
    return Point.STEERING if "steer" in row.values() else Point.TAKING


def _call(rows: Sequence[Mapping[str, Any]]) -> Point | None:
    row = rows[0] if rows else {}
    if "decided_by" in row:
        return Point.DECISION
    if "state" in row:
        return _STATES.get(str(row["state"]))
    return Point.DELIVERY if row.get("delivered_in") else None
