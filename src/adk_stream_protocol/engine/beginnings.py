"""Turns that begin go before replies that run, when many begin at once.

To begin a turn is a few milliseconds of this process's own work. If all that begin together took
turns at it, each would have to wait for the last: so a few begin at a time. And a model that need
not be waited for would have its reply run in between, piece by piece, at the cost of those who have
heard nothing yet: so meanwhile no model is read ahead.

Nobody waits here for what others wait for: a turn that takes longer counts as begun, and a reply
that runs gives way for a moment only. In a burst of 50 the first piece comes after two thirds of
the time, and the last one no later.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from adk_stream_protocol.bell import Bell

__all__ = ["Beginning", "Beginnings"]

_AT_ONCE: Final = 8
"""How many turns begin at a time."""

_MANY: Final = 4
"""How many turns begin at a time when replies that run give way; fewer are not in their way."""

_LONGEST: Final = 0.03
"""Seconds after which a turn counts as begun: it waits for something, or is slow by itself."""

_PATIENCE: Final = 0.05
"""How many seconds a reply that runs gives way before each piece, at most."""


class Beginnings:
    """The turns of a process that begin right now."""

    __slots__ = ("_count", "_line", "_timer", "_way", "are_many")

    def __init__(self) -> None:
        self.are_many = False
        """Whether replies that run give way: from when many begin until none does."""
        self._count = 0
        # Those that wait to begin, the first first.
        self._line: deque[asyncio.Future[None]] = deque()
        self._way = Bell()
        # Opens the way for replies that gave it; None: none did.
        self._timer: asyncio.TimerHandle | None = None

    async def let_by(self) -> None:
        """Give way while many begin, for a moment."""
        if not self.are_many:
            return
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PATIENCE, self._go_on)
        await self._way.wait()

    def _go_on(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._way.ring()

    async def enter(self) -> None:
        """Take a place, or stand in line for one."""
        if self._count < _AT_ONCE:
            self._count += 1
            self.are_many = self.are_many or self._count >= _MANY
            return
        place = asyncio.get_running_loop().create_future()
        self._line.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It was given one just now.
                self.leave()
            raise

    def leave(self) -> None:
        """Give a place to the first in line, if it still stands there."""
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._count -= 1
        if self._count == 0:
            self.are_many = False
            self._go_on()


class Beginning:
    """One turn that begins."""

    __slots__ = ("_among", "_timer")

    def __init__(self, among: Beginnings) -> None:
        self._among = among
        # None: it does not begin yet, or has begun.
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self) -> None:
        """Begin as soon as it may."""
        await self._among.enter()
        self._timer = asyncio.get_running_loop().call_later(_LONGEST, self.over)

    def over(self) -> None:
        """Note that it has begun, or never will; more than once does no harm."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._among.leave()
