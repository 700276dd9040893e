"""Databases of earlier releases: `data/version_N.sql` was written by the release itself."""

from __future__ import annotations

import sqlite3
import uuid
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection, create_engine, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.cli import main
from adk_stream_protocol.cli.agents import DEMO_RULES, demo_agent
from adk_stream_protocol.ports import Batch
from adk_stream_protocol.server.wiring import create_app
from adk_stream_protocol.stores.sql import sqlite_stores
from adk_stream_protocol.stores.sql_schema import VERSION, migrate
from adk_stream_protocol.wire.entry_text import parse_entry
from support.postgres import PostgresServer
from support.serving import serving
from support.stage import Answered

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parent / "data"
OLD = range(1, VERSION)


def old_file(folder: Path, version: int) -> Path:
    file = folder / "old.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((DATA / f"version_{version}.sql").read_text(encoding="utf-8"))
    connection.close()
    return file


def shape(connection: Connection) -> dict[str, object]:
    """Return what our tables are like: columns with their types, and indexes."""
    seen = inspect(connection)
    return {
        table: (
            {column["name"]: str(column["type"]) for column in seen.get_columns(table)},
            {column["name"]: column["nullable"] for column in seen.get_columns(table)},
            sorted(str(index["name"]) for index in seen.get_indexes(table)),
            seen.get_pk_constraint(table)["constrained_columns"],
        )
        for table in seen.get_table_names()
        if table.startswith("adk_stream_")
    }


def test_there_is_a_database_of_every_earlier_version() -> None:
    assert {file.stem for file in DATA.glob("*.sql")} == {f"version_{number}" for number in OLD}


@pytest.mark.parametrize("version", OLD)
async def test_an_upgraded_file_is_like_a_new_one(tmp_path: Path, version: int) -> None:
    shapes = []
    for file, found in ((old_file(tmp_path, version), version), (tmp_path / "new.db", 0)):
        engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
        assert await migrate(engine) == found
        assert await migrate(engine) == VERSION
        await engine.dispose()
        with create_engine(f"sqlite:///{file}").connect() as connection:
            shapes.append(shape(connection))
        connection.engine.dispose()
    assert shapes[0] == shapes[1]


async def test_an_upgraded_server_is_like_a_new_one(postgres: PostgresServer) -> None:
    """The first release's tables, made on PostgreSQL by taking back what later steps added."""
    shapes = []
    for upgraded in (False, True):
        plain = postgres.create(f"upgrade-{uuid.uuid4().hex}")
        engine = create_async_engine(plain.replace("postgresql://", "postgresql+asyncpg://"))
        await migrate(engine)
        if upgraded:
            async with engine.begin() as connection:
                for statement in _BACK_TO_1:
                    await connection.execute(text(statement))
            assert await migrate(engine) == 1
        async with engine.connect() as connection:
            shapes.append(await connection.run_sync(shape))
        await engine.dispose()
    assert shapes[0] == shapes[1]


_NEW_IN_2 = [
    "idempotent",
    "steps",
    "step",
    "schema",
    "edited",
    "edited_hash",
    "automatic",
    "remember",
    "decided_via",
    "trail",
]
_BACK_TO_1 = (
    "DROP TABLE adk_stream_waiting",
    "ALTER TABLE adk_stream_turn DROP COLUMN gently",
    "ALTER TABLE adk_stream_turn DROP COLUMN read_at",
    "DROP TABLE adk_stream_chat_label",
    "DROP TABLE adk_stream_request",
    "DROP INDEX adk_stream_turn_lease",
    "DROP INDEX adk_stream_call_undelivered",
    "ALTER TABLE adk_stream_turn DROP COLUMN origin",
    "ALTER TABLE adk_stream_turn DROP COLUMN recoveries",
    *(f"ALTER TABLE adk_stream_call DROP COLUMN {name}" for name in _NEW_IN_2),
    "UPDATE adk_stream_schema SET version = 1",
)


@pytest.mark.parametrize("version", OLD)
async def test_what_was_asked_before_the_upgrade_is_approved_after_it(
    tmp_path: Path, version: int
) -> None:
    file = old_file(tmp_path, version)
    with sqlite3.connect(file) as connection:
        # The file is old; its approval would have expired long ago.
        connection.execute("UPDATE adk_stream_call SET expires_at = 4e9")
    connection.close()
    app = create_app(demo_agent(delay=0), tools=DEMO_RULES, database=f"sqlite:///{file}")
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        (waiting,) = (await http.get("/api/approvals?status=pending")).json()["approvals"]
        decided = await http.post(f"/api/approvals/{waiting['id']}", json={"approved": True})
        assert decided.status_code == 200
        reply = Answered.of(await http.get("/api/chat/payment/stream"))
        assert (len(reply.only("tool-output-available")), reply.types[-1]) == (1, "finish")
        weather = (await http.get("/api/chats/weather")).json()["messages"]
        assert [message["role"] for message in weather] == ["user", "assistant"]


async def test_a_reply_of_before_the_upgrade_is_read_from_every_cursor(tmp_path: Path) -> None:
    """The first release wrote a row for each entry."""
    file = old_file(tmp_path, 1)
    query = "SELECT data FROM adk_stream_chunk WHERE reply_id = ? AND data IS NOT NULL ORDER BY seq"
    with sqlite3.connect(file) as connection:
        (name,) = connection.execute("SELECT reply_id FROM adk_stream_chunk LIMIT 1").fetchone()
        said = tuple(parse_entry(data) for (data,) in connection.execute(query, (name,)))
    connection.close()
    assert len(said) > 1
    stores = sqlite_stores(str(file))
    await stores.prepare()
    for after in range(len(said) + 2):
        assert await stores.log.read(name, after) == Batch(said[after:], ended=True)
    await stores.close()


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = old_file(tmp_path, 1)
    for words in (
        f"was of schema version 1 and is of version {VERSION} now",
        f"is of schema version {VERSION} already",
    ):
        assert main(["migrate", "--database", f"sqlite:///{file}"]) == 0
        assert words in capsys.readouterr().out
    assert main(["migrate", "--database", f"sqlite:///{tmp_path / 'new.db'}"]) == 0
    assert f"has new tables, of schema version {VERSION}" in capsys.readouterr().out
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE adk_stream_schema SET version = 99")
    connection.close()
    assert main(["migrate", "--database", f"sqlite:///{file}"]) == 2
    assert "Upgrade adk-stream-protocol" in capsys.readouterr().err
    assert main(["migrate", "--database", "memory:"]) == 2
    assert "has no tables" in capsys.readouterr().err
