"""`adk-stream migrate`: brings a database up to this release without serving it.

Servers do the same when they start; a command of its own is for those who change databases at a
time of their choosing, with rights that the server does not have.
"""

from __future__ import annotations

import anyio

from adk_stream_protocol.cli.arguments import MigrateOptions
from adk_stream_protocol.cli.logs import be_quiet
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.stores.opening import Memory, database_text, parse_database
from adk_stream_protocol.stores.sql_schema import VERSION

__all__ = ["migrate"]


def migrate(options: MigrateOptions) -> int:
    """Make or upgrade the tables and say what was done.

    Raises:
        BadRequest: there is nothing to migrate, or the database cannot be used.
        Conflict: a process has the SQLite file, or a newer release has changed the database.
    """
    be_quiet()
    database = parse_database(options.database)
    if isinstance(database, Memory):
        raise BadRequest("memory: has no tables. Name a database with --database.")

    async def run() -> int:
        async with open_database(database) as opened:
            return opened.found

    found = anyio.run(run)
    where = database_text(database)
    if found == VERSION:
        print(f"{where} is of schema version {VERSION} already.")
    elif found == 0:
        print(f"{where} has new tables, of schema version {VERSION}.")
    else:
        print(f"{where} was of schema version {found} and is of version {VERSION} now.")
    return 0
