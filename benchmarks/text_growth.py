"""Whether an event costs more in a long answer, and a turn in a long chat or among many chats."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Final

from benchmarks.page import figure, ratio, table
from benchmarks.plot import Curves, curves
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.setting import Setting
from benchmarks.side_by_side import side_by_side
from benchmarks.text import TEXT_NAMES
from benchmarks.text_bench import TextBench

__all__ = ["TEXT_GROWTH"]

_VARIANTS: Final = ("bare", "adk", "memory")
_PIECES: Final = (2000, 5000, 10_000, 20_000)
_HISTORIES: Final = (0, 1000, 2500, 5000)
_CHATS: Final = (0, 500, 1000, 2000)
"""How many chats were had before."""
_AT_ONCE: Final = 50


async def _measure(settings: Mapping[str, Setting]) -> Mapping[str, Sample]:
    steps = ((_warm_up, 1), (_by_length, 1), (_by_history, 1), (_by_chats, 1))
    return await side_by_side(settings, steps)


async def _warm_up(bench: TextBench, setting: Setting) -> Sample:
    await bench.whole(f"text {setting.sized(2000, 5)}")
    return {}


async def _by_length(bench: TextBench, setting: Setting) -> Sample:
    """Measure an event in answers of all lengths, from short to long and back again.

    A machine that grows slower meanwhile then does so for all. Of short answers there are more.
    """
    spent: dict[int, list[float]] = {count: [] for count in _PIECES}
    for count in (*_PIECES, *reversed(_PIECES)):
        pieces = setting.sized(count, count // 500)
        for _ in range(setting.sized(max(1, 6000 // count), 1)):
            spent[count].append((await bench.whole(f"text {pieces}")).cpu / pieces)
    return {f"pieces {count}": statistics.mean(each) for count, each in spent.items()}


async def _by_history(bench: TextBench, setting: Setting) -> Sample:
    found: Sample = {}
    for events in _HISTORIES:
        chat = await bench.client.filled(setting.sized(events, events // 500))
        # The first turn in a chat that others began reads more than those after it.
        await bench.whole("text 1", chat=chat)
        turns = [await bench.whole("text 1", chat=chat) for _ in range(setting.sized(5, 1))]
        found[f"first {events}"] = statistics.median(turn.heard[0].first for turn in turns)
        usual = statistics.median(turn.cpu for turn in turns)
        found[f"history {events}"] = usual
        many = setting.sized(4000, 5)
        long = await bench.whole(f"text {many}", chat=chat)
        found[f"event {events}"] = (long.cpu - usual) / (many - 1)
    return found


async def _by_chats(bench: TextBench, setting: Setting) -> Sample:
    found: Sample = {}
    had = 0
    for chats in _CHATS:
        for _ in range(setting.sized((chats - had) // _AT_ONCE, 1)):
            await bench.whole("text 1", setting.sized(_AT_ONCE, 2))
        had = chats
        found[f"chats {chats}"] = await bench.usual("text 1", setting.sized(20, 1))
    return found


def _tell(results: Results) -> str:
    return "\n".join(
        (
            _grown(results, "CPU us/event, an answer of", "pieces", _PIECES, 1e6),
            _grown(results, "CPU us/event, after", "event", _HISTORIES, 1e6),
            _grown(results, "CPU ms, a turn of 1 piece after", "history", _HISTORIES, 1e3),
            _grown(results, "first piece, ms, after", "first", _HISTORIES, 1e3),
            _grown(results, "CPU ms, a turn of 1 piece beside", "chats", _CHATS, 1e3),
        )
    )


_COUNTED: Final = {
    "pieces": "pieces",
    "event": "events",
    "history": "events",
    "first": "events",
    "chats": "chats",
}


def _grown(results: Results, head: str, name: str, sizes: tuple[int, ...], factor: float) -> str:
    least, most = f"{name} {sizes[0]}", f"{name} {sizes[-1]}"
    heads = [head, *(f"{size:,} {_COUNTED[name]}" for size in sizes), "the last of the first"]
    rows = [
        [
            TEXT_NAMES[variant],
            *(figure(found[f"{name} {size}"], factor) for size in sizes),
            ratio(found[most], found[least]),
        ]
        for variant, found in results.items()
    ]
    return table(heads, rows)


def _draw(results: Results) -> str:
    """Draw how many times that of the smallest case the cost of each case is."""
    told = {
        "pieces": ("an event, by the pieces of its answer", _PIECES),
        "event": ("an event, by the events of its chat before", _HISTORIES),
        "history": ("a turn, by the events of its chat before", _HISTORIES),
        "chats": ("a turn, by the chats had before", _CHATS),
    }
    return curves(
        "Server CPU time, the smallest case = 1",
        [
            Curves(
                head,
                sizes,
                {
                    TEXT_NAMES[variant].replace("*", "").replace("`", ""): [
                        found[f"{name} {size}"].of(found[f"{name} {sizes[0]}"]).median
                        for size in sizes
                    ]
                    for variant, found in results.items()
                },
            )
            for name, (head, sizes) in told.items()
        ],
    )


TEXT_GROWTH: Final = Benchmark(
    "text-growth", _VARIANTS, None, _tell, measure_round=_measure, draw=_draw
)
