"""Several real `adk-stream serve` on one PostgreSQL.

Nothing of the servers runs in the test's own process, and nothing here sleeps.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from support.postgres import PostgresServer, postgres_server

__all__ = ["Cluster", "Instance", "running_cluster"]

_TESTS = Path(__file__).parents[1]
_COMMAND = (sys.executable, "-m", "adk_stream_protocol.cli")
_PATIENCE_SECONDS = 180
_SETTINGS = {
    "ADK_STREAM_MAX_TURNS": "10000",
    "ADK_STREAM_MAX_PENDING": "10000",
    "ADK_STREAM_LEASE_SECONDS": "30",
    # A comment in the middle of a stream would be a difference between two readers' bytes.
    "ADK_STREAM_KEEP_ALIVE_SECONDS": "600",
    "ADK_STREAM_LIVE_LEAVE_SECONDS": "0.1",
}


@dataclass(frozen=True)
class Instance:
    """A running server process."""

    name: str
    url: str
    process: subprocess.Popen[str]
    log: Path
    """Its stderr."""

    def terminate(self) -> None:
        """Ask the server to end, as an orchestrator does."""
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the server at once, as a machine that fails does."""
        self.process.kill()

    def pause(self) -> None:
        """Let the server do nothing at all, as a machine does that is moved."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let a server go on that was paused."""
        self.process.send_signal(signal.SIGCONT)

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

    def start(self, *names: str, **settings: str) -> list[Instance]:
        """Start servers together; they are killed when the cluster ends."""
        starting = [(name, *self._spawn(name, settings)) for name in names]
        return [
            Instance(name, _address(process, log), process, log) for name, process, log in starting
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

    def effect_places(self, name: str) -> list[int]:
        """Return the processes that made a payment."""
        return [int(line.split()[2]) for line in self._lines("effects.txt") if name in line]

    def connections(self, name: str, instance: Instance) -> tuple[int, int]:
        """Return how many live connections a server has opened in a play, and how many ended."""
        lines = [line.split() for line in self._lines("connections.txt")]
        place = [name, str(instance.process.pid)]
        told = [line[2] for line in lines if line[:2] == place]
        return told.count("opened"), told.count("ended")

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def _spawn(self, name: str, settings: Mapping[str, str]) -> tuple[subprocess.Popen[str], Path]:
        log = self.folder / f"{name}.log"
        words = ["serve", "support.cluster_agent:agent", "--port", "0"]
        process = subprocess.Popen(  # noqa: S603  # our own command, no shell
            [*_COMMAND, *words, "--database", self.postgres.url()],
            env={**_environment(), "CLUSTER_FOLDER": str(self.folder), **_SETTINGS, **settings},
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
        stack.callback(_keep_logs, cluster.folder)
        cluster.a, cluster.b = cluster.start("A", "B")
        yield cluster


def _keep_logs(folder: Path) -> None:
    """Copy what the servers logged to where someone who looks for a fault wants it."""
    kept = os.environ.get("ADK_STREAM_LOGS")
    for log in folder.glob("*.log") if kept else ():
        shutil.copy(log, kept or "")


def _address(process: subprocess.Popen[str], log: Path) -> str:
    """Return where the server is, once it says so."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("Open "):
            return line.removeprefix("Open ").partition("/ and")[0]
    raise AssertionError(f"it ended before it was up: {log.read_text()}")


def _put_down(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _environment() -> dict[str, str]:
    # A key or a setting of whoever runs the tests must not reach the servers.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ADK_", "GOOGLE_", "GEMINI_"))
    }
    paths = [str(_TESTS), os.environ.get("PYTHONPATH", "")]
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
