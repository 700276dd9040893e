"""Hints between processes, by PostgreSQL's LISTEN and NOTIFY. Lost ones are made up by polls."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import asyncpg  # type: ignore[import-untyped]  # ships no types

from adk_stream_protocol.errors import trace_of
from adk_stream_protocol.stores.memory import MemoryWake

__all__ = ["PostgresWake"]

logger = logging.getLogger(__name__)

_CHANNEL: Final = "adk_stream"
_RETRY: Final = 1.0
_MOST_WAITING: Final = 1000


class PostgresWake(MemoryWake):
    """Wakes whoever waits for a topic, in any process on the same database."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        # What other processes are still to be told. The oldest fall out: a hint may be lost.
        self._untold: deque[str] = deque(maxlen=_MOST_WAITING)
        # Set when there is something to tell; replaced by whoever tells it.
        self._news = anyio.Event()

    def hint(self, topic: str) -> None:
        super().hint(topic)
        self._untold.append(topic)
        self._news.set()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listen and tell until the block ends."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_connected)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    async def _keep_connected(self) -> None:
        while True:
            try:
                await self._talk()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                logger.warning("hints interrupted: %s", trace_of(error))
            await anyio.sleep(_RETRY)

    async def _talk(self) -> None:
        connection = await asyncpg.connect(self._url)
        try:
            await connection.add_listener(_CHANNEL, self._heard)
            while True:
                await self._news.wait()
                self._news = anyio.Event()
                while self._untold:
                    await connection.execute("SELECT pg_notify($1, $2)", _CHANNEL, self._untold[0])
                    self._untold.popleft()
        finally:
            with anyio.move_on_after(5, shield=True):
                await connection.close()

    def _heard(self, _connection: object, _pid: int, _channel: str, topic: str) -> None:
        super().hint(topic)
