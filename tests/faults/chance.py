"""Cases by chance, from a seed: what can be met is known from stories without kills."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any, Final, Literal, TypeAlias, get_args

from faults.agent import Tool
from faults.case import Busy, Case, Over
from faults.life import Seen
from faults.points import BUSY, Kill, Phase, Point

__all__ = ["Map", "by_chance", "is_sure", "kinds", "least"]

Map: TypeAlias = Mapping[Case, Mapping[Phase, Seen]]
"""For each kind of story: how often each point is met in each phase."""

_TIMED: Final = frozenset({Point.FLUSH, Point.HINT, Point.LEASE})
"""Points that come at least once; how often depends on time."""

_RECOVERY: Final = (
    Point.REQUEST,
    Point.LEASE,
    Point.HOLD,
    Point.DELIVERY,
    Point.CLAIM,
    Point.EFFECT,
    Point.FINISH,
    Point.APPEND,
    Point.FLUSH,
    Point.END,
    Point.RELEASE,
    Point.LAPSE,
    Point.STOP,
    Point.TAKING,
    Point.STEERING,
    Point.FORGETTING,
    Point.OPENING,
    Point.CLOSING,
)
"""Where a second kill may wait for a server that comes back; it need not come by."""


_NO: Final = (True, "chat")
"""What stands in a case for the answer that nobody is asked for."""


def kinds(databases: tuple[Literal["sqlite", "postgres"], ...]) -> list[Case]:
    """Return every kind of story, without kills."""
    routes: tuple[Literal["chat", "rest"], ...] = ("chat", "rest")
    found = [
        Case((), database=database, tool=tool, verdict=verdict, route=route, over=over)
        for database, tool, verdict, route, over in itertools.product(
            databases, get_args(Tool), (True, False), routes, get_args(Over)
        )
    ]
    # Nobody is asked about an ungated tool.
    found = [case for case in found if case.tool != "ungated" or (case.verdict, case.route) == _NO]
    ways: tuple[Over, ...] = ("sse", "live")
    busy = [
        Case((), database=database, over=over, busy=busy)
        for database, busy, over in itertools.product(databases, get_args(Busy), ways)
    ]
    return [*found, *busy]


def is_sure(kill: Kill) -> bool:
    """Whether a planned kill must come; the sweeper sweeps when it likes."""
    if kill.phase == "busy" and kill.point not in BUSY:
        # How far a reply comes that is interrupted depends on time.
        return False
    return kill.point is not Point.LAPSE and (kill.nth == 1 or kill.point not in _TIMED)


def least(surveys: list[Mapping[Phase, Seen]]) -> dict[Phase, Seen]:
    """Return what was met in every one of several tellings, as often as it surely is."""
    first, *others = surveys
    return {
        phase: {
            key: min(count, *(other.get(phase, {}).get(key, 0) for other in others), count)
            for key, count in seen.items()
            if all(other.get(phase, {}).get(key) for other in others)
        }
        for phase, seen in first.items()
    }


def by_chance(known: Map, random: Random) -> Iterator[Case]:
    """Yield cases without end: the same ones for the same seed and map."""
    stories = sorted(known, key=lambda case: str(case.to_json()))
    while True:
        # Denials are the simpler stories: one in eight is enough.
        wanted = random.random() >= 1 / 8
        story = random.choice([each for each in stories if each.verdict == wanted] or stories)
        yield _case(story, known[story], random)


def _case(story: Case, met: Mapping[Phase, Seen], random: Random) -> Case:
    phases = [phase for phase, seen in met.items() if seen]
    first = random.choice(phases)
    kills = [_kill(met[first], first, random)]
    if first == "ask" and "answer" in phases and random.random() < 0.2:
        kills.append(_kill(met["answer"], "answer", random))
    if random.random() < 0.3:
        point = random.choice(_RECOVERY)
        kills.append(Kill(point, random.choice(point.moments), random.randint(1, 2), "recover"))
    manner: Any = random.choice(("stock", "insistent", "patient"))
    return replace(story, kills=tuple(kills), manner=manner)


def _kill(seen: Seen, phase: Phase, random: Random) -> Kill:
    point = random.choice(sorted({point for point, _ in seen}))
    moment = random.choice(sorted(moment for each, moment in seen if each is point))
    return Kill(point, moment, random.randint(1, seen[point, moment]), phase)
