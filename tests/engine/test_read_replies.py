from __future__ import annotations

import logging
from collections.abc import Collection

import anyio
import pytest

from adk_stream_protocol.engine.read_replies import ReadReplies
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import TurnRecord
from adk_stream_protocol.stores.memory import MemoryTurns

pytestmark = pytest.mark.anyio


class Store(MemoryTurns):
    """Notes what it was told, and may be down."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False
        self.noted: list[list[str]] = []
        self.heard = anyio.Event()

    async def note_read(self, turns: Collection[TurnRecord]) -> None:
        self.heard.set()
        if self.is_down:
            raise ConnectionError("SECRET")
        self.noted.append([turn.reply_id for turn in turns])
        await super().note_read(turns)


def turn(number: int) -> TurnRecord:
    return TurnRecord(ChatId(f"c{number}"), UserId("ann"), ReplyId(f"r{number}"), "bare:u1")


async def test_replies_are_stored_together_and_once() -> None:
    store = Store()
    read = ReadReplies(store)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read.keep)
        for number in (1, 2, 1):
            read.note(turn(number))
            assert turn(number) in read
        with anyio.fail_after(60):
            await store.heard.wait()
        tasks.cancel_scope.cancel()
    assert store.noted == [["r1", "r2"]]
    await read.store()
    assert len(store.noted) == 1
    assert turn(1) not in read


async def test_what_cannot_be_stored_is_known_until_it_can(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Store()
    store.is_down = True
    read = ReadReplies(store)
    read.note(turn(1))
    with caplog.at_level(logging.ERROR):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read.keep)
            with anyio.fail_after(60):
                await store.heard.wait()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert turn(1) in read
    assert "read replies not stored" in caplog.text
    assert "SECRET" not in caplog.text
    store.is_down = False
    await read.store()
    assert (store.noted, turn(1) in read) == ([["r1"]], False)


async def test_of_too_many_the_oldest_are_forgotten() -> None:
    read = ReadReplies(Store())
    for number in range(1001):
        read.note(turn(number))
    assert turn(0) not in read
    assert turn(1) in read
    assert turn(1000) in read


async def test_what_is_read_while_others_are_stored_is_stored_next() -> None:
    class Busy(Store):
        async def note_read(self, turns: Collection[TurnRecord]) -> None:
            if not self.noted:
                read.note(turn(2))
            await super().note_read(turns)

    store = Busy()
    read = ReadReplies(store)
    read.note(turn(1))
    await read.store()
    assert (turn(1) in read, turn(2) in read) == (False, True)
    await read.store()
    assert store.noted == [["r1"], ["r2"]]
