"""The engine as the server runs it, in this process and without HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from google.adk.agents.base_agent import BaseAgent

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.server.databases import OpenDatabase, open_database
from adk_stream_protocol.server.identity import anyone
from adk_stream_protocol.server.settings import Settings

# The product's own wiring: a copy of it here would soon be another product.
from adk_stream_protocol.server.wiring import Services, create_service
from adk_stream_protocol.stores.opening import Database, Memory, SqliteFile, parse_database
from benchmarks.setting import Setting

__all__ = ["database_of", "opened", "served"]


def database_of(variant: str, setting: Setting) -> Database:
    """Return the database that a variant's name begins with."""
    if variant.startswith("sqlite"):
        return SqliteFile(setting.file)
    return parse_database(setting.url) if variant.startswith("postgres") else Memory()


@asynccontextmanager
async def opened(variant: str, setting: Setting) -> AsyncIterator[OpenDatabase]:
    """Open that database as the server does."""
    async with open_database(database_of(variant, setting)) as database:
        yield database


@asynccontextmanager
async def served(
    agent: BaseAgent, database: OpenDatabase, settings: Settings | None = None
) -> AsyncIterator[Conversations]:
    """Serve an agent, sweeper and all."""
    service = create_service(
        agent,
        tools=None,
        identify=anyone,
        may_decide=None,
        settings=settings or Settings(),
        services=Services(sessions=database.sessions),
        database=None,
        stores=database.stores,
        options=None,
    )
    async with database.stores.serving(), service.conversations.serving():
        yield service.conversations
