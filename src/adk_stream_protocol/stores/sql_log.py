"""Replies in a table, written in batches; readers in this process are fed from memory.

What a person acts on (a held call, an answer, a tool's result, the end) is in the table before any
reader sees it. Text may run one batch ahead: a crash loses at most what a retelling brings back.
What a reply ends with is written with its turn's end, and so is text that no batch has taken yet.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import anyio
from sqlalchemy import delete, func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.bell import Bell
from adk_stream_protocol.errors import StoreLost, trace_of
from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.ports import LOST, Batch, Wake
from adk_stream_protocol.stores.chunk_rows import ChunkRow, ChunkRows, row_of
from adk_stream_protocol.stores.sql_calls import database_now
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_schema import CHUNKS
from adk_stream_protocol.wire.chunks import (
    AbortChunk,
    ErrorChunk,
    FinishChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry

__all__ = ["SqlLog"]

logger = logging.getLogger(__name__)

_BATCH: Final = 0.025
_POLL: Final = 0.25
_OUTAGE: Final = 20.0
_DURABLE: Final = frozenset(
    {
        CallHeld,
        CallAnswered,
        ToolOutputAvailableChunk,
        ToolOutputErrorChunk,
        ToolOutputDeniedChunk,
    }
)
_LAST: Final = frozenset({FinishChunk, ErrorChunk, AbortChunk})
"""What a reply ends with; its turn ends in a moment."""


@dataclass(slots=True)
class _Live:
    """A reply that this process writes."""

    entries: list[Entry] = field(default_factory=list)
    visible: int = 0
    """How many entries readers may see."""
    written: int = 0
    """How many entries are in the table, the end marker included."""
    cuts: list[int] = field(default_factory=list)
    """Where rows end that a statement was given, but that are not known to be in the table."""
    closing: bool = False
    """Whether readers may see no more until it is in the table."""
    ended: bool = False
    changed: Bell = field(default_factory=Bell)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and all of it is in the table."""
        return self.ended and self.written > len(self.entries)


class SqlLog:
    """The log of every reply, of all processes."""

    def __init__(
        self,
        engine: AsyncEngine,
        batches: AsyncEngine,
        wake: Wake,
        *,
        is_running: Callable[[ReplyId], Awaitable[bool]],
        keep: float = 3600.0,
    ) -> None:
        self._engine = engine
        # Commits each statement by itself.
        self._batches = batches
        self._now = database_now(engine)
        self._wake = wake
        self._is_running = is_running
        self._keep = keep
        self._rows_of_chunks = ChunkRows(engine)
        self._live: dict[ReplyId, _Live] = {}
        self._writing = anyio.Lock()
        # Set when there is something to write; replaced by the writer.
        self._dirty = anyio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Write batches until the block ends, and then what is left."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_batches)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                with anyio.move_on_after(5, shield=True):
                    await self._flush()

    async def open(self, reply_id: ReplyId) -> None:
        self._live.setdefault(reply_id, _Live())

    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        live = self._live[reply_id]
        assert not live.ended, "nothing follows the end marker"
        live.entries.extend(entries)
        kinds = frozenset(map(type, entries))
        if not _DURABLE.isdisjoint(kinds):
            await self._flush()
        else:
            self._dirty.set()
            if live.closing or not _LAST.isdisjoint(kinds):
                live.closing = True
                return
        live.visible = len(live.entries)
        live.changed.ring()

    async def end(self, reply_id: ReplyId) -> None:
        live = self._live.get(reply_id)
        if live is None:
            return
        live.ended = True
        if live.is_over:
            self._let_go()
        else:
            # If this fails, the next batch that does not writes the end, too.
            self._dirty.set()
            await self._flush()

    async def leave(self, reply_id: ReplyId) -> None:
        try:
            # What was shown is stored, so that whoever ends the reply ends it behind that.
            await self._flush()
        except (SQLAlchemyError, StoreLost) as error:
            logger.error("reply left unwritten: %s", trace_of(error))  # noqa: TRY400
        finally:
            live = self._live.pop(reply_id, None)
            if live is not None:
                live.changed.ring()

    async def write_end(self, connection: AsyncConnection, reply_id: ReplyId) -> int:
        """Write the end of a reply that this process writes, in the transaction of its turn's end.

        Readers of this process see it only after `end`.

        Returns:
            how much is in the table then, for `note_end`.
        """
        live = self._live.get(reply_id)
        if live is None:
            return 0
        count = len(live.entries) + 1
        await self._rows_of_chunks.write(connection, _rows_of(reply_id, live, ended=True))
        return count

    def note_end(self, reply_id: ReplyId, count: int) -> None:
        """Note that what `write_end` wrote is committed: it need not be written again."""
        live = self._live.get(reply_id)
        if live is not None:
            live.written = max(live.written, count)
            # If `end` came before, and could not write it, it is over now.
            self._let_go()

    async def written(self, reply_id: ReplyId) -> Sequence[Entry]:
        live = self._live.get(reply_id)
        if live is not None:
            return tuple(live.entries[: live.visible])
        batch = await self._rows(reply_id, 0)
        return () if batch is None else batch.entries

    async def read(self, reply_id: ReplyId, after: int) -> Batch | None:
        known = False
        while (live := self._live.get(reply_id)) is not None:
            known = True
            if live.visible > after:
                return Batch(tuple(live.entries[after : live.visible]), ended=False)
            await live.changed.wait()
            if live.is_over:
                # The table has all of it now, the end included; so has this reader.
                return Batch(tuple(live.entries[after:]), ended=True)
        return await self._follow(reply_id, after, known=known)

    async def _follow(self, reply_id: ReplyId, after: int, *, known: bool) -> Batch | None:
        """Read a reply from the table: one that has ended, or that another process writes."""
        until = anyio.current_time() + _OUTAGE
        while True:
            try:
                # Asked first: what is written before the lease lapses is then certainly seen.
                running = await self._is_running(reply_id)
                batch = await self._rows(reply_id, after)
            except (SQLAlchemyError, StoreLost):
                # The database may be back in a moment: the reader just waits a little longer.
                if anyio.current_time() > until:
                    raise
                await anyio.sleep(_POLL)
                continue
            until = anyio.current_time() + _OUTAGE
            if batch is not None:
                return batch
            if not running:
                return await self._lost(reply_id, after, known=known)
            known = True
            await self._wake.wait(reply_id, _POLL)

    async def _rows(self, reply_id: ReplyId, after: int) -> Batch | None:
        async with reading(self._engine) as connection:
            return await self._rows_of_chunks.read(connection, reply_id, after)

    async def _lost(self, reply_id: ReplyId, after: int, *, known: bool) -> Batch | None:
        """End a reply whose writer died, so that every reader sees the same end.

        One that nothing is stored of is no reply, unless this reader saw it run.
        """
        async with reading(self._engine) as connection:
            stored = await self._rows_of_chunks.stored(connection, reply_id)
        if not (stored.count or stored.ended or known):
            return None
        has_more = stored.count > after or stored.ended
        if not has_more and await self._end_lost(reply_id, stored.count):
            return Batch((LOST,), ended=True)
        # Somebody wrote meanwhile: a writer that is late, or another reader this end.
        return await self._follow(reply_id, after, known=True)

    async def _end_lost(self, reply_id: ReplyId, count: int) -> bool:
        """Write the end behind what is stored, or nothing if there is more by now.

        Not behind what the reader has seen: memory may have told it more. The next row of a late
        writer begins with the very number of this one, so that the table takes one of them.
        """
        async with writing(self._engine) as connection:
            rows = self._rows_of_chunks
            # Alone: with the end marker in one statement, that one would be written even if a late
            # writer's row is there, and would cut it short.
            if not await rows.write(connection, [row_of(reply_id, count, [LOST])]):
                return False
            await rows.write(connection, [(reply_id, count + 1, None)])
            return True

    async def _write_batches(self) -> None:
        while True:
            await self._dirty.wait()
            # Short replies end before that, and are written as a whole.
            await anyio.sleep(_BATCH)
            self._dirty = anyio.Event()
            try:
                await self._flush()
            except (SQLAlchemyError, StoreLost) as error:
                trace = trace_of(error)
                logger.error("batch not written, trying again: %s", trace)  # noqa: TRY400
                self._dirty.set()

    async def _flush(self) -> None:
        """Write everything that is not in the table yet, of all replies, in one statement."""
        async with self._writing:
            rows, counts = self._unwritten()
            if not rows:
                self._let_go()
                return
            async with writing(self._batches) as connection:
                await self._rows_of_chunks.write(connection, rows)
            for live, count in counts:
                # The turn's end may have written more meanwhile.
                live.written = max(live.written, count)
                if live.closing:
                    live.visible = max(live.visible, min(live.written, len(live.entries)))
                    live.changed.ring()
            self._let_go()

    def _let_go(self) -> None:
        """Let go of replies whose end is written: their readers go on in the table."""
        over = [name for name, live in self._live.items() if live.is_over]
        for reply_id in over:
            self._live.pop(reply_id).changed.ring()
            self._wake.hint(reply_id)

    def _unwritten(self) -> tuple[list[ChunkRow], list[tuple[_Live, int]]]:
        rows: list[ChunkRow] = []
        counts: list[tuple[_Live, int]] = []
        for reply_id, live in self._live.items():
            rows += _rows_of(reply_id, live, ended=live.ended)
            counts.append((live, len(live.entries) + live.ended))
        return rows, counts

    async def purge(self) -> None:
        """Forget replies that are older than they are kept."""
        # By reply, not by row: a long reply must not lose its beginning.
        old = (
            select(CHUNKS.c.reply_id)
            .group_by(CHUNKS.c.reply_id)
            .having(func.max(CHUNKS.c.created_at) < self._now - self._keep)
        )
        async with writing(self._engine) as connection:
            await connection.execute(delete(CHUNKS).where(CHUNKS.c.reply_id.in_(old)))


def _rows_of(reply_id: ReplyId, live: _Live, *, ended: bool) -> list[ChunkRow]:
    """Return the rows that are not in the table yet, cut where they were cut before.

    A row is given to a second statement when the first one's answer was lost, or when the turn ends
    while a batch is on its way. The table keeps the row that comes first, so both must be the same:
    entries that were added in between would be lost with the longer one. They get a row of their
    own. There are no gaps, since a statement is given all rows that may not be in the table.
    """
    count = len(live.entries)
    bounds = [live.written, *(cut for cut in live.cuts if cut > live.written)]
    if count > bounds[-1]:
        bounds.append(count)
    live.cuts = bounds[1:]
    rows = [
        row_of(reply_id, first, live.entries[first:behind]) for first, behind in pairwise(bounds)
    ]
    if ended and live.written <= count:
        rows.append((reply_id, count, None))
    return rows
