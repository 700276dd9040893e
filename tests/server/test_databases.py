from __future__ import annotations

from pathlib import Path

import anyio
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import DBAPIConnection

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.server.wiring import create_app
from adk_stream_protocol.stores import postgres_pool
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.opening import Memory, PostgresServer, SqliteFile
from support.postgres import PostgresServer as PlainPostgres
from support.scripted import ScriptedModel
from support.serving import serving
from support.stage import user_message

pytestmark = pytest.mark.anyio


async def test_sessions_are_kept_in_a_sqlite_file(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "chats.db")
    async with open_database(file) as first:
        await first.sessions.create_session(app_name="app", user_id="alice", session_id="chat-1")
    async with open_database(file) as second:
        kept = await second.sessions.get_session(
            app_name="app", user_id="alice", session_id="chat-1"
        )
    assert kept is not None


async def test_memory_keeps_nothing() -> None:
    async with open_database(Memory()) as opened:
        assert isinstance(opened.sessions, InMemorySessionService)


async def test_a_file_that_is_no_database_is_explained(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("a file of another kind, and not a short one either")
    with pytest.raises(BadRequest, match=r"notes\.txt \(SQLite\) cannot be used: file is not a"):
        async with open_database(SqliteFile(tmp_path / "notes.txt")):
            pass


async def test_a_server_that_does_not_answer_is_explained_without_its_password() -> None:
    with pytest.raises(BadRequest) as refused:
        async with open_database(PostgresServer("postgresql://me:secret@127.0.0.1:1/chats")):
            pass
    assert "127.0.0.1:1/chats (PostgreSQL) cannot be used" in refused.value.message
    assert "that the server runs" in refused.value.message
    assert "secret" not in refused.value.message


async def test_a_database_by_its_url_is_all_an_app_needs(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    for said, kept in (("hi", 2), ("hello", 4)):
        model = ScriptedModel(script={"hi": [["Hello."]], "hello": [["Hello again."]]})
        app = create_app(LlmAgent(name="greeter", model=model), database=url)
        async with serving(app) as address, httpx.AsyncClient(base_url=address) as http:
            body = {"id": "c", "messages": [user_message(said)]}
            assert (await http.post("/api/chat", json=body)).status_code == 200
            assert len((await http.get("/api/chats/c")).json()["messages"]) == kept


def test_a_database_and_stores_are_one_too_many() -> None:
    agent = LlmAgent(name="greeter", model=ScriptedModel())
    with pytest.raises(BadRequest, match="not both"):
        create_app(agent, database="memory:", stores=memory_stores())
    with pytest.raises(BadRequest, match="unknown scheme"):
        create_app(agent, database="mysql://localhost/chats")


async def test_many_first_starts_at_once_make_the_tables_once(postgres: PlainPostgres) -> None:
    database = PostgresServer(postgres.create("first-starts"))

    async def start() -> None:
        async with open_database(database) as opened:
            assert await opened.stores.calls.count_pending() == 0

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(start)


async def test_a_server_is_not_asked_before_each_read_of_a_session_and_may_come_back(
    postgres: PlainPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_database(PostgresServer(postgres.create("sessions"))) as opened:
        assert isinstance(opened.sessions, DatabaseSessionService)
        engine = opened.sessions.db_engine
        asked: list[object] = []
        ping = engine.dialect.do_ping

        def noted(connection: DBAPIConnection) -> bool:
            asked.append(connection)
            return ping(connection)

        monkeypatch.setattr(engine.dialect, "do_ping", noted)
        for _ in range(3):
            assert (await opened.sessions.list_sessions(app_name="app")).sessions == []
        assert asked == []
        async with engine.connect() as connection:
            process = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        monkeypatch.setattr(postgres_pool, "_TRUSTED", 0.0)
        postgres.sql(f"SELECT pg_terminate_backend({process}, 5000)")
        assert (await opened.sessions.list_sessions(app_name="app")).sessions == []


async def test_many_chats_stand_in_line_for_a_file(tmp_path: Path) -> None:
    async with open_database(SqliteFile(tmp_path / "x.db")) as opened:
        assert isinstance(opened.sessions, DatabaseSessionService)
        connected: list[int] = []
        event.listen(
            opened.sessions.db_engine.sync_engine, "connect", lambda *_: connected.append(1)
        )

        async def talk(user: str) -> None:
            session = await opened.sessions.create_session(app_name="app", user_id=user)
            for _ in range(3):
                await opened.sessions.append_event(session, Event(author="user"))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for n in range(50):
                    tasks.start_soon(talk, f"user-{n}")
        kept = await opened.sessions.list_sessions(app_name="app")
        assert len(kept.sessions) == 50
    # Not even one more than it was opened with: in SQLite itself, who waits is served by chance.
    assert connected == []
