"""A real PostgreSQL server for tests: its own data folder, a free port, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PostgresServer", "postgres_server"]


@dataclass(frozen=True)
class PostgresServer:
    """A running server."""

    bin: Path
    data: Path
    port: int

    def url(self, database: str = "postgres") -> str:
        """Return the address of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create(self, database: str) -> str:
        """Make a database; return its address."""
        self.sql(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def sql(self, statement: str) -> None:
        """Run a statement as the server's owner."""
        _run(self.bin / "psql", "-q", "-d", self.url(), "-c", statement)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = f"-p {self.port} -k {self.data} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = self.data / "server.log"
        _run(self.bin / "pg_ctl", "-D", self.data, "-o", options, "-l", log, "-w", "start")

    def stop(self) -> None:
        """Stop the server at once, as a crash would."""
        _run(self.bin / "pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server until the block ends."""
    folder = Path(tempfile.mkdtemp(prefix="adk-stream-postgres-"))
    server = PostgresServer(_binaries(), folder / "data", _free_port())
    owner = _owner()
    if owner is not None:
        shutil.chown(folder, owner)
    try:
        _run(server.bin / "initdb", "-D", server.data, "-A", "trust", "-U", "postgres")
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise RuntimeError("PostgreSQL is not installed: run `make install`.")
    return Path(on_path).resolve().parent


def _owner() -> str | None:
    """Return who runs the server: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    return pwd.getpwnam("postgres").pw_name


def _run(*command: object) -> None:
    words = [str(word) for word in command]
    owner = _owner()
    if owner is not None:
        words = ["runuser", "-u", owner, "--", *words]
    done = subprocess.run(  # noqa: S603  # the commands of this file
        words, capture_output=True, text=True, cwd="/", check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{words} failed: {done.stdout}{done.stderr}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
