"""What an event of a live run costs on its way to a client, on top of ADK's own loop.

The client is a process of its own. It has a turn of the server and one of the bare loop in the
same process, alternately, with few events and with many: the difference is what the events cost.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import anyio
import httpx

from adk_stream_protocol.cli.switching import switch_soon
from adk_stream_protocol.engine.conversation import Conversations
from benchmarks.live_apps import BareLoop, bare_turn, live_app
from benchmarks.live_clients import Say, talking
from benchmarks.live_model import live_agent
from benchmarks.page import figure, table
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.sampling import measure_beside
from benchmarks.served import opened, served
from benchmarks.setting import Setting
from benchmarks.talkers import USER, whole, words
from benchmarks.web import Usage, served_app

__all__ = ["LIVE", "LIVE_CLIENT"]

_ENGINE: Final = "memory-engine"
_NAMES: Final = {
    "adk": "ADK's own `/run_live`",
    "memory": "**`/api/chat/live`, memory**",
    "sqlite": "**`/api/chat/live`, SQLite**",
    _ENGINE: "our engine without a socket, memory",
}
_KINDS: Final = {"text": "text", "audio": "sound and what is said"}
_FEW: Final = 10
_SETTLED: Final = 0.1
"""Seconds until what a turn leaves to do is done, too: the log writes every 25 ms."""

_Turn: TypeAlias = Callable[[str], Awaitable[tuple[float, float]]]
"""Has a turn; returns the seconds it took, and those of CPU time in the server's process."""


async def _alternated(turns: Mapping[str, _Turn], kind: str, *, setting: Setting) -> Sample:
    """Return the seconds of an event, by what many events take longer than few."""
    many = setting.sized(2000, 20)
    took: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for number in range(setting.sized(15, 1) + 1):
        # Each is the first as often: the machine's pace changes meanwhile.
        order = list(turns.items())[:: 1 if number % 2 else -1]
        for count in (_FEW, many):
            for name, turn in order:
                each = await turn(f"{kind} {count}")
                # The first turn is slower than others.
                if number > 0:
                    took.setdefault((name, count), []).append(each)
    found: Sample = {}
    cpu: dict[str, list[float]] = {}
    for name in turns:
        for index, measure in enumerate(("seconds", "cpu")):
            short = statistics.median(each[index] for each in took[name, _FEW])
            cpu[name] = [(each[index] - short) / (many - _FEW) for each in took[name, many]]
            found[f"{kind} {name} {measure}"] = statistics.median(cpu[name])
        found[f"{kind} {name} rate"] = 1 / found[f"{kind} {name} seconds"]
    # What two turns took that came one after the other is compared: both had the same pace.
    more = statistics.median(s / b for s, b in zip(cpu["served"], cpu["bare"], strict=True)) - 1
    found[f"{kind} more cpu"] = more * found[f"{kind} bare cpu"]
    return found


async def _talk(variant: str, setting: Setting) -> Sample:
    """Be the second process: have turns, and tell what they took."""
    found: Sample = {}
    async with httpx.AsyncClient(base_url=setting.url, timeout=60) as http:
        cpu = Usage(http).cpu
        for kind in _KINDS:
            async with talking(variant, kind, http) as say:
                turns = {"bare": partial(bare_turn, http), "served": partial(_timed, say, cpu)}
                found |= await _alternated(turns, kind, setting=setting)
    return found


async def _timed(say: Say, cpu: Callable[[], Awaitable[float]], text: str) -> tuple[float, float]:
    before, began = await cpu(), time.perf_counter()
    await say(text)
    seconds = time.perf_counter() - began
    await anyio.sleep(_SETTLED)
    return seconds, await cpu() - before


async def _measure(variant: str, setting: Setting) -> Sample:
    if variant == _ENGINE:
        return await _measure_engine(setting)
    if variant != "adk":
        # As `adk-stream serve` does.
        switch_soon()
    async with live_app(variant, setting) as app, served_app(app) as url:
        return await measure_beside(LIVE_CLIENT, variant, replace(setting, url=url))


async def _measure_engine(setting: Setting) -> Sample:
    found: Sample = {}

    async def cpu() -> float:
        return time.process_time()

    async with (
        opened(_ENGINE, setting) as database,
        served(live_agent(), database) as conversations,
    ):
        bare = BareLoop(database.sessions)
        for kind in _KINDS:
            say = partial(_say, conversations, f"chat-{uuid.uuid4()}")
            turns: dict[str, _Turn] = {"bare": bare.turn, "served": partial(_timed, say, cpu)}
            found |= await _alternated(turns, kind, setting=setting)
    return found


async def _say(conversations: Conversations, chat: str, text: str) -> None:
    await whole(await conversations.submit(words(chat, text), USER, mode="live"))


def _tell(results: Results) -> str:
    head = ["", "the loop alone, CPU us/event", "served, CPU us/event", "more, CPU us/event"]
    head += ["the loop alone, events/s", "served, events/s"]
    rows = [
        [
            f"{_NAMES[variant]}: {label}",
            *(figure(found[f"{kind} {name} cpu"], 1e6) for name in ("bare", "served", "more")),
            *(figure(found[f"{kind} {name} rate"]) for name in ("bare", "served")),
        ]
        for kind, label in _KINDS.items()
        for variant, found in results.items()
    ]
    return table(head, rows)


LIVE_CLIENT: Final = Benchmark("live-client", tuple(_NAMES), _talk, _tell)
LIVE: Final = Benchmark("live", tuple(_NAMES), _measure, _tell)
