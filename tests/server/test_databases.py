from __future__ import annotations

from pathlib import Path

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.stores.opening import Memory, PostgresServer, SqliteFile

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
