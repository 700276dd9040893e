"""What a text turn costs on its way to a client, against ADK's own loop and other servers.

The server is a process of its own and tells its own CPU time. This process is the clients.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from benchmarks.page import figure, ratio, table
from benchmarks.rounds import Benchmark, Figure, Results, Sample, percentile
from benchmarks.setting import Setting
from benchmarks.text_clients import Heard, Refused, TextClient

__all__ = ["TEXT"]

_ROOT: Final = Path(__file__).parents[1]
_NAMES: Final = {
    "bare": "ADK's loop alone, `run_async`",
    "minimal": "the least that can be written",
    "adk": "ADK's own `/run_sse`",
    "memory": "**`/api/chat`, memory**",
    "sqlite": "**`/api/chat`, SQLite**",
    "postgres": "**`/api/chat`, PostgreSQL**",
}
_SETTLED: Final = 0.1
"""Seconds until what a turn leaves to do is done, too: the log writes every 25 ms."""


@asynccontextmanager
async def _server(variant: str, setting: Setting) -> AsyncIterator[TextClient]:
    paths = [_ROOT / "src", _ROOT / "tests", _ROOT]
    process = await anyio.open_process(
        [sys.executable, "-m", "benchmarks.text_server", variant],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    async with process:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(f"{setting.to_json()}\n".encode())
        url = (await process.stdout.receive()).decode().strip()
        yield TextClient(variant, url)
        await process.stdin.aclose()


@dataclass(frozen=True, slots=True)
class _Turns:
    """What turns that were had at once came to."""

    cpu: float
    """Seconds of the server's CPU time, of all."""
    heard: Sequence[Heard]
    failed: int = 0


class _Bench:
    """One server, measured."""

    def __init__(self, variant: str, client: TextClient) -> None:
        self._is_bare = variant == "bare"
        self._client = client

    async def cpu(self) -> float:
        """Return the seconds of CPU time that the server has used."""
        return float(await self._client.get("/bench/cpu"))

    async def turns(self, text: str, clients: int = 1) -> _Turns:
        """Have turns at once, in new chats."""
        if self._is_bare:
            _, cpu, first = await self._client.bare(text, clients)
            return _Turns(cpu, [Heard(first=first)])
        chats = [await self._client.chat() for _ in range(clients)]
        heard: list[Heard] = []

        async def talk(chat: str) -> None:
            with suppress(Refused):
                heard.append(await self._client.say(chat, text))

        before = await self.cpu()
        async with anyio.create_task_group() as tasks:
            for chat in chats:
                tasks.start_soon(talk, chat)
        await anyio.sleep(_SETTLED)
        return _Turns(await self.cpu() - before, heard, failed=clients - len(heard))

    async def usual(self, text: str, times: int) -> float:
        """Return the CPU time of a turn: the median of some, one after another."""
        return statistics.median([(await self.whole(text)).cpu for _ in range(times)])

    async def whole(self, text: str, clients: int = 1) -> _Turns:
        """Have turns of which none may fail: what a refused one costs says nothing."""
        turns = await self.turns(text, clients)
        if turns.failed:
            raise RuntimeError(f"{turns.failed} of {clients} clients were refused: {text}")
        return turns


async def _measure(variant: str, setting: Setting) -> Sample:
    async with _server(variant, setting) as client:
        bench = _Bench(variant, client)
        await bench.turns(f"text {setting.sized(200, 5)}", 2)
        found = await _alone(bench, setting)
        for name, clients in (("50", setting.sized(50, 2)), ("100", setting.sized(100, 3))):
            found |= await _together(bench, name, clients, setting=setting)
        found |= await _paced(bench, setting)
        found["memory"] = 0.0 if variant == "bare" else float(await client.get("/bench/memory"))
    return found


async def _alone(bench: _Bench, setting: Setting) -> Sample:
    """Measure one client; an event costs what a long turn takes longer than a short one."""
    few, many, most = setting.sized(10, 2), setting.sized(2000, 10), setting.sized(20_000, 20)
    short = await bench.usual(f"text {few}", setting.sized(5, 1))
    long = await bench.usual(f"text {many}", setting.sized(3, 1))
    longest = await bench.usual(f"text {most}", 1)
    firsts = [(await bench.whole("text 1")).heard for _ in range(setting.sized(9, 1))]
    return {
        "alone": (long - short) / (many - few),
        "long": (longest - short) / (most - few),
        "turn": short,
        "first": statistics.median(each.first for heard in firsts for each in heard),
        "tool": await bench.usual("tool", setting.sized(7, 1)),
        "approval": await bench.usual("approval", setting.sized(7, 1)),
    }


async def _together(bench: _Bench, name: str, clients: int, *, setting: Setting) -> Sample:
    count = setting.sized(200, 5)
    turns = await bench.turns(f"text {count}", clients)
    answered = clients - turns.failed
    return {
        name: turns.cpu / (answered * count) if answered else 0.0,
        f"{name} first": statistics.median([each.first for each in turns.heard] or [0.0]),
        f"{name} failed": float(turns.failed),
    }


async def _paced(bench: _Bench, setting: Setting) -> Sample:
    count, clients = setting.sized(120, 3), setting.sized(50, 2)
    turns = await bench.whole(f"paced {count} 30", clients)
    late = [each for heard in turns.heard for each in heard.late] or [0.0]
    return {
        "paced": turns.cpu / (clients * count),
        "late p50": percentile(late, 0.5),
        "late p99": percentile(late, 0.99),
    }


def _tell(results: Results) -> str:
    costs = {"alone": "2,000 pieces", "long": "20,000 pieces", "50": "50 clients"}
    costs |= {"100": "100 clients", "paced": "50 clients, 30 a second"}
    bare, adk = results.get("bare"), results.get("adk")
    head = ["CPU us/event", *costs.values()]
    cost_rows = [
        [_NAMES[variant], *(figure(found[name], 1e6) for name in costs)]
        for variant, found in results.items()
    ]
    ratio_rows = [
        [
            _NAMES[variant],
            *(
                f"{_times(found[name], bare, name)}, {_times(found[name], adk, name)}"
                for name in costs
            ),
        ]
        for variant, found in results.items()
    ]
    waits = {"first": "first piece", "50 first": "50 clients", "100 first": "100 clients"}
    waits |= {"late p50": "lateness p50", "late p99": "lateness p99"}
    waits |= {"turn": "CPU of 10 pieces", "tool": "CPU of a tool", "approval": "of an approval"}
    wait_rows = [
        [
            _NAMES[variant],
            *(figure(found[name], 1e3) for name in waits),
            figure(found["50 failed"]),
            figure(found["100 failed"]),
            figure(found["memory"], 2**-20),
        ]
        for variant, found in results.items()
    ]
    told = [
        table(head, cost_rows),
        table(["of the bare loop, of `/run_sse`", *costs.values()], ratio_rows),
        table(["ms", *waits.values(), "of 50 failed", "of 100", "MiB at the end"], wait_rows),
    ]
    return "\n".join(told)


def _times(found: Figure, floor: Mapping[str, Figure] | None, name: str) -> str:
    return "-" if floor is None else ratio(found, floor[name])


TEXT: Final = Benchmark("text", tuple(_NAMES), _measure, _tell)
