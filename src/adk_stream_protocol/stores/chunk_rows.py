"""How rows of the chunk table are written: all of a batch by one statement with few values.

A value for each column of each row costs a driver more than the rows cost the database, so they
travel together: as JSON to SQLite, as arrays to PostgreSQL.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import ColumnElement, Integer, String, Text, bindparam, cast, func, select, true
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.stores.sql_calls import database_now
from adk_stream_protocol.stores.sql_schema import CHUNKS

__all__ = ["ChunkRow", "ChunkRows"]

ChunkRow: TypeAlias = tuple[str, int, str | None]
"""The reply, the place in it, and the entry; None: the end marker."""

_COLUMNS: Final = ("reply_id", "seq", "data", "created_at")


class ChunkRows:
    """Writes rows; those that are there already stay as they are."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._has_arrays = engine.dialect.name == "postgresql"
        now = database_now(engine)
        self._insert = _from_arrays(now) if self._has_arrays else _from_json(now)

    async def write(self, connection: AsyncConnection, rows: Sequence[ChunkRow]) -> None:
        """Write rows; they are committed when the connection's transaction is, if it has one."""
        if rows:
            await connection.execute(self._insert, self._values(rows))

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
