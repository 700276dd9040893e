"""Several workers that share the cases among them."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from faults.case import Case
from support.postgres import PostgresServer

__all__ = ["Crew"]

_TESTS = Path(__file__).parents[1]
_LONGEST = 300.0
"""Seconds after which a worker that does not answer is given up."""


class Crew:
    """Plays cases in as many processes as it is told to."""

    def __init__(self, folder: Path, postgres: PostgresServer | None, *, size: int = 2) -> None:
        self._folder = folder
        self._postgres = postgres
        self._size = size

    async def play(self, cases: Iterable[Case], told: Callable[[Case, Any], None]) -> None:
        """Play all cases; each outcome is told as it comes, in any order."""
        await self._share(iter(cases), told, {})

    async def survey(self, cases: Iterable[Case], told: Callable[[Case, Any], None]) -> None:
        """Play cases without kills; tell what each meets."""
        await self._share(iter(cases), told, {"survey": True})

    async def _share(
        self, cases: Iterable[Case], told: Callable[[Case, Any], None], more: dict[str, Any]
    ) -> None:
        async with anyio.create_task_group() as workers:
            for _ in range(self._size):
                workers.start_soon(self._work, cases, told, more)

    async def _work(
        self, cases: Iterable[Case], told: Callable[[Case, Any], None], more: dict[str, Any]
    ) -> None:
        async with await self._start() as worker:
            assert worker.stdin is not None
            assert worker.stdout is not None
            answers = BufferedByteReceiveStream(worker.stdout)
            for case in cases:
                asked = json.dumps({"case": case.to_json(), **more})
                await worker.stdin.send(f"{asked}\n".encode())
                with anyio.fail_after(_LONGEST):
                    answer = await answers.receive_until(b"\n", 1_000_000)
                told(case, json.loads(answer))
            await worker.stdin.aclose()
            await worker.wait()

    async def _start(self) -> Process:
        command = [sys.executable, "-m", "faults.worker", str(self._folder)]
        if self._postgres is not None:
            server = dataclasses.asdict(self._postgres)
            command.append(json.dumps(server, default=str))
        return await anyio.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            cwd=_TESTS,
            # Absolute: a relative path would name another folder there.
            env={**os.environ, "PYTHONPATH": f"{_TESTS.parent / 'src'}{os.pathsep}{_TESTS}"},
            # Ctrl-C is for the command; it lets its workers finish.
            start_new_session=True,
        )
