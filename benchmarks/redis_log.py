"""The peer: a log whose entries go to Redis streams, in a pipeline every 25 ms as ours does.

Readers are fed from memory, again as ours are, so that what differs is the writing alone.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio

from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.stores.memory import MemoryLog
from adk_stream_protocol.wire.entries import Entry
from adk_stream_protocol.wire.entry_text import entry_text
from benchmarks.servers import PACKAGES

__all__ = ["RedisLog"]

_BATCH: Final = 0.025


class RedisLog(MemoryLog):
    """Each entry is an XADD; the end of a reply waits until all are acknowledged."""

    def __init__(self, url: str) -> None:
        super().__init__()
        # Installed by `make bench` alone, and beside our packages, not among them.
        if str(PACKAGES) not in sys.path:
            sys.path.append(str(PACKAGES))
        self._redis: Any = importlib.import_module("redis.asyncio").from_url(url)
        self._unwritten: list[tuple[str, str]] = []
        self._writing = anyio.Lock()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Write batches until the block ends; then leave Redis as empty as it was."""
        async with anyio.create_task_group() as tasks:
            await self._redis.ping()
            tasks.start_soon(self._write_batches)
            yield
            tasks.cancel_scope.cancel()
        await self._redis.flushall()
        await self._redis.aclose()

    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        self._unwritten += [(reply_id, entry_text(entry)) for entry in entries]
        await super().append(reply_id, entries)

    async def end(self, reply_id: ReplyId) -> None:
        await self._flush()
        await super().end(reply_id)

    async def _write_batches(self) -> None:
        while True:
            await anyio.sleep(_BATCH)
            await self._flush()

    async def _flush(self) -> None:
        async with self._writing:
            rows, self._unwritten = self._unwritten, []
            if not rows:
                return
            pipeline = self._redis.pipeline(transaction=False)
            for reply_id, text in rows:
                pipeline.xadd(reply_id, {"d": text})
            await pipeline.execute()
