"""SQLite connections that cross to their thread once for a statement."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from adk_stream_protocol.stores.sqlite_connection import sqlite_creator

pytestmark = pytest.mark.anyio

WORDS = Table(
    "word",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("said", String, unique=True),
)


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[AsyncConnection]:
    path = str(tmp_path / "words.db")
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}", async_creator=sqlite_creator(path))
    async with engine.begin() as setting_up:
        await setting_up.run_sync(WORDS.metadata.create_all)
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


def crossings(caplog: pytest.LogCaptureFixture) -> int:
    """Return how often something was carried to the connection's thread, and count anew."""
    count = sum(record.message.startswith("executing") for record in caplog.records)
    caplog.clear()
    return count


async def test_a_transaction_is_ended_only_where_one_was_begun(
    connection: AsyncConnection, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "aiosqlite"):
        await connection.execute(select(WORDS))
        await connection.rollback()
        assert crossings(caplog) == 1
        await connection.execute(insert(WORDS).values(said="one"))
        await connection.rollback()
        assert crossings(caplog) == 2
        assert (await connection.execute(select(WORDS))).all() == []
        await connection.rollback()
        assert crossings(caplog) == 1
        await connection.execute(insert(WORDS), [{"said": "two"}, {"said": "three"}])
        await connection.commit()
        assert crossings(caplog) == 2
        with pytest.raises(IntegrityError):
            await connection.execute(insert(WORDS).values(said="two"))
        # A statement that failed may have begun something.
        await connection.rollback()
        assert crossings(caplog) == 2
        await connection.execute(select(WORDS))
        await connection.commit()
        assert crossings(caplog) == 1


async def test_a_statement_crosses_once(
    connection: AsyncConnection, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "aiosqlite"):
        added = await connection.execute(insert(WORDS).values(said="one"))
        assert added.inserted_primary_key == (1,)
        assert crossings(caplog) == 1
        await connection.execute(insert(WORDS), [{"said": "two"}, {"said": "three"}])
        assert crossings(caplog) == 1
        found = await connection.execute(select(WORDS.c.id, WORDS.c.said).order_by(WORDS.c.id))
        assert found.all() == [(1, "one"), (2, "two"), (3, "three")]
        assert crossings(caplog) == 1
        changed = await connection.execute(update(WORDS).values(said=WORDS.c.said + "!"))
        assert changed.rowcount == 3
        assert crossings(caplog) == 1
        told = await connection.execute(
            insert(WORDS).values(said="four").returning(WORDS.c.id, WORDS.c.said)
        )
        assert told.one() == (4, "four")
        assert crossings(caplog) == 1


async def test_what_is_wrong_with_a_statement_is_told(connection: AsyncConnection) -> None:
    await connection.execute(insert(WORDS).values(said="one"))
    with pytest.raises(IntegrityError, match="UNIQUE"):
        await connection.execute(insert(WORDS).values(said="one"))
    await connection.rollback()
    assert (await connection.execute(select(WORDS))).all() == []


async def test_rows_can_be_streamed(connection: AsyncConnection) -> None:
    await connection.execute(insert(WORDS), [{"said": str(number)} for number in range(5)])
    streamed = await connection.stream(select(WORDS.c.said).order_by(WORDS.c.id))
    assert [row.said async for row in streamed] == ["0", "1", "2", "3", "4"]


async def test_a_file_stays_the_same_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    engine = create_async_engine(
        "sqlite+aiosqlite:///words.db", async_creator=sqlite_creator("words.db")
    )
    async with engine.begin() as setting_up:
        await setting_up.run_sync(WORDS.metadata.create_all)
    monkeypatch.chdir(tmp_path / "elsewhere")
    async with engine.connect() as one, engine.connect() as other:
        assert (await one.execute(select(WORDS))).all() == []
        assert (await other.execute(select(WORDS))).all() == []
    await engine.dispose()
