"""Waking tasks that wait for something to change."""

from __future__ import annotations

import anyio

__all__ = ["Bell"]


class Bell:
    """Rings for whoever waits, and costs next to nothing while nobody does.

    What rings is looked at before and after each wait: a ring that nobody waited for is not kept.
    """

    __slots__ = ("_rung",)

    def __init__(self) -> None:
        # What those who wait now are waiting for; None: nobody does.
        self._rung: anyio.Event | None = None

    def ring(self) -> None:
        """Wake everyone who waits."""
        rung, self._rung = self._rung, None
        if rung is not None:
            rung.set()

    async def wait(self) -> None:
        """Return when it rings next. Canceling this is safe."""
        if self._rung is None:
            self._rung = anyio.Event()
        await self._rung.wait()
