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
        # Those who wait now, the first first. Not anyio's events: there is a wait for every piece
        # of text, and one for every stream that is open.
        self._waiting: dict[asyncio.Future[None], None] = {}

    @property
    def is_awaited(self) -> bool:
        """Whether someone waits."""
        return bool(self._waiting)

    def ring(self) -> None:
        """Wake everyone who waits."""
        for each in self._waiting:
            if not each.done():
                each.set_result(None)

    async def wait(self) -> None:
        """Return when it rings next. Canceling this is safe."""
        rung = asyncio.get_running_loop().create_future()
        self._waiting[rung] = None
        try:
            await rung
        finally:
            del self._waiting[rung]
