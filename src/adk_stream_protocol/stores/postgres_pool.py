"""Connections to PostgreSQL that are still good when they are taken from their pool.

SQLAlchemy's own `pool_pre_ping` asks the server each time, in a transaction of its own: three round
trips before nearly each statement of a busy server. One that was used a moment ago is not asked: a
server that is lost just then fails statements either way.
"""

from __future__ import annotations

import time
from typing import Final

from sqlalchemy import event
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

__all__ = ["keep_good"]

_TRUSTED: Final = 1.0
"""How many seconds a connection that was given back is taken to be good."""

_GIVEN_BACK: Final = "adk_stream_given_back"


def keep_good(engine: AsyncEngine) -> None:
    """Let an engine replace connections that were lost while nobody used them."""
    dialect = engine.dialect

    def look(
        connection: DBAPIConnection, entry: ConnectionPoolEntry, _taken: PoolProxiedConnection
    ) -> None:
        since = entry.info.get(_GIVEN_BACK)
        # One that was never given back was opened just now.
        if since is not None and not _is_good(dialect, connection, time.monotonic() - since):
            # What is true of one is most likely true of all.
            raise InvalidatePoolError

    def note(_connection: DBAPIConnection | None, entry: ConnectionPoolEntry) -> None:
        entry.info[_GIVEN_BACK] = time.monotonic()

    event.listen(engine.sync_engine, "checkout", look)
    event.listen(engine.sync_engine, "checkin", note)


def _is_good(dialect: Dialect, connection: DBAPIConnection, idle: float) -> bool:
    if connection.driver_connection.is_closed():
        return False
    if idle < _TRUSTED:
        return True
    try:
        return dialect.do_ping(connection)
    except Exception as error:
        if dialect.is_disconnect(error, connection, None):  # type: ignore[arg-type]  # a driver's
            return False
        raise
