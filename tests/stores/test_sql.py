"""What only a store that outlives its process can promise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from adk_stream_protocol.errors import Conflict, StoreLost
from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.ports import Attached, Batch, Began, Busy, Stores, TurnRecord, Verdict
from adk_stream_protocol.stores import sql
from adk_stream_protocol.stores.chunk_rows import ChunkRow, ChunkRows
from adk_stream_protocol.stores.sql import Keeping, postgres_stores, sqlite_stores
from adk_stream_protocol.stores.sql_calls import SqlCalls
from adk_stream_protocol.wire.chunks import (
    ErrorChunk,
    FinishChunk,
    StartChunk,
    TextDeltaChunk,
    ToolOutputAvailableChunk,
)
from adk_stream_protocol.wire.entries import Entry
from adk_stream_protocol.wire.entry_text import entry_text
from support.postgres import PostgresServer

pytestmark = pytest.mark.anyio

CHAT, ALICE, REPLY = ChatId("chat"), UserId("alice"), ReplyId("r1")
TURN = TurnRecord(CHAT, ALICE, REPLY, "k")
FINISH = FinishChunk("stop")
LOST = ErrorChunk("lost")
SAID: list[Entry] = [StartChunk("m"), TextDeltaChunk("1", "Half a ")]


async def approved_call(stores: Stores, *, idempotent: bool = False) -> ApprovalId:
    now = await stores.calls.now()
    call = await stores.calls.open(
        HeldCall(
            approval_id=ApprovalId("a"),
            call_id=CallId("c"),
            owner=ALICE,
            chat_id=CHAT,
            invocation_id=InvocationId("i"),
            tool_name="pay",
            arguments={},
            arguments_hash="",
            created_at=now,
            expires_at=now + 100,
            idempotent=idempotent,
        )
    )
    await stores.calls.decide(call.approval_id, Verdict(approved=True, by="alice"))
    return call.approval_id


@asynccontextmanager
async def engine_of(folder: Path) -> AsyncIterator[AsyncEngine]:
    """Open the file that the tests use, as nobody of ours does."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'x.db'}")
    yield engine
    await engine.dispose()


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect the statements that any engine executes."""
    found: list[str] = []

    def note(_1: object, _2: object, statement: str, *_rest: object) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def test_a_chat_is_taken_with_one_question_and_given_back_at_once(tmp_path: Path) -> None:
    stores = sqlite_stores(str(tmp_path / "x.db"))
    await stores.prepare()
    with statements() as executed:
        await stores.turns.begin(TURN, repeatable=False, most=4)
    assert [each.split()[0] for each in executed] == ["SELECT", "INSERT", "INSERT"]
    with statements() as executed:
        await stores.turns.end(CHAT, REPLY)
    assert [each.split()[0] for each in executed] == ["UPDATE"]
    await stores.close()


async def test_a_reply_whose_process_died_ends_with_an_error(tmp_path: Path) -> None:
    file = str(tmp_path / "x.db")
    dead = sqlite_stores(file)
    async with dead.serving():
        await dead.turns.begin(TURN, repeatable=False)
        await dead.log.open(REPLY)
        await dead.log.append(REPLY, SAID)
    alive = sqlite_stores(file)
    async with alive.serving():
        first = await alive.log.read(REPLY, 0)
        assert first is not None
        assert (list(first.entries), first.ended) == (SAID, False)
        for _ in range(2):
            last = await alive.log.read(REPLY, len(SAID))
            assert last is not None
            assert last.ended
            assert [type(entry) for entry in last.entries] == [ErrorChunk]
        again = await alive.turns.begin(TURN, repeatable=True)
        assert isinstance(again, Attached)
        assert again.turn.lapsed
        assert isinstance(await alive.turns.begin(TURN, repeatable=True, over=REPLY), Began)


async def test_a_reply_given_up_before_its_first_chunk_ends_with_an_error(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create("unsaid")
    writer, reader = postgres_stores(url), postgres_stores(url)
    ends: list[Batch | None] = []
    saw_it_run = anyio.Event()
    waits = reader.wake.wait

    async def wait(topic: str, timeout: float | None) -> None:  # noqa: ASYNC109  # see the port
        saw_it_run.set()
        await waits(topic, timeout)

    monkeypatch.setattr(reader.wake, "wait", wait)

    async def follow(stores: Stores) -> None:
        ends.append(await stores.log.read(REPLY, 0))

    async with writer.serving(), reader.serving():
        await writer.turns.begin(TURN, repeatable=False)
        await writer.log.open(REPLY)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow, writer)
            tasks.start_soon(follow, reader)
            # Until both wait: the one for the writer, the other for the table. A task that waits
            # for the database is blocked, too, so the second has to say so itself.
            await wait_all_tasks_blocked()
            with anyio.fail_after(30):
                await saw_it_run.wait()
            await writer.turns.release(CHAT, REPLY)
            await writer.log.leave(REPLY)
        for end in ends:
            assert end is not None
            assert end.ended
            assert [type(entry) for entry in end.entries] == [ErrorChunk]
        assert await reader.log.read(ReplyId("never"), 0) is None


async def test_a_call_whose_process_died_is_unknown_and_not_run_again(tmp_path: Path) -> None:
    file = str(tmp_path / "x.db")
    dead = sqlite_stores(file)
    async with dead.serving():
        await dead.turns.begin(TURN, repeatable=False)
        approval_id = await approved_call(dead)
        assert await dead.calls.claim(approval_id, REPLY) is not None
    alive = sqlite_stores(file)
    async with alive.serving():
        lapsed = await alive.calls.lapse_orphans()
        assert [call.state for call in lapsed] == [CallState.UNKNOWN]
        assert await alive.calls.claim(approval_id, ReplyId("r2")) is None
        zombie = await dead.calls.finish(approval_id, 1, result={"paid": 5}, error=None)
        assert not zombie
    await dead.close()


async def test_another_process_takes_over_only_when_the_lease_has_lapsed(
    postgres: PostgresServer,
) -> None:
    url = postgres.create("leases")
    slow, quick = postgres_stores(url), postgres_stores(url)
    lapsing = postgres_stores(url, Keeping(lease=-1.0))
    async with slow.serving(), quick.serving(), lapsing.serving():
        await slow.turns.begin(TURN, repeatable=False)
        other = TurnRecord(CHAT, ALICE, ReplyId("r2"), "other")
        assert isinstance(await quick.turns.begin(other, repeatable=False), Busy)
        assert await quick.turns.ask_to_stop(CHAT) is not None
        assert [turn.stopping for turn in await slow.turns.renew([REPLY])] == [True]
        await slow.turns.end(CHAT, REPLY)
        assert isinstance(await lapsing.turns.begin(other, repeatable=False), Began)
        third = TurnRecord(CHAT, ALICE, ReplyId("r3"), "third", origin=other.reply_id)
        busy = await quick.turns.begin(third, repeatable=False)
        assert isinstance(busy, Busy)
        assert busy.turn.lapsed
        assert [turn.reply_id for turn in await quick.turns.lapsed()] == [other.reply_id]
        for over, outcome in ((REPLY, Busy), (other.reply_id, Began), (other.reply_id, Attached)):
            again = await quick.turns.begin(third, repeatable=False, over=over)
            assert isinstance(again, outcome)
        assert await lapsing.turns.renew([other.reply_id, third.reply_id]) == []


async def test_a_reply_is_followed_from_another_process(postgres: PostgresServer) -> None:
    url = postgres.create("followed")
    writer, reader = postgres_stores(url), postgres_stores(url)
    async with writer.serving(), reader.serving():
        await writer.turns.begin(TURN, repeatable=False)
        await writer.log.open(REPLY)
        await writer.log.append(REPLY, SAID)
        followed: list[Entry] = []
        while len(followed) < len(SAID):
            batch = await reader.log.read(REPLY, len(followed))
            assert batch is not None
            assert not batch.ended
            followed += batch.entries
        assert followed == SAID
        await writer.log.end(REPLY)
        last = await reader.log.read(REPLY, len(SAID))
        assert last is not None
        assert (list(last.entries), last.ended) == ([], True)


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    file = str(tmp_path / "x.db")
    stores = sqlite_stores(file)
    await stores.prepare()
    await stores.prepare()
    await stores.close()
    engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE adk_stream_schema SET version = 99"))
    await engine.dispose()
    newer = sqlite_stores(file)
    with pytest.raises(Conflict, match="Upgrade adk-stream-protocol"):
        await newer.prepare()
    await newer.close()


async def test_an_outage_ends_nothing_that_looks_after_the_rows(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "_TIDY", 0.01)
    stores = postgres_stores(postgres.create("outage"))
    async with stores.serving():
        await stores.turns.begin(TURN, repeatable=False)
        await stores.log.open(REPLY)
        postgres.stop()
        try:
            await stores.log.append(REPLY, SAID)
            with pytest.raises(StoreLost):
                await stores.log.end(REPLY)
        finally:
            postgres.start()
        # Written by the batch that comes after the outage.
        batch = await stores.log.read(REPLY, 0)
        assert batch is not None
        assert list(batch.entries) == SAID
        with anyio.fail_after(20):
            last = await stores.log.read(REPLY, len(SAID))
        assert last is not None
        assert (list(last.entries), last.ended) == ([], True)


async def test_a_reply_has_ended_for_others_as_soon_as_its_turn_has(
    postgres: PostgresServer,
) -> None:
    url = postgres.create("ends")
    writer, reader = postgres_stores(url), postgres_stores(url)
    async with writer.serving(), reader.serving():
        await writer.turns.begin(TURN, repeatable=False)
        await writer.log.open(REPLY)
        await writer.log.append(REPLY, SAID)
        await writer.turns.end(CHAT, REPLY)
        # The writer has still to end the log: no reader may take the reply for lost meanwhile.
        assert await reader.log.read(REPLY, 0) == Batch(tuple(SAID), ended=True)
        assert await reader.log.read(REPLY, len(SAID)) == Batch((), ended=True)
        await writer.log.end(REPLY)
        assert await writer.log.read(REPLY, 0) == Batch(tuple(SAID), ended=True)


async def test_what_a_reply_ends_with_is_seen_once_it_is_stored(tmp_path: Path) -> None:
    stores = sqlite_stores(str(tmp_path / "x.db"))
    # Nobody writes batches, so it is stored by its turn's end alone.
    await stores.prepare()
    await stores.turns.begin(TURN, repeatable=False)
    await stores.log.open(REPLY)
    await stores.log.append(REPLY, [*SAID, FINISH])
    last: list[Batch | None] = []

    async def read() -> None:
        last.append(await stores.log.read(REPLY, 0))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await wait_all_tasks_blocked()
        assert last == []
        await stores.turns.end(CHAT, REPLY)
        await wait_all_tasks_blocked()
        assert last == []
        with statements() as executed:
            await stores.log.end(REPLY)
            assert executed == []
            await stores.turns.latest(CHAT)
        assert len(executed) == 1
    assert last == [Batch((*SAID, FINISH), ended=True)]
    await stores.close()
    later = sqlite_stores(str(tmp_path / "x.db"))
    async with later.serving():
        assert await later.log.read(REPLY, 0) == last[0]


async def test_what_a_reply_ends_with_does_not_wait_for_its_turn_for_ever(tmp_path: Path) -> None:
    stores = sqlite_stores(str(tmp_path / "x.db"))
    async with stores.serving():
        await stores.turns.begin(TURN, repeatable=False)
        await stores.log.open(REPLY)
        await stores.log.append(REPLY, [FINISH])
        with anyio.fail_after(10):
            assert await stores.log.read(REPLY, 0) == Batch((FINISH,), ended=False)
        await stores.turns.end(CHAT, REPLY)
        await stores.log.end(REPLY)
        assert await stores.log.read(REPLY, 1) == Batch((), ended=True)


async def test_an_end_that_could_not_be_written_is_one_when_the_turns_is(tmp_path: Path) -> None:
    stores = sqlite_stores(str(tmp_path / "x.db"))
    await stores.prepare()
    await stores.turns.begin(TURN, repeatable=False)
    await stores.log.open(REPLY)
    await stores.log.append(REPLY, SAID)
    ends: list[Batch | None] = []

    async def read() -> None:
        ends.append(await stores.log.read(REPLY, len(SAID)))

    def fail(*_: object) -> None:
        raise SQLAlchemyError

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            event.listen(Engine, "before_cursor_execute", fail)
            try:
                with pytest.raises(SQLAlchemyError):
                    await stores.log.end(REPLY)
            finally:
                event.remove(Engine, "before_cursor_execute", fail)
            await wait_all_tasks_blocked()
            assert ends == []
            await stores.turns.end(CHAT, REPLY)
    assert ends == [Batch((), ended=True)]
    await stores.close()


async def test_what_was_shown_of_a_reply_that_is_left_is_stored(tmp_path: Path) -> None:
    writer, reader = (sqlite_stores(str(tmp_path / "x.db")) for _ in range(2))
    # Nobody writes batches.
    await writer.prepare()
    await writer.turns.begin(TURN, repeatable=False)
    await writer.log.open(REPLY)
    await writer.log.append(REPLY, [*SAID, FINISH])
    await writer.log.leave(REPLY)
    assert await reader.log.read(REPLY, 0) == Batch((*SAID, FINISH), ended=False)
    await writer.close()
    await reader.close()


async def test_nothing_is_read_behind_an_end_that_a_reader_gave(tmp_path: Path) -> None:
    writer, reader = (sqlite_stores(str(tmp_path / "x.db")) for _ in range(2))
    await writer.prepare()
    await writer.turns.begin(TURN, repeatable=False)
    await writer.log.open(REPLY)
    await writer.log.append(REPLY, SAID)
    # The lease lapses; somebody who saw nothing yet ends the reply, and the writer is late.
    await writer.turns.release(CHAT, REPLY)
    async with engine_of(tmp_path) as engine, engine.begin() as connection:
        await ChunkRows(engine).write(connection, [(REPLY, 0, entry_text(LOST)), (REPLY, 1, None)])
    await writer.log.append(REPLY, [*SAID, FINISH])
    await writer.log.leave(REPLY)
    assert await reader.log.read(REPLY, 0) == Batch((LOST,), ended=True)
    await writer.close()
    await reader.close()


async def test_a_flush_that_ends_after_the_turn_takes_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores = sqlite_stores(str(tmp_path / "x.db"))
    await stores.prepare()
    await stores.turns.begin(TURN, repeatable=False)
    await stores.log.open(REPLY)
    await stores.log.append(REPLY, SAID[:1])
    writes, may_return = ChunkRows.write, anyio.Event()

    async def slow(self: ChunkRows, connection: AsyncConnection, rows: Sequence[ChunkRow]) -> None:
        await writes(self, connection, rows)
        if rows[-1][2] is not None:
            await may_return.wait()

    monkeypatch.setattr(ChunkRows, "write", slow)
    async with anyio.create_task_group() as tasks:
        # What a person acts on is flushed at once.
        tasks.start_soon(stores.log.append, REPLY, [ToolOutputAvailableChunk("c", 1)])
        await wait_all_tasks_blocked()
        # On SQLite one connection writes at a time; it has committed by itself.
        await stores.log.append(REPLY, [FINISH])
        await stores.turns.end(CHAT, REPLY)
        may_return.set()
    with statements() as executed:
        await stores.log.end(REPLY)
    assert executed == []
    last = await stores.log.read(REPLY, 0)
    assert last == Batch((SAID[0], ToolOutputAvailableChunk("c", 1), FINISH), ended=True)
    await stores.close()


async def test_a_lease_that_lapses_between_two_looks_makes_no_idempotent_call_unknown(
    tmp_path: Path,
) -> None:
    stores = sqlite_stores(str(tmp_path / "x.db"))
    assert isinstance(stores.calls, SqlCalls)
    looks: list[str] = []

    def lapse(connection: Connection, _cursor: object, statement: str, *_more: object) -> None:
        if statement.startswith("UPDATE adk_stream_call") and not looks:
            looks.append(statement)
            connection.exec_driver_sql("UPDATE adk_stream_turn SET lease_until = 0")

    async with stores.serving():
        await stores.turns.begin(TURN, repeatable=False)
        approval_id = await approved_call(stores, idempotent=True)
        assert await stores.calls.claim(approval_id, REPLY) is not None
        event.listen(stores.calls._engine.sync_engine, "after_cursor_execute", lapse)
        await stores.calls.lapse_orphans()
        assert len(looks) == 1
        (found,) = await stores.calls.lapse_orphans()
        assert found.state is CallState.APPROVED
