"""Stories without kills: what is met in them, and what a server imports on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from faults.busy_story import BusyStory
from faults.case import Case
from faults.life import Seen, seen_of
from faults.points import Phase
from faults.story import Story, World
from faults.user import User

__all__ = ["scout", "survey"]


def survey(world: World, case: Case) -> dict[Phase, Seen]:
    """Play a case's story without kills; return how often each point is met in each phase."""
    kind = _Surveyor if case.busy is None else _BusySurveyor
    surveyor = kind(world, replace(case, kills=()))
    outcome = surveyor.play()
    assert not outcome.violations, f"without any kill: {outcome}"
    return surveyor.met


class _Surveyor(Story):
    """Counts instead of killing."""

    def __init__(self, world: World, case: Case) -> None:
        super().__init__(world, case)
        # How often each point was met in each phase.
        self.met: dict[Phase, Seen] = {}
        # The phase that is counted; None before the first and after the last.
        self._now: Phase | None = None

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        if phase not in self.met:
            self._count(phase)
        yield

    def _check(self) -> None:
        self._user.resume()
        self._count(None)
        super()._check()

    def _count(self, following: Phase | None) -> None:
        seen = seen_of(self._user.trap(None)["seen"])
        if self._now is not None:
            self.met[self._now] = seen
        self._now = following
        if following is not None:
            self.met[following] = {}


class _BusySurveyor(_Surveyor, BusyStory):
    """Counts in stories of busy chats."""


def scout(world: World) -> list[str]:
    """Play a story and return what the server had imported by its end: ADK imports much late."""
    survey(world, Case(()))
    survey(world, Case((), busy="steer"))
    return User("scout", "scout", world.alive().port).modules()
