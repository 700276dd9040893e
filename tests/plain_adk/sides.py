"""The sides that a failure is shown on, behind one interface: plain, and with us.

Each is a real HTTP server that speaks `useChat`'s requests and keeps its sessions in SQLite.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, assert_never

import anyio
import httpx
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from google.adk.sessions.database_session_service import DatabaseSessionService
from starlette.types import ASGIApp

from adk_stream_protocol import Services, Settings, create_app
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.stores.opening import SqliteFile
from plain_adk.bridge import USER, naive_app
from plain_adk.till import APP, Till
from support.conformance import NODE_DIR
from support.serving import serving

__all__ = ["Side", "Sold", "app_on", "history", "node_shop", "process_shop", "shop"]

Side: TypeAlias = Literal["plain", "ours"]


@asynccontextmanager
async def app_on(side: Side, database: Path, till: Till) -> AsyncIterator[ASGIApp]:
    """Yield the side's app for the till's agent."""
    match side:
        case "plain":
            async with DatabaseSessionService(f"sqlite+aiosqlite:///{database}") as sessions:
                yield naive_app(till.agent(), sessions)
        case "ours":
            async with open_database(SqliteFile(database)) as opened:
                services = Services(sessions=opened.sessions)
                yield create_app(
                    till.agent(), services=services, stores=opened.stores, settings=Settings()
                )
        case _:
            assert_never(side)


@dataclass(frozen=True)
class Sold:
    """A running server and what its agent charges."""

    http: httpx.AsyncClient
    till: Till
    database: Path


@asynccontextmanager
async def shop(side: Side, folder: Path) -> AsyncIterator[Sold]:
    """Serve the till in this process, so that a test can order what happens in it."""
    till = Till(folder / "charges.txt")
    database = folder / "sessions.db"
    async with (
        app_on(side, database, till) as app,
        serving(app) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as http,
    ):
        try:
            yield Sold(http, till, database)
        finally:
            till.release()


@dataclass(frozen=True)
class InProcess:
    """A server in a process of its own."""

    url: str
    process: Process
    lines: BufferedByteReceiveStream

    async def line(self) -> str:
        """Return the next line that it prints."""
        with anyio.fail_after(30):
            return (await self.lines.receive_until(b"\n", 1000)).decode()

    async def kill(self) -> None:
        """End it as the system does when there is no memory left: now, with no last word."""
        self.process.send_signal(signal.SIGKILL)
        with anyio.fail_after(30):
            await self.process.wait()


@asynccontextmanager
async def process_shop(side: Side, folder: Path, *, hangs: bool) -> AsyncIterator[InProcess]:
    """Serve the till in a process; if it hangs, its tool never returns from the charge."""
    program = Path(__file__).with_name("serve.py")
    paths = [str(program.parents[1]), os.environ.get("PYTHONPATH", "")]
    process = await anyio.open_process(
        [sys.executable, str(program), side, str(folder), "hang" if hangs else "return"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None,
    )
    async with process:
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)
        served = InProcess("", process, lines)
        try:
            yield InProcess(await served.line(), process, lines)
        finally:
            if process.returncode is None:
                process.kill()


@asynccontextmanager
async def node_shop(folder: Path) -> AsyncIterator[str]:
    """Serve `streamText` of the real `ai` 7 with signed approvals; yield its URL."""
    node = shutil.which("node")
    assert node is not None, "Node is needed"
    program = Path(__file__).with_name("signature.mjs").read_text("utf-8")
    process = await anyio.open_process(
        # The packages are found from the working folder, not from where the program is.
        [node, "--input-type=module", "-e", program, "--", str(folder / "charges.txt")],
        cwd=NODE_DIR,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None,
    )
    async with process:
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)
        try:
            with anyio.fail_after(30):
                yield (await lines.receive_until(b"\n", 1000)).decode()
        finally:
            process.kill()


async def history(database: Path, chat: str) -> list[dict[str, Any]]:
    """Return what ADK's session holds, read by ADK: each text, tool result and error."""
    async with DatabaseSessionService(f"sqlite+aiosqlite:///{database}") as sessions:
        session = await sessions.get_session(app_name=APP, user_id=USER, session_id=chat)
    told: list[dict[str, Any]] = []
    for event in session.events if session else []:
        asked = event.actions.requested_tool_confirmations
        if event.error_message:
            told.append({"error": event.error_message})
        for part in (event.content.parts or []) if event.content else []:
            result = part.function_response
            if part.text:
                told.append({"by": event.author, "text": part.text})
            elif result is not None and result.id not in asked:
                told.append({"result": result.response, "of": result.name})
    return told
