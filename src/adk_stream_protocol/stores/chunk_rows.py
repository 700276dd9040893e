"""Rows of the chunk table: each holds entries of a reply that follow each other, one line each.

All rows of a batch are written by one statement with few values. A value for each column of each
row costs a driver more than the rows cost the database, so they travel together: as JSON to SQLite,
as arrays to PostgreSQL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Integer, String, Text, bindparam, cast, func, select, true
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.ports import Batch
from adk_stream_protocol.stores.sql_calls import database_now
from adk_stream_protocol.stores.sql_schema import CHUNKS
from adk_stream_protocol.wire.entries import Entry
from adk_stream_protocol.wire.entry_text import entry_text, parse_entry

__all__ = ["ChunkRow", "ChunkRows", "Stored", "row_of"]

ChunkRow: TypeAlias = tuple[str, int, str | None]
"""The reply, the number of the row's first entry, and its entries; None: the end marker."""

_COLUMNS: Final = ("reply_id", "seq", "data", "created_at")
# JSON escapes it inside of texts. Not `splitlines`: it also splits at what JSON does not escape.
_BETWEEN: Final = "\n"

_OF_REPLY: Final = CHUNKS.c.reply_id == bindparam("reply")
_ROWS: Final = select(CHUNKS.c.seq, CHUNKS.c.data).where(_OF_REPLY)
_NEWEST: Final = _ROWS.order_by(CHUNKS.c.seq.desc()).limit(1)
_AFTER: Final = bindparam("after", type_=Integer)
# The row that the entry is in may begin before it.
_BEGINS: Final = select(func.max(CHUNKS.c.seq)).where(_OF_REPLY, CHUNKS.c.seq <= _AFTER)
_TAIL: Final = _ROWS.where(
    CHUNKS.c.seq >= func.coalesce(_BEGINS.scalar_subquery(), _AFTER)
).order_by(CHUNKS.c.seq)


@dataclass(frozen=True, slots=True)
class Stored:
    """How far a reply is stored."""

    count: int
    """How many entries are; the next row begins with this number."""
    ended: bool


def row_of(reply_id: ReplyId, first: int, entries: Sequence[Entry]) -> ChunkRow:
    """Return the row of at least one entry, the first of which has the number `first`."""
    return reply_id, first, _BETWEEN.join(map(entry_text, entries))


class ChunkRows:
    """Writes and reads rows; those that are there already stay as they are."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._has_arrays = engine.dialect.name == "postgresql"
        now = database_now(engine)
        self._insert = _from_arrays(now) if self._has_arrays else _from_json(now)

    async def write(self, connection: AsyncConnection, rows: Sequence[ChunkRow]) -> int:
        """Write rows; they are committed when the connection's transaction is, if it has one.

        Returns:
            how many were not there yet.
        """
        if not rows:
            return 0
        return (await connection.execute(self._insert, self._values(rows))).rowcount

    async def read(
        self, connection: AsyncConnection, reply_id: ReplyId, after: int
    ) -> Batch | None:
        """Return what follows the first `after` entries, or None if nothing does."""
        lines: list[str] = []
        ended = False
        for seq, data in await connection.execute(_TAIL, {"reply": reply_id, "after": after}):
            # A writer that lost its chat may have written on behind the end that a reader gave it.
            if data is None:
                ended = True
                break
            lines += data.split(_BETWEEN)[max(after - seq, 0) :]
        return Batch(tuple(map(parse_entry, lines)), ended=ended) if lines or ended else None

    async def stored(self, connection: AsyncConnection, reply_id: ReplyId) -> Stored:
        """Return how far a reply is stored; nothing of one that is not there."""
        found = (await connection.execute(_NEWEST, {"reply": reply_id})).one_or_none()
        if found is None:
            return Stored(0, ended=False)
        if found.data is None:
            return Stored(found.seq, ended=True)
        return Stored(found.seq + found.data.count(_BETWEEN) + 1, ended=False)

    def _values(self, rows: Sequence[ChunkRow]) -> Mapping[str, Any]:
        if not self._has_arrays:
            return {"rows": json.dumps(rows)}
        replies, places, entries = zip(*rows, strict=True)
        return {"replies": replies, "places": places, "entries": entries}


def _from_json(now: ColumnElement[float]) -> sqlite.Insert:
    row = func.json_each(bindparam("rows", type_=Text)).table_valued("value").c.value
    fields = (func.json_extract(row, f"$[{index}]") for index in range(3))
    # SQLite would take ON CONFLICT for a join's ON where nothing stands in between.
    found = select(*fields, now).where(true())
    return sqlite.insert(CHUNKS).from_select(_COLUMNS, found).on_conflict_do_nothing()


def _from_arrays(now: ColumnElement[float]) -> postgresql.Insert:
    rows = (
        func.unnest(
            cast(bindparam("replies"), ARRAY(String)),
            cast(bindparam("places"), ARRAY(Integer)),
            cast(bindparam("entries"), ARRAY(Text)),
        )
        .table_valued("reply_id", "seq", "data")
        .render_derived()
    )
    found = select(rows.c.reply_id, rows.c.seq, rows.c.data, now)
    return postgresql.insert(CHUNKS).from_select(_COLUMNS, found).on_conflict_do_nothing()
