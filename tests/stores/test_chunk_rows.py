"""Rows of the chunk table, written together."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.ports import Batch
from adk_stream_protocol.stores.chunk_rows import ChunkRow, ChunkRows, Stored, row_of
from adk_stream_protocol.stores.sql_schema import CHUNKS, migrate
from adk_stream_protocol.wire.chunks import TextDeltaChunk
from support.postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "postgres"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AsyncEngine]:
    url = f"sqlite+aiosqlite:///{tmp_path / 'rows.db'}"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        given = server.create(f"rows-{uuid.uuid4().hex}")
        url = given.replace("postgresql:", "postgresql+asyncpg:")
    engine = create_async_engine(url)
    await migrate(engine)
    yield engine
    await engine.dispose()


async def written(engine: AsyncEngine) -> list[ChunkRow]:
    query = select(CHUNKS.c.reply_id, CHUNKS.c.seq, CHUNKS.c.data)
    async with engine.connect() as connection:
        found = await connection.execute(query.order_by(CHUNKS.c.reply_id, CHUNKS.c.seq))
        return [(row.reply_id, row.seq, row.data) for row in found]


async def test_rows_are_as_they_were_given(engine: AsyncEngine) -> None:
    rows: list[ChunkRow] = [
        ("a", 0, '{"delta":"quotes \\" and \\u0000, \'\'"}'),
        ("a", 1, '["[1, 2]", null]'),
        ("a", 2, "12"),
        ("a", 3, ""),
        ("a", 4, "日本語 😀 \n \x7f"),
        ("b", 7, "x" * 100_000),
        ("b", 8, None),
    ]
    chunk_rows = ChunkRows(engine)
    async with engine.begin() as connection:
        await chunk_rows.write(connection, rows)
    assert await written(engine) == rows


async def test_what_is_there_stays(engine: AsyncEngine) -> None:
    chunk_rows = ChunkRows(engine)
    async with engine.begin() as connection:
        assert await chunk_rows.write(connection, [("a", 0, "first"), ("a", 1, None)]) == 2
    async with engine.begin() as connection:
        assert await chunk_rows.write(connection, [("a", 0, "second"), ("a", 2, "third")]) == 1
        assert await chunk_rows.write(connection, [("a", 0, "second")]) == 0
        assert await chunk_rows.write(connection, []) == 0
    assert await written(engine) == [("a", 0, "first"), ("a", 1, None), ("a", 2, "third")]


async def test_entries_of_a_row_are_read_one_by_one(engine: AsyncEngine) -> None:
    # All that ends a line somewhere; only the first does between the entries of a row.
    said = [
        TextDeltaChunk("1", end) for end in ("\n", "\r\n", "\x0b\x0c\x1c", "\x85", "\u2028\u2029")
    ]
    name, chunk_rows = ReplyId("a"), ChunkRows(engine)
    async with engine.begin() as connection:
        assert await chunk_rows.read(connection, name, 0) is None
        assert await chunk_rows.stored(connection, name) == Stored(0, ended=False)
        await chunk_rows.write(connection, [row_of(name, 0, said[:3]), row_of(name, 3, said[3:])])
        for after in range(len(said)):
            tail = Batch(tuple(said[after:]), ended=False)
            assert await chunk_rows.read(connection, name, after) == tail
        assert await chunk_rows.read(connection, name, len(said)) is None
        assert await chunk_rows.stored(connection, name) == Stored(len(said), ended=False)
        await chunk_rows.write(connection, [(name, len(said), None)])
        for after in range(len(said) + 2):
            tail = Batch(tuple(said[after:]), ended=True)
            assert await chunk_rows.read(connection, name, after) == tail
        assert await chunk_rows.stored(connection, name) == Stored(len(said), ended=True)
