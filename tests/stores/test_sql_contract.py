from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.stores.sql import Keeping, postgres_stores, sqlite_stores
from adk_stream_protocol.stores.sql_log import SqlLog
from support.postgres import PostgresServer

# Before it is imported: it is no test module by its name.
pytest.register_assert_rewrite("stores.contract", "stores.contract_waiting")

from stores.contract import *  # noqa: E402, F403  # each of its tests is a test of these stores
from stores.contract import KEPT, Backend  # noqa: E402
from stores.contract_waiting import *  # noqa: E402, F403  # and these

_AGING = (
    "UPDATE adk_stream_call SET created_at = created_at - :s, expires_at = expires_at - :s, "
    "decided_at = decided_at - :s, done_at = done_at - :s",
    "UPDATE adk_stream_chunk SET created_at = created_at - :s",
    "UPDATE adk_stream_turn SET lease_until = lease_until - :s",
)


@pytest.fixture(params=["sqlite", "postgres"])
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    if request.param == "sqlite":
        file = tmp_path / "stores.db"
        stores, url = sqlite_stores(str(file), Keeping(replies=KEPT)), f"sqlite+aiosqlite:///{file}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        plain = server.create(f"stores-{uuid.uuid4().hex}")
        stores = postgres_stores(plain, Keeping(replies=KEPT))
        url = plain.replace("postgresql://", "postgresql+asyncpg://")
    engine = create_async_engine(url)

    async def advance(seconds: float) -> None:
        """Let time pass by making everything older: the clock is the database's own."""
        async with engine.begin() as connection:
            for statement in _AGING:
                await connection.execute(text(statement), {"s": seconds})
        assert isinstance(stores.log, SqlLog)
        await stores.log.purge()

    async with stores.serving():
        yield Backend(stores, advance)
    await engine.dispose()
