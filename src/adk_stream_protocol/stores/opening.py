"""Which database a URL names, and the stores that live beside it.

Knows nothing of ADK: its sessions in the same database are opened by the server.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeAlias, assert_never
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from adk_stream_protocol.errors import BadRequest, Conflict
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.sql import Keeping, postgres_stores, sqlite_stores

__all__ = [
    "Database",
    "Memory",
    "PostgresServer",
    "SqliteFile",
    "database_text",
    "locked",
    "parse_database",
    "stores_in",
]

_FORMS: Final = "Use memory:, sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."


@dataclass(frozen=True, slots=True)
class Memory:
    """Nothing is kept."""


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A file that one process has to itself."""

    path: Path


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A database on a server."""

    url: str
    """With the scheme `postgresql`; it may hold a password, so it is never shown."""


Database: TypeAlias = Memory | SqliteFile | PostgresServer


def parse_database(url: str) -> Database:
    """Return the database that a URL names; nothing is opened.

    Raises:
        BadRequest: it names none; the message says which forms there are.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _bad_url("The database URL cannot be read.") from None
    match parts.scheme.partition("+")[0]:
        case "memory":
            return _memory(parts)
        case "sqlite":
            return _sqlite(url)
        case "postgresql" | "postgres":
            return _postgres(parts)
        case "":
            raise _bad_url("The database URL has no scheme.")
        case scheme:
            raise _bad_url(f"The database URL has the unknown scheme {scheme!r}.")


def database_text(database: Database) -> str:
    """Return the database as people may see it: without user, password and options."""
    match database:
        case Memory():
            return "memory (nothing is kept)"
        case SqliteFile(path):
            return f"{path} (SQLite)"
        case PostgresServer(url):
            parts = urlsplit(url)
            where = parts.netloc.rpartition("@")[2] or "localhost"
            return f"{where}{parts.path} (PostgreSQL)"
        case _:
            assert_never(database)


def stores_in(database: Database, keeping: Keeping | None = None) -> Stores:
    """Return the stores of a database. Nothing is opened until they serve; no lock is taken."""
    keeping = keeping or Keeping()
    match database:
        case SqliteFile(path):
            return sqlite_stores(str(path), keeping)
        case PostgresServer(url):
            return postgres_stores(url, keeping)
        case Memory():
            return memory_stores(keep_replies=keeping.replies)
        case _:
            assert_never(database)


@contextmanager
def locked(database: Database) -> Iterator[None]:
    """Keep other processes off a SQLite file until the block ends; others need no lock.

    Raises:
        Conflict: another process has the file.
        BadRequest: the file's folder does not exist or may not be written to.
    """
    if not isinstance(database, SqliteFile):
        yield
        return
    with _locked(database.path):
        yield


def _bad_url(what: str) -> BadRequest:
    return BadRequest(f"{what} {_FORMS}", code="bad_database")


def _memory(parts: SplitResult) -> Memory:
    if parts.netloc or parts.path or parts.query:
        raise _bad_url("memory: stands alone.")
    return Memory()


def _sqlite(url: str) -> SqliteFile:
    # As SQLAlchemy reads it: three slashes and a relative file, or four and an absolute one.
    file = url.partition(":///")[2]
    if file in {"", ":memory:"}:
        raise _bad_url("The SQLite URL names no file.")
    if "?" in file:
        raise _bad_url("The SQLite URL has options; there are none.")
    return SqliteFile(Path(file))


def _postgres(parts: SplitResult) -> PostgresServer:
    try:
        _ = parts.port
    except ValueError:
        raise _bad_url("The PostgreSQL URL's port is not a number.") from None
    # libpq's name for what the driver calls `ssl`; hosting services hand out URLs with it.
    options = [
        ("ssl" if name == "sslmode" else name, value) for name, value in parse_qsl(parts.query)
    ]
    address = parts._replace(scheme="postgresql", query=urlencode(options))
    # `urlunsplit` drops the slashes of a URL without a host.
    tail = f"?{address.query}" if address.query else ""
    return PostgresServer(f"postgresql://{address.netloc}{address.path}{tail}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file beside a SQLite file; the system lets go of it if the process dies."""
    lock = path.with_name(f"{path.name}.lock")
    try:
        opened = lock.open("a", encoding="utf-8")
    except OSError as error:
        raise BadRequest(
            f"The database {path} cannot be opened: {error.strerror}. Name a file in a folder that "
            "exists and that you may write to.",
            code="bad_database",
        ) from None
    with opened:
        if not _try_lock(opened):
            raise Conflict(
                f"Another process has the database {path} (lock file {lock}). Stop it, or use "
                "another file.",
                code="database_in_use",
            )
        yield


def _try_lock(file: IO[str]) -> bool:
    # The lock file stays: removing it would let a third process lock a new one of that name.
    if sys.platform == "win32":
        return True  # Windows has no flock; there nothing guards the file.
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
