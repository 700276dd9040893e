"""Connections to a server: what reads needs no transaction, what writes has one."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adk_stream_protocol.stores.sql_connections import reading, writing
from support.postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(postgres: PostgresServer) -> AsyncIterator[AsyncEngine]:
    url = postgres.create(f"connections-{uuid.uuid4().hex}")
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"), pool_size=1)
    yield engine
    await engine.dispose()


async def is_one_transaction(connection: AsyncConnection) -> bool:
    """Whether two statements are in the same: `now()` is when a transaction began."""
    first, second = [(await connection.execute(text("SELECT now()"))).scalar() for _ in range(2)]
    return bool(first == second)


async def test_reading_begins_no_transaction(engine: AsyncEngine) -> None:
    async with reading(engine) as connection:
        assert not await is_one_transaction(connection)


async def test_writing_has_a_transaction_on_a_connection_that_was_read_from(
    engine: AsyncEngine,
) -> None:
    async with reading(engine) as connection:
        await connection.execute(text("SELECT 1"))
    async with writing(engine) as connection:
        assert await is_one_transaction(connection)
