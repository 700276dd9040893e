"""The end of a server: one deadline for everything that still runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

__all__ = ["Drain"]


@dataclass(slots=True)
class Drain:
    """Begins once; whoever waits within its bound is let go when the time is over."""

    seconds: float = 20.0
    """How long it takes at most, from its beginning."""
    _deadline: float = math.inf
    """By the event loop's clock; infinite until it has begun."""
    _bounds: list[anyio.CancelScope] = field(default_factory=list)
    """The waits that end at the deadline."""

    @property
    def has_begun(self) -> bool:
        """Whether no new turn may begin."""
        return self._deadline < math.inf

    def reset(self) -> None:
        """Make ready for another life of the same server."""
        self._end_at(math.inf)

    def begin(self) -> None:
        """Let the time run from now; does nothing if it runs already."""
        if not self.has_begun:
            self._end_at(anyio.current_time() + self.seconds)

    def hurry(self) -> None:
        """End it at once. Needs no task: a callback of the event loop may call it."""
        self._end_at(-math.inf)

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Run a block until the drain's deadline at most; leaves without an exception then."""
        with anyio.CancelScope(deadline=self._deadline) as bound:
            self._bounds.append(bound)
            try:
                yield
            finally:
                self._bounds.remove(bound)

    def _end_at(self, deadline: float) -> None:
        self._deadline = deadline
        for bound in self._bounds:
            bound.deadline = deadline
