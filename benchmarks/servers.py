"""Real servers with real durability, started when a variant first needs one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from benchmarks.setting import Setting
from support.postgres import PostgresServer, postgres_server

__all__ = ["PACKAGES", "PEERS", "Servers", "cpu_seconds", "peer_python"]

PACKAGES: Final = Path(__file__).parent / ".packages"
"""Where `make bench` puts the Redis client."""

PEERS: Final = ("ag-ui-adk", "pydantic-ai", "vercel-ai")
"""Servers of others. Each is installed by `make bench` beside a Python of its own."""

_DURABLE: Final = "-c fsync=on -c synchronous_commit=on"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass
class Servers:
    """The servers of one run; a variant's name begins with the one it needs."""

    folder: Path
    until_end: ExitStack
    _postgres: PostgresServer | None = None
    """None until a variant needs it."""
    _redis: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Address and process by `appendfsync`; empty until a variant needs one."""

    def has(self, variant: str) -> bool:
        """Whether what the variant needs is installed."""
        if variant in PEERS:
            return peer_python(variant).exists()
        if not variant.startswith("redis-"):
            return True
        return shutil.which("redis-server") is not None and PACKAGES.exists()

    @contextmanager
    def setting(self, variant: str, setting: Setting) -> Iterator[Setting]:
        """Give a sample the fresh database that it needs, if any."""
        if variant.startswith("redis-"):
            url, process = self._redis_server(variant.removeprefix("redis-"))
            yield replace(setting, url=url, server=process)
        elif variant.startswith("postgres"):
            server = self._postgres_server()
            name = f"bench-{uuid.uuid4().hex}"
            process = int((server.data / "postmaster.pid").read_text("utf-8").split()[0])
            yield replace(setting, url=server.create(name), server=process)
            server.sql(f'DROP DATABASE "{name}" WITH (FORCE)')
        else:
            yield setting

    def _postgres_server(self) -> PostgresServer:
        if self._postgres is None:
            self._postgres = self.until_end.enter_context(postgres_server())
            _make_durable(self._postgres)
        return self._postgres

    def _redis_server(self, appendfsync: str) -> tuple[str, int]:
        if appendfsync not in self._redis:
            folder = self.folder / f"redis-{appendfsync}"
            folder.mkdir()
            served = self.until_end.enter_context(_redis_server(folder, appendfsync))
            self._redis[appendfsync] = served
        return self._redis[appendfsync]


def peer_python(peer: str) -> Path:
    """Return the Python that a peer is installed in."""
    return Path(__file__).parent / ".peers" / peer / "bin" / "python"


def cpu_seconds(server: int) -> float:
    """Return the CPU time that a server and its children have used; 0 for no server."""
    if server == 0:
        return 0.0
    used = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold spaces.
            fields = stat.read_text("utf-8").rpartition(") ")[2].split()
        except OSError:
            continue  # It ended just now.
        parent, (user, system, *of_the_dead) = int(fields[1]), map(int, fields[11:15])
        if int(stat.parent.name) == server:
            used += user + system + sum(of_the_dead)
        elif parent == server:
            used += user + system
    return used / _TICKS


def _make_durable(server: PostgresServer) -> None:
    """Start the server again as one that people would trust: tests run theirs without fsync."""
    server.stop()
    options = f"-p {server.port} -k {server.data} -c listen_addresses=127.0.0.1 {_DURABLE}"
    log = server.data / "server.log"
    start = [server.bin / "pg_ctl", "-D", server.data, "-o", options, "-l", log, "-w", "start"]
    # PostgreSQL refuses to run as root.
    become = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run(  # noqa: S603  # the command of this function
        [*become, *map(str, start)], check=True, capture_output=True, cwd="/"
    )


@contextmanager
def _redis_server(folder: Path, appendfsync: str) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    # No snapshots and no rewriting of the file in between: Redis at its best.
    options = {
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": str(folder),
        "save": "",
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "auto-aof-rewrite-percentage": "0",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    with subprocess.Popen(  # noqa: S603  # the command of this function
        ["redis-server", *words],  # noqa: S607  # wherever it is installed
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        try:
            if not any("Ready to accept connections" in line for line in server.stdout):
                raise RuntimeError("redis-server did not start.")
            yield f"redis://127.0.0.1:{port}", server.pid
        finally:
            server.terminate()
