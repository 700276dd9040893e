from __future__ import annotations

from pathlib import Path

import pytest

from adk_stream_protocol.errors import BadRequest, Conflict
from adk_stream_protocol.stores.opening import (
    Database,
    Memory,
    PostgresServer,
    SqliteFile,
    database_text,
    locked,
    parse_database,
    stores_in,
)


@pytest.mark.parametrize(
    ("url", "database"),
    [
        ("memory:", Memory()),
        ("sqlite:///chats.db", SqliteFile(Path("chats.db"))),
        ("sqlite:////var/lib/chats.db", SqliteFile(Path("/var/lib/chats.db"))),
        ("sqlite+aiosqlite:///chats.db", SqliteFile(Path("chats.db"))),
        ("postgresql://me:pw@host:5433/name", PostgresServer("postgresql://me:pw@host:5433/name")),
        ("postgres://host/name", PostgresServer("postgresql://host/name")),
        ("postgresql+asyncpg://host/name", PostgresServer("postgresql://host/name")),
        ("postgresql:///name", PostgresServer("postgresql:///name")),
        (
            "postgresql://host/name?sslmode=require&application_name=x",
            PostgresServer("postgresql://host/name?ssl=require&application_name=x"),
        ),
    ],
)
def test_a_url_names_a_database(url: str, database: Database) -> None:
    assert parse_database(url) == database


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "no scheme"),
        ("chats.db", "no scheme"),
        ("mysql://host/name", "unknown scheme 'mysql'"),
        ("memory://somewhere", "memory: stands alone"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:///chats.db?mode=ro", "has options"),
        ("postgresql://host:port/name", "port is not a number"),
        ("postgresql://[half/name", "cannot be read"),
    ],
)
def test_a_url_that_names_none_is_told_the_forms(url: str, told: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse_database(url)
    assert told in refused.value.message
    assert "Use memory:, sqlite:///FILE or postgresql://" in refused.value.message
    assert refused.value.code == "bad_database"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("memory:", "memory (nothing is kept)"),
        ("sqlite:///chats.db", "chats.db (SQLite)"),
        ("postgresql://me:pw@host/name?password=pw", "host/name (PostgreSQL)"),
        ("postgresql:///name", "localhost/name (PostgreSQL)"),
    ],
)
def test_what_people_see_of_a_database_holds_no_password(url: str, text: str) -> None:
    assert database_text(parse_database(url)) == text


def test_a_sqlite_file_is_had_by_one_at_a_time(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "chats.db")
    with locked(file):
        with pytest.raises(Conflict, match=r"Another process has the database .*chats\.db"):
            locked(file).__enter__()
        with locked(SqliteFile(tmp_path / "other.db")):
            pass
    with locked(file):
        pass


def test_a_file_that_cannot_be_made_is_explained(tmp_path: Path) -> None:
    with (
        pytest.raises(BadRequest, match="No such file or directory"),
        locked(SqliteFile(tmp_path / "missing" / "chats.db")),
    ):
        pass


@pytest.mark.parametrize("url", ["memory:", "postgresql://host/name"])
def test_other_databases_are_not_locked(url: str) -> None:
    with locked(parse_database(url)), locked(parse_database(url)):
        assert stores_in(parse_database(url)) is not stores_in(parse_database(url))
