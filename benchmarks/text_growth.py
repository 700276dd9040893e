"""Whether an event costs more in a long answer, and a turn in a long chat or among many chats."""

from __future__ import annotations

import statistics
from typing import Final

from benchmarks.page import figure, ratio, table
from benchmarks.plot import Bars, bars
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.setting import Setting
from benchmarks.text import TEXT_NAMES
from benchmarks.text_bench import TextBench, text_bench

__all__ = ["TEXT_GROWTH"]

_VARIANTS: Final = ("bare", "adk", "memory")
_PIECES: Final = (2000, 20_000)
_HISTORIES: Final = (0, 1000, 5000)
_CHATS: Final = 2000
_AT_ONCE: Final = 50


async def _measure(variant: str, setting: Setting) -> Sample:
    async with text_bench(variant, setting) as bench:
        await bench.whole(f"text {setting.sized(200, 5)}")
        found = await _by_length(bench, setting)
        for events in _HISTORIES:
            found |= await _in_chat_of(bench, events, setting)
        found |= await _among_chats(bench, setting)
    return found


async def _by_length(bench: TextBench, setting: Setting) -> Sample:
    """Measure an event in a long answer among as many events in short ones, before and after."""
    few, many = (setting.sized(count, count // 500) for count in _PIECES)
    half = many // few // 2
    before = [(await bench.whole(f"text {few}")).cpu for _ in range(half)]
    long = (await bench.whole(f"text {many}")).cpu
    after = [(await bench.whole(f"text {few}")).cpu for _ in range(half)]
    short = statistics.mean(before + after)
    return {
        str(count): cpu / size
        for count, cpu, size in zip(_PIECES, (short, long), (few, many), strict=True)
    }


async def _among_chats(bench: TextBench, setting: Setting) -> Sample:
    few = await bench.usual("text 1", setting.sized(20, 1))
    for _ in range(setting.sized(_CHATS // _AT_ONCE, 1)):
        await bench.whole("text 1", setting.sized(_AT_ONCE, 2))
    return {"few chats": few, "many chats": await bench.usual("text 1", setting.sized(20, 1))}


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
    chats = table(
        ["a turn of 1 piece, CPU ms", "few chats", f"{_CHATS:,} chats more", "ratio"],
        [
            [
                TEXT_NAMES[variant],
                figure(found["few chats"], 1e3),
                figure(found["many chats"], 1e3),
                ratio(found["many chats"], found["few chats"]),
            ]
            for variant, found in results.items()
        ],
    )
    return f"{lengths}\n{histories}\n{chats}"


def _draw(results: Results) -> str:
    """Draw how often the cost of the smallest case that of a larger one is."""
    few, many = map(str, _PIECES)
    told = {
        f"an event of {_PIECES[1]:,} pieces, of {_PIECES[0]:,} = 1": (few, many),
        f"a turn among {_CHATS:,} chats, among few = 1": ("few chats", "many chats"),
    }
    groups = [
        Bars(
            name,
            {
                TEXT_NAMES[variant].replace("*", "").replace("`", ""): (
                    found[large].median / found[small].median
                )
                for variant, found in results.items()
            },
        )
        for name, (small, large) in told.items()
    ]
    return bars("How server CPU time grows", groups)


TEXT_GROWTH: Final = Benchmark(
    "text-growth", _VARIANTS, _measure, _tell, has_own_server=True, draw=_draw
)
