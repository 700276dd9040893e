"""Waking tasks that wait for something to change."""

from __future__ import annotations

import asyncio

__all__ = ["Bell"]


class Bell:
    """Rings for whoever waits, and costs next to nothing while nobody does.

    What rings is looked at before and after each wait: a ring that nobody waited for is not kept.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        # One for each who waits; None: nobody does. Not an event, anyio's or asyncio's: there is a
        # wait for nearly every chunk, and with a bare future it takes half the time.
        self._waiting: list[asyncio.Future[None]] | None = None

    def ring(self) -> None:
        """Wake everyone who waits."""
        waiting, self._waiting = self._waiting, None
        for each in waiting or ():
            if not each.done():
                each.set_result(None)

    async def wait(self) -> None:
        """Return when it rings next. Canceling this is safe."""
        rung = asyncio.get_running_loop().create_future()
        if self._waiting is None:
            self._waiting = [rung]
        else:
            self._waiting.append(rung)
        try:
            await rung
        except asyncio.CancelledError:
            self._give_up(rung)
            raise

    def _give_up(self, rung: asyncio.Future[None]) -> None:
        waiting = self._waiting or []
        if rung in waiting:
            waiting.remove(rung)
        self._waiting = waiting or None
