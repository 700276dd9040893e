"""SQLite connections that cross to their thread once for a statement, not four times.

SQLAlchemy asks a driver for a cursor, to execute, for the rows, and to close. aiosqlite carries
each of these to the connection's thread and back, which takes longer than most statements do. So
does ending a transaction, which SQLAlchemy asks for also where none was begun: after reading.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Self

import aiosqlite
from typing_extensions import override

__all__ = ["sqlite_creator"]

_CHUNK: Final = 64


def sqlite_creator(
    path: str, *, timeout: float = 5.0
) -> Callable[[], Awaitable[aiosqlite.Connection]]:
    """Return what opens connections to a file, as SQLAlchemy's `async_creator`.

    Args:
        path: the file.
        timeout: how many seconds a statement waits for another writer.
    """
    # Once: whoever changes the working directory must not change the database.
    file = Path(path).absolute()

    async def create() -> aiosqlite.Connection:
        connection = _Connection(
            lambda: sqlite3.connect(file, timeout=timeout, factory=_File), _CHUNK
        )
        # As SQLAlchemy's own creator does: a thread must not keep a process that ends.
        connection._thread.daemon = True
        return await connection

    return create


class _Told(list[Any]):
    """The rows of a statement, and what else its cursor had to say."""

    description: Any = None
    rowcount = -1
    lastrowid: int | None = None
    in_transaction = True
    """Whether the connection is in a transaction since."""

    def fetchall(self) -> Self:
        """Return the rows."""
        return self


class _File(sqlite3.Connection):
    """Executes a statement and fetches its rows in one go."""

    @override
    def execute(self, sql: str, parameters: Any = (), /) -> _Told:  # type: ignore[override]  # all that aiosqlite asks of it
        return self._told(sqlite3.Cursor.execute, sql, parameters)

    @override
    def executemany(self, sql: str, parameters: Iterable[Any], /) -> _Told:  # type: ignore[override]  # see above
        return self._told(sqlite3.Cursor.executemany, sql, parameters)

    def _told(self, execute: Callable[..., object], sql: str, parameters: object) -> _Told:
        cursor = self.cursor()
        try:
            execute(cursor, sql, parameters)
            told = _Told(cursor.fetchall() if cursor.description else ())
            told.description = cursor.description
            told.rowcount, told.lastrowid = cursor.rowcount, cursor.lastrowid
            told.in_transaction = self.in_transaction
            return told
        finally:
            cursor.close()


class _Connection(aiosqlite.Connection):
    may_end = True
    """Whether there may be a transaction to end."""

    @override
    async def commit(self) -> None:
        if self.may_end:
            await super().commit()
            self.may_end = False

    @override
    async def rollback(self) -> None:
        if self.may_end:
            await super().rollback()
            self.may_end = False

    @override
    def cursor(self) -> _Cursor:  # type: ignore[override]  # all that SQLAlchemy asks of it
        return _Cursor(self)


class _Cursor:
    """What SQLAlchemy takes for a cursor; it has what the statement said from the beginning."""

    arraysize = 1

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection
        self._said: Any = _Told()
        self._rows: Iterator[Any] = iter(())

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Self:
        """Execute a statement."""
        # Of one that fails, or is not waited for, nobody knows what it began.
        self._connection.may_end = True
        self._said = await self._connection.execute_fetchall(sql, parameters)
        self._rows = iter(self._said)
        self._connection.may_end = self._said.in_transaction
        return self

    async def executemany(self, sql: str, parameters: Iterable[Any]) -> Self:
        """Execute a statement for each of many."""
        self._connection.may_end = True
        self._said = await self._connection.executemany(sql, parameters)
        return self

    async def fetchall(self) -> Iterable[Any]:
        """Return the rows."""
        return list(self._rows)

    async def fetchmany(self, size: int | None = None) -> Iterable[Any]:
        """Return the next rows."""
        return list(islice(self._rows, size or self.arraysize))

    async def fetchone(self) -> Any:
        """Return the next row, or None."""
        return next(self._rows, None)

    async def close(self) -> None:
        """Do nothing: it is closed."""

    @property
    def description(self) -> Any:
        """The columns, or None."""
        return self._said.description

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""
        return int(self._said.rowcount)

    @property
    def lastrowid(self) -> int | None:
        """The id of the row that was added last."""
        return self._said.lastrowid  # type: ignore[no-any-return]  # a list with more
