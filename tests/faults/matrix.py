"""The short matrix: every named point, before and after, once; the rest is left to chance."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final, Literal, get_args

from faults.agent import Tool
from faults.case import Busy, Case, Manner, Over
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


_AFTER: Final[tuple[Moment, ...]] = ("after",)
_ALL: Final[tuple[Moment, ...]] = ("before", "between", "after")

_BUSY: Final[tuple[tuple[Busy, Point, int, tuple[Moment, ...]], ...]] = (
    ("ask", Point.WAIT, 1, _AROUND),
    ("ask", Point.TAKING, 1, _ALL),
    ("interrupt", Point.STOP, 1, _ALL),
    ("interrupt", Point.RELEASE, 1, _AFTER),  # of what was interrupted
    ("interrupt", Point.APPEND, 3, _AROUND),  # the message
    ("interrupt", Point.FORGETTING, 1, _ALL),
    ("regenerate", Point.WAIT, 1, _AFTER),
    ("regenerate", Point.TAKING, 1, _AFTER),
    ("regenerate", Point.APPEND, 3, _AROUND),  # what takes back
    ("edit", Point.TAKING, 1, _AFTER),
    ("edit", Point.APPEND, 3, _AROUND),  # what takes back
    ("edit", Point.APPEND, 4, _AROUND),  # the message
    ("queue", Point.WAIT, 2, _AROUND),
    ("queue", Point.TAKING, 1, _AFTER),
    ("queue", Point.TAKING, 2, _AFTER),
    ("queue", Point.FORGETTING, 1, _AFTER),
    ("steer", Point.WAIT, 1, _AFTER),
    ("steer", Point.STEERING, 1, _ALL),
    ("steer", Point.APPEND, 2, _AROUND),  # the message
    ("steer", Point.APPEND, 3, _AFTER),  # the answer
    ("steer", Point.FORGETTING, 1, _AROUND),
    ("tabs", Point.REQUEST, 1, _AFTER),
    ("tabs", Point.WAIT, 1, _AFTER),
    ("tabs", Point.TAKING, 1, _AFTER),
    ("stops", Point.STOP, 3, _AFTER),
    ("stops", Point.TAKING, 2, _AFTER),
    ("stops", Point.WAIT, 4, _AFTER),
    ("stop", Point.GIVING_UP, 1, _AROUND),
    ("stop", Point.TAKING, 1, _AFTER),
    ("thanks", Point.WAIT, 1, _AFTER),
    ("thanks", Point.CLAIM, 1, _AFTER),
    ("thanks", Point.FINISH, 1, _AFTER),
)
_BUSY_LIVE: Final[tuple[tuple[Busy, Point, int], ...]] = (
    ("ask", Point.TAKING, 1),
    ("queue", Point.TAKING, 1),
    ("steer", Point.STEERING, 1),
    ("steer", Point.APPEND, 1),  # the message
    ("steer", Point.APPEND, 2),  # the answer to the first
    ("thanks", Point.TAKING, 1),
)


def _busy() -> Iterator[Case]:
    """Yield what people do while a reply runs; on PostgreSQL, where others may go on."""
    manners: Iterator[Manner] = itertools.cycle(get_args(Manner))
    for busy, point, nth, moments in _BUSY:
        for moment in moments:
            kill = Kill(point, moment, nth, "busy")
            yield Case((kill,), database="postgres", manner=next(manners), busy=busy)
    for busy, point, nth in _BUSY_LIVE:
        kill = Kill(point, "after", nth, "busy")
        yield Case((kill,), database="postgres", manner=next(manners), over="live", busy=busy)
    # And again while it comes back; and in the one process of a file.
    again = Kill(Point.TAKING, "after", phase="recover")
    waits = Kill(Point.WAIT, "after", phase="busy")
    yield Case((waits, again), database="postgres", busy="interrupt")
    again = Kill(Point.APPEND, "after", phase="recover")
    heard = Kill(Point.APPEND, "after", 2, "busy")
    yield Case((heard, again), database="postgres", busy="steer")
    yield Case((Kill(Point.TAKING, "after", phase="busy"),), busy="interrupt")
    yield Case((Kill(Point.STEERING, "after", phase="busy"),), busy="steer")


MATRIX: Final = (
    *_busy(),
    *_on_postgres(),
    *_live_on_postgres(),
    *_around(_ASK, "ask"),
    *_around(_ANSWER, "answer"),
    *_others(),
    *_live(),
)
