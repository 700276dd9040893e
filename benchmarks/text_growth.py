"""Whether an event costs more in a long answer, or a turn in a long chat, than in a short one."""

from __future__ import annotations

import statistics
from typing import Final

from benchmarks.page import figure, ratio, table
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.setting import Setting
from benchmarks.text import TEXT_NAMES
from benchmarks.text_bench import TextBench, text_bench

__all__ = ["TEXT_GROWTH"]

_VARIANTS: Final = ("bare", "adk", "memory")
_PIECES: Final = (2000, 20_000)
_HISTORIES: Final = (0, 1000, 5000)


async def _measure(variant: str, setting: Setting) -> Sample:
    async with text_bench(variant, setting) as bench:
        await bench.whole(f"text {setting.sized(200, 5)}")
        found = {}
        for count in _PIECES:
            said = setting.sized(count, count // 500)
            found[f"{count}"] = (await bench.whole(f"text {said}")).cpu / said
        for events in _HISTORIES:
            found |= await _in_chat_of(bench, events, setting)
    return found


async def _in_chat_of(bench: TextBench, events: int, setting: Setting) -> Sample:
    chat = await bench.client.filled(setting.sized(events, events // 500))
    # The first turn in a chat that others began reads more than those after it.
    await bench.whole("text 1", chat=chat)
    turns = [await bench.whole("text 1", chat=chat) for _ in range(setting.sized(3, 1))]
    return {
        f"first {events}": statistics.median(turn.heard[0].first for turn in turns),
        f"cpu {events}": statistics.median(turn.cpu for turn in turns),
    }


def _tell(results: Results) -> str:
    few, many = map(str, _PIECES)
    lengths = table(
        ["CPU us/event", f"{_PIECES[0]:,} pieces", f"{_PIECES[1]:,} pieces", "ratio"],
        [
            [
                TEXT_NAMES[variant],
                figure(found[few], 1e6),
                figure(found[many], 1e6),
                ratio(found[many], found[few]),
            ]
            for variant, found in results.items()
        ],
    )
    histories = table(
        [
            "a turn of 1 piece, after",
            *(f"{events:,} events: first piece, ms" for events in _HISTORIES),
            *(f"{events:,}: CPU, ms" for events in _HISTORIES),
        ],
        [
            [
                TEXT_NAMES[variant],
                *(figure(found[f"first {events}"], 1e3) for events in _HISTORIES),
                *(figure(found[f"cpu {events}"], 1e3) for events in _HISTORIES),
            ]
            for variant, found in results.items()
        ],
    )
    return f"{lengths}\n{histories}"


TEXT_GROWTH: Final = Benchmark("text-growth", _VARIANTS, _measure, _tell, has_own_server=True)
