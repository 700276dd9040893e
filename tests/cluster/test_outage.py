"""The database goes away and comes back under many decisions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TypeAlias

import anyio
import anyio.to_thread
import httpx
import pytest
from sqlalchemy import RowMapping, text
from sqlalchemy.ext.asyncio import create_async_engine

from support.cluster import Cluster
from support.cluster_plays import Beat, called, new_name, play
from support.cluster_tabs import Tab
from support.stage import Answered

pytestmark = pytest.mark.anyio

CHATS = 40
CALLS_OF_A_CHAT = 50
CALLS_OF_A_POST = 10
DECISIONS = CHATS * CALLS_OF_A_CHAT
AT_ONCE = 8
Job: TypeAlias = Callable[[], Awaitable[None]]
OUTAGES = (DECISIONS // 4, DECISIONS // 2)
"""After how many decisions the database goes away."""


@dataclass
class Chat:
    """A chat that asks for many payments in one step."""

    name: str
    guarded: bool
    """One more payment is left undecided until the database is back, so nothing is paid before."""
    asked: Answered = field(default_factory=lambda: Answered(0))

    @property
    def payments(self) -> list[str]:
        """Return the payments that are approved while the database comes and goes."""
        return [f"{self.name}-{number}" for number in range(CALLS_OF_A_CHAT)]

    @property
    def beats(self) -> list[Beat]:
        """Return what the model asks for."""
        guard = [f"{self.name}-guard"] if self.guarded else []
        return [called("pay", name) for name in (*self.payments, *guard)]

    @property
    def approvals(self) -> list[str]:
        """Return the approvals of the payments."""
        return self.asked.approvals[:CALLS_OF_A_CHAT]

    def posts(self) -> list[dict[str, object]]:
        """Return the requests that approve the payments in the chat, some at a time."""
        body = self.asked.approving(self.name, *([True] * len(self.beats)))
        [message] = body["messages"]
        parts = message["parts"][:CALLS_OF_A_CHAT]
        return [
            {**body, "messages": [{**message, "parts": parts[first : first + CALLS_OF_A_POST]}]}
            for first in range(0, CALLS_OF_A_CHAT, CALLS_OF_A_POST)
        ]


@dataclass
class Clients:
    """Approve on both servers, and try again on the other while there is no database."""

    cluster: Cluster
    tabs: tuple[Tab, Tab]
    made: int = 0
    """How many approvals were answered."""
    failures: int = 0
    """How many requests failed because the database was away."""
    _progress: anyio.Event = field(default_factory=anyio.Event)
    """Set and replaced whenever more were answered."""
    _up: anyio.Event = field(default_factory=anyio.Event)
    """Set while the database runs."""

    async def outages(self) -> None:
        """Stop and start the database when enough approvals were answered."""
        self._up.set()
        for due in OUTAGES:
            while self.made < due:
                await self._progress.wait()
            self._up = anyio.Event()
            await anyio.to_thread.run_sync(self.cluster.postgres.stop)
            await anyio.to_thread.run_sync(self.cluster.postgres.start)
            self._up.set()

    async def decide(self, approval: str) -> None:
        """Approve away from the chat, under one decision id however often it takes."""

        async def attempt(tab: Tab) -> bool:
            response = await tab.decide(approval, True, decisionId=f"decision-{approval}")
            assert response.status_code in {200, 500, 503}, response.text
            return response.status_code == 200

        await self._until_answered(attempt)
        self._count(1)

    async def post(self, body: dict[str, object]) -> None:
        """Approve in the chat."""

        async def attempt(tab: Tab) -> bool:
            answer = await tab.post(body)
            assert answer.status in {200, 500, 503}, answer.raw
            return answer.status == 200 and "error" not in answer.types

        await self._until_answered(attempt)
        self._count(CALLS_OF_A_POST)

    async def _until_answered(self, attempt: Callable[[Tab], Awaitable[bool]]) -> None:
        for number in range(100):
            try:
                if await attempt(self.tabs[(self.made + number) % 2]):
                    return
            except httpx.TransportError:
                pass
            self.failures += 1
            await self._up.wait()
        raise AssertionError("it was never answered")

    def _count(self, answered: int) -> None:
        self.made += answered
        progress, self._progress = self._progress, anyio.Event()
        progress.set()


async def all_of(jobs: Sequence[Job]) -> None:
    """Do all jobs, some at a time, in their order."""
    at_once = anyio.CapacityLimiter(AT_ONCE)

    async def do(job: Job) -> None:
        async with at_once:
            await job()

    async with anyio.create_task_group() as tasks:
        for job in jobs:
            tasks.start_soon(do, job)


async def asked_chats(tabs: Sequence[Tab]) -> list[Chat]:
    """Return chats whose payments all wait."""
    chats = [Chat(new_name(), guarded=number % 2 == 0) for number in range(CHATS)]

    def asking(number: int, chat: Chat) -> Job:
        async def ask() -> None:
            chat.asked = await tabs[number // 2 % 2].say(
                chat.name, play(chat.name, chat.beats, ["Told."])
            )
            assert len(chat.asked.approvals) == len(chat.beats)

        return ask

    await all_of([asking(number, chat) for number, chat in enumerate(chats)])
    return chats


def answers(chats: Sequence[Chat], clients: Clients) -> list[Job]:
    """Return all approvals, in the chats and away from them, mixed.

    Chats that are answered in the chat are so one after another: their tools run all the while,
    also when the database goes away.
    """
    elsewhere = [
        partial(clients.decide, approval)
        for chat in chats
        if chat.guarded
        for approval in chat.approvals
    ]
    here = [
        partial(clients.post, body) for chat in chats if not chat.guarded for body in chat.posts()
    ]
    random = Random(1)  # noqa: S311  # an order, not a secret
    random.shuffle(elsewhere)
    places = sorted(random.choices(range(len(elsewhere)), k=len(here)))
    mixed: list[Job] = [*elsewhere]
    for place, post in reversed(list(zip(places, here, strict=True))):
        mixed.insert(place, post)
    return mixed


async def rows(cluster: Cluster) -> dict[str, RowMapping]:
    """Return the held calls as the database has them."""
    engine = create_async_engine(cluster.postgres.url().replace("://", "+asyncpg://", 1))
    async with engine.connect() as connection:
        found = (await connection.execute(text("SELECT * FROM adk_stream_call"))).mappings()
        kept = {row["approval_id"]: row for row in found}
    await engine.dispose()
    return kept


async def told(tab: Tab, chat: Chat) -> None:
    with anyio.fail_after(300):
        while not (await tab.resume(chat.name)).text.endswith("Told."):
            pass


def check(row: RowMapping, paid: int, chat: Chat) -> None:
    events = [json.loads(line)["event"] for line in row["trail"].splitlines()]
    assert events.count("approve") == 1
    if chat.guarded:
        assert row["decision_id"] == f"decision-{row['approval_id']}"
        assert (row["state"], paid) == ("done", 1)
    elif row["state"] == "unknown":
        # It ran, or was about to, when the database went away; it is never run again.
        assert paid <= 1
    else:
        assert (row["state"], paid) == ("done", 1)


async def test_each_approval_counts_once_though_the_database_goes_away(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    clients = Clients(cluster, (tab_a, tab_b))
    chats = await asked_chats(clients.tabs)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clients.outages)
        await all_of(answers(chats, clients))
    assert clients.made == DECISIONS
    assert clients.failures > 0

    guards = [chat.asked.approvals[-1] for chat in chats if chat.guarded]
    assert not any(cluster.effects()[chat.payments[0]] for chat in chats if chat.guarded)
    for guard in guards:
        await clients.decide(guard)
    for chat in chats:
        await told(tab_b, chat)
    kept, effects = await rows(cluster), cluster.effects()
    for chat in chats:
        for approval, payment in zip(chat.approvals, chat.payments, strict=True):
            check(kept[approval], effects[payment], chat)
