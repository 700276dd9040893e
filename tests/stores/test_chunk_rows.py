"""Rows of the chunk table, written together."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_stream_protocol.stores.chunk_rows import ChunkRow, ChunkRows
from adk_stream_protocol.stores.sql_schema import CHUNKS, migrate
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
        await chunk_rows.write(connection, [("a", 0, "first"), ("a", 1, None)])
    async with engine.begin() as connection:
        await chunk_rows.write(connection, [("a", 0, "second"), ("a", 2, "third")])
        await chunk_rows.write(connection, [])
    assert await written(engine) == [("a", 0, "first"), ("a", 1, None), ("a", 2, "third")]
