"""Rows of a reply that several write at once, or that are written again: nothing is lost."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import AsyncConnection

from adk_stream_protocol.errors import StoreLost
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import LOST, Batch, Stores, TurnRecord
from adk_stream_protocol.stores.chunk_rows import ChunkRow, ChunkRows, Stored
from adk_stream_protocol.stores.sql import postgres_stores, sqlite_stores
from adk_stream_protocol.stores.sql_log import SqlLog
from adk_stream_protocol.wire.chunks import FinishChunk, TextDeltaChunk, ToolOutputAvailableChunk
from adk_stream_protocol.wire.entries import Entry
from support.postgres import PostgresServer

pytestmark = pytest.mark.anyio

Another = Callable[[], Stores]
"""Opens stores on the same database, as another process would."""

Moment = Literal["before", "after"]

CHAT, REPLY = ChatId("chat"), ReplyId("r1")
TURN = TurnRecord(CHAT, UserId("alice"), REPLY, "k")
FINISH = FinishChunk("stop")
PAID = ToolOutputAvailableChunk("c", 1)
"""Is in the table before `append` returns, and so is all before it."""


@pytest.fixture(params=["sqlite", "postgres"])
async def another(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Another]:
    opened: list[Stores] = []
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.create(f"log-{uuid.uuid4().hex}")

    def open_another() -> Stores:
        sqlite = request.param == "sqlite"
        opened.append(sqlite_stores(str(tmp_path / "x.db")) if sqlite else postgres_stores(url))
        return opened[-1]

    yield open_another
    for stores in opened:
        await stores.close()


def words(first: int, behind: int) -> list[Entry]:
    return [TextDeltaChunk("1", f"word {number}\n") for number in range(first, behind)]


async def begin(stores: Stores) -> Stores:
    """Begin the reply. Nobody writes batches, so that a test says when a row is cut."""
    await stores.prepare()
    await stores.turns.begin(TURN, repeatable=False)
    await stores.log.open(REPLY)
    return stores


async def check_tails(stores: Stores, said: Sequence[Entry], *, ended: bool) -> None:
    """Read from every cursor, and from behind the end."""
    with anyio.fail_after(10):
        for after in range(len(said) + 2 * ended):
            assert await stores.log.read(REPLY, after) == Batch(tuple(said[after:]), ended=ended)


def once(
    monkeypatch: pytest.MonkeyPatch, moment: Moment, do: Callable[[], Awaitable[object]]
) -> None:
    """Do something around a reader's look at how far a lost reply is stored, before it ends it."""
    looks, waiting = ChunkRows.stored, [do]

    async def stored(self: ChunkRows, connection: AsyncConnection, reply_id: ReplyId) -> Stored:
        may_do = waiting.pop() if waiting else None
        if may_do is not None and moment == "before":
            await may_do()
        found = await looks(self, connection, reply_id)
        if may_do is not None and moment == "after":
            await may_do()
        return found

    monkeypatch.setattr(ChunkRows, "stored", stored)


async def test_a_reply_is_read_elsewhere_from_every_cursor(another: Another) -> None:
    writer, reader = await begin(another()), another()
    said = [*words(0, 4), PAID, *words(4, 6), PAID, *words(6, 9), FINISH]
    await writer.log.append(REPLY, said[:5])
    await writer.log.append(REPLY, said[5:8])
    await check_tails(reader, said[:8], ended=False)
    await writer.log.append(REPLY, said[8:])
    await writer.turns.end(CHAT, REPLY)
    await writer.log.end(REPLY)
    for stores in (writer, reader):
        await check_tails(stores, said, ended=True)


async def test_a_batch_is_one_row(another: Another, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    writes = ChunkRows.write

    async def write(self: ChunkRows, connection: AsyncConnection, rows: Sequence[ChunkRow]) -> int:
        given.extend(seq for _, seq, _ in rows)
        return await writes(self, connection, rows)

    monkeypatch.setattr(ChunkRows, "write", write)
    writer = await begin(another())
    await writer.log.append(REPLY, words(0, 100))
    await writer.log.append(REPLY, [PAID])
    await writer.log.append(REPLY, words(100, 200))
    await writer.turns.end(CHAT, REPLY)
    await writer.log.end(REPLY)
    assert given == [0, 101, 201]


async def test_entries_added_after_an_answer_was_lost_are_stored(
    another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = await begin(another()), another()
    said = [*words(0, 3), PAID, *words(3, 5), PAID, *words(5, 7), FINISH]
    writes = ChunkRows.write

    async def unanswered(
        self: ChunkRows, connection: AsyncConnection, rows: Sequence[ChunkRow]
    ) -> int:
        # It is committed by itself.
        await writes(self, connection, rows)
        raise StoreLost

    def unnoted(*_: object) -> None:
        raise StoreLost

    with monkeypatch.context() as lossy:
        lossy.setattr(ChunkRows, "write", unanswered)
        for part in (said[:4], said[4:7]):
            with pytest.raises(StoreLost):
                await writer.log.append(REPLY, part)
    await writer.log.append(REPLY, said[7:])
    with monkeypatch.context() as lossy:
        lossy.setattr(SqlLog, "note_end", unnoted)
        with pytest.raises(StoreLost):
            await writer.turns.end(CHAT, REPLY)
    await check_tails(reader, said, ended=True)
    await writer.log.end(REPLY)
    for stores in (writer, reader):
        await check_tails(stores, said, ended=True)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_turn_that_ends_while_a_batch_is_written_loses_nothing(
    another: Another, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    writer, reader = await begin(another()), another()
    said = [*words(0, 3), PAID, *words(3, 5), FINISH]
    writes, on_its_way, may_go = ChunkRows.write, anyio.Event(), anyio.Event()

    async def pause() -> None:
        on_its_way.set()
        await may_go.wait()

    async def slow(self: ChunkRows, connection: AsyncConnection, rows: Sequence[ChunkRow]) -> int:
        is_batch = rows[-1][2] is not None
        if is_batch and moment == "before":
            await pause()
        written = await writes(self, connection, rows)
        if is_batch and moment == "after":
            await pause()
        return written

    monkeypatch.setattr(ChunkRows, "write", slow)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.log.append, REPLY, said[:4])
            await on_its_way.wait()
            await writer.log.append(REPLY, said[4:])
            await writer.turns.end(CHAT, REPLY)
            await check_tails(reader, said, ended=True)
            may_go.set()
    await writer.log.end(REPLY)
    for stores in (writer, reader):
        await check_tails(stores, said, ended=True)


async def test_a_late_writer_changes_no_end_that_a_reader_gave(another: Another) -> None:
    writer, reader = await begin(another()), another()
    said = [*words(0, 3), PAID]
    await writer.log.append(REPLY, said)
    await writer.log.append(REPLY, words(3, 5))
    await writer.turns.release(CHAT, REPLY)
    assert await reader.log.read(REPLY, 4) == Batch((LOST,), ended=True)
    await writer.log.append(REPLY, [*words(5, 7), PAID])
    await check_tails(reader, [*said, LOST], ended=True)
    await writer.log.append(REPLY, [*words(7, 9), FINISH])
    await writer.turns.end(CHAT, REPLY)
    await writer.log.end(REPLY)
    await check_tails(reader, [*said, LOST], ended=True)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_reader_that_a_late_writer_forestalls_reads_on(
    another: Another, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    writer, reader = await begin(another()), another()
    said = [*words(0, 3), PAID, *words(3, 5), PAID]
    await writer.log.append(REPLY, said[:4])
    await writer.turns.release(CHAT, REPLY)

    async def write_late() -> None:
        await writer.log.append(REPLY, said[4:])

    once(monkeypatch, moment, write_late)
    assert await reader.log.read(REPLY, 4) == Batch(tuple(said[4:]), ended=False)
    await check_tails(another(), said, ended=False)
    assert await reader.log.read(REPLY, 7) == Batch((LOST,), ended=True)
    await check_tails(another(), [*said, LOST], ended=True)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_readers_that_end_a_reply_at_once_tell_the_same(
    another: Another, monkeypatch: pytest.MonkeyPatch, moment: Moment
) -> None:
    writer, reader, other = await begin(another()), another(), another()
    await writer.log.append(REPLY, [PAID])
    await writer.turns.release(CHAT, REPLY)
    first: list[Batch | None] = []

    async def end_elsewhere() -> None:
        first.append(await other.log.read(REPLY, 1))

    once(monkeypatch, moment, end_elsewhere)
    assert await reader.log.read(REPLY, 1) == Batch((LOST,), ended=True)
    assert first == [Batch((LOST,), ended=True)]


async def test_a_reply_ends_behind_what_is_stored_of_it(
    another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = await begin(another()), another()

    async def refuse(*_: object) -> int:
        raise StoreLost

    await writer.log.append(REPLY, [PAID])
    await writer.log.append(REPLY, words(0, 3))
    assert await writer.log.read(REPLY, 1) == Batch(tuple(words(0, 3)), ended=False)
    with monkeypatch.context() as down:
        down.setattr(ChunkRows, "write", refuse)
        await writer.log.leave(REPLY)
    await writer.turns.release(CHAT, REPLY)
    # It was fed from memory, and has seen more than is stored.
    assert await writer.log.read(REPLY, 4) == Batch((LOST,), ended=True)
    await check_tails(reader, [PAID, LOST], ended=True)


Outcome = Literal["written", "unanswered", "refused"]
_BATCHES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["written", "unanswered", "refused"])), max_size=6
)


@settings(max_examples=30, deadline=None)
@given(batches=_BATCHES)
async def test_whatever_becomes_of_batches_a_reply_is_read_from_every_cursor(
    batches: list[tuple[int, Outcome]],
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patching:
        writer, reader = (sqlite_stores(str(Path(folder) / "x.db")) for _ in range(2))
        await begin(writer)
        writes, outcomes = ChunkRows.write, [outcome for _, outcome in batches]

        async def write(
            self: ChunkRows, connection: AsyncConnection, rows: Sequence[ChunkRow]
        ) -> int:
            outcome = outcomes.pop(0) if outcomes else "written"
            written = 0 if outcome == "refused" else await writes(self, connection, rows)
            if outcome == "written":
                return written
            raise StoreLost

        patching.setattr(ChunkRows, "write", write)
        said: list[Entry] = []
        for count, _ in batches:
            more = [*words(len(said), len(said) + count), PAID]
            said += more
            try:
                await writer.log.append(REPLY, more)
            except StoreLost:
                continue
            await check_tails(reader, said, ended=False)
        await writer.turns.end(CHAT, REPLY)
        await writer.log.end(REPLY)
        await check_tails(reader, said, ended=True)
        for stores in (writer, reader):
            await stores.close()
