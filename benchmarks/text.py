"""What a text turn costs on its way to a client, against ADK's own loop and other servers."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from typing import Final

from benchmarks.page import figure, ratio, table
from benchmarks.plot import Bars, bars
from benchmarks.rounds import Benchmark, Figure, Results, Sample, percentile
from benchmarks.servers import PEERS
from benchmarks.setting import Setting
from benchmarks.side_by_side import side_by_side
from benchmarks.text_bench import TextBench

__all__ = ["TEXT", "TEXT_NAMES"]

TEXT_NAMES: Final = {
    "bare": "ADK's loop alone, `run_async`",
    "minimal": "the least that can be written",
    "adk": "ADK's own `/run_sse`",
    "memory": "**`/api/chat`, memory**",
    "memory-adk": "**`/stream`, memory**",
    "memory-ws": "**`/api/chat/ws`, memory**",
    "sqlite": "**`/api/chat`, SQLite**",
    "postgres": "**`/api/chat`, PostgreSQL**",
    "ag-ui-adk": "ag-ui-adk",
    "pydantic-ai": "pydantic-ai's adapter, without ADK",
    "vercel-ai": "Vercel's `ai` for Python, without ADK",
}
_COSTS: Final = {
    "alone": "1 client",
    "50": "50 clients",
    "100": "100 clients",
    "paced": "50 clients, 30 a second",
}


async def _measure(settings: Mapping[str, Setting]) -> Mapping[str, Sample]:
    scale = next(iter(settings.values()))
    some, few = scale.sized(5, 1), scale.sized(3, 1)
    return await side_by_side(
        settings,
        [
            (_warm_up, 1),
            (_alone, some),
            (_tools, few),
            (partial(_together, clients=50), scale.sized(2, 1)),
            (partial(_together, clients=100), 1),
            (_paced, 1),
            (_memory, 1),
        ],
    )


async def _warm_up(bench: TextBench, setting: Setting) -> Sample:
    await bench.turns(f"text {setting.sized(200, 5)}", 2)
    return {}


async def _alone(bench: TextBench, setting: Setting) -> Sample:
    """Measure one client; an event costs what a long turn takes longer than a short one."""
    few, many = setting.sized(10, 2), setting.sized(2000, 10)
    short = await bench.whole(f"text {few}")
    long = await bench.whole(f"text {many}")
    first = await bench.whole("text 1")
    return {
        "alone": (long.cpu - short.cpu) / (many - few),
        "turn": short.cpu,
        "first": first.heard[0].first,
    }


async def _tools(bench: TextBench, _setting: Setting) -> Sample:
    # Peers spell these differently; what they are compared by is text.
    told = bench.variant not in PEERS
    return {kind: (await bench.whole(kind)).cpu if told else 0.0 for kind in ("tool", "approval")}


async def _together(bench: TextBench, setting: Setting, *, clients: int) -> Sample:
    name = str(clients)
    clients = setting.sized(clients, clients // 25)
    count = setting.sized(10_000, 10) // clients
    # In chats that are there: ADK's own server has them made by another request.
    turns = await bench.turns_in(await bench.begun(clients), f"text {count}")
    answered = clients - turns.failed
    return {
        name: turns.cpu / (answered * count) if answered else 0.0,
        f"{name} first": statistics.median([each.first for each in turns.heard] or [0.0]),
        f"{name} failed": float(turns.failed),
    }


async def _memory(bench: TextBench, _setting: Setting) -> Sample:
    return {"memory": await bench.memory()}


async def _paced(bench: TextBench, setting: Setting) -> Sample:
    count, clients = setting.sized(150, 3), setting.sized(50, 2)
    turns = await bench.whole(f"paced {count} 30", clients)
    late = [each for heard in turns.heard for each in heard.late] or [0.0]
    return {
        "paced": turns.cpu / (clients * count),
        "late p50": percentile(late, 0.5),
        "late p99": percentile(late, 0.99),
    }


def _tell(results: Results) -> str:
    bare, adk = results.get("bare"), results.get("adk")
    cost_rows = [
        [TEXT_NAMES[variant], *(figure(found[name], 1e6) for name in _COSTS)]
        for variant, found in results.items()
    ]
    ratio_rows = [
        [
            TEXT_NAMES[variant],
            *(
                f"{_times(found[name], bare, name)}, {_times(found[name], adk, name)}"
                for name in _COSTS
            ),
        ]
        for variant, found in results.items()
    ]
    waits = {"first": "first piece", "50 first": "50 clients", "100 first": "100 clients"}
    waits |= {"late p50": "lateness p50", "late p99": "lateness p99"}
    waits |= {"turn": "CPU of 10 pieces", "tool": "CPU of a tool", "approval": "of an approval"}
    wait_rows = [
        [
            TEXT_NAMES[variant],
            *(_known(found[name], 1e3) for name in waits),
            figure(found["50 failed"]),
            figure(found["100 failed"]),
            _known(found["memory"], 2**-20),
        ]
        for variant, found in results.items()
    ]
    told = [
        table(["CPU us/event", *_COSTS.values()], cost_rows),
        table(["of the bare loop, of `/run_sse`", *_COSTS.values()], ratio_rows),
        *_database_table(results),
        table(["ms", *waits.values(), "of 50 failed", "of 100", "MiB at the end"], wait_rows),
    ]
    return "\n".join(told)


def _database_table(results: Results) -> list[str]:
    """Return what a database adds to memory, where both were measured."""
    memory = results.get("memory")
    rows = [
        [TEXT_NAMES[variant], *(_times(results[variant][name], memory, name) for name in _COSTS)]
        for variant in ("sqlite", "postgres")
        if variant in results
    ]
    return [table(["of `/api/chat`, memory", *_COSTS.values()], rows)] if rows else []


def _known(found: Figure, factor: float) -> str:
    """Return a figure; what was not measured is none."""
    return figure(found, factor) if found.high else "-"


def _draw(results: Results) -> str:
    """Draw what the first table tells, as times of the loop alone."""
    bare = results["bare"]
    groups = [
        Bars(
            told,
            {
                TEXT_NAMES[variant].replace("*", "").replace("`", ""): (
                    found[name].of(bare[name]).median
                )
                for variant, found in results.items()
                if variant != "bare"
            },
        )
        for name, told in _COSTS.items()
    ]
    return bars("Server CPU time per event, ADK's loop alone = 1", groups)


def _times(found: Figure, floor: Mapping[str, Figure] | None, name: str) -> str:
    return "-" if floor is None else ratio(found, floor[name])


TEXT: Final = Benchmark("text", tuple(TEXT_NAMES), None, _tell, measure_round=_measure, draw=_draw)
