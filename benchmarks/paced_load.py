"""How late pieces come that models say at their own pace, the more chats there are at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from benchmarks.page import figure, ratio, table
from benchmarks.rounds import Benchmark, Results, Sample, percentile
from benchmarks.setting import Setting
from benchmarks.side_by_side import side_by_side
from benchmarks.text import TEXT_NAMES
from benchmarks.text_bench import TextBench

__all__ = ["PACED_LOAD"]

_VARIANTS: Final = ("adk", "memory", "sqlite")
_LOADS: Final = (50, 60, 70, 80, 100)
"""How many chats are answered at once, each with 30 pieces a second."""


async def _measure(settings: Mapping[str, Setting]) -> Mapping[str, Sample]:
    steps = [(partial(_at, clients=clients), 1) for clients in _LOADS]
    return await side_by_side(settings, [(_warm_up, 1), *steps])


async def _warm_up(bench: TextBench, setting: Setting) -> Sample:
    await bench.whole(f"text {setting.sized(200, 5)}", 2)
    return {}


async def _at(bench: TextBench, setting: Setting, *, clients: int) -> Sample:
    count = setting.sized(150, 5)
    turns = await bench.whole(f"paced {count} 30", setting.sized(clients, 2))
    late = [each for heard in turns.heard for each in heard.late] or [0.0]
    # A server that cannot keep up falls behind further and further.
    last = [each for heard in turns.heard for each in heard.late[-count // 5 :]] or [0.0]
    return {
        f"{clients} p99": percentile(late, 0.99),
        f"{clients} last": percentile(last, 0.5),
    }


def _tell(results: Results) -> str:
    adk = results.get("adk")
    p99 = [
        [
            TEXT_NAMES[variant],
            *(
                figure(found[f"{load} p99"], 1e3)
                + ("" if adk is None else f", {ratio(found[f'{load} p99'], adk[f'{load} p99'])}")
                for load in _LOADS
            ),
        ]
        for variant, found in results.items()
    ]
    last = [
        [TEXT_NAMES[variant], *(figure(found[f"{load} last"], 1e3) for load in _LOADS)]
        for variant, found in results.items()
    ]
    loads = [f"{load} chats" for load in _LOADS]
    return "\n".join(
        [
            table(["lateness p99, ms, and of `/run_sse`'s", *loads], p99),
            table(["lateness p50 of the last fifth, ms", *loads], last),
        ]
    )


PACED_LOAD: Final = Benchmark("paced-load", _VARIANTS, None, _tell, measure_round=_measure)
