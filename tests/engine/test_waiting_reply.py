"""The reply to a request that waits: which one it turns out to be, wherever the request is."""

from __future__ import annotations

import dataclasses

import anyio
import pytest

from adk_stream_protocol.engine.reply import LoggedReply, Reply, WaitingReply
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import LOST, Began, Queued, Stores, TurnRecord, WaitingRequest
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.wire.chunks import ErrorChunk, StartChunk, TextDeltaChunk
from adk_stream_protocol.wire.entries import Entry, OwnBegins
from adk_stream_protocol.wire.requests import BusyPolicy

pytestmark = pytest.mark.anyio

CHAT, ANN = ChatId("chat"), UserId("ann")
R1, R2, R3 = ReplyId("reply-1"), ReplyId("reply-2"), ReplyId("reply-3")
FIRST = TurnRecord(CHAT, ANN, R1, "say:1")
OWN = TurnRecord(CHAT, ANN, R2, "say:2")


def waiting(policy: BusyPolicy = "queue") -> WaitingRequest:
    return WaitingRequest(CHAT, ANN, R2, "say:2", request={}, policy=policy)


@pytest.fixture
async def stores() -> Stores:
    """Stores with a chat in which a turn runs."""
    stores = memory_stores()
    await begin(stores, FIRST)
    return stores


async def begin(stores: Stores, turn: TurnRecord, **how: object) -> None:
    """Take the chat for a turn, and begin its reply."""
    assert isinstance(await stores.turns.begin(turn, repeatable=True, **how), Began)  # type: ignore[arg-type]  # its own
    await stores.log.open(turn.reply_id)


async def write(stores: Stores, reply_id: ReplyId, *entries: Entry) -> None:
    """Write a whole reply."""
    await stores.log.append(reply_id, [OwnBegins(), *entries])
    await stores.log.end(reply_id)


async def asked(stores: Stores, policy: BusyPolicy = "queue") -> WaitingReply:
    """Make a request that waits, and return its reply."""
    request = waiting(policy)
    assert isinstance(await stores.turns.begin(OWN, repeatable=True, request=request), Queued)
    return WaitingReply(request, stores)


async def read(reply: Reply) -> list[Entry]:
    """Return everything that a reader gets."""
    entries: list[Entry] = []
    with anyio.fail_after(60):
        while True:
            batch = await reply.next()
            entries += batch.entries
            if batch.ended:
                return entries


async def test_a_reader_gets_the_reply_once_the_request_has_its_turn(stores: Stores) -> None:
    reply, got = await asked(stores), []

    async def listen() -> None:
        got.extend(await read(reply))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        assert got == []
        await stores.turns.end(CHAT, R1)
        await begin(stores, OWN, waited=True)
        await write(stores, R2, StartChunk("a2"), TextDeltaChunk("t", "Hello."))
    assert got == [StartChunk("a2"), TextDeltaChunk("t", "Hello.")]


async def test_a_reader_that_comes_after_the_end_gets_it_too(stores: Stores) -> None:
    reply = await asked(stores)
    await stores.turns.end(CHAT, R1)
    await begin(stores, OWN, waited=True)
    await write(stores, R2, StartChunk("a2"))
    await stores.turns.end(CHAT, R2, carried=R2)
    assert await read(reply) == [StartChunk("a2")]


async def test_whoever_waits_where_no_turns_begin_is_told_that_the_message_is_kept(
    stores: Stores,
) -> None:
    reply = await asked(stores)
    reply.is_leaving = lambda: True
    (told,) = await read(reply)
    assert isinstance(told, ErrorChunk)
    assert "Your message is kept" in told.error_text


async def test_whoever_waits_for_a_chat_that_is_deleted_is_told(stores: Stores) -> None:
    reply = await asked(stores)
    await stores.turns.forget(CHAT)
    (told,) = await read(reply)
    assert isinstance(told, ErrorChunk)
    assert "its chat was deleted" in told.error_text


async def test_why_a_request_could_not_be_carried_out_is_told(stores: Stores) -> None:
    reply = await asked(stores)
    await stores.turns.end(CHAT, R1)
    await begin(stores, OWN, waited=True)
    await stores.log.append(R2, [ErrorChunk("No.")])
    await stores.turns.restore(OWN, FIRST)
    await stores.log.end(R2)
    assert await read(reply) == [ErrorChunk("No.")]


@pytest.mark.parametrize("left", [False, True], ids=["died", "handed over"])
async def test_a_turn_that_was_cut_off_before_it_wrote_anything_is_not_the_last_word(
    stores: Stores, left: bool
) -> None:
    reply, got = await asked(stores), []
    await stores.turns.end(CHAT, R1)
    assert isinstance(await stores.turns.begin(OWN, repeatable=True, waited=True), Began)
    if left:
        await stores.log.open(R2)
        await stores.log.leave(R2)
    await stores.turns.release(CHAT, R2)

    async def listen() -> None:
        got.extend(await read(reply))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        assert got == []
        recovery = dataclasses.replace(OWN, reply_id=R3, origin=R2, recoveries=1)
        await begin(stores, recovery, over=R2)
        await write(stores, R3, StartChunk("a2"))
    assert got == [StartChunk("a2")]


async def test_a_turn_that_was_cut_off_after_it_had_begun_is_told_as_lost(stores: Stores) -> None:
    reply = await asked(stores)
    await stores.turns.end(CHAT, R1)
    await begin(stores, OWN, waited=True)
    await stores.log.append(R2, [OwnBegins(), StartChunk("a2")])
    await stores.log.leave(R2)
    await stores.turns.release(CHAT, R2)
    assert await read(reply) == [StartChunk("a2"), LOST]


async def test_a_reply_that_broke_before_it_began_is_told_as_lost(stores: Stores) -> None:
    await stores.log.leave(R1)
    assert await read(LoggedReply(CHAT, stores.log, R1, own_only=True)) == [LOST]


# Steering


@pytest.mark.parametrize("recovered", [False, True])
async def test_whoever_steered_a_turn_gets_the_reply_that_answers(
    stores: Stores, recovered: bool
) -> None:
    reply = await asked(stores, "steer")
    running = R1
    if recovered:
        # Under the name of the first reply, which nobody will end.
        await stores.turns.release(CHAT, R1)
        running = R3
        await begin(stores, dataclasses.replace(FIRST, reply_id=R3, origin=R1), over=R1)
    assert await stores.waiting.steer(CHAT, running, carries=R1)
    await write(stores, running, StartChunk("a1"), TextDeltaChunk("t", "Both."))
    await stores.turns.end(CHAT, running, carried=R1, heard=[R2])
    assert await read(reply) == [StartChunk("a1"), TextDeltaChunk("t", "Both.")]


async def test_whoever_shows_the_reply_that_was_steered_only_learns_that_it_was(
    stores: Stores,
) -> None:
    reply = await asked(stores, "steer")
    reply.has = frozenset({"a1"})
    await stores.waiting.steer(CHAT, R1, carries=R1)
    await stores.log.append(R1, [OwnBegins(), StartChunk("a1")])
    first = await reply.next()
    assert not first.ended
    assert [str(entry) for entry in first.entries if "adk-steered" in str(entry)]
    await stores.log.append(R1, [TextDeltaChunk("t", "Both.")])
    await stores.log.end(R1)
    assert "Both." not in str(await read(reply))
