"""What a turn costs on top of ADK's own runner, on the same session service and the same model."""

from __future__ import annotations

import statistics
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types

from benchmarks.page import figure, ratio, table
from benchmarks.payment_agent import DELTAS
from benchmarks.rounds import Benchmark, Figure, Results, Sample
from benchmarks.served import opened
from benchmarks.setting import Setting
from benchmarks.statements import MEASURES, counted
from benchmarks.talkers import APP, USER, Talker, talking

__all__ = ["TURN_COST"]

_STORES: Final = {"memory": "memory", "sqlite": "SQLite", "postgres": "PostgreSQL"}
_KINDS: Final = {
    "text": f"text, {DELTAS} deltas",
    "tool": "a tool, then text",
    "approval": "an approval (two requests), then text",
    "long": "text, after 200 earlier events",
}
_EARLIER: Final = 200


async def _long_chat(sessions: BaseSessionService, events: int) -> str:
    """Return a chat in which much has been said."""
    chat = f"chat-{uuid.uuid4()}"
    session = await sessions.create_session(app_name=APP, user_id=USER, session_id=chat)
    for number in range(events):
        role = "user" if number % 2 == 0 else "model"
        content = types.Content(role=role, parts=[types.Part(text=f"Said before: {number}.")])
        author = "user" if role == "user" else APP
        event = Event(author=author, invocation_id=f"e-{number // 2}", content=content)
        await sessions.append_event(session, event)
    return chat


async def _timed(talker: Talker, chats: Iterator[str], *, text: str, times: int) -> Sample:
    await talker.say(next(chats), text)
    each: list[float] = []
    cpu = time.process_time()
    for _ in range(times):
        began = time.perf_counter()
        await talker.say(next(chats), text)
        each.append(time.perf_counter() - began)
    used = (time.process_time() - cpu) / times
    return {"seconds": statistics.median(each), "cpu": used}


async def _counts(
    talker: Talker, chats: Iterator[str], *, text: str, times: int, sessions: BaseSessionService
) -> Sample:
    """Return the counts of a usual turn: the median, since leases are renewed in between."""
    turns: list[Counter[str]] = []
    for _ in range(times):
        with counted(sessions) as found:
            await talker.say(next(chats), text)
        turns.append(found)
    return {name: statistics.median(turn[name] for turn in turns) for name in MEASURES}


def _chats_of(chat: str | None) -> Iterator[str]:
    """Yield the same chat for ever, or new ones."""
    while True:
        yield chat or f"chat-{uuid.uuid4()}"


async def _measure(variant: str, setting: Setting) -> Sample:
    times = setting.sized(30, 1)
    sample: Sample = {}
    async with opened(variant, setting) as database:
        sessions = database.sessions
        async with talking(database, bare=variant.endswith("bare")) as talker:
            for kind in _KINDS:
                long = kind == "long"
                chat = await _long_chat(sessions, setting.sized(_EARLIER, 4)) if long else None
                chats, text = _chats_of(chat), "text" if long else kind
                found = await _timed(talker, chats, text=text, times=times)
                found |= await _counts(
                    talker, chats, text=text, times=setting.sized(5, 1), sessions=sessions
                )
                sample |= {f"{kind} {name}": value for name, value in found.items()}
    return sample


def _tell(results: Results) -> str:
    rows = []
    for kind, label in _KINDS.items():
        for store, name in _STORES.items():
            bare, ours = results[f"{store}-bare"], results[f"{store}-ours"]
            rows.append(
                [
                    f"{label}; {name}",
                    *_both(bare, ours, f"{kind} seconds"),
                    *_both(bare, ours, f"{kind} cpu"),
                ]
            )
    time_head = ["", "ADK alone, ms", "with us, ms", "ratio"]
    cpu_head = ["ADK alone, CPU ms", "with us, CPU ms", "ratio"]
    counts = [
        [
            f"{label}; {_STORES[store]}",
            *(figure(results[f"{store}-ours"][f"{kind} {name}"]) for name in MEASURES[2:]),
            *(figure(results[f"{store}-ours"][f"{kind} {name}"]) for name in MEASURES[:2]),
            *(figure(results[f"{store}-bare"][f"{kind} {name}"]) for name in MEASURES[:2]),
        ]
        for kind, label in _KINDS.items()
        for store in ("sqlite", "postgres")
    ]
    count_head = [
        "a turn's",
        "statements of ours",
        "commits of ours",
        "statements of ADK's, with us",
        "commits of ADK's, with us",
        "statements of ADK alone",
        "commits of ADK alone",
    ]
    return f"{table([*time_head, *cpu_head], rows)}\n{table(count_head, counts)}"


def _both(bare: Mapping[str, Figure], ours: Mapping[str, Figure], name: str) -> list[str]:
    return [figure(bare[name], 1e3), figure(ours[name], 1e3), ratio(ours[name], bare[name])]


_VARIANTS: Final = [f"{store}-{way}" for store in _STORES for way in ("bare", "ours")]

TURN_COST: Final = Benchmark("turn-cost", _VARIANTS, _measure, _tell)
