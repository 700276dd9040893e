"""Opens a database: ADK's sessions and our stores, side by side."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import assert_never

from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from sqlalchemy import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.stores.opening import (
    Database,
    Memory,
    PostgresServer,
    SqliteFile,
    database_text,
    open_stores,
)
from adk_stream_protocol.stores.sql import Keeping

__all__ = ["OpenDatabase", "open_database"]


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """What a database holds."""

    stores: Stores
    sessions: BaseSessionService


@asynccontextmanager
async def open_database(
    database: Database, keeping: Keeping | None = None
) -> AsyncIterator[OpenDatabase]:
    """Open a database, make its tables if there are none, and close it when the block ends.

    Raises:
        BadRequest: it cannot be reached or read; the message says why.
        Conflict: another process has the SQLite file.
    """
    with open_stores(database, keeping) as stores:
        url = _url(database)
        if url is None:
            yield OpenDatabase(stores, InMemorySessionService())
            return
        async with DatabaseSessionService(url) as sessions:
            await _prepare(sessions, database)
            try:
                await stores.prepare()
                yield OpenDatabase(stores, sessions)
            finally:
                await stores.close()


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
