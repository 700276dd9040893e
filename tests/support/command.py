"""The real `adk-stream`, as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

__all__ = ["Ran", "Served", "run_command", "served"]

_PATIENCE_SECONDS = 30


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass
class Served:
    """A running `adk-stream serve`."""

    process: Process
    url: str
    welcome: str
    """What it printed before it took requests."""
    log: Path
    """Its stderr."""

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        with anyio.fail_after(_PATIENCE_SECONDS):
            return await self.process.wait()


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    # A key of whoever runs the tests must not reach the commands.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ADK_", "GOOGLE_", "GEMINI_"))
    }
    return kept | dict(extra or {})


async def run_command(
    *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> Ran:
    """Run `adk-stream` to its end."""
    with anyio.fail_after(_PATIENCE_SECONDS):
        done = await anyio.run_process(
            [sys.executable, "-m", "adk_stream_protocol.cli", *arguments],
            check=False,
            cwd=cwd,
            env=_environment(environment),
        )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@asynccontextmanager
async def served(
    *arguments: str,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    command: str = "serve",
) -> AsyncIterator[Served]:
    """Run `adk-stream serve` on a free port, from when it takes requests to the block's end.

    `replay` is a command that serves, too.
    """
    handle, name = tempfile.mkstemp(prefix="stderr-", suffix=".txt", dir=cwd)
    log = Path(name)
    with os.fdopen(handle, "wb") as stderr:
        process = await anyio.open_process(
            [sys.executable, "-m", "adk_stream_protocol.cli", command, "--port", "0", *arguments],
            cwd=cwd,
            env=_environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    async with process:
        try:
            welcome = await _until_ready(process)
            url = welcome.rpartition("Open ")[2].partition("/ and")[0]
            yield Served(process, url, welcome, log)
        finally:
            if process.returncode is None:
                process.kill()


async def _until_ready(process: Process) -> str:
    assert process.stdout is not None
    told = ""
    with anyio.fail_after(_PATIENCE_SECONDS):
        async for piece in TextReceiveStream(process.stdout):
            told += piece
            if "Stop with Ctrl+C." in told:
                return told
    raise AssertionError(f"it ended before it was ready, see its stderr-*.txt: {told}")
