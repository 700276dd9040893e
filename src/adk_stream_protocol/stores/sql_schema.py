"""The tables, and the steps that bring an older database up to them.

They live in the database of ADK's sessions, under names of their own. A database that a newer
version has changed is refused: guessing at it could lose an answer.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    select,
    text,
)
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_stream_protocol.errors import Conflict
from adk_stream_protocol.stores.sql_connections import writing

__all__ = ["CALLS", "CHUNKS", "TURNS", "VERSION", "migrate"]

VERSION: Final = 1

_TABLES = MetaData()

_SCHEMA: Final = Table(
    "adk_stream_schema",
    _TABLES,
    Column("version", Integer, nullable=False),
)

TURNS: Final = Table(
    "adk_stream_turn",
    _TABLES,
    Column("chat_id", String(128), primary_key=True),
    Column("owner", String(255), nullable=False),
    Column("reply_id", String(64), nullable=False),
    Column("key", Text, nullable=False),
    Column("running", Boolean, nullable=False),
    Column("stopping", Boolean, nullable=False),
    Column("holder", String(64), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("lease_until", Float, nullable=False),
)
Index("adk_stream_turn_owner", TURNS.c.owner, TURNS.c.running)

CALLS: Final = Table(
    "adk_stream_call",
    _TABLES,
    Column("approval_id", String(255), primary_key=True),
    Column("call_id", String(255), nullable=False),
    Column("owner", String(255), nullable=False),
    Column("chat_id", String(128), nullable=False),
    Column("invocation_id", String(128), nullable=False),
    Column("tool_name", String(255), nullable=False),
    Column("arguments", Text, nullable=False),
    Column("arguments_hash", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("request_id", String(255), nullable=False),
    Column("lane", String(255), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("approval", Boolean, nullable=False),
    Column("state", String(16), nullable=False),
    Column("title", Text, nullable=False),
    Column("hint", Text, nullable=False),
    Column("risk", Text, nullable=False),
    Column("payload", Text),
    Column("ui", Text, nullable=False),
    Column("decided_at", Float),
    Column("decided_by", String(255)),
    Column("decision_id", String(128)),
    Column("reason", Text),
    Column("result", Text),
    Column("error", Text),
    Column("done_at", Float),
    Column("fence", Integer, nullable=False),
    Column("holder", String(64)),
    Column("delivered_in", String(64)),
)
Index("adk_stream_call_chat", CALLS.c.chat_id, CALLS.c.created_at)
Index("adk_stream_call_owner", CALLS.c.owner, CALLS.c.state)
Index("adk_stream_call_expiry", CALLS.c.state, CALLS.c.expires_at)

CHUNKS: Final = Table(
    "adk_stream_chunk",
    _TABLES,
    Column("reply_id", String(64), primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("data", Text),  # NULL: the end marker
    Column("created_at", Float, nullable=False),
)
Index("adk_stream_chunk_age", CHUNKS.c.created_at)


async def migrate(engine: AsyncEngine) -> None:
    """Bring the database up to this version; does nothing if it is.

    Raises:
        Conflict: a newer version has changed the database.
    """
    async with writing(engine) as connection:
        await connection.run_sync(_migrate)


def _migrate(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        # Two first starts at once would both make the tables.
        connection.execute(text("SELECT pg_advisory_xact_lock(7236012)"))
    found = 0
    if inspect(connection).has_table(_SCHEMA.name):
        found = connection.execute(select(_SCHEMA.c.version)).scalar_one()
    if found > VERSION:
        raise Conflict(
            f"The database is of schema version {found}; this release knows up to {VERSION}. "
            "Upgrade adk-stream-protocol.",
            code="newer_database",
        )
    if found == 0:
        _TABLES.create_all(connection)
        connection.execute(_SCHEMA.insert().values(version=VERSION))
