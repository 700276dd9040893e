"""Stores in a database: SQLite for one process, PostgreSQL for any number."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_stream_protocol.ports import Stores, Wake
from adk_stream_protocol.stores.memory import MemoryWake
from adk_stream_protocol.stores.postgres_wake import PostgresWake
from adk_stream_protocol.stores.sql_calls import SqlCalls
from adk_stream_protocol.stores.sql_log import SqlLog
from adk_stream_protocol.stores.sql_schema import migrate
from adk_stream_protocol.stores.sql_turns import SqlTurns

__all__ = ["postgres_stores", "sqlite_stores"]


def sqlite_stores(path: str, *, keep_replies: float = 3600.0, lease: float = 30.0) -> Stores:
    """Return stores in a file that this process alone has open."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    event.listen(engine.sync_engine, "connect", _durable)
    return _stores(engine, MemoryWake(), alone=True, keep_replies=keep_replies, lease=lease)


def postgres_stores(url: str, *, keep_replies: float = 3600.0, lease: float = 30.0) -> Stores:
    """Return stores on a server; `url` has the scheme `postgresql`."""
    engine = create_async_engine(
        url.replace("postgresql://", "postgresql+asyncpg://", 1), pool_pre_ping=True
    )
    # SQLAlchemy's driver calls `ssl` what a plain connection string calls `sslmode`.
    plain = url.replace("?ssl=", "?sslmode=").replace("&ssl=", "&sslmode=")
    wake = PostgresWake(plain)
    return _stores(engine, wake, alone=False, keep_replies=keep_replies, lease=lease)


def _durable(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    # WAL lets readers and ADK's own sessions in beside the writer; FULL survives a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _stores(
    engine: AsyncEngine, wake: Wake, *, alone: bool, keep_replies: float, lease: float
) -> Stores:
    calls, turns = SqlCalls(engine), SqlTurns(engine, lease=lease)
    log = SqlLog(engine, wake, is_running=turns.is_running, keep=keep_replies)

    async def prepare() -> None:
        await migrate(engine)

    async def close() -> None:
        # Also when the server is cancelled: a connection that is not closed keeps its thread.
        with anyio.move_on_after(5, shield=True):
            await engine.dispose()

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        await prepare()
        if alone:
            await turns.end_all()
        try:
            if isinstance(wake, PostgresWake):
                async with wake.serving(), log.serving():
                    yield
            else:
                async with log.serving():
                    yield
        finally:
            await close()

    return Stores(
        calls=calls, turns=turns, log=log, wake=wake, prepare=prepare, close=close, serving=serving
    )
