"""Connections whose statements are not cancelled half way.

A cancelled statement makes the driver throw its connection away, and aiosqlite's never finishes
closing. Statements here are short, so whoever is cancelled waits for the one in flight.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.errors import telling_loss

__all__ = ["reading", "writing"]

_LONGEST: Final = 30.0
"""Seconds after which a database that does not answer is given up."""


@asynccontextmanager
async def writing(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a transaction that is committed at the block's end.

    Raises:
        StoreLost: there is no database, or it went away.
    """
    with telling_loss(), anyio.fail_after(_LONGEST, shield=True):
        async with engine.begin() as connection:
            yield connection


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """Open a connection for reading; each statement sees what is committed by then.

    Raises:
        StoreLost: there is no database, or it went away.
    """
    with telling_loss(), anyio.fail_after(_LONGEST, shield=True):
        async with engine.connect() as connection:
            if engine.dialect.name == "postgresql":
                # To begin a transaction and to end it are two round trips more. SQLite's driver
                # begins none before something is written.
                await connection.execution_options(isolation_level="AUTOCOMMIT")
            yield connection
