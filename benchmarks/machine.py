"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import subprocess
from importlib.metadata import version
from pathlib import Path

__all__ = ["machine_text"]


def machine_text() -> str:
    """Return cores, system and versions; neither host nor paths."""
    memory = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text("utf-8"))
    assert memory is not None
    parts = [
        f"{os.cpu_count()} cores ({_processor()})",
        f"{int(memory[1]) / 1024**2:.0f} GiB",
        f"{platform.system()} {platform.release().partition('-')[0]}",
        f"Python {platform.python_version()}",
        f"google-adk {version('google-adk')}",
        f"SQLAlchemy {version('sqlalchemy')}",
        f"SQLite {sqlite3.sqlite_version} (WAL, `synchronous=FULL`)",
        f"PostgreSQL {_postgres()} (`fsync=on`, `synchronous_commit=on`)",
    ]
    redis = shutil.which("redis-server")
    if redis is not None:
        told = _said(redis, r"v=(\S+)")
        parts.append(f"Redis {told}")
    return ", ".join(parts)


def _processor() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    return platform.machine() if found is None else found[1].strip()


def _postgres() -> str:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    program = str(found[-1]) if found else shutil.which("postgres")
    return "" if program is None else _said(program, r"\) (\S+)")


def _said(program: str, pattern: str) -> str:
    """Return what a program says of its version."""
    told = subprocess.run(  # noqa: S603  # a program of this machine
        [program, "--version"], capture_output=True, text=True, check=True
    )
    found = re.search(pattern, told.stdout)
    return "" if found is None else found[1]
