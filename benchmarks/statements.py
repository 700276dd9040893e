"""Counts what reaches a database: by ADK's own connections, and by ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import Connection, Engine, event

__all__ = ["MEASURES", "counted"]

MEASURES: Final = ("our statements", "our commits", "adk statements", "adk commits")

_WROTE: Final = "bench_wrote"
_READS: Final = ("SELECT", "PRAGMA", "SHOW", "SAVEPOINT", "RELEASE")


@contextmanager
def counted(sessions: BaseSessionService) -> Iterator[Counter[str]]:
    """Count statements and commits until the block ends.

    A commit counts if its transaction did more than read: others do not reach the disk.
    """
    found: Counter[str] = Counter()
    of_adk = sessions.db_engine.pool if isinstance(sessions, DatabaseSessionService) else None

    def executed(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        whose = "adk" if connection.engine.pool is of_adk else "our"
        found[f"{whose} statements"] += 1
        if not statement.lstrip().upper().startswith(_READS):
            connection.info[_WROTE] = whose

    def committed(connection: Connection) -> None:
        whose = connection.info.pop(_WROTE, None)
        if whose is not None:
            found[f"{whose} commits"] += 1

    event.listen(Engine, "before_cursor_execute", executed)
    event.listen(Engine, "commit", committed)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", executed)
        event.remove(Engine, "commit", committed)
