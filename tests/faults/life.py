"""One life of a server: a process forked from one that has imported everything.

Whoever forks must have no threads and no event loop. The listening socket is made before the fork,
so a client may connect at once and waits until it is served.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import anyio
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.server.databases import OpenDatabase, open_database
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app, turns_of
from adk_stream_protocol.stores.opening import PostgresServer, SqliteFile
from adk_stream_protocol.stores.sql import Keeping
from faults.agent import RULES, Book, agent
from faults.points import Kill, Moment, Point
from faults.trap import Trap
from support.stage import user_by_header

__all__ = ["DiedByItself", "Leash", "Life", "Place", "Seen", "begin"]

Leash: TypeAlias = tuple[int, int]
"""A pipe that nobody writes to: a server reads one end, and dies when the other is gone. All
servers of a process share one, or each would keep the others' ends open."""

Seen: TypeAlias = dict[tuple[Point, Moment], int]
"""How often each point was passed."""

LEASE: Final = 0.6
"""Seconds until another process may take over on Postgres: as short as a loaded machine allows."""

_ROWS: Final = {
    "calls": text("SELECT call_id, tool_name, state FROM adk_stream_call WHERE chat_id = :chat"),
    "turns": text("SELECT reply_id, running FROM adk_stream_turn WHERE chat_id = :chat"),
    "waiting": text("SELECT reply_id, taken_in FROM adk_stream_waiting WHERE chat_id = :chat"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """What outlives a server: its database and what its tools did."""

    folder: Path
    postgres: str | None = None
    """The database's address; None: a SQLite file in the folder."""

    @property
    def book(self) -> Book:
        """What the tools did."""
        return Book(self.folder)

    @property
    def url(self) -> str:
        """The address as SQLAlchemy takes it."""
        if self.postgres is None:
            return f"sqlite+aiosqlite:///{self.folder / 'chats.db'}"
        return self.postgres.replace("postgresql://", "postgresql+asyncpg://")

    def opened(self) -> AbstractAsyncContextManager[OpenDatabase]:
        """Open the database as `adk-stream serve` does; on Postgres with a short lease."""
        if self.postgres is None:
            return open_database(SqliteFile(self.folder / "chats.db"))
        return open_database(PostgresServer(self.postgres), Keeping(lease=LEASE))


class DiedByItself(Exception):
    """A server ended that nobody had killed."""


@dataclass(slots=True)
class Life:
    """A server process, from outside."""

    pid: int
    port: int
    pipe: int
    """Where its trap tells, in the moment of death, what it had seen."""
    told: bytes = b""

    def is_over(self, within: float = 0.0) -> bool:
        """Whether the process has died, waiting a while for it."""
        while select.select([self.pipe], [], [], within)[0]:
            read = os.read(self.pipe, 65536)
            if not read:
                return True
            self.told += read
        return False

    def seen(self) -> Seen:
        """Return what had happened when the trap killed it.

        Raises:
            DiedByItself: it was not the trap.
        """
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.pipe)
        if status != -signal.SIGKILL or not self.told:
            raise DiedByItself(f"the server died by itself, status {status}")
        return seen_of(json.loads(self.told))

    def end(self) -> None:
        """Kill it, for it is not needed any more."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.pipe)


def seen_of(told: list[tuple[str, Moment, int]]) -> Seen:
    """Return what a trap told."""
    return {(Point(point), moment): count for point, moment, count in told}


def begin(place: Place, kill: Kill | None, leash: Leash) -> Life:
    """Start a server, its trap set."""
    listener = socket.create_server(("127.0.0.1", 0))
    pipe, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(pipe)
        os.close(leash[1])
        _live(place, listener, Trap(tell, kill), leash[0])
    os.close(tell)
    port = int(listener.getsockname()[1])
    listener.close()
    return Life(pid, port, pipe)


def _live(place: Place, listener: socket.socket, trap: Trap, leash: int) -> None:
    """Serve until killed; never returns into the code that forked."""
    try:
        log = os.open(place.folder / "server.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.dup2(log, 1)
        os.dup2(log, 2)
        threading.Thread(target=_follow, args=(leash,), daemon=True).start()
        trap.install()
        anyio.run(_serve, place, listener, trap)
    except BaseException:  # noqa: BLE001  # nothing may unwind into the story
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(1)


def _follow(leash: int) -> None:
    os.read(leash, 1)  # Nothing is ever written: it ends when whoever forked us is gone.
    os._exit(1)


async def _serve(place: Place, listener: socket.socket, trap: Trap) -> None:
    async with place.opened() as database:
        app = create_app(
            agent(place.book, trap),
            tools=RULES,
            identify=user_by_header,
            # A live run that everybody has left ends at once: whoever stays decides which it is.
            settings=Settings(keep_alive_seconds=5.0, live_leave_seconds=0.0),
            services=Services(sessions=database.sessions),
            stores=database.stores,
        )
        _add_routes(app, place, trap)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
        await uvicorn.Server(config).serve([listener])


def _add_routes(app: FastAPI, place: Place, trap: Trap) -> None:
    """Let the story set the trap, and look at the rows themselves and the live runs."""
    routes = APIRouter(prefix="/faults")
    engine = create_async_engine(place.url)

    @routes.post("/trap")
    async def set_trap(request: Request) -> dict[str, Any]:
        asked = await request.json()
        seen = trap.told()
        trap.set(Kill(**{**asked, "point": Point(asked["point"])}) if asked else None)
        return {"seen": seen}

    @routes.get("/rows")
    async def rows(chat: str) -> dict[str, Any]:
        async with engine.connect() as connection:
            found = {
                name: list(map(dict, (await connection.execute(query, {"chat": chat})).mappings()))
                for name, query in _ROWS.items()
            }
        return {**found, "lives": trap.lives, "steerable": _is_steerable(app, chat)}

    @routes.get("/modules")
    async def modules() -> list[str]:
        return sorted(sys.modules)

    app.include_router(routes)


def _is_steerable(app: FastAPI, chat: str) -> bool:
    """Whether the running turn knows of messages that wait to steer it."""
    running = turns_of(app)._running.get(ChatId(chat))
    return running is not None and running.turn.scope.may_be_steered
