"""The short matrix: every named point, before and after, once; the rest is left to chance."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final, Literal, get_args

from faults.agent import Tool
from faults.case import Case, Manner, Over
from faults.points import Kill, Moment, Phase, Point

__all__ = ["MATRIX"]

_ASK: Final = (
    (Point.REQUEST, 1),
    (Point.LEASE, 1),
    (Point.FLUSH, 1),
    (Point.APPEND, 1),  # the message
    (Point.APPEND, 2),  # the call
    (Point.HOLD, 1),
    (Point.RELEASE, 1),
    (Point.END, 1),
    (Point.HINT, 1),
)
_ANSWER: Final = (
    (Point.DECISION, 1),
    (Point.HINT, 1),
    (Point.LEASE, 1),
    (Point.DELIVERY, 1),
    (Point.FLUSH, 1),
    (Point.APPEND, 1),  # the answer
    (Point.CLAIM, 1),
    (Point.EFFECT, 1),
    (Point.FINISH, 1),
    (Point.APPEND, 2),  # the result
    (Point.APPEND, 3),  # the text
    (Point.RELEASE, 1),
    (Point.END, 1),
)
_RUNNING: Final[tuple[tuple[Point, Moment], ...]] = (
    (Point.CLAIM, "after"),
    (Point.EFFECT, "after"),
    (Point.FINISH, "between"),
)

_AROUND: Final[tuple[Moment, ...]] = ("before", "after")
_LIVE_ASK: Final[tuple[tuple[Point, Moment], ...]] = (
    (Point.OPENING, "before"),
    (Point.OPENING, "after"),
    (Point.HOLD, "before"),
    (Point.HOLD, "after"),
    (Point.RELEASE, "after"),
)
_LIVE_ANSWER: Final[tuple[tuple[Point, Moment], ...]] = (
    (Point.APPEND, "after"),  # the answer
    (Point.CLAIM, "after"),
    (Point.FINISH, "after"),
)


def _around(
    points: Iterable[tuple[Point, int]], phase: Phase, tool: Tool = "plain"
) -> Iterator[Case]:
    """Yield a case before and one after each point; clients and routes take turns."""
    moments: tuple[Moment, ...] = ("before", "after")
    manners: Iterator[Manner] = itertools.cycle(get_args(Manner))
    routes: Iterator[Literal["chat", "rest"]] = itertools.cycle(("chat", "rest"))
    for (point, nth), moment in itertools.product(points, moments):
        kill = Kill(point, moment, nth, phase)
        yield Case((kill,), tool=tool, manner=next(manners), route=next(routes))
        next(routes) if moment == "after" else None


def _on_postgres() -> Iterator[Case]:
    """Yield a selection: what is about leases, claims and the order of commits."""
    asked = [Kill(point, "after") for point in (Point.LEASE, Point.APPEND, Point.HOLD)]
    answered = [
        Kill(point, "after", phase="answer")
        for point in (Point.DECISION, Point.LEASE, Point.DELIVERY, Point.END)
    ]
    for kill in (*asked, *answered):
        yield Case((kill,), database="postgres")
    tools: tuple[Tool, ...] = ("plain", "idempotent")
    for tool, (point, moment) in itertools.product(tools, _RUNNING):
        kill = Kill(point, moment, phase="answer")
        yield Case((kill,), database="postgres", tool=tool, route="rest")


def _others() -> Iterator[Case]:
    for point, moment in _RUNNING:
        yield Case((Kill(point, moment, phase="answer"),), tool="idempotent")
        # The second of two calls: the first is done.
        yield Case((Kill(point, moment, nth=2, phase="answer"),), tool="both")
    yield from _around([(Point.EFFECT, 1), (Point.APPEND, 3)], "ask", tool="ungated")
    for point in (Point.DECISION, Point.DELIVERY):
        yield Case((Kill(point, "after", phase="answer"),), verdict=False)
    # And again while it comes back.
    for point in (Point.LEASE, Point.CLAIM, Point.APPEND, Point.END):
        again = Kill(point, "after", phase="recover")
        yield Case((Kill(Point.DELIVERY, "after", phase="answer"), again))


def _live() -> Iterator[Case]:
    """Yield where a live run differs: what it stores, and how it waits, ends and goes on."""
    asked: list[tuple[Kill, Over]] = [
        *((Kill(point, moment), "live") for point, moment in _LIVE_ASK),
        *((Kill(Point.APPEND, "after", nth), "live") for nth in (1, 2, 3)),
        *((Kill(Point.CLOSING, moment), "left") for moment in _AROUND),
    ]
    answered: list[tuple[Kill, Over]] = [
        *((Kill(Point.RESUMING, moment, phase="answer"), "live") for moment in _AROUND),
        *((Kill(Point.OPENING, moment, phase="answer"), "left") for moment in _AROUND),
        *((Kill(*at, phase="answer"), "live") for at in _LIVE_ANSWER),
        *((Kill(*at, phase="answer"), "left") for at in _LIVE_ANSWER[:2]),
    ]
    manners: Iterator[Manner] = itertools.cycle(get_args(Manner))
    routes: Iterator[Literal["chat", "rest"]] = itertools.cycle(("chat", "rest"))
    for kill, over in (*asked, *answered):
        yield Case((kill,), over=over, manner=next(manners), route=next(routes))
    ways: tuple[Over, ...] = ("live", "left")
    for over in ways:
        yield Case((Kill(Point.EFFECT, "after", phase="answer"),), tool="idempotent", over=over)
        yield Case((Kill(Point.DELIVERY, "after", phase="answer"),), verdict=False, over=over)
        again = Kill(Point.OPENING, "after", phase="recover")
        yield Case((Kill(Point.DELIVERY, "after", phase="answer"), again), over=over)
    # The second of two calls: the first is done.
    yield Case((Kill(Point.EFFECT, "after", nth=2, phase="answer"),), tool="both", over="live")
    yield Case((Kill(Point.EFFECT, "after"),), tool="ungated", over="live")


def _live_on_postgres() -> Iterator[Case]:
    ways: tuple[Over, ...] = ("live", "left")
    tools: tuple[Tool, ...] = ("plain", "idempotent")
    yield Case((Kill(Point.HOLD, "after"),), database="postgres", over="live")
    yield Case((Kill(Point.CLOSING, "after"),), database="postgres", over="left")
    for over, tool in itertools.product(ways, tools):
        kill = Kill(Point.CLAIM, "after", phase="answer")
        yield Case((kill,), database="postgres", tool=tool, over=over)


MATRIX: Final = (
    *_on_postgres(),
    *_live_on_postgres(),
    *_around(_ASK, "ask"),
    *_around(_ANSWER, "answer"),
    *_others(),
    *_live(),
)
