"""Connections to PostgreSQL that were lost while nobody used them."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_stream_protocol.stores import postgres_pool
from adk_stream_protocol.stores.postgres_pool import keep_good
from support.postgres import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def engine(postgres: PostgresServer) -> AsyncIterator[AsyncEngine]:
    url = postgres.create(f"pool-{uuid.uuid4().hex}")
    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    keep_good(engine)
    yield engine
    await engine.dispose()


async def used(engine: AsyncEngine) -> tuple[int, Any]:
    """Use a connection; return the process that serves it, and the driver's own."""
    async with engine.connect() as connection:
        process = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        raw = await connection.get_raw_connection()
        return int(process), raw.driver_connection


async def test_one_that_was_closed_is_replaced(
    engine: AsyncEngine, postgres: PostgresServer
) -> None:
    process, driver = await used(engine)
    assert (await used(engine))[0] == process
    closed = anyio.Event()
    driver.add_termination_listener(lambda _: closed.set())
    postgres.sql(f"SELECT pg_terminate_backend({process}, 5000)")
    with anyio.fail_after(10):
        await closed.wait()
    assert (await used(engine))[0] != process


async def test_one_that_was_idle_is_asked(
    engine: AsyncEngine, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, driver = await used(engine)
    monkeypatch.setattr(postgres_pool, "_TRUSTED", 0.0)
    postgres.sql(f"SELECT pg_terminate_backend({process}, 5000)")
    # The event loop has not run since, so the driver has not heard of it.
    assert not driver.is_closed()
    assert (await used(engine))[0] != process


async def test_one_that_was_used_just_now_is_not_asked(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, driver = await used(engine)
    asked: list[str] = []
    driver.add_query_logger(lambda record: asked.append(record.query))
    monkeypatch.setattr(postgres_pool, "_TRUSTED", 3600.0)
    await used(engine)
    assert ";" not in asked
    monkeypatch.setattr(postgres_pool, "_TRUSTED", 0.0)
    await used(engine)
    assert ";" in asked
