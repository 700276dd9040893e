"""Several real server processes on one PostgreSQL.

Nothing of the servers runs in the test's own process, and nothing here sleeps.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import anyio
import anyio.to_thread

from support.postgres import PostgresServer, postgres_server

__all__ = ["Cluster", "Instance", "running_cluster"]

_TESTS = Path(__file__).parents[1]
_PATIENCE_SECONDS = 60
_LEASE_SECONDS = 10.0
_DRAIN_SECONDS = 4


@dataclass(frozen=True)
class Instance:
    """A running server process."""

    name: str
    url: str
    process: subprocess.Popen[str]
    log: Path
    """Its stderr."""

    async def ended(self) -> int:
        """Wait for the process to end; return its exit code."""
        with anyio.fail_after(_PATIENCE_SECONDS):
            return await anyio.to_thread.run_sync(self.process.wait, abandon_on_cancel=True)


@dataclass
class Cluster:
    """A database and the servers on it."""

    postgres: PostgresServer
    folder: Path
    stack: ExitStack
    a: Instance = field(init=False)
    b: Instance = field(init=False)

    def start(self, *names: str) -> list[Instance]:
        """Start servers together; they are killed when the cluster ends."""
        starting = [(name, *self._spawn(name)) for name in names]
        return [
            Instance(name, _first_line(process, log), process, log)
            for name, process, log in starting
        ]

    def effects(self) -> Counter[str]:
        """Return how often each payment was made."""
        return Counter(line.split()[0] for line in self._lines("effects.txt"))

    def effect_keys(self) -> Counter[str]:
        """Return how often the tool ran for each call id."""
        return Counter(line.split()[1] for line in self._lines("effects.txt"))

    def model_runs(self) -> Counter[str]:
        """Return how often the model was asked in each play."""
        return Counter(line.split()[0] for line in self._lines("asked.txt"))

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def _spawn(self, name: str) -> tuple[subprocess.Popen[str], Path]:
        given = {
            "url": self.postgres.url(),
            "folder": str(self.folder),
            "lease": _LEASE_SECONDS,
            "drain": _DRAIN_SECONDS,
        }
        log = self.folder / f"{name}.log"
        paths = [str(_TESTS), os.environ.get("PYTHONPATH", "")]
        process = subprocess.Popen(  # noqa: S603  # our own module, no shell
            [sys.executable, "-m", "support.cluster_server", json.dumps(given)],
            env={**_clean_environment(), "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.stack.enter_context(log.open("w", encoding="utf-8")),
            text=True,
        )
        self.stack.callback(_put_down, process)
        return process, log


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Run PostgreSQL and the servers A and B until the block ends."""
    with ExitStack() as stack:
        postgres = stack.enter_context(postgres_server())
        # A short path: the name of a socket may have about 100 characters.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="adk-cluster-"))
        cluster = Cluster(postgres, Path(folder), stack)
        cluster.a, cluster.b = cluster.start("A", "B")
        yield cluster


def _first_line(process: subprocess.Popen[str], log: Path) -> str:
    stdout: IO[str] | None = process.stdout
    assert stdout is not None
    line = stdout.readline().strip()
    assert line, f"it ended before it was up: {log.read_text()}"
    return line


def _put_down(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _clean_environment() -> dict[str, str]:
    # A key or a setting of whoever runs the tests must not reach the servers.
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ADK_", "GOOGLE_", "GEMINI_"))
    }
