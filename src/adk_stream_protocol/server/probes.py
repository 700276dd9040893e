"""Questions to the stores that a route asks and must not hang on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

__all__ = ["Probe"]

T = TypeVar("T")

_PATIENCE: Final = 2.0
"""Seconds that a caller waits; whoever asks for health asks again soon."""


class Probe(Generic[T]):
    """One question, asked by at most one task at a time, however many want to know.

    A statement in flight cannot be cancelled, and one to a database that hangs takes long to fail:
    the caller leaves, and the question is over when it is.
    """

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask = ask
        self._tasks: TaskGroup | None = None  # None while the server does not run
        self._asked: _Asked[T] | None = None  # None while nobody wants to know

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Let the question be asked until the block ends."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                tasks.cancel_scope.cancel()

    async def answer(self) -> T | None:
        """Return the answer, or None if there is none soon."""
        if self._tasks is None:
            return None
        if self._asked is None:
            self._asked = _Asked[T]()
            self._tasks.start_soon(self._find_out, self._asked)
        asked = self._asked
        with anyio.move_on_after(_PATIENCE):
            await asked.over.wait()
        return asked.answer

    async def _find_out(self, asked: _Asked[T]) -> None:
        try:
            asked.answer = await self._ask()
        except Exception:  # noqa: BLE001, S110  # the edge: no answer is the answer
            pass
        finally:
            self._asked = None
            asked.over.set()


class _Asked(Generic[T]):
    def __init__(self) -> None:
        self.over = anyio.Event()
        self.answer: T | None = None  # None: not yet, or the question failed
