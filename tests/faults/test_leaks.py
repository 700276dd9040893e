"""Live chats that are opened, held and left, again and again: nothing of them stays behind.

`ADK_STREAM_CYCLES=1000` makes it more than the cycles of every day.
"""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from sqlalchemy import create_engine, text
from websockets.asyncio.client import connect

from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.lifecycle import CallState
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.opening import SqliteFile
from support.holdings import forget_timers, holdings
from support.live import LiveLog, live_chat, watching_lives
from support.socket import socket_url
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

CYCLES = int(os.environ.get("ADK_STREAM_CYCLES", "200"))
AT_ONCE = 8
SETTINGS = dataclasses.replace(
    Settings(), live_leave_seconds=0.01, keep_alive_seconds=5.0, max_turns=100, max_sockets=100
)


_PLAIN, _HEARD, _CUT, _APPROVED = range(4)
_ROWS = (
    ("calls", "SELECT count(*) FROM adk_stream_call"),
    ("turns", "SELECT count(*) FROM adk_stream_turn"),
    ("ends", "SELECT count(*) FROM adk_stream_chunk WHERE data IS NULL"),
    ("requests", "SELECT count(*) FROM adk_stream_request"),
)

_SPARE = {
    "adk_stream_protocol.engine.conversation.Conversations._tries",
    "adk_stream_protocol.engine.conversation._Try",
}
"""When a chat was tried last is known for some minutes."""


@dataclasses.dataclass
class Cycles:
    """Opens, holds and leaves chats, each of a user of its own."""

    stage: Stage
    lives: LiveLog
    chats: list[str] = dataclasses.field(default_factory=list)

    async def run(self, count: int) -> None:
        """Run so many cycles, several at once."""
        names = iter([f"c{len(self.chats) + number}" for number in range(count)])
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(self._run_some, names)

    async def _run_some(self, names: Iterator[str]) -> None:
        for name in names:
            self.chats.append(name)
            await self._cycle(name, int(name[1:]) % 4)

    async def _cycle(self, chat: str, kind: int) -> None:
        user = {"x-user": chat}
        async with live_chat(self.stage.url, chat, **user) as live:
            if kind == _HEARD:
                url = socket_url(self.stage.url, f"{chat}/audio")
                async with connect(url, additional_headers=user, compression=None, proxy=None):
                    asked = await live.say("pay 5")
            else:
                asked = await live.say("pay 5")
            if kind == _CUT:
                live.socket.connection.transport.abort()
        await self.lives.until_ended(chat)
        if kind == _APPROVED:
            path = f"/api/approvals/{asked.approvals[0]}"
            headers = {**user, "connection": "close"}
            await self.stage.http.post(path, json={"approved": True}, headers=headers)
            await self.lives.until_ended(chat, 2)


async def leave_nothing(stage: Stage, cycles: int) -> list[str]:
    """Run cycles; fails if more is held afterwards than before. Returns the chats."""
    with watching_lives() as lives:
        opened = Cycles(stage, lives)
        # What is made once, for the first who asks, is not a leak.
        await opened.run(AT_ONCE)
        await at_rest(stage)
        before = holdings()
        await opened.run(cycles)
        with anyio.move_on_after(20):
            # What was left last may still be ending.
            while grown(before):
                await at_rest(stage)
        assert grown(before) == {}
    return opened.chats


async def at_rest(stage: Stage) -> None:
    """Return when no reply runs."""
    while "adk_stream_running_turns 0\n" not in (await stage.http.get("/metrics")).text:
        pass
    await forget_timers()


def grown(before: Counter[str]) -> dict[str, int]:
    """Return of what there is more than before."""
    more = holdings() - before
    return {name: count for name, count in more.items() if name not in _SPARE}


async def check_rows(stores: Stores, chats: list[str]) -> None:
    """Check that each chat has the one call that was asked for, and no turn that goes on."""
    for chat in chats:
        (call,) = await stores.calls.of_chat(ChatId(chat))
        approved = int(chat[1:]) % 4 == _APPROVED
        assert call.state is (CallState.DONE if approved else CallState.PENDING)
        turn = await stores.turns.latest(ChatId(chat))
        assert turn is not None
        assert not turn.running
    assert await stores.turns.lapsed() == []
    assert await stores.calls.undelivered() == []


async def test_nothing_stays_of_live_chats_that_were_held_and_left() -> None:
    stores = memory_stores()
    async with staged(settings=SETTINGS, stores=stores) as stage:
        chats = await leave_nothing(stage, CYCLES)
        await check_rows(stores, chats)
        assert stage.payments == [5] * (len(chats) // 4)


async def test_nothing_stays_of_live_chats_in_a_database(tmp_path: Path) -> None:
    async with open_database(SqliteFile(tmp_path / "chats.db")) as database:
        stores, services = database.stores, Services(sessions=database.sessions)
        async with staged(settings=SETTINGS, stores=stores, services=services) as stage:
            chats = await leave_nothing(stage, CYCLES // 10)
            await check_rows(stores, chats)
        rows = create_engine(f"sqlite:///{tmp_path / 'chats.db'}")
        with rows.connect() as connection:
            counts = {name: connection.execute(text(query)).scalar() for name, query in _ROWS}
        rows.dispose()
    approved = len(chats) // 4
    assert counts == {
        "calls": len(chats),
        "turns": len(chats),
        "ends": len(chats) + approved,
        "requests": len(chats) + approved,
    }
