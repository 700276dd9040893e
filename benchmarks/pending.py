"""A hundred thousand approvals that wait: the memory they take, and what they slow down."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import asyncpg  # type: ignore[import-untyped]  # ships no types
from google.adk.agents.llm_agent import LlmAgent
from sqlalchemy import insert, select, text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.lifecycle import CallState
from adk_stream_protocol.stores.sql_schema import CALLS
from adk_stream_protocol.translation.instructions import Decision
from benchmarks.memory import resident
from benchmarks.page import figure, table
from benchmarks.ready_calls import PER_USER, held_call, owner_of
from benchmarks.rounds import Benchmark, Results, Sample, percentile
from benchmarks.sampling import measure_beside
from benchmarks.served import opened, served
from benchmarks.setting import Setting
from support.scripted import ScriptedModel

__all__ = ["FILLER", "PENDING"]

_NAMES: Final = {"memory": "memory", "sqlite": "SQLite", "postgres": "PostgreSQL"}
_ACTIONS: Final = {
    "list": f"list one user's {PER_USER}",
    "sweep": "one pass of the sweeper",
    "decide": "decide one",
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

    async def act(self, action: str) -> float:
        """Do one thing and return the seconds it took; as many are pending afterwards."""
        return await {"decide": self._decide, "list": self._list, "sweep": self._sweep}[action]()

    async def _decide(self) -> float:
        spot = random.randrange(self.count)  # noqa: S311  # no secret
        call = held_call(self._numbers[spot], 0)
        decision = Decision(call.approval_id, approved=True)

        async def decide() -> None:
            ruling, _ = await self.conversations.ledger.answer(decision, user=call.owner)
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


async def _another(variant: str, setting: Setting) -> Setting:
    """Return a setting for a second database of the same kind."""
    folder = Path(setting.folder) / "another"
    folder.mkdir()
    if variant != "postgres":
        return replace(setting, folder=str(folder))
    connection = await asyncpg.connect(setting.url)
    await connection.execute(f'CREATE DATABASE "{folder.parent.name}"')
    await connection.close()
    return replace(setting, url=f"{setting.url.rpartition('/')[0]}/{folder.parent.name}")


@asynccontextmanager
async def _inbox(variant: str, setting: Setting) -> AsyncIterator[_Inbox]:
    agent = LlmAgent(name="bench", model=ScriptedModel())
    async with opened(variant, setting) as database, served(agent, database) as conversations:
        inbox = _Inbox(conversations, _many(setting))
        await inbox.open_up_to(_few(setting))
        yield inbox


async def _alternated(inboxes: Mapping[str, _Inbox], times: int) -> Sample:
    """Return the percentiles of each action in each inbox, one action here and one there."""
    found: Sample = {}
    for action in _ACTIONS:
        took: dict[str, list[float]] = {name: [] for name in inboxes}
        for _ in range(times // 10 + 1 if action == "sweep" else times):
            for name, inbox in inboxes.items():
                took[name].append(await inbox.act(action))
        for name, each in took.items():
            found[f"{name} {action} p50"] = percentile(each, 0.5)
            found[f"{name} {action} p99"] = percentile(each, 0.99)
        found[f"{action} ratio"] = found[f"many {action} p50"] / found[f"few {action} p50"]
    return found


async def _measure(variant: str, setting: Setting) -> Sample:
    another = await _another(variant, setting)
    async with _inbox(variant, another) as small, _inbox(variant, setting) as large:
        inboxes = {"few": small, "many": large}
        # What is compiled and cached is not what a held call takes.
        await _alternated(inboxes, setting.sized(20, 1))
        before = resident()
        if variant == "memory":
            # There is no other process to do it.
            await large.open_up_to(_many(setting))
        else:
            await measure_beside(FILLER, variant, setting)
            large.count = _many(setting)
        found = await _alternated(inboxes, setting.sized(200, 1))
        grown = resident() - before
    return {
        **found,
        "rss before": before,
        "rss per call": grown / (_many(setting) - _few(setting)),
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
            f"{figure(found[f'{action} ratio'])} x",
        ]
        for action, label in _ACTIONS.items()
        for variant, found in results.items()
    ]
    head = ["", "p50 ms, 100", "p50 ms, 100,000", "p99 ms, 100", "p99 ms, 100,000", "p50 ratio"]
    return f"{memory}\n{table(head, rows)}"


FILLER: Final = Benchmark("pending-filler", tuple(_NAMES), _fill, _tell)
PENDING: Final = Benchmark("pending", tuple(_NAMES), _measure, _tell)
