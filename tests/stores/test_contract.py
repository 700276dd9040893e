"""What every store promises, one test for all: memory, SQLite and a real PostgreSQL."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import anyio
import pytest

from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.ports import Attached, Batch, Began, Busy, Stores, TurnRecord, Verdict
from adk_stream_protocol.wire.chunks import (
    FinishChunk,
    StartChunk,
    TextDeltaChunk,
    ToolOutputAvailableChunk,
)
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry, OwnBegins

pytestmark = pytest.mark.anyio

CHAT, OTHER = ChatId("chat"), ChatId("other")
ALICE, BOB = UserId("alice"), UserId("bob")
YES = Verdict(approved=True, by="alice")
NO = Verdict(approved=False, by="alice", reason="too much")


async def held(stores: Stores, name: str = "a1", **fields: object) -> HeldCall:
    now = await stores.calls.now()
    call = HeldCall(
        approval_id=ApprovalId(name),
        call_id=CallId(f"call-{name}"),
        owner=ALICE,
        chat_id=CHAT,
        invocation_id=InvocationId("i1"),
        tool_name="pay",
        arguments={"amount": 5, "to": "花子"},
        arguments_hash="hash",
        created_at=now,
        expires_at=now + 100,
        request_id=name,
        payload={"n": 1},
        ui={"icon": "cash"},
    )
    return await stores.calls.open(dataclasses.replace(call, **fields))  # type: ignore[arg-type]  # by name


def turn(reply: str, key: str = "k", *, chat: ChatId = CHAT, owner: UserId = ALICE) -> TurnRecord:
    return TurnRecord(chat, owner, ReplyId(reply), key)


# Held calls


async def test_a_call_is_stored_as_it_was_opened(stores: Stores) -> None:
    call = await held(stores)
    assert await stores.calls.get(call.approval_id) == call
    assert list(await stores.calls.of_chat(CHAT)) == [call]
    assert list(await stores.calls.of_owner(ALICE, CallState.PENDING)) == [call]
    assert list(await stores.calls.of_owner(ALICE, CallState.DONE)) == []
    assert list(await stores.calls.of_owner(BOB)) == []
    assert await stores.calls.latest(CHAT, call.call_id) == call
    assert await stores.calls.latest(OTHER, call.call_id) is None
    assert await stores.calls.get(ApprovalId("nothing")) is None


async def test_opening_twice_keeps_the_first_row(stores: Stores) -> None:
    call = await held(stores)
    again = await held(stores, arguments={"amount": 1_000_000})
    assert again == call


async def test_a_decision_counts_once(stores: Stores) -> None:
    call = await held(stores)
    ruling, decided = await stores.calls.decide(call.approval_id, NO)
    assert (ruling, decided.state, decided.reason) == ("accepted", CallState.DENIED, "too much")
    assert decided.decided_by == "alice"
    assert decided.decided_at is not None
    assert (await stores.calls.decide(call.approval_id, NO))[0] == "repeat"
    ruling, real = await stores.calls.decide(call.approval_id, YES)
    assert (ruling, real) == ("conflict", decided)


async def test_the_same_decision_id_is_a_repeat_whatever_it_says(stores: Stores) -> None:
    call = await held(stores)
    await stores.calls.decide(call.approval_id, dataclasses.replace(YES, decision_id="d"))
    other = dataclasses.replace(NO, decision_id="d")
    ruling, real = await stores.calls.decide(call.approval_id, other)
    assert (ruling, real.state) == ("repeat", CallState.APPROVED)


async def test_of_many_deciders_at_once_one_is_accepted(stores: Stores) -> None:
    call = await held(stores)
    rulings: list[str] = []

    async def decide(number: int) -> None:
        verdict = Verdict(approved=number % 2 == 0, by=f"u{number}", decision_id=str(number))
        rulings.append((await stores.calls.decide(call.approval_id, verdict))[0])

    async with anyio.create_task_group() as deciders:
        for number in range(10):
            deciders.start_soon(decide, number)
    assert rulings.count("accepted") == 1


async def test_a_decision_after_the_expiry_is_told_that_it_expired(stores: Stores) -> None:
    call = await held(stores, expires_at=1.0)
    ruling, real = await stores.calls.decide(call.approval_id, YES)
    assert (ruling, real.state) == ("conflict", CallState.EXPIRED)


async def test_a_call_without_approval_cannot_be_decided(stores: Stores) -> None:
    call = await held(stores, approval=False, state=CallState.APPROVED, kind=CallKind.BROWSER)
    assert (await stores.calls.decide(call.approval_id, NO))[0] == "conflict"


async def test_an_output_counts_once_and_only_for_a_client_run_call(stores: Stores) -> None:
    browser = await held(stores, kind=CallKind.BROWSER)
    give = stores.calls.give
    assert (await give(browser.approval_id, output={"a": 1}, error=None))[0] == "conflict"
    await stores.calls.decide(browser.approval_id, YES)
    ruling, done = await give(browser.approval_id, output={"a": 1}, error=None)
    assert (ruling, done.state, done.result) == ("accepted", CallState.DONE, {"a": 1})
    assert (await give(browser.approval_id, output={"a": 1}, error=None))[0] == "repeat"
    assert (await give(browser.approval_id, output={"a": 2}, error=None))[0] == "conflict"
    tool = await held(stores, "a2")
    await stores.calls.decide(tool.approval_id, YES)
    assert (await give(tool.approval_id, output=1, error=None))[0] == "conflict"


async def test_a_failed_output_is_recorded_as_such(stores: Stores) -> None:
    call = await held(stores, kind=CallKind.BROWSER, approval=False, state=CallState.APPROVED)
    _, failed = await stores.calls.give(call.approval_id, output=None, error="no camera")
    assert (failed.state, failed.error) == (CallState.FAILED, "no camera")


async def test_an_approved_call_is_claimed_once(stores: Stores) -> None:
    call = await held(stores)
    assert await stores.calls.claim(call.approval_id, "r1") is None
    await stores.calls.decide(call.approval_id, YES)
    claims: list[HeldCall | None] = []

    async def claim() -> None:
        claims.append(await stores.calls.claim(call.approval_id, "r1"))

    async with anyio.create_task_group() as workers:
        for _ in range(5):
            workers.start_soon(claim)
    won = [claimed for claimed in claims if claimed is not None]
    assert [(claimed.state, claimed.fence) for claimed in won] == [(CallState.RUNNING, 1)]


async def test_only_the_current_fence_finishes(stores: Stores) -> None:
    call = await held(stores)
    await stores.calls.decide(call.approval_id, YES)
    await stores.calls.claim(call.approval_id, "r1")
    finish = stores.calls.finish
    assert not await finish(call.approval_id, 0, result={}, error=None)
    assert await finish(call.approval_id, 1, result={"paid": 5}, error=None)
    assert not await finish(call.approval_id, 1, result={"paid": 6}, error=None)
    done = await stores.calls.get(call.approval_id)
    assert done is not None
    assert (done.state, done.result, done.holder) == (CallState.DONE, {"paid": 5}, None)


async def test_a_claim_can_fail_or_lapse(stores: Stores) -> None:
    for name, ended in (("a1", CallState.FAILED), ("a2", CallState.UNKNOWN)):
        call = await held(stores, name)
        await stores.calls.decide(call.approval_id, YES)
        await stores.calls.claim(call.approval_id, "r1")
        if ended is CallState.FAILED:
            assert await stores.calls.finish(call.approval_id, 1, result=None, error="broke")
        else:
            assert await stores.calls.lapse(call.approval_id, 1)
            assert not await stores.calls.lapse(call.approval_id, 1)
        found = await stores.calls.get(call.approval_id)
        assert found is not None
        assert found.state is ended
        assert await stores.calls.claim(call.approval_id, "r2") is None


async def test_cancelling_spares_what_runs_and_what_is_settled(stores: Stores) -> None:
    await held(stores, "pending")
    await held(stores, "elsewhere", chat_id=OTHER)
    await held(stores, "later", invocation_id=InvocationId("i2"))
    for name in ("approved", "running", "denied"):
        call = await held(stores, name)
        await stores.calls.decide(call.approval_id, NO if name == "denied" else YES)
        if name == "running":
            await stores.calls.claim(call.approval_id, "r1")
    cancelled = await stores.calls.cancel(CHAT, [InvocationId("i1")])
    assert {call.approval_id for call in cancelled} == {"pending", "approved"}
    assert {call.state for call in cancelled} == {CallState.CANCELLED}
    rest = await stores.calls.cancel(CHAT)
    assert [call.approval_id for call in rest] == ["later"]
    assert await stores.calls.cancel(CHAT, []) == []


async def test_what_is_due_expires_once(stores: Stores) -> None:
    await held(stores, "due", expires_at=1.0)
    browser = await held(
        stores, "browser", expires_at=2.0, kind=CallKind.BROWSER, approval=False,
        state=CallState.APPROVED,
    )  # fmt: skip
    later = await held(stores, "later")
    assert await stores.calls.next_expiry() == 1.0
    expired = await stores.calls.expire()
    assert {call.approval_id for call in expired} == {"due", browser.approval_id}
    assert await stores.calls.expire() == []
    assert await stores.calls.next_expiry() == pytest.approx(later.expires_at)
    await stores.calls.cancel(CHAT)
    assert await stores.calls.next_expiry() is None


async def test_a_delivered_answer_names_its_reply(stores: Stores) -> None:
    call = await held(stores)
    await stores.calls.deliver([], ReplyId("r0"))
    await stores.calls.deliver([call.approval_id], ReplyId("r1"))
    found = await stores.calls.get(call.approval_id)
    assert found is not None
    assert found.delivered_in == "r1"


# Turns


async def test_one_turn_runs_in_a_chat(stores: Stores) -> None:
    turns = stores.turns
    assert await turns.latest(CHAT) is None
    assert await turns.owner_of(CHAT) is None
    assert await turns.begin(turn("r1"), repeatable=False) == Began(turn("r1"))
    assert await turns.owner_of(CHAT) == ALICE
    assert await turns.begin(turn("r2"), repeatable=False) == Attached(turn("r1"))
    assert await turns.begin(turn("r2"), repeatable=True) == Attached(turn("r1"))
    assert await turns.begin(turn("r2", "other"), repeatable=True) == Busy(turn("r1"))
    assert isinstance(await turns.begin(turn("x", chat=OTHER), repeatable=False), Began)
    assert await turns.running_of(ALICE) == 2
    assert await turns.running_of(BOB) == 0


async def test_an_ended_turn_is_attached_to_or_begun_anew(stores: Stores) -> None:
    turns = stores.turns
    await turns.begin(turn("r1"), repeatable=False)
    await turns.end(CHAT, ReplyId("another"))
    assert isinstance(await turns.begin(turn("r2", "o"), repeatable=False), Busy)
    await turns.end(CHAT, ReplyId("r1"))
    attached = await turns.begin(turn("r2"), repeatable=False)
    assert isinstance(attached, Attached)
    assert (attached.turn.reply_id, attached.turn.running) == ("r1", False)
    assert isinstance(await turns.begin(turn("r2"), repeatable=True), Began)
    await turns.end(CHAT, ReplyId("r2"))
    assert isinstance(await turns.begin(turn("r3", "other"), repeatable=False), Began)


async def test_of_many_that_begin_at_once_one_begins(stores: Stores) -> None:
    began: list[Began | Attached | Busy] = []

    async def begin(number: int) -> None:
        record = turn(f"r{number}", f"k{number}")
        began.append(await stores.turns.begin(record, repeatable=False))

    async with anyio.create_task_group() as writers:
        for number in range(8):
            writers.start_soon(begin, number)
    assert [type(each) for each in began].count(Began) == 1


async def test_a_turn_is_asked_to_stop_while_it_runs(stores: Stores) -> None:
    turns = stores.turns
    assert await turns.ask_to_stop(CHAT) is None
    await turns.begin(turn("r1"), repeatable=False)
    assert list(await turns.renew()) == []
    asked = await turns.ask_to_stop(CHAT)
    assert asked is not None
    assert asked.stopping
    assert list(await turns.renew()) == [CHAT]
    await turns.end(CHAT, ReplyId("r1"))
    assert await turns.ask_to_stop(CHAT) is None
    await turns.begin(turn("r2", "next"), repeatable=False)
    latest = await turns.latest(CHAT)
    assert latest is not None
    assert not latest.stopping


async def test_a_forgotten_chat_is_free(stores: Stores) -> None:
    await stores.turns.begin(turn("r1"), repeatable=False)
    await stores.turns.forget(CHAT)
    assert await stores.turns.owner_of(CHAT) is None
    assert isinstance(await stores.turns.begin(turn("r1", owner=BOB), repeatable=False), Began)


async def test_a_call_of_a_running_turn_is_no_orphan(stores: Stores) -> None:
    await stores.turns.begin(turn("r1"), repeatable=False)
    call = await held(stores)
    await stores.calls.decide(call.approval_id, YES)
    await stores.calls.claim(call.approval_id, "r1")
    assert list(await stores.calls.lapse_orphans()) == []


# The log

ENTRIES: Sequence[Entry] = (
    OwnBegins(),
    StartChunk("m"),
    TextDeltaChunk("1", "Grüße 花子 \u2028"),
    CallHeld("a", "c", "pay", {"amount": 5}, "hint", {"n": 1}, card={"status": "pending"}),
    CallAnswered("a", "c", "denied", "no", card={"status": "denied"}),
    ToolOutputAvailableChunk("c", None),
    FinishChunk("stop", {"usage": {"inputTokens": 1}}),
)
REPLY = ReplyId("r1")


async def read_all(stores: Stores, after: int = 0) -> list[Entry]:
    entries: list[Entry] = []
    with anyio.fail_after(10):
        while True:
            batch = await stores.log.read(REPLY, after + len(entries))
            assert batch is not None
            entries += batch.entries
            if batch.ended:
                return entries


async def test_a_reader_from_any_place_gets_the_tail(stores: Stores) -> None:
    await stores.log.open(REPLY)
    for entry in ENTRIES:
        await stores.log.append(REPLY, [entry])
    await stores.log.end(REPLY)
    for after in range(len(ENTRIES) + 1):
        assert await read_all(stores, after) == list(ENTRIES[after:])


async def test_a_reader_follows_the_writer(stores: Stores) -> None:
    await stores.turns.begin(turn("r1"), repeatable=False)
    await stores.log.open(REPLY)
    followed: list[Entry] = []

    async def follow() -> None:
        followed.extend(await read_all(stores))

    async with anyio.create_task_group() as readers:
        readers.start_soon(follow)
        readers.start_soon(follow)
        for entry in ENTRIES:
            await anyio.lowlevel.checkpoint()
            await stores.log.append(REPLY, [entry])
        await stores.log.end(REPLY)
    assert sorted(map(repr, followed)) == sorted(map(repr, [*ENTRIES, *ENTRIES]))


async def test_ending_twice_is_ending_once(stores: Stores) -> None:
    await stores.log.open(REPLY)
    await stores.log.append(REPLY, ENTRIES)
    await stores.log.end(REPLY)
    await stores.log.end(REPLY)
    assert await read_all(stores) == list(ENTRIES)


async def test_a_reply_that_never_was_cannot_be_read(stores: Stores) -> None:
    assert await stores.log.read(ReplyId("nothing"), 0) is None


async def test_an_empty_reply_ends(stores: Stores) -> None:
    await stores.log.open(REPLY)
    await stores.log.end(REPLY)
    assert await stores.log.read(REPLY, 0) == Batch((), ended=True)


# Hints


async def test_a_hint_wakes_who_waits(stores: Stores) -> None:
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(10):
            tasks.start_soon(stores.wake.wait, "topic", None)
            await anyio.wait_all_tasks_blocked()
            stores.wake.hint("topic")


async def test_a_wait_is_bounded(stores: Stores) -> None:
    with anyio.fail_after(10):
        await stores.wake.wait("topic", 0.01)
