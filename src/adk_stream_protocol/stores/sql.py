"""Stores in a database: SQLite for one process, PostgreSQL for any number."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from adk_stream_protocol.errors import StoreLost, trace_of
from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.ports import Stores, Wake
from adk_stream_protocol.stores.memory import MemoryWake
from adk_stream_protocol.stores.postgres_pool import keep_good
from adk_stream_protocol.stores.postgres_wake import PostgresWake
from adk_stream_protocol.stores.sql_calls import SqlCalls
from adk_stream_protocol.stores.sql_labels import SqlChatLabels
from adk_stream_protocol.stores.sql_log import SqlLog
from adk_stream_protocol.stores.sql_schema import migrate
from adk_stream_protocol.stores.sql_turns import SqlTurns
from adk_stream_protocol.stores.sql_waiting import SqlWaiting
from adk_stream_protocol.stores.sqlite_connection import sqlite_creator

__all__ = ["Keeping", "postgres_stores", "sqlite_stores"]

logger = logging.getLogger(__name__)

_TIDY: Final = 600.0


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long what is kept, in seconds."""

    replies: float = 3600.0
    """Replies that have ended: how long they can be resumed."""
    calls: float = 90 * 86400.0
    """Calls that are settled: how long the audit trail reaches back."""
    lease: float = 30.0
    """A chat, by a process that does not say that it lives."""


def sqlite_stores(path: str, keeping: Keeping | None = None) -> Stores:
    """Return stores in a file that this process alone has open."""
    url = f"sqlite+aiosqlite:///{path}"
    create = partial(create_async_engine, url, async_creator=sqlite_creator(path))
    engine, batches = create(), create(isolation_level="AUTOCOMMIT")
    for each in (engine, batches):
        event.listen(each.sync_engine, "connect", _durable)
    return _stores(engine, batches, MemoryWake(), keeping or Keeping(), alone=True)


def postgres_stores(url: str, keeping: Keeping | None = None) -> Stores:
    """Return stores on a server; `url` has the scheme `postgresql`."""
    engine = create_async_engine(
        url.replace("postgresql://", "postgresql+asyncpg://", 1),
        # Whatever the server's default: who reads and then writes must see what others did between.
        isolation_level="READ COMMITTED",
    )
    keep_good(engine)
    # SQLAlchemy's driver calls `ssl` what a plain connection string calls `sslmode`.
    plain = url.replace("?ssl=", "?sslmode=").replace("&ssl=", "&sslmode=")
    wake = PostgresWake(plain)
    batches = engine.execution_options(isolation_level="AUTOCOMMIT")
    return _stores(engine, batches, wake, keeping or Keeping(), alone=False)


def _durable(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    # WAL lets readers and ADK's own sessions in beside the writer; FULL survives a power cut.
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _stores(
    engine: AsyncEngine, batches: AsyncEngine, wake: Wake, keeping: Keeping, *, alone: bool
) -> Stores:
    """Return stores that an engine holds.

    Args:
        engine: opens transactions.
        batches: commits each statement by itself: what is written most often is one.
        wake: how processes give each other hints.
        keeping: how long what is kept.
        alone: whether no other process has the database.
    """

    async def is_running(reply_id: ReplyId) -> bool:
        return await turns.is_running(reply_id)

    calls = SqlCalls(engine)
    log = SqlLog(engine, batches, wake, is_running=is_running, keep=keeping.replies)
    waiting = SqlWaiting(engine)
    turns = SqlTurns(engine, log=log, waiting=waiting, lease=keeping.lease)

    async def prepare() -> int:
        return await migrate(engine)

    async def close() -> None:
        # Also when the server is cancelled: a connection that is not closed keeps its thread.
        for each in (engine, batches):
            with anyio.move_on_after(5, shield=True):
                await each.dispose()

    async def tidy() -> None:
        await log.purge()
        await turns.purge(keeping.replies)
        await calls.purge(keeping.calls)

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        await prepare()
        if alone:
            await turns.lapse_all()
        try:
            async with _listening(wake), log.serving(), _now_and_then(tidy):
                yield
        finally:
            await close()

    return Stores(
        calls=calls,
        turns=turns,
        waiting=waiting,
        log=log,
        wake=wake,
        labels=SqlChatLabels(engine),
        lease=keeping.lease,
        prepare=prepare,
        close=close,
        serving=serving,
    )


def _listening(wake: Wake) -> AbstractAsyncContextManager[None]:
    return wake.serving() if isinstance(wake, PostgresWake) else nullcontext()


@asynccontextmanager
async def _now_and_then(tidy: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Forget what is not kept any more, from time to time, until the block ends."""

    async def tidy_for_ever() -> None:
        while True:
            try:
                await tidy()
            except (SQLAlchemyError, StoreLost) as error:
                logger.error("old rows not purged: %s", trace_of(error))  # noqa: TRY400
            await anyio.sleep(_TIDY)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tidy_for_ever)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()
