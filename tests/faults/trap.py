"""The trap inside a server: it counts the points as they pass, and kills at the one it is set for.

It listens to SQLAlchemy, so it sees our statements and ADK's alike, and it wraps the hints and the
steps of a live run. What was seen is told through a pipe in the moment of death: the story needs to
know what had happened.
"""

from __future__ import annotations

import functools
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.default import DefaultDialect

from adk_stream_protocol.engine.live_run import LiveRun
from adk_stream_protocol.engine.live_runs import LiveRuns
from adk_stream_protocol.held_calls.asking import Asking
from adk_stream_protocol.stores.memory import MemoryWake
from adk_stream_protocol.stores.postgres_wake import PostgresWake
from faults.points import Kill, Moment, Point, point_of

__all__ = ["Trap"]

_WAITING: Final = "faults: committed with"
"""Where a connection keeps the points that its next COMMIT completes."""


@dataclass(slots=True)
class Trap:
    """Counts points since it was set."""

    tell: int
    """The pipe's end that the story reads."""
    kill: Kill | None = None
    """None: only count."""
    seen: Counter[tuple[Point, Moment]] = field(default_factory=Counter)
    lives: int = 0
    """How many live runs go on."""

    def set(self, kill: Kill | None) -> None:
        """Wait for a point, counted from now on."""
        self.kill, self.seen = kill, Counter()

    def at(self, point: Point, moment: Moment) -> None:
        """Pass a point."""
        self.seen[point, moment] += 1
        kill = self.kill
        if kill is None or (kill.point, kill.moment) != (point, moment):
            return
        if self.seen[point, moment] == kill.nth:
            self._die()

    def told(self) -> list[tuple[str, str, int]]:
        """Return what was seen, as JSON can hold it."""
        return [(point.value, moment, count) for (point, moment), count in self.seen.items()]

    def _die(self) -> NoReturn:
        os.write(self.tell, json.dumps(self.told()).encode())
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody survives SIGKILL")

    def install(self) -> None:
        """Listen to everything that this process does from now on."""
        event.listen(Engine, "before_cursor_execute", self._before)
        event.listen(Engine, "after_cursor_execute", self._between)
        event.listen(Engine, "rollback", self._forget)
        self._wrap_commit()
        for wake in (MemoryWake, PostgresWake):
            self._wrap_hint(wake)
        self._wrap_live()

    def _before(self, *arguments: Any) -> None:
        _, point = _statement(*arguments)
        if point is not None:
            self.at(point, "before")

    def _between(self, *arguments: Any) -> None:
        connection, point = _statement(*arguments)
        if point is not None:
            connection.info.setdefault(_WAITING, []).append(point)
            self.at(point, "between")

    def _forget(self, connection: Connection) -> None:
        if not connection.invalidated:
            connection.info.pop(_WAITING, None)

    def _wrap_commit(self) -> None:
        commit = DefaultDialect.do_commit

        def do_commit(dialect: DefaultDialect, connection: Any) -> None:
            commit(dialect, connection)  # type: ignore[no-untyped-call]  # SQLAlchemy's own
            # SQLAlchemy's own event comes before the COMMIT.
            for point in connection.info.pop(_WAITING, ()):
                self.at(point, "after")

        DefaultDialect.do_commit = do_commit  # type: ignore[method-assign]  # there is no event

    def _wrap_hint(self, wake: type[MemoryWake]) -> None:
        hint: Callable[[Any, str], None] = wake.__dict__["hint"]

        def wrapped(own: MemoryWake, topic: str) -> None:
            if type(own) is not wake:
                hint(own, topic)  # A part of the hint of a class that is wrapped itself.
                return
            self.at(Point.HINT, "before")
            hint(own, topic)
            self.at(Point.HINT, "after")

        setattr(wake, "hint", wrapped)  # noqa: B010  # mypy knows it as a method

    def _wrap_live(self) -> None:
        serve, start, end, release = LiveRuns._serve, LiveRuns._start, LiveRun.end, Asking.release

        @functools.wraps(serve)
        async def counted(own: LiveRuns, live: LiveRun) -> None:
            self.lives += 1
            try:
                await serve(own, live)
            finally:
                self.lives -= 1

        @functools.wraps(start)
        def started(own: LiveRuns, live: LiveRun) -> None:
            self.at(Point.OPENING, "before")
            start(own, live)
            self.at(Point.OPENING, "after")

        @functools.wraps(end)
        def ended(own: LiveRun) -> None:
            if own.is_over:
                return
            self.at(Point.CLOSING, "before")
            end(own)
            self.at(Point.CLOSING, "after")

        @functools.wraps(release)
        async def released(own: Asking, *given: Any) -> None:
            self.at(Point.RESUMING, "before")
            await release(own, *given)
            self.at(Point.RESUMING, "after")

        for owner, method in (
            (LiveRuns, counted),
            (LiveRuns, started),
            (LiveRun, ended),
            (Asking, released),
        ):
            setattr(owner, method.__name__, method)


def _statement(*told: Any) -> tuple[Connection, Point | None]:
    connection, _cursor, statement, _parameters, context, _many = told
    rows = getattr(context, "compiled_parameters", None) or []
    return connection, point_of(statement, rows)
