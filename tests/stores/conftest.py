"""The stores that the contract is run with: memory, SQLite and a real PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from adk_stream_protocol.ports import Stores
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.sql import postgres_stores, sqlite_stores
from support.postgres import PostgresServer, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    if request.param == "memory":
        made = memory_stores()
    elif request.param == "sqlite":
        made = sqlite_stores(str(tmp_path / "stores.db"))
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        made = postgres_stores(server.create(f"stores-{uuid.uuid4().hex}"))
    async with made.serving():
        yield made
