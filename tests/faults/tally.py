"""What came of many cases, counted, and as tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from faults.case import Case
from faults.chance import is_sure
from faults.points import Kill, Point

__all__ = ["Count", "Tally"]

_TOOLS: Final = {"both": "plain and idempotent"}
_BASES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
_OVER: Final = {"sse": "SSE", "live": "live", "left": "live, and left after each reply"}


_Key: TypeAlias = tuple[Point, str, str, str]


@dataclass(slots=True)
class Count:
    """Numbers of one row."""

    kills: int = 0
    doubles: int = 0
    stuck: int = 0
    losses: int = 0
    unknown: int = 0
    unasked: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.kills + other.kills,
            self.doubles + other.doubles,
            self.stuck + other.stuck,
            self.losses + other.losses,
            self.unknown + other.unknown,
            self.unasked + other.unasked,
        )

    def cells(self) -> tuple[int, ...]:
        """Return the numbers as they stand in a table."""
        told = self.unknown, self.unasked
        return self.kills, self.doubles, self.stuck, self.losses, *told


@dataclass(slots=True)
class Tally:
    """Counts by point, database, tool, and how the story is told."""

    counts: dict[_Key, Count] = field(default_factory=lambda: defaultdict(Count))
    failures: list[dict[str, Any]] = field(default_factory=list)
    """Each with its case, which can be played again."""
    cases: int = 0
    again: int = 0
    """Kills of a server that was coming back from a kill."""

    def add(self, case: Case, outcome: dict[str, Any]) -> None:
        """Count a case."""
        self.cases += 1
        came = [Kill(**{**kill, "point": Point(kill["point"])}) for kill in outcome["kills"]]
        self.again += sum(1 for kill in came if kill.phase == "recover")
        for kill in came:
            self._count(case, kill).kills += 1
        blamed = self._count(case, came[-1] if came else case.kills[0])
        blamed.doubles += bool(outcome["doubles"])
        blamed.stuck += bool(outcome["stuck"])
        blamed.losses += bool(outcome["losses"])
        blamed.unknown += outcome["unknown"]
        blamed.unasked += outcome["unasked"]
        missed = not came and is_sure(case.kills[0])
        if missed or outcome["doubles"] or outcome["stuck"] or outcome["losses"]:
            wrong = {"case": case.to_json(), "outcome": outcome}
            self.failures.append({**wrong, "never killed": True} if missed else wrong)

    @property
    def total(self) -> Count:
        """All rows."""
        return sum(self.counts.values(), Count())

    def tables(self) -> str:
        """Return the numbers by point, by route, and by database and tool, as Markdown."""
        by_point = self._grouped(lambda key: (f"`{key[0]}`",))
        by_route = self._grouped(lambda key: (_OVER[key[3]],))
        by_tool = self._grouped(lambda key: (_BASES[key[1]], _TOOLS.get(key[2], key[2])))
        tables = [
            _table(("point",), by_point),
            _table(("told over",), by_route),
            _table(("database", "tool or story"), by_tool),
        ]
        return "\n\n".join("\n".join(table) for table in tables)

    def details(self) -> str:
        """Return the numbers by point, database, tool and route."""
        rows = self._grouped(lambda key: (key[0].value, *key[1:]))
        return "\n".join(_table(("point", "database", "tool or story", "over"), rows))

    def _count(self, case: Case, kill: Kill) -> Count:
        told = case.tool if case.busy is None else f"busy: {case.busy}"
        return self.counts[kill.point, case.database, told, case.over]

    def _grouped(
        self, by: Callable[[_Key], tuple[str, ...]]
    ) -> list[tuple[tuple[str, ...], Count]]:
        points = list(Point)
        groups: dict[tuple[str, ...], Count] = {}
        for key in sorted(self.counts, key=lambda key: (points.index(key[0]), key[1:])):
            groups[by(key)] = groups.get(by(key), Count()) + self.counts[key]
        names = len(next(iter(groups), ("",)))
        return [*groups.items(), (("all", *[""] * (names - 1)), self.total)]


def _table(names: tuple[str, ...], rows: list[tuple[tuple[str, ...], Count]]) -> list[str]:
    heads = [*names, "kills", "double effects", "stuck", "lost", "unknown", "not asked"]
    lines = [_line(heads), _line(["---"] * len(names) + ["---:"] * 6)]
    return [*lines, *(_line([*name, *map(str, count.cells())]) for name, count in rows)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
