"""A hundred thousand approvals that wait: the memory they take, and what they slow down."""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from google.adk.agents.llm_agent import LlmAgent
from sqlalchemy import insert, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.lifecycle import CallState
from adk_stream_protocol.stores.sql_schema import CALLS
from adk_stream_protocol.translation.instructions import Decision
from benchmarks.page import figure, ratio, table
from benchmarks.ready_calls import PER_USER, held_call, owner_of
from benchmarks.rounds import Benchmark, Results, Sample, percentile
from benchmarks.sampling import measure_beside
from benchmarks.served import opened, served
from benchmarks.setting import Setting
from support.scripted import ScriptedModel

__all__ = ["FILLER", "PENDING"]

_NAMES: Final = {"memory": "memory", "sqlite": "SQLite", "postgres": "PostgreSQL"}
_ACTIONS: Final = {
    "decide": "decide one",
    "list": f"list one user's {PER_USER}",
    "sweep": "one pass of the sweeper",
}


def _few(setting: Setting) -> int:
    return setting.sized(100, 20)


def _many(setting: Setting) -> int:
    return setting.sized(100_000, 100)


async def _fill(variant: str, setting: Setting) -> Sample:
    """Be the second process: copy one stored call until there are many."""
    url = f"sqlite+aiosqlite:///{setting.file}"
    if variant == "postgres":
        url = setting.url.replace("postgresql://", "postgresql+asyncpg://")
    engine = create_async_engine(url)
    async with engine.begin() as connection:
        pending = CALLS.c.state == CallState.PENDING.value
        found = await connection.execute(select(CALLS).where(pending).limit(1))
        first = dict(found.mappings().one())
        now = first["created_at"]
        names = ("approval_id", "call_id", "request_id", "chat_id", "invocation_id", "owner")
        rows = [
            {
                **first,
                **{name: getattr(call, name) for name in names},
                "expires_at": call.expires_at,
            }
            for call in (held_call(number, now) for number in range(_few(setting), _many(setting)))
        ]
        await connection.execute(insert(CALLS), rows)
    async with engine.begin() as connection:
        # As PostgreSQL would by itself a minute later; SQLite never does.
        if variant == "postgres":
            await connection.execute(text("ANALYZE adk_stream_call"))
    await engine.dispose()
    return {}


class _Inbox:
    """The server, and which calls are pending in it."""

    def __init__(self, conversations: Conversations, most: int) -> None:
        self.conversations = conversations
        self.calls = conversations.stores.calls
        # Made at once, so that it is not taken for memory of the server's.
        self._numbers = list(range(most))
        # How many of them are stored by now.
        self.count = 0
        self._next = most

    async def open_up_to(self, count: int) -> None:
        for number in self._numbers[self.count : count]:
            await self._open(number)
        self.count = count

    async def _open(self, number: int) -> None:
        await self.calls.open(held_call(number, await self.calls.now()))

    async def measured(self, times: int) -> Sample:
        """Return the percentiles of each action, as many pending before each as before."""
        found: Sample = {}
        for name, act in {"list": self._list, "sweep": self._sweep, "decide": self._decide}.items():
            each = [await act() for _ in range(times if name != "sweep" else times // 10 + 1)]
            found |= {f"{name} p50": percentile(each, 0.5), f"{name} p99": percentile(each, 0.99)}
        return found

    async def _decide(self) -> float:
        spot = random.randrange(self.count)  # noqa: S311  # no secret
        call = held_call(self._numbers[spot], 0)
        decision = Decision(call.approval_id, approved=True)

        async def decide() -> None:
            ruling, _ = await self.conversations.ledger.answer(
                decision, owner=call.owner, by="bench"
            )
            assert ruling == "accepted"

        seconds = await _timed(decide)
        # There is no chat to continue; the sweeper must not try.
        await self.calls.deliver([call.approval_id], ReplyId("bench"))
        self._numbers[spot] = self._next
        await self._open(self._next)
        self._next += 1
        return seconds

    async def _list(self) -> float:
        owner = owner_of(random.randrange(self.count))  # noqa: S311  # no secret

        async def list_pending() -> None:
            await self.conversations.approvals(owner, CallState.PENDING)

        return await _timed(list_pending)

    async def _sweep(self) -> float:
        async def sweep() -> None:
            # What the engine's sweeper asks the store after every decision, and every few seconds.
            await self.conversations.stores.turns.lapsed()
            await self.calls.expire()
            await self.calls.lapse_orphans()
            await self.calls.undelivered()
            await self.calls.next_expiry()

        return await _timed(sweep)


async def _timed(act: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await act()
    return time.perf_counter() - began


def _resident() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * float(os.sysconf("SC_PAGE_SIZE"))


async def _measure(variant: str, setting: Setting) -> Sample:
    agent = LlmAgent(name="bench", model=ScriptedModel())
    times, few, many = setting.sized(200, 1), _few(setting), _many(setting)
    async with opened(variant, setting) as database, served(agent, database) as conversations:
        inbox = _Inbox(conversations, many)
        await inbox.open_up_to(few)
        fast = await inbox.measured(times)
        before = _resident()
        if variant == "memory":
            # There is no other process to do it.
            await inbox.open_up_to(many)
        else:
            await measure_beside(FILLER, variant, setting)
            inbox.count = many
        held = await inbox.measured(times)
        after = _resident()
    return {
        **{f"few {name}": value for name, value in fast.items()},
        **{f"many {name}": value for name, value in held.items()},
        "rss before": before,
        "rss per call": (after - before) / (many - few),
    }


def _tell(results: Results) -> str:
    memory = table(
        ["", "server's memory with 100 pending, MiB", "bytes more per held call with 100,000"],
        [
            [_NAMES[variant], figure(found["rss before"], 2**-20), figure(found["rss per call"])]
            for variant, found in results.items()
        ],
    )
    rows = [
        [
            f"{_NAMES[variant]}: {label}",
            *(
                figure(found[f"{size} {action} {share}"], 1e3)
                for share in ("p50", "p99")
                for size in ("few", "many")
            ),
            ratio(found[f"many {action} p50"], found[f"few {action} p50"]),
        ]
        for action, label in _ACTIONS.items()
        for variant, found in results.items()
    ]
    head = ["", "p50 ms, 100", "p50 ms, 100,000", "p99 ms, 100", "p99 ms, 100,000", "p50 ratio"]
    return f"{memory}\n{table(head, rows)}"


FILLER: Final = Benchmark("pending-filler", tuple(_NAMES), _fill, _tell)
PENDING: Final = Benchmark("pending", tuple(_NAMES), _measure, _tell)
