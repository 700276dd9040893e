"""Opens a database: ADK's sessions and our stores, side by side."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, assert_never

from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.stores.opening import (
    Database,
    Memory,
    PostgresServer,
    SqliteFile,
    database_text,
    locked,
    stores_in,
)
from adk_stream_protocol.stores.postgres_pool import keep_good
from adk_stream_protocol.stores.sql import Keeping
from adk_stream_protocol.stores.sqlite_connection import sqlite_creator

__all__ = ["OpenDatabase", "connect", "open_database"]

_PATIENCE: Final = 60.0
"""Seconds that a chat waits for its turn to write into a SQLite file."""


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """What a database holds."""

    stores: Stores
    sessions: BaseSessionService
    found: int = 0
    """The schema version it was of when it was opened; 0: it was new, or is memory."""


def connect(database: Database, keeping: Keeping | None = None) -> OpenDatabase:
    """Return what a database holds; it is opened when a server starts to serve it.

    Then, what cannot be opened is a `BadRequest` or a `Conflict`, as with `open_database`.
    """
    stores, sessions = stores_in(database, keeping), _sessions(database)

    @asynccontextmanager
    async def serving() -> AsyncIterator[None]:
        with locked(database):
            async with _prepared(sessions, database), stores.serving():
                yield

    return OpenDatabase(dataclasses.replace(stores, serving=serving), sessions)


@asynccontextmanager
async def open_database(
    database: Database, keeping: Keeping | None = None
) -> AsyncIterator[OpenDatabase]:
    """Open a database, make or upgrade its tables, and close it when the block ends.

    Raises:
        BadRequest: it cannot be reached or read; the message says why.
        Conflict: another process has the SQLite file, or a newer release has changed it.
    """
    stores, sessions = stores_in(database, keeping), _sessions(database)
    with locked(database):
        async with _prepared(sessions, database):
            try:
                yield OpenDatabase(stores, sessions, found=await stores.prepare())
            finally:
                await stores.close()


@asynccontextmanager
async def _prepared(sessions: BaseSessionService, database: Database) -> AsyncIterator[None]:
    if not isinstance(sessions, DatabaseSessionService):
        yield
        return
    async with sessions:
        await _prepare(sessions, database)
        yield


def _sessions(database: Database) -> BaseSessionService:
    url = _url(database)
    if url is None:
        return InMemorySessionService()
    if isinstance(database, SqliteFile):
        # SQLite lets in one writer, and whoever waits for it is served by chance: among many chats
        # some would wait for too long. In the pool they stand in line.
        alone = {"pool_size": 1, "max_overflow": 0, "pool_timeout": _PATIENCE}
        creator = sqlite_creator(str(database.path), timeout=_PATIENCE)
        return DatabaseSessionService(url, **alone, async_creator=creator)
    # ADK would have the server asked before each use of a connection, in three round trips.
    service = DatabaseSessionService(url, pool_pre_ping=False)
    keep_good(service.db_engine)
    return service


def _url(database: Database) -> str | None:
    """Return the URL that ADK takes, or None for memory."""
    match database:
        case Memory():
            return None
        case SqliteFile(path):
            url = URL.create("sqlite+aiosqlite", database=str(path))
        case PostgresServer(given):
            url = make_url(given).set(drivername="postgresql+asyncpg")
        case _:
            assert_never(database)
    return url.render_as_string(hide_password=False)


async def _prepare(sessions: DatabaseSessionService, database: Database) -> None:
    try:
        async with _alone(database):
            await sessions.prepare_tables()
    except (SQLAlchemyError, OSError, ValueError, TypeError) as error:
        # TypeError: the driver does not know an option of the URL.
        cause = getattr(error, "orig", None) or error
        why = str(cause).strip().partition("\n")[0].rpartition(">: ")[2].rstrip(".")
        advice = (
            "Name another file."
            if isinstance(database, SqliteFile)
            else "Check the URL, and that the server runs."
        )
        raise BadRequest(
            f"The database {database_text(database)} cannot be used: {why}. {advice}",
            code="bad_database",
        ) from error


@asynccontextmanager
async def _alone(database: Database) -> AsyncIterator[None]:
    """Keep other instances from making ADK's tables at the same moment: it takes no lock itself."""
    if not isinstance(database, PostgresServer):
        yield
        return
    engine = create_async_engine(_url(database) or "")
    try:
        async with engine.begin() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(7236013)"))
            yield
    finally:
        await engine.dispose()
