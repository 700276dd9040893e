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

__all__ = ["CALLS", "CHUNKS", "LABELS", "REQUESTS", "TURNS", "VERSION", "WAITING", "migrate"]

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
    Column("gently", Boolean, nullable=False),
    Column("read_at", Float),  # when a reader was last seen; only kept where replies may be left
    Column("holder", String(64), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("origin", String(64)),
    Column("recoveries", Integer, nullable=False),
)
Index("adk_stream_turn_owner", TURNS.c.owner, TURNS.c.running)
Index("adk_stream_turn_lease", TURNS.c.running, TURNS.c.lease_until)

REQUESTS: Final = Table(
    "adk_stream_request",
    _TABLES,
    Column("chat_id", String(128), primary_key=True),
    Column("key", String(64), primary_key=True),  # the digest of a turn's key
    Column("reply_id", String(64), nullable=False),
    Column("created_at", Float, nullable=False),
)
Index("adk_stream_request_reply", REQUESTS.c.reply_id)

WAITING: Final = Table(
    "adk_stream_waiting",
    _TABLES,
    Column("reply_id", String(64), primary_key=True),
    Column("chat_id", String(128), nullable=False),
    Column("owner", String(255), nullable=False),
    Column("key", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("mode", String(16), nullable=False),
    Column("policy", String(16), nullable=False),
    Column("stopping", Boolean, nullable=False),
    Column("taken_in", String(64)),
    Column("position", Integer, nullable=False),  # within the chat
    Column("created_at", Float, nullable=False),
)
Index("adk_stream_waiting_chat", WAITING.c.chat_id, WAITING.c.position)
Index("adk_stream_waiting_taken", WAITING.c.taken_in)

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
    Column("idempotent", Boolean, nullable=False),
    Column("steps", Text, nullable=False),
    Column("step", Integer, nullable=False),
    Column("schema", Text),
    Column("edited", Text),
    Column("edited_hash", String(64)),
    Column("automatic", Boolean, nullable=False),
    Column("remember", Boolean, nullable=False),
    Column("decided_via", String(255)),
    Column("trail", Text, nullable=False),  # one JSON object a line; only ever added to
)
Index("adk_stream_call_chat", CALLS.c.chat_id, CALLS.c.created_at)
Index("adk_stream_call_owner", CALLS.c.owner, CALLS.c.state)
Index("adk_stream_call_expiry", CALLS.c.state, CALLS.c.expires_at)
_UNDELIVERED = CALLS.c.delivered_in.is_(None)
Index(
    "adk_stream_call_undelivered",
    CALLS.c.state,
    sqlite_where=_UNDELIVERED,
    postgresql_where=_UNDELIVERED,
)

CHUNKS: Final = Table(
    "adk_stream_chunk",
    _TABLES,
    Column("reply_id", String(64), primary_key=True),
    Column("seq", Integer, primary_key=True),  # of the row's first entry
    Column("data", Text),  # entries, one line of JSON each; NULL: the end marker
    Column("created_at", Float, nullable=False),
)
Index("adk_stream_chunk_age", CHUNKS.c.created_at)


LABELS: Final = Table(
    "adk_stream_chat_label",
    _TABLES,
    Column("owner", String(255), primary_key=True),
    Column("chat_id", String(128), primary_key=True),
    Column("title", Text, nullable=False),  # empty: the chat's own
    Column("archived", Boolean, nullable=False),
)


# What brings a database from one version to the next, in words that both engines know. A step is
# never changed once released: databases out there have taken it.
_STEPS: Final[dict[int, tuple[str, ...]]] = {
    1: (
        "ALTER TABLE adk_stream_turn ADD COLUMN origin VARCHAR(64)",
        "ALTER TABLE adk_stream_turn ADD COLUMN recoveries INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX adk_stream_turn_lease ON adk_stream_turn (running, lease_until)",
        "CREATE TABLE adk_stream_request (chat_id VARCHAR(128) NOT NULL, key VARCHAR(64) NOT NULL, "
        "reply_id VARCHAR(64) NOT NULL, created_at FLOAT NOT NULL, PRIMARY KEY (chat_id, key))",
        "CREATE INDEX adk_stream_request_reply ON adk_stream_request (reply_id)",
        "ALTER TABLE adk_stream_call ADD COLUMN idempotent BOOLEAN NOT NULL DEFAULT FALSE",
        "ALTER TABLE adk_stream_call ADD COLUMN steps TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE adk_stream_call ADD COLUMN step INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE adk_stream_call ADD COLUMN schema TEXT",
        "ALTER TABLE adk_stream_call ADD COLUMN edited TEXT",
        "ALTER TABLE adk_stream_call ADD COLUMN edited_hash VARCHAR(64)",
        "ALTER TABLE adk_stream_call ADD COLUMN automatic BOOLEAN NOT NULL DEFAULT FALSE",
        "ALTER TABLE adk_stream_call ADD COLUMN remember BOOLEAN NOT NULL DEFAULT FALSE",
        "ALTER TABLE adk_stream_call ADD COLUMN decided_via VARCHAR(255)",
        "ALTER TABLE adk_stream_call ADD COLUMN trail TEXT NOT NULL DEFAULT ''",
        "CREATE INDEX adk_stream_call_undelivered ON adk_stream_call (state) "
        "WHERE delivered_in IS NULL",
    ),
    2: (
        "ALTER TABLE adk_stream_turn ADD COLUMN gently BOOLEAN NOT NULL DEFAULT FALSE",
        "ALTER TABLE adk_stream_turn ADD COLUMN read_at FLOAT",
        "CREATE TABLE adk_stream_waiting (reply_id VARCHAR(64) NOT NULL PRIMARY KEY, "
        "chat_id VARCHAR(128) NOT NULL, owner VARCHAR(255) NOT NULL, key TEXT NOT NULL, "
        "request TEXT NOT NULL, mode VARCHAR(16) NOT NULL, policy VARCHAR(16) NOT NULL, "
        "stopping BOOLEAN NOT NULL, taken_in VARCHAR(64), position INTEGER NOT NULL, "
        "created_at FLOAT NOT NULL)",
        "CREATE INDEX adk_stream_waiting_chat ON adk_stream_waiting (chat_id, position)",
        "CREATE INDEX adk_stream_waiting_taken ON adk_stream_waiting (taken_in)",
        "CREATE TABLE adk_stream_chat_label (owner VARCHAR(255) NOT NULL, "
        "chat_id VARCHAR(128) NOT NULL, title TEXT NOT NULL, archived BOOLEAN NOT NULL, "
        "PRIMARY KEY (owner, chat_id))",
    ),
}

VERSION: Final = 1 + len(_STEPS)


async def migrate(engine: AsyncEngine) -> int:
    """Bring the database up to this version; return which it was of, 0 if it was new.

    All of it happens, or nothing.

    Raises:
        Conflict: a newer version has changed the database.
    """
    async with writing(engine) as connection:
        if connection.dialect.name == "sqlite":
            # The driver begins a transaction only at the first INSERT or UPDATE, not for DDL.
            await connection.exec_driver_sql("BEGIN IMMEDIATE")
        return await connection.run_sync(_migrate)


def _migrate(connection: Connection) -> int:
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
        return found
    for version in range(found, VERSION):
        for statement in _STEPS[version]:
            connection.exec_driver_sql(statement)
    if found < VERSION:
        connection.execute(_SCHEMA.update().values(version=VERSION))
    return found
