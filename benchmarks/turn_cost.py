"""What a turn costs on top of ADK's own runner, on the same session service and the same model.

The two alternate turn by turn in one process, so that noise meets both.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from typing import Final

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types

from benchmarks.page import figure, table
from benchmarks.payment_agent import DELTAS, payment_agent
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.served import opened, served
from benchmarks.setting import Setting
from benchmarks.statements import MEASURES, counted
from benchmarks.talkers import APP, USER, BareTalker, OurTalker, Talker

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


class _Chats:
    """Where each talker talks: in its own long chat, or in a new one each time."""

    def __init__(self, talkers: Mapping[str, Talker]) -> None:
        self._talkers = talkers
        # The long chat of each talker; empty: none.
        self._long: dict[str, str] = {}

    async def lengthen(self, sessions: BaseSessionService, events: int) -> None:
        """Let each talker go on in a chat of its own."""
        self._long = {name: await _long_chat(sessions, events) for name in self._talkers}

    async def say(self, name: str, text: str) -> tuple[float, float]:
        """Have a turn; return the seconds it took, and those of CPU time."""
        chat = self._long.get(name) or f"chat-{uuid.uuid4()}"
        wall, cpu = time.perf_counter(), time.process_time()
        await self._talkers[name].say(chat, text)
        return time.perf_counter() - wall, time.process_time() - cpu

    async def timed(self, text: str, times: int) -> Sample:
        """Return medians for each talker, and what one's are of the other's."""
        turns: dict[str, list[tuple[float, float]]] = {name: [] for name in self._talkers}
        for number in range(times + 1):
            for name in self._talkers:
                took = await self.say(name, text)
                # The first turn compiles statements and opens connections.
                if number > 0:
                    turns[name].append(took)
        found: Sample = {}
        for index, measure in enumerate(("seconds", "cpu")):
            for name, took_each in turns.items():
                found[f"{name} {measure}"] = statistics.median(each[index] for each in took_each)
            found[f"{measure} ratio"] = found[f"ours {measure}"] / found[f"bare {measure}"]
        return found

    async def counted(self, text: str, times: int, *, sessions: BaseSessionService) -> Sample:
        """Return the counts of a usual turn: the median, since leases are renewed in between."""
        found: Sample = {}
        for name in self._talkers:
            turns: list[Counter[str]] = []
            for _ in range(times):
                with counted(sessions) as counts:
                    await self.say(name, text)
                turns.append(counts)
            for measure in MEASURES:
                found[f"{name} {measure}"] = statistics.median(turn[measure] for turn in turns)
        return found


async def _measure(variant: str, setting: Setting) -> Sample:
    sample: Sample = {}
    async with opened(variant, setting) as database:
        sessions = database.sessions
        async with served(payment_agent(), database) as conversations:
            chats = _Chats({"bare": BareTalker(sessions), "ours": OurTalker(conversations)})
            for kind in _KINDS:
                if kind == "long":
                    await chats.lengthen(sessions, setting.sized(_EARLIER, 4))
                text = "text" if kind == "long" else kind
                found = await chats.timed(text, setting.sized(15, 1))
                found |= await chats.counted(text, setting.sized(5, 1), sessions=sessions)
                sample |= {f"{kind} {name}": value for name, value in found.items()}
    return sample


def _tell(results: Results) -> str:
    times = [
        [
            f"{label}; {_STORES[store]}",
            *(
                cell
                for measure in ("seconds", "cpu")
                for cell in (
                    figure(found[f"{kind} bare {measure}"], 1e3),
                    figure(found[f"{kind} ours {measure}"], 1e3),
                    f"{figure(found[f'{kind} {measure} ratio'])} x",
                )
            ),
        ]
        for kind, label in _KINDS.items()
        for store, found in results.items()
    ]
    head = ["a turn", "ADK alone, ms", "with us, ms", "ratio"]
    head += ["ADK alone, CPU ms", "with us, CPU ms", "ratio"]
    counts = [
        [
            f"{label}; {_STORES[store]}",
            *(figure(results[store][f"{kind} ours {measure}"]) for measure in MEASURES[:2]),
            *(figure(results[store][f"{kind} ours {measure}"]) for measure in MEASURES[2:]),
            *(figure(results[store][f"{kind} bare {measure}"]) for measure in MEASURES[2:]),
        ]
        for kind, label in _KINDS.items()
        for store in ("sqlite", "postgres")
    ]
    count_head = ["a turn", "our statements", "our commits"]
    count_head += ["ADK's statements, with us", "ADK's commits, with us"]
    count_head += ["statements of ADK alone", "commits of ADK alone"]
    return f"{table(head, times)}\n{table(count_head, counts)}"


TURN_COST: Final = Benchmark("turn-cost", tuple(_STORES), _measure, _tell)
