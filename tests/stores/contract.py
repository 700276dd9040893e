"""What every store promises, whatever it is made of.

A test module of a store imports everything here and defines the fixture `backend`; with parameters
it serves several stores. Nothing sleeps: time passes by `Backend.advance`,
and what is due is opened as due.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
import pytest

from adk_stream_protocol.errors import TooMany
from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import ApprovalStep, CallKind, CallState, HeldCall
from adk_stream_protocol.ports import (
    Attached,
    Batch,
    Began,
    Busy,
    Calls,
    ChatChange,
    ChatLabel,
    ChatLabels,
    Log,
    Stores,
    TurnRecord,
    Turns,
    Verdict,
    Wake,
)
from adk_stream_protocol.wire.chunks import DataChunk, StartChunk, TextDeltaChunk
from adk_stream_protocol.wire.entries import (
    CallAnswered,
    CallFinished,
    CallHeld,
    Entry,
    OwnBegins,
)
from adk_stream_protocol.wire.values import JsonValue, digest

pytestmark = pytest.mark.anyio

A, B, C = ApprovalId("adk-a"), ApprovalId("adk-b"), ApprovalId("adk-c")
CHAT, OTHER_CHAT = ChatId("chat"), ChatId("other")
ANN, BOB, RUNNER = UserId("ann"), UserId("bob"), UserId("runner")
YES, NO = Verdict(approved=True, by="ann"), Verdict(approved=False, by="bob", reason="No.")
TURN = InvocationId("e-1")
R1, R2 = ReplyId("reply-1"), ReplyId("reply-2")
KEPT = 3600.0
"""Seconds that a backend keeps replies after their end."""


@dataclass(frozen=True)
class Backend:
    """Fresh stores, and a way to let time pass for them."""

    stores: Stores
    advance: Callable[[float], Awaitable[None]]


@pytest.fixture
async def calls(backend: Backend) -> Calls:
    # A claim needs a turn that holds its chat.
    for number in range(10):
        run = TurnRecord(ChatId(f"run-{number}"), RUNNER, ReplyId(f"run-{number}"), "say:1")
        await backend.stores.turns.begin(run, repeatable=False)
    return backend.stores.calls


@pytest.fixture
def turns(backend: Backend) -> Turns:
    return backend.stores.turns


@pytest.fixture
def log(backend: Backend) -> Log:
    return backend.stores.log


@pytest.fixture
def labels(backend: Backend) -> ChatLabels:
    return backend.stores.labels


@pytest.fixture
def wake(backend: Backend) -> Wake:
    return backend.stores.wake


async def opened(
    calls: Calls,
    approval_id: ApprovalId = A,
    *,
    kind: CallKind = CallKind.TOOL,
    approval: bool = True,
    expires_in: float = 600.0,
    chat: ChatId = CHAT,
    owner: UserId = ANN,
    call_id: str | None = None,
    invocation: str = "e-1",
    steps: tuple[ApprovalStep, ...] = (),
) -> HeldCall:
    """Return a call that now waits; due already if it expires in no time."""
    now = await calls.now()
    arguments: dict[str, JsonValue] = {"amount": 5, "to": "花子", "tags": [None, {"x": 1.5}]}
    return await calls.open(
        HeldCall(
            approval_id=approval_id,
            call_id=CallId(call_id or f"call-{approval_id}"),
            owner=owner,
            chat_id=chat,
            invocation_id=InvocationId(invocation),
            tool_name="pay",
            arguments=arguments,
            arguments_hash=digest(arguments),
            created_at=now,
            expires_at=now + expires_in,
            request_id=approval_id,
            kind=kind,
            steps=steps,
            approval=approval,
            state=CallState.PENDING if approval else CallState.APPROVED,
            title="Pay",
            hint="Sure?",
            risk="high",
            payload={"days": 3},
            ui={"icon": "coin"},
        )
    )


def ids(calls: Sequence[HeldCall]) -> list[ApprovalId]:
    return [call.approval_id for call in calls]


# The rows of calls


async def test_call_is_kept_as_it_was_opened(calls: Calls) -> None:
    call = await opened(calls)
    assert call.state is CallState.PENDING
    assert await calls.get(A) == call


async def test_call_that_was_never_opened_is_not_there(calls: Calls) -> None:
    assert await calls.get(A) is None
    assert await calls.latest(CHAT, TURN, CallId("c1")) is None


async def test_first_row_of_an_approval_id_stays(calls: Calls) -> None:
    call = await opened(calls)
    await calls.decide(A, YES)
    again = await opened(calls, owner=BOB, chat=OTHER_CHAT)
    assert (again.owner, again.chat_id, again.state) == (ANN, CHAT, CallState.APPROVED)
    assert again.created_at == call.created_at


async def test_calls_of_a_chat_are_listed_oldest_first(calls: Calls) -> None:
    for approval_id, chat in ((C, CHAT), (A, CHAT), (B, OTHER_CHAT)):
        await opened(calls, approval_id, chat=chat)
    assert ids(await calls.of_chat(CHAT)) == [C, A]
    assert ids(await calls.of_chat(ChatId("empty"))) == []


async def test_calls_of_a_user_are_listed_by_state(calls: Calls) -> None:
    for approval_id, owner in ((C, ANN), (A, ANN), (B, BOB)):
        await opened(calls, approval_id, owner=owner)
    await calls.decide(C, YES)
    assert ids(await calls.of_owner(ANN)) == [C, A]
    assert ids(await calls.of_owner(ANN, CallState.PENDING)) == [A]
    assert ids(await calls.of_owner(BOB, CallState.APPROVED)) == []


async def test_all_calls_are_read_page_by_page(calls: Calls) -> None:
    for approval_id, owner in ((A, ANN), (B, BOB), (C, ANN)):
        await opened(calls, approval_id, owner=owner)
    first = await calls.page(None, 2)
    rest = await calls.page(first[-1], 2)
    assert (ids(first), ids(rest)) == ([A, B], [C])
    assert await calls.page(rest[-1], 2) == []


async def test_a_users_pages_also_have_the_calls_that_name_others(calls: Calls) -> None:
    call = await opened(calls, A, owner=BOB)
    in_steps = dataclasses.replace(call, approval_id=B, steps=(ApprovalStep("boss", by=("ann",)),))
    await calls.open(in_steps)
    await opened(calls, C, owner=ANN)
    assert ids(await calls.page(None, 5, owner=ANN)) == [B, C]
    assert ids(await calls.page(None, 5, owner=BOB)) == [A, B]


async def test_what_was_remembered_for_a_chat_is_forgotten_there(calls: Calls) -> None:
    for approval_id, chat in ((A, CHAT), (B, OTHER_CHAT)):
        await opened(calls, approval_id, chat=chat)
        _, call = await calls.decide(approval_id, dataclasses.replace(YES, remember=True))
        assert call.remember
    await calls.unremember(CHAT)
    remembered = [call.remember for call in await calls.page(None, 5)]
    assert remembered == [False, True]


async def test_newest_request_for_a_tool_call_is_found(calls: Calls) -> None:
    await opened(calls, A, call_id="c1")
    await opened(calls, B, call_id="c1")
    await opened(calls, C, call_id="c1", chat=OTHER_CHAT)
    newest = await calls.latest(CHAT, TURN, CallId("c1"))
    assert newest is not None
    assert newest.approval_id == B


async def test_a_call_id_that_a_later_turn_repeats_is_another_call(calls: Calls) -> None:
    first = await opened(calls, A, call_id="c1")
    second = await opened(calls, B, call_id="c1", invocation="e-2")
    assert await calls.latest(CHAT, TURN, CallId("c1")) == first
    assert await calls.latest(CHAT, InvocationId("e-2"), CallId("c1")) == second


# Decisions on calls


async def test_first_decision_counts(calls: Calls) -> None:
    await opened(calls)
    before = await calls.now()
    ruling, call = await calls.decide(A, Verdict(True, "ann", "Fine.", "d1"))
    assert (ruling, call.state) == ("accepted", CallState.APPROVED)
    assert (call.decided_by, call.reason, call.decision_id) == ("ann", "Fine.", "d1")
    assert call.decided_at is not None
    assert call.decided_at >= before
    assert await calls.get(A) == call


async def test_denial_counts_as_much(calls: Calls) -> None:
    await opened(calls)
    ruling, call = await calls.decide(A, NO)
    assert (ruling, call.state, call.reason) == ("accepted", CallState.DENIED, "No.")


async def test_same_decision_id_is_a_repeat_whatever_it_says_now(calls: Calls) -> None:
    await opened(calls)
    _, first = await calls.decide(A, Verdict(True, "ann", None, "d1"))
    assert await calls.decide(A, Verdict(False, "ann", None, "d1")) == ("repeat", first)


@pytest.mark.parametrize("verdict", [YES, NO])
async def test_same_verdict_is_a_repeat(calls: Calls, verdict: Verdict) -> None:
    await opened(calls)
    _, first = await calls.decide(A, verdict)
    again = Verdict(verdict.approved, "carol", "Other words.", "d2")
    assert await calls.decide(A, again) == ("repeat", first)


@pytest.mark.parametrize(("first", "second"), [(YES, NO), (NO, YES)])
async def test_another_verdict_conflicts_and_changes_nothing(
    calls: Calls, first: Verdict, second: Verdict
) -> None:
    await opened(calls)
    _, decided = await calls.decide(A, first)
    assert await calls.decide(A, second) == ("conflict", decided)
    assert await calls.get(A) == decided


async def test_decision_that_comes_too_late_conflicts_and_the_call_expires(calls: Calls) -> None:
    await opened(calls, expires_in=0.0)
    ruling, call = await calls.decide(A, YES)
    assert (ruling, call.state) == ("conflict", CallState.EXPIRED)
    assert call.decided_at is not None
    assert call.decided_by is None
    assert await calls.decide(A, NO) == ("conflict", call)


async def test_call_that_needs_no_decision_takes_none(calls: Calls) -> None:
    call = await opened(calls, kind=CallKind.BROWSER, approval=False)
    assert await calls.decide(A, YES) == ("conflict", call)
    assert await calls.decide(A, NO) == ("conflict", call)


async def test_approval_is_a_repeat_also_after_the_call_ran(calls: Calls) -> None:
    await opened(calls)
    await calls.decide(A, YES)
    claimed = await calls.claim(A, ReplyId("run-1"))
    assert claimed is not None
    await calls.finish(A, claimed.fence, result={"paid": 5}, error=None)
    ruling, call = await calls.decide(A, YES)
    assert (ruling, call.state) == ("repeat", CallState.DONE)


async def test_of_many_decisions_at_once_one_counts(calls: Calls) -> None:
    await opened(calls)
    rulings: list[str] = []

    async def decide(number: int) -> None:
        verdict = Verdict(number % 2 == 0, f"user-{number}", None, f"d{number}")
        ruling, _ = await calls.decide(A, verdict)
        rulings.append(ruling)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(decide, number)
    assert rulings.count("accepted") == 1
    assert rulings.count("repeat") == 3
    assert rulings.count("conflict") == 4


async def test_an_approval_counts_only_for_the_arguments_that_were_shown(calls: Calls) -> None:
    steps = (ApprovalStep("one"), ApprovalStep("two"))
    opened_call = await opened(calls, steps=steps)
    edit = Verdict(True, "ann", final=False, edited={"amount": 3}, edited_hash="h3")
    _, edited = await calls.decide(A, edit)
    second = Verdict(True, "bob", step=1)
    for shown in (None, opened_call.arguments_hash, "h4"):
        blind = dataclasses.replace(second, shown_hash=shown)
        assert await calls.decide(A, blind) == ("conflict", edited)
    seen = dataclasses.replace(second, shown_hash="h3")
    ruling, call = await calls.decide(A, seen)
    assert (ruling, call.state) == ("accepted", CallState.APPROVED)
    assert (await calls.decide(A, dataclasses.replace(seen, by="carol")))[0] == "repeat"
    assert (await calls.decide(A, dataclasses.replace(second, by="carol")))[0] == "conflict"
    assert (await calls.decide(A, second))[0] == "repeat"


# What the client ran


@pytest.mark.parametrize("kind", [CallKind.BROWSER, CallKind.INPUT, CallKind.CREDENTIAL])
async def test_client_gives_an_output(calls: Calls, kind: CallKind) -> None:
    await opened(calls, kind=kind, approval=False)
    ruling, call = await calls.give(A, output={"lat": 1}, error=None)
    assert (ruling, call.state, call.result) == ("accepted", CallState.DONE, {"lat": 1})
    assert call.done_at is not None
    assert await calls.get(A) == call


async def test_client_reports_an_error(calls: Calls) -> None:
    await opened(calls, kind=CallKind.BROWSER, approval=False)
    ruling, call = await calls.give(A, output=None, error="No signal.")
    assert (ruling, call.state, call.error) == ("accepted", CallState.FAILED, "No signal.")


async def test_same_output_again_is_a_repeat_and_another_conflicts(calls: Calls) -> None:
    await opened(calls, kind=CallKind.BROWSER, approval=False)
    _, call = await calls.give(A, output=None, error=None)
    assert await calls.give(A, output=None, error=None) == ("repeat", call)
    assert await calls.give(A, output=1, error=None) == ("conflict", call)
    assert await calls.give(A, output=None, error="x") == ("conflict", call)


async def test_output_before_the_approval_conflicts(calls: Calls) -> None:
    call = await opened(calls, kind=CallKind.BROWSER)
    assert await calls.give(A, output=1, error=None) == ("conflict", call)
    await calls.decide(A, YES)
    assert (await calls.give(A, output=1, error=None))[0] == "accepted"


async def test_output_for_a_tool_of_the_server_conflicts(calls: Calls) -> None:
    await opened(calls)
    _, approved = await calls.decide(A, YES)
    assert await calls.give(A, output={"paid": 1000000}, error=None) == ("conflict", approved)


# Who may run a call


async def test_approved_call_is_claimed_once(calls: Calls) -> None:
    await opened(calls)
    await calls.decide(A, YES)
    claimed = await calls.claim(A, ReplyId("run-1"))
    assert claimed is not None
    assert (claimed.state, claimed.fence, claimed.holder) == (CallState.RUNNING, 1, "run-1")
    assert await calls.claim(A, ReplyId("run-2")) is None
    assert await calls.get(A) == claimed


async def test_of_many_claims_at_once_one_is_granted(calls: Calls) -> None:
    await opened(calls)
    await calls.decide(A, YES)
    granted: list[HeldCall] = []

    async def claim(number: int) -> None:
        claimed = await calls.claim(A, ReplyId(f"run-{number}"))
        if claimed is not None:
            granted.append(claimed)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(claim, number)
    assert len(granted) == 1


async def test_call_that_was_not_let_through_cannot_be_claimed(calls: Calls) -> None:
    await opened(calls, A)
    await opened(calls, B)
    await calls.decide(B, NO)
    assert await calls.claim(A, ReplyId("run-1")) is None
    assert await calls.claim(B, ReplyId("run-1")) is None


async def test_call_that_the_client_runs_cannot_be_claimed(calls: Calls) -> None:
    await opened(calls, kind=CallKind.BROWSER, approval=False)
    assert await calls.claim(A, ReplyId("run-1")) is None


async def running(calls: Calls, approval_id: ApprovalId = A) -> HeldCall:
    await opened(calls, approval_id)
    await calls.decide(approval_id, YES)
    claimed = await calls.claim(approval_id, ReplyId("run-1"))
    assert claimed is not None
    return claimed


async def test_result_is_recorded_under_the_fence(calls: Calls) -> None:
    claimed = await running(calls)
    assert await calls.finish(A, claimed.fence, result={"paid": 5}, error=None)
    call = await calls.get(A)
    assert call is not None
    assert (call.state, call.result, call.error) == (CallState.DONE, {"paid": 5}, None)
    assert call.holder is None
    assert call.done_at is not None


async def test_failure_is_recorded_under_the_fence(calls: Calls) -> None:
    claimed = await running(calls)
    assert await calls.finish(A, claimed.fence, result=None, error="It failed.")
    call = await calls.get(A)
    assert call is not None
    assert (call.state, call.error) == (CallState.FAILED, "It failed.")


async def test_finish_under_another_fence_is_ignored(calls: Calls) -> None:
    claimed = await running(calls)
    for fence in (claimed.fence - 1, claimed.fence + 1):
        assert not await calls.finish(A, fence, result="zombie", error=None)
        assert not await calls.lapse(A, fence)
    assert await calls.get(A) == claimed


async def test_call_finishes_once(calls: Calls) -> None:
    claimed = await running(calls)
    assert await calls.finish(A, claimed.fence, result=1, error=None)
    assert not await calls.finish(A, claimed.fence, result=2, error=None)
    assert not await calls.lapse(A, claimed.fence)


async def test_call_whose_end_nobody_saw_is_unknown_and_never_runs_again(calls: Calls) -> None:
    claimed = await running(calls)
    assert await calls.lapse(A, claimed.fence)
    call = await calls.get(A)
    assert call is not None
    assert (call.state, call.holder) == (CallState.UNKNOWN, None)
    assert not await calls.finish(A, claimed.fence, result=1, error=None)
    assert await calls.claim(A, ReplyId("run-2")) is None


async def test_call_of_a_running_turn_is_no_orphan(calls: Calls, turns: Turns) -> None:
    await turns.begin(turn(ReplyId("run-1")), repeatable=False)
    await running(calls)
    assert ids(await calls.lapse_orphans()) == []


async def test_orphans_and_unknown_calls_are_found_by_their_chat(calls: Calls) -> None:
    claimed = await running(calls, A)
    await calls.lapse(A, claimed.fence)
    assert ids(await calls.lapse_orphans(OTHER_CHAT)) == []
    assert ids(await calls.unknown(600, CHAT)) == [A]
    assert ids(await calls.unknown(600)) == [A]
    assert ids(await calls.unknown(600, OTHER_CHAT)) == []
    assert ids(await calls.unknown(-600)) == []


# Giving up


async def test_cancel_takes_what_waits_and_what_nobody_runs_yet(calls: Calls) -> None:
    await opened(calls, A)
    await opened(calls, B)
    await calls.decide(B, YES)
    await opened(calls, C, chat=OTHER_CHAT)
    cancelled = await calls.cancel(CHAT)
    assert ids(cancelled) == [A, B]
    assert {call.state for call in cancelled} == {CallState.CANCELLED}
    assert all(call.decided_at is not None for call in cancelled)
    assert [await calls.get(A), await calls.get(B)] == list(cancelled)
    other = await calls.get(C)
    assert other is not None
    assert other.state is CallState.PENDING
    assert await calls.cancel(CHAT) == []


async def test_cancel_spares_what_runs_or_is_over(calls: Calls) -> None:
    await running(calls, A)
    await opened(calls, B)
    await calls.decide(B, NO)
    assert await calls.cancel(CHAT) == []


async def test_cancel_takes_only_the_invocations_it_is_given(calls: Calls) -> None:
    await opened(calls, A, invocation="e-1")
    await opened(calls, B, invocation="e-2")
    assert ids(await calls.cancel(CHAT, iter([InvocationId("e-2"), InvocationId("e-3")]))) == [B]
    assert ids(await calls.cancel(CHAT, [])) == []


async def test_decision_on_a_cancelled_call_conflicts(calls: Calls) -> None:
    await opened(calls)
    await calls.cancel(CHAT)
    for verdict in (YES, NO):
        ruling, call = await calls.decide(A, verdict)
        assert (ruling, call.state) == ("conflict", CallState.CANCELLED)


async def test_approved_call_that_cannot_run_is_given_up(calls: Calls) -> None:
    await opened(calls, A)
    await calls.decide(A, YES)
    await calls.abort(A)
    call = await calls.get(A)
    assert call is not None
    assert call.state is CallState.CANCELLED
    claimed = await running(calls, B)
    await calls.abort(B)
    assert await calls.get(B) == claimed


async def test_calls_whose_time_is_over_expire_once(calls: Calls) -> None:
    await opened(calls, A, expires_in=0.0)
    await opened(calls, B, expires_in=0.0, kind=CallKind.BROWSER, approval=False)
    await opened(calls, C)
    expired = await calls.expire()
    assert set(ids(expired)) == {A, B}
    assert {call.state for call in expired} == {CallState.EXPIRED}
    assert all(call.decided_at is not None for call in expired)
    assert await calls.expire() == []


async def test_call_that_was_approved_in_time_does_not_expire(
    calls: Calls, backend: Backend
) -> None:
    await opened(calls, expires_in=60.0)
    await calls.decide(A, YES)
    await backend.advance(61.0)
    assert await calls.expire() == []
    late = TurnRecord(OTHER_CHAT, RUNNER, ReplyId("late"), "say:1")
    await backend.stores.turns.begin(late, repeatable=False)
    assert await calls.claim(A, late.reply_id) is not None


async def test_call_expires_when_its_time_has_passed(calls: Calls, backend: Backend) -> None:
    await opened(calls, expires_in=60.0)
    assert await calls.expire() == []
    await backend.advance(61.0)
    assert ids(await calls.expire()) == [A]


async def test_next_expiry_is_that_of_the_first_open_call(calls: Calls) -> None:
    assert await calls.next_expiry() is None
    late = await opened(calls, A, expires_in=90.0)
    soon = await opened(calls, B, expires_in=30.0)
    browser = await opened(calls, C, expires_in=60.0, kind=CallKind.BROWSER, approval=False)
    for due in (soon, browser, late):
        assert await calls.next_expiry() == due.expires_at
        if due.approval:
            await calls.decide(due.approval_id, YES)
        else:
            await calls.give(due.approval_id, output=1, error=None)
    assert await calls.next_expiry() is None


async def test_delivery_names_the_reply_that_carried_the_answers(calls: Calls) -> None:
    for approval_id in (A, B, C):
        await opened(calls, approval_id)
        await calls.decide(approval_id, YES)
    await calls.deliver(iter([A, C]), R1)
    delivered = {call.approval_id: call.delivered_in for call in await calls.of_chat(CHAT)}
    assert delivered == {A: R1, B: None, C: R1}


async def test_answers_that_adk_did_not_get_can_be_delivered_again(calls: Calls) -> None:
    for approval_id in (A, B):
        await opened(calls, approval_id)
        await calls.decide(approval_id, YES)
    await calls.deliver([A, B], R1)
    await calls.undeliver(iter([A]))
    delivered = {call.approval_id: call.delivered_in for call in await calls.of_chat(CHAT)}
    assert delivered == {A: None, B: R1}


async def test_cancel_withdraws_answers_that_adk_has_not_got(calls: Calls) -> None:
    for approval_id, invocation in ((A, "e-1"), (B, "e-1"), (C, "e-2")):
        await opened(calls, approval_id, invocation=invocation)
        await calls.decide(approval_id, NO)
    await calls.deliver([B], R1)
    assert await calls.cancel(CHAT, [InvocationId("e-1")]) == []
    rows = {call.approval_id: call for call in await calls.of_chat(CHAT)}
    assert [rows[key].is_deliverable for key in (A, B, C)] == [False, False, True]
    assert rows[B].delivered_in == R1
    assert rows[A].state is CallState.DENIED


# Turns


def turn(
    reply_id: ReplyId = R1, key: str = "say:1", *, chat: ChatId = CHAT, owner: UserId = ANN
) -> TurnRecord:
    return TurnRecord(chat, owner, reply_id, key)


async def began(turns: Turns, asked: TurnRecord, *, repeatable: bool = False) -> TurnRecord:
    begun = await turns.begin(asked, repeatable=repeatable)
    assert isinstance(begun, Began)
    return begun.turn


async def test_free_chat_is_taken(turns: Turns) -> None:
    assert await turns.owner_of(CHAT) is None
    assert await turns.latest(CHAT) is None
    assert await turns.begin(turn(), repeatable=False) == Began(turn())
    assert await turns.owner_of(CHAT) == ANN
    assert await turns.latest(CHAT) == turn()


async def test_chat_has_one_turn_at_a_time(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    second = turn(R2, "say:2")
    assert await turns.begin(second, repeatable=True) == Busy(turn())
    await turns.end(CHAT, R1)
    assert await began(turns, second) == second


async def test_other_chats_are_free(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    other = turn(R2, chat=OTHER_CHAT)
    assert await turns.begin(other, repeatable=False) == Began(other)


@pytest.mark.parametrize("repeatable", [True, False])
async def test_same_request_attaches_to_the_running_turn(turns: Turns, repeatable: bool) -> None:
    await turns.begin(turn(), repeatable=repeatable)
    assert await turns.begin(turn(R2), repeatable=repeatable) == Attached(turn())


async def test_same_request_attaches_to_the_ended_turn(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    again = await turns.begin(turn(R2), repeatable=False)
    assert isinstance(again, Attached)
    assert (again.turn.reply_id, again.turn.running) == (R1, False)


async def test_request_that_may_be_repeated_begins_anew_after_its_end(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=True)
    await turns.end(CHAT, R1)
    assert await began(turns, turn(R2), repeatable=True) == turn(R2)


async def test_of_many_turns_at_once_one_begins(turns: Turns) -> None:
    outcomes: list[type] = []

    async def begin(number: int) -> None:
        begun = await turns.begin(
            turn(ReplyId(f"reply-{number}"), f"say:{number}"), repeatable=False
        )
        outcomes.append(type(begun))

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(begin, number)
    assert outcomes.count(Began) == 1
    assert outcomes.count(Busy) == 7


async def test_only_the_turn_itself_gives_the_chat_back(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R2)
    await turns.end(OTHER_CHAT, R1)
    latest = await turns.latest(CHAT)
    assert latest is not None
    assert latest.running


async def test_request_of_a_turn_that_failed_may_be_made_again(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1, failed=True)
    assert await began(turns, turn(R2)) == turn(R2)


async def test_turn_that_could_not_be_prepared_leaves_the_chat_as_it_was(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    before = await turns.latest(CHAT)
    assert before is not None
    second = turn(R2, "say:2")
    begun = await turns.begin(second, repeatable=False)
    assert isinstance(begun, Began)
    assert begun.previous == before
    await turns.restore(second, begun.previous)
    assert await turns.latest(CHAT) == before
    assert await turns.begin(turn(R2), repeatable=False) == Attached(before)


async def test_first_turn_that_could_not_be_prepared_leaves_the_chat_free(turns: Turns) -> None:
    begun = await turns.begin(turn(), repeatable=False)
    assert begun == Began(turn(), None)
    await turns.restore(turn(), None)
    assert await turns.owner_of(CHAT) is None
    await turns.restore(turn(), None)


async def test_turn_is_not_restored_over_a_later_one(turns: Turns) -> None:
    await turns.begin(turn(R2, "say:2"), repeatable=False)
    await turns.restore(turn(R1), None)
    assert await turns.latest(CHAT) == turn(R2, "say:2")


async def test_running_turn_is_asked_to_stop(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    assert await turns.renew([R1]) == [turn()]
    stopping = await turns.ask_to_stop(CHAT)
    assert stopping is not None
    assert stopping.stopping
    assert await turns.latest(CHAT) == stopping
    assert await turns.renew([R1, R2]) == [stopping]


async def test_turn_that_ended_cannot_be_stopped(turns: Turns) -> None:
    assert await turns.ask_to_stop(CHAT) is None
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    assert await turns.ask_to_stop(CHAT) is None
    assert await turns.renew([R1]) == []


async def test_only_so_many_turns_of_a_user_run(turns: Turns) -> None:
    third = turn(ReplyId("r3"), chat=ChatId("third"))
    await turns.begin(turn(), repeatable=False, most=2)
    await turns.begin(turn(R2, chat=OTHER_CHAT), repeatable=False, most=2)
    with pytest.raises(TooMany):
        await turns.begin(third, repeatable=False, most=2)
    assert await turns.latest(third.chat_id) is None
    bobs = turn(ReplyId("r4"), chat=ChatId("fourth"), owner=BOB)
    assert await turns.begin(bobs, repeatable=False, most=2) == Began(bobs)
    await turns.end(OTHER_CHAT, R2)
    assert await turns.begin(third, repeatable=False, most=2) == Began(third)


async def test_user_with_many_turns_is_not_kept_from_one_that_runs(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False, most=1)
    assert await turns.begin(turn(R2), repeatable=False, most=1) == Attached(turn())
    assert await turns.begin(turn(R2, "say:2"), repeatable=False, most=1) == Busy(turn())
    await turns.end(CHAT, R1)
    await turns.begin(turn(R2, chat=OTHER_CHAT), repeatable=False, most=1)
    with pytest.raises(TooMany):
        await turns.begin(turn(ReplyId("r3")), repeatable=False, most=1)


async def test_turns_that_nobody_asked_for_are_not_limited(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    other = turn(R2, chat=OTHER_CHAT)
    assert await turns.begin(other, repeatable=False) == Began(other)


async def test_forgotten_chat_is_anyones(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    await turns.forget(CHAT)
    await turns.forget(OTHER_CHAT)
    assert await turns.owner_of(CHAT) is None
    assert await turns.latest(CHAT) is None
    bobs = turn(R2, owner=BOB)
    assert await turns.begin(bobs, repeatable=False) == Began(bobs)


# Log


def words(count: int, start: int = 0) -> list[Entry]:
    return [TextDeltaChunk("1", str(number)) for number in range(start, start + count)]


async def followed(log: Log, reply_id: ReplyId = R1, after: int = 0) -> list[Entry]:
    """Return everything that follows the first entries, to the end."""
    got: list[Entry] = []
    while True:
        batch = await log.read(reply_id, after + len(got))
        assert batch is not None
        got += batch.entries
        if batch.ended:
            return got


async def test_entries_are_read_as_they_were_written(log: Log) -> None:
    written: list[Entry] = [
        OwnBegins(),
        StartChunk("m1"),
        DataChunk("approval", {"a": [None, 1.5, "花子"]}, id="x"),
        CallHeld("adk-1", "c1", "pay", {"amount": 5}, "Sure?", payload=None, card={"t": 1}),
        CallAnswered("adk-1", "c1", "denied", "No.", card={"status": "denied"}),
        CallFinished("adk-1", {"status": "done"}),
    ]
    await log.open(R1)
    await log.append(R1, written)
    await log.end(R1)
    assert await followed(log) == written


async def test_what_is_written_can_be_seen_without_waiting_for_more(log: Log) -> None:
    assert list(await log.written(R1)) == []
    await log.open(R1)
    assert list(await log.written(R1)) == []
    await log.append(R1, words(3))
    assert list(await log.written(R1)) == words(3)
    await log.append(R1, words(2, 3))
    await log.end(R1)
    assert list(await log.written(R1)) == words(5)


async def test_log_is_read_from_any_point(log: Log) -> None:
    await log.open(R1)
    await log.append(R1, words(3))
    await log.append(R1, words(2, 3))
    await log.end(R1)
    for after in range(6):
        assert await followed(log, after=after) == words(5)[after:]
    assert await log.read(R1, 9) == Batch((), ended=True)


async def test_replies_do_not_mix(log: Log) -> None:
    for reply_id, count in ((R1, 2), (R2, 3)):
        await log.open(reply_id)
        await log.append(reply_id, words(count))
    for reply_id in (R1, R2):
        await log.end(reply_id)
    assert await followed(log, R1) == words(2)
    assert await followed(log, R2) == words(3)


async def test_log_that_is_not_there_is_none(log: Log) -> None:
    assert await log.read(R1, 0) is None


async def test_opening_a_log_again_keeps_it(log: Log) -> None:
    await log.open(R1)
    await log.append(R1, words(2))
    await log.open(R1)
    await log.end(R1)
    assert await followed(log) == words(2)


async def test_reader_waits_for_more_without_holding_the_writer_up(log: Log) -> None:
    await log.open(R1)
    got: list[Entry] = []

    async def read(after: int) -> None:
        got.extend((await followed(log, after=after))[: 30 - after])

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for after in (0, 7, 30):
                tasks.start_soon(read, after)
            await anyio.wait_all_tasks_blocked()
            for start in range(0, 30, 3):
                await log.append(R1, words(3, start))
                if start % 2:
                    await anyio.lowlevel.checkpoint()
            await log.end(R1)
    expected = [*words(30), *words(23, 7)]
    assert sorted(map(str, got)) == sorted(map(str, expected))


async def test_read_that_was_cancelled_loses_nothing(log: Log) -> None:
    await log.open(R1)
    await log.append(R1, words(1))
    with anyio.move_on_after(0):
        await log.read(R1, 1)
    await log.append(R1, words(1, 1))
    await log.end(R1)
    assert await followed(log, after=1) == words(1, 1)


async def test_end_wakes_who_waits(log: Log) -> None:
    await log.open(R1)
    ends: list[Batch | None] = []

    async def read() -> None:
        ends.append(await log.read(R1, 0))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            await log.end(R1)
    assert ends == [Batch((), ended=True)]


async def test_old_replies_are_forgotten_and_running_ones_are_not(
    log: Log, backend: Backend
) -> None:
    for reply_id in (R1, R2):
        await log.open(reply_id)
        await log.append(reply_id, words(1))
    await log.end(R1)
    await backend.advance(KEPT - 1)
    await log.open(ReplyId("reply-3"))
    assert await log.read(R1, 0) == Batch(tuple(words(1)), ended=True)
    await backend.advance(2)
    await log.open(ReplyId("reply-4"))
    assert await log.read(R1, 0) is None
    assert await log.read(R2, 0) == Batch(tuple(words(1)), ended=False)


# Wake


async def test_hint_wakes_everyone_who_waits_for_the_topic(wake: Wake) -> None:
    woken: list[str] = []

    async def wait(topic: str) -> None:
        await wake.wait(topic, None)
        woken.append(topic)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for topic in ("calls", "calls", "other"):
                tasks.start_soon(wait, topic)
            await anyio.wait_all_tasks_blocked()
            wake.hint("calls")
            await anyio.wait_all_tasks_blocked()
            assert woken == ["calls", "calls"]
            wake.hint("other")
    assert woken[-1] == "other"


async def test_wait_ends_by_itself(wake: Wake) -> None:
    with anyio.fail_after(5):
        await wake.wait("calls", 0.0)


async def test_hint_that_nobody_waits_for_is_lost(wake: Wake) -> None:
    wake.hint("calls")
    waited = False
    with anyio.move_on_after(0):
        await wake.wait("calls", None)
        waited = True
    assert not waited


# What a decision can carry, and what is kept of it


async def test_each_step_counts_once_and_the_last_one_approves(calls: Calls) -> None:
    await opened(calls)
    first = dataclasses.replace(YES, by="ann", final=False, decision_id="d1")
    ruling, call = await calls.decide(A, first)
    assert (ruling, call.state, call.step) == ("accepted", CallState.PENDING, 1)
    assert call.step_approvers == ("ann",)
    # Made for a step that is over: by the same person a double click, by another one too late.
    assert (await calls.decide(A, dataclasses.replace(first, decision_id=None)))[0] == "repeat"
    other = dataclasses.replace(first, by="bob", decision_id="d2")
    assert (await calls.decide(A, other))[0] == "conflict"
    assert await calls.get(A) == call
    ruling, call = await calls.decide(A, Verdict(approved=True, by="carol", step=1))
    assert (ruling, call.state, call.decided_by) == ("accepted", CallState.APPROVED, "carol")
    assert (await calls.decide(A, first))[0] == "repeat"


async def test_a_denial_at_any_step_is_the_end(calls: Calls) -> None:
    await opened(calls)
    await calls.decide(A, dataclasses.replace(YES, final=False))
    ruling, call = await calls.decide(A, dataclasses.replace(NO, step=1))
    assert (ruling, call.state) == ("accepted", CallState.DENIED)


async def test_edited_arguments_are_kept_beside_those_shown(calls: Calls) -> None:
    shown = await opened(calls)
    edited: dict[str, JsonValue] = {"amount": 4, "to": "花子"}
    verdict = dataclasses.replace(YES, edited=edited, edited_hash=digest(edited))
    _, call = await calls.decide(A, verdict)
    assert (call.arguments, call.arguments_hash) == (shown.arguments, shown.arguments_hash)
    assert (call.run_arguments, call.edited_hash) == (edited, digest(edited))
    assert (await calls.decide(A, verdict))[0] == "repeat"
    otherwise = dataclasses.replace(verdict, edited_hash=digest({}))
    assert (await calls.decide(A, otherwise))[0] == "conflict"


async def test_the_trail_tells_everything_in_order(calls: Calls) -> None:
    await opened(calls)
    verdict = Verdict(
        approved=True, by="ann", reason='Fine\u2028"so"\n', decision_id="d1", via="api 10.0.0.7"
    )
    await calls.decide(A, verdict)
    claimed = await calls.claim(A, ReplyId("run-1"))
    assert claimed is not None
    await calls.lapse(A, claimed.fence)
    ruling, call = await calls.resolve(A, Verdict(True, "bob"), result={"paid": 5}, error=None)
    assert (ruling, call.state, call.result) == ("accepted", CallState.DONE, {"paid": 5})
    assert [entry["event"] for entry in call.trail] == ["approve", "claim", "lapse", "resolve_done"]
    decided, ran, _, resolved = call.trail
    assert decided["reason"] == verdict.reason
    assert (decided["by"], decided["via"], decided["decisionId"]) == ("ann", "api 10.0.0.7", "d1")
    assert (ran["by"], resolved["by"]) == ("run-1", "bob")
    times = [entry["at"] for entry in call.trail]
    assert times == sorted(times, key=float)  # type: ignore[arg-type]  # they are numbers
    assert abs(float(str(times[0])) - call.created_at) < 60


async def test_only_a_call_whose_end_nobody_saw_can_be_resolved(calls: Calls) -> None:
    claimed = await running(calls)
    known = Verdict(approved=False, by="bob")
    assert (await calls.resolve(A, known, result=None, error="No."))[0] == "conflict"
    await calls.lapse(A, claimed.fence)
    ruling, call = await calls.resolve(A, known, result=None, error="No.")
    assert (ruling, call.state, call.error) == ("accepted", CallState.FAILED, "No.")
    assert (await calls.resolve(A, known, result=None, error="No."))[0] == "repeat"
    assert (await calls.resolve(A, known, result=1, error=None))[0] == "conflict"


async def test_what_waits_for_anyone_is_listed_and_counted(calls: Calls) -> None:
    await opened(calls, A)
    await opened(calls, B, owner=BOB, chat=OTHER_CHAT)
    await opened(calls, C, approval=False, kind=CallKind.BROWSER)
    assert ids(await calls.pending(10)) == [A, B]
    assert ids(await calls.pending(1)) == [A]
    assert await calls.count_pending() == 2
    await calls.decide(A, NO)
    assert await calls.count_pending() == 1
    assert await calls.count_pending(BOB) == 1
    assert await calls.count_pending(ANN) == 0


async def test_chats_with_answers_that_adk_has_not_got_are_found(calls: Calls) -> None:
    await opened(calls, A)
    await opened(calls, B, owner=BOB, chat=OTHER_CHAT)
    await opened(calls, C, approval=False, kind=CallKind.BROWSER, chat=ChatId("third"))
    assert await calls.undelivered() == []
    await calls.decide(A, YES)
    assert await calls.undelivered() == [(CHAT, ANN)]
    await calls.deliver([A], R1)
    await calls.decide(B, NO)
    assert await calls.undelivered() == [(OTHER_CHAT, BOB)]


async def test_settled_calls_are_forgotten_when_they_are_old(
    calls: Calls, backend: Backend
) -> None:
    await opened(calls, A, expires_in=10_000.0)
    await opened(calls, B)
    await calls.decide(B, NO)
    unknown = await running(calls, C)
    await calls.lapse(C, unknown.fence)
    await backend.advance(100.0)
    assert await calls.purge(200.0) == 0
    assert await calls.purge(50.0) == 1
    assert [await calls.get(name) is None for name in (A, B, C)] == [False, True, False]
    assert ids(await calls.of_chat(CHAT)) == [A, C]


# Requests, and turns that lapse


async def test_an_earlier_request_finds_its_own_reply(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    await turns.begin(turn(R2, "say:2"), repeatable=False)
    again = await turns.begin(turn(ReplyId("r3")), repeatable=False)
    assert isinstance(again, Attached)
    assert (again.turn.reply_id, again.turn.running) == (R1, False)
    await turns.end(CHAT, R2, failed=True)
    assert isinstance(await turns.begin(turn(ReplyId("r3"), "say:2"), repeatable=False), Began)


async def test_a_turn_given_up_lapses_and_is_taken_over_once(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    assert await turns.lapsed() == []
    await turns.release(CHAT, R2)
    assert await turns.lapsed() == []
    await turns.release(CHAT, R1)
    (lapsed,) = await turns.lapsed()
    assert (lapsed.reply_id, lapsed.running, lapsed.lapsed) == (R1, False, True)
    assert await turns.renew([R1]) == []
    assert await turns.ask_to_stop(CHAT) is None
    other = await turns.begin(turn(R2, "say:2"), repeatable=True)
    assert other == Busy(lapsed)
    recovery = dataclasses.replace(turn(R2), origin=R1)
    assert await turns.begin(recovery, repeatable=False, over=R1) == Began(recovery, lapsed)
    third = dataclasses.replace(recovery, reply_id=ReplyId("r3"))
    assert await turns.begin(third, repeatable=False, over=R1) == Attached(recovery)
    assert await turns.lapsed() == []
    # The request's reply is the recovery's from now on, also when it is not the newest any more.
    await turns.end(CHAT, R2)
    await turns.begin(turn(ReplyId("r4"), "say:2"), repeatable=False)
    again = await turns.begin(turn(ReplyId("r5")), repeatable=False)
    assert isinstance(again, Attached)
    assert again.turn.reply_id == R2


async def test_a_recovery_that_could_not_be_prepared_leaves_the_turn_lapsed(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.release(CHAT, R1)
    (lapsed,) = await turns.lapsed()
    recovery = dataclasses.replace(turn(R2), origin=R1)
    await turns.begin(recovery, repeatable=False, over=R1)
    await turns.restore(recovery, lapsed)
    assert await turns.lapsed() == [lapsed]
    assert isinstance(await turns.begin(recovery, repeatable=False, over=R1), Began)


async def test_an_ended_turn_is_not_taken_over(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    recovery = dataclasses.replace(turn(R2), origin=R1)
    assert isinstance(await turns.begin(recovery, repeatable=False, over=R1), Attached)


async def test_a_chat_that_was_forgotten_has_no_requests(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    await turns.begin(turn(R2, "say:2"), repeatable=False)
    await turns.forget(CHAT)
    assert isinstance(await turns.begin(turn(R2), repeatable=False), Began)


async def test_a_request_whose_reply_was_read_may_be_made_again(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    for _ in range(2):
        await turns.note_read([turn()])
    latest = await turns.latest(CHAT)
    assert latest is not None
    assert (latest.reply_id, latest.running) == (R1, False)
    assert await began(turns, turn(R2)) == turn(R2)


async def test_an_earlier_request_whose_reply_was_read_may_be_made_again(turns: Turns) -> None:
    other = turn(R2, "say:2")
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    await turns.begin(other, repeatable=False)
    await turns.end(CHAT, R2)
    await turns.note_read([turn()])
    # The one that was not read is still known.
    again = await turns.begin(turn(ReplyId("r3"), "say:2"), repeatable=False)
    assert isinstance(again, Attached)
    assert again.turn.reply_id == R2
    assert await began(turns, turn(ReplyId("r4"))) == turn(ReplyId("r4"))


async def test_what_runs_or_has_lapsed_was_not_read_to_its_end(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.note_read([turn()])
    assert await turns.begin(turn(R2), repeatable=False) == Attached(turn())
    await turns.release(CHAT, R1)
    await turns.note_read([turn()])
    (lapsed,) = await turns.lapsed()
    recovery = dataclasses.replace(turn(R2), origin=R1)
    assert await turns.begin(recovery, repeatable=False, over=R1) == Began(recovery, lapsed)
    await turns.end(CHAT, R2)
    # Whoever read what was lost has not read what stands in for it.
    await turns.note_read([turn()])
    again = await turns.begin(turn(ReplyId("r3")), repeatable=False)
    assert isinstance(again, Attached)
    assert again.turn.reply_id == R2


async def test_replies_of_several_chats_are_noted_together(turns: Turns) -> None:
    read = [turn(), turn(R2, chat=OTHER_CHAT)]
    for each in read:
        await turns.begin(each, repeatable=False)
        await turns.end(each.chat_id, each.reply_id)
    await turns.note_read(read)
    for number, each in enumerate(read):
        anew = dataclasses.replace(each, reply_id=ReplyId(f"again-{number}"))
        assert isinstance(await turns.begin(anew, repeatable=False), Began)


async def test_other_requests_of_a_chat_are_forgotten(turns: Turns) -> None:
    for reply_id, key in ((R1, "say:1"), (R2, "say:2")):
        await turns.begin(turn(reply_id, key), repeatable=False)
        await turns.end(CHAT, reply_id)
    elsewhere = turn(ReplyId("r3"), "say:1", chat=OTHER_CHAT)
    await turns.begin(elsewhere, repeatable=False)
    await turns.end(OTHER_CHAT, elsewhere.reply_id)
    for _ in range(2):
        await turns.forget_others(CHAT, R2)
    again = await turns.begin(turn(ReplyId("r4"), "say:2"), repeatable=False)
    assert isinstance(again, Attached)
    assert await began(turns, turn(ReplyId("r5"), "say:1")) == turn(ReplyId("r5"), "say:1")
    kept = await turns.begin(dataclasses.replace(elsewhere, reply_id=R1), repeatable=False)
    assert isinstance(kept, Attached)


async def test_a_turn_that_rewinds_forgets_what_was_answered_before(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    await turns.begin(turn(R2, "say:2"), repeatable=False, rewinds=True)
    await turns.end(CHAT, R2)
    third = turn(ReplyId("r3"))
    assert isinstance(await turns.begin(third, repeatable=False, rewinds=True), Began)


async def test_what_was_asked_of_a_turn_is_asked_of_its_recovery(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.ask_to_stop(CHAT)
    await turns.release(CHAT, R1)
    recovery = dataclasses.replace(turn(R2), origin=R1, recoveries=1)
    begun = await turns.begin(recovery, repeatable=False, over=R1)
    latest = await turns.latest(CHAT)
    assert latest is not None
    assert (latest.stopping, latest.recoveries) == (True, 1)
    assert begun.turn == latest
    await turns.release(CHAT, R2)
    (lapsed,) = await turns.lapsed()
    again = dataclasses.replace(recovery, reply_id=ReplyId("r3"), recoveries=2)
    await turns.begin(again, repeatable=False, over=R2)
    await turns.restore(again, lapsed)
    assert await turns.lapsed() == [lapsed]


async def test_an_ended_chat_is_its_owners_to_take(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.end(CHAT, R1)
    theirs = turn(R2, "say:2", owner=BOB)
    assert isinstance(await turns.begin(theirs, repeatable=False), Busy)
    assert await turns.owner_of(CHAT) == ANN


async def test_nothing_is_taken_over_in_a_chat_that_was_forgotten(turns: Turns) -> None:
    recovery = dataclasses.replace(turn(R2), origin=R1)
    assert isinstance(await turns.begin(recovery, repeatable=False, over=R1), Busy)
    assert await turns.latest(CHAT) is None


# Labels of chats


async def test_chat_that_nobody_labelled_has_an_empty_label(labels: ChatLabels) -> None:
    assert await labels.get(CHAT, ANN) == ChatLabel()
    assert await labels.of_owner(ANN) == {}


async def test_changes_of_a_label_keep_what_they_do_not_name(labels: ChatLabels) -> None:
    assert await labels.change(CHAT, ANN, ChatChange(title="花子")) == ChatLabel("花子")
    assert await labels.change(CHAT, ANN, ChatChange(archived=True)) == ChatLabel("花子", True)
    assert await labels.change(CHAT, ANN, ChatChange(title="")) == ChatLabel("", True)
    assert await labels.change(CHAT, ANN, ChatChange()) == ChatLabel("", True)
    assert await labels.change(CHAT, ANN, ChatChange("x", archived=False)) == ChatLabel("x")
    assert await labels.get(CHAT, ANN) == ChatLabel("x")


async def test_change_of_nothing_labels_nothing(labels: ChatLabels) -> None:
    assert await labels.change(CHAT, ANN, ChatChange()) == ChatLabel()


async def test_labels_are_each_users_own(labels: ChatLabels) -> None:
    await labels.change(CHAT, ANN, ChatChange(title="Ann's"))
    await labels.change(OTHER_CHAT, ANN, ChatChange(archived=True))
    await labels.change(CHAT, BOB, ChatChange(title="Bob's"))
    assert await labels.of_owner(ANN) == {
        CHAT: ChatLabel("Ann's"),
        OTHER_CHAT: ChatLabel("", True),
    }
    assert await labels.get(CHAT, BOB) == ChatLabel("Bob's")


async def test_forgotten_label_is_empty_and_others_stay(labels: ChatLabels) -> None:
    for owner in (ANN, BOB):
        await labels.change(CHAT, owner, ChatChange(title="x"))
    await labels.forget(CHAT, ANN)
    await labels.forget(OTHER_CHAT, ANN)
    assert await labels.get(CHAT, ANN) == ChatLabel()
    assert await labels.of_owner(ANN) == {}
    assert await labels.get(CHAT, BOB) == ChatLabel("x")


async def test_label_is_renamed_and_archived_at_the_same_time(labels: ChatLabels) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(20):
            change = ChatChange(title="both") if number % 2 else ChatChange(archived=True)
            tasks.start_soon(labels.change, CHAT, ANN, change)
    assert await labels.get(CHAT, ANN) == ChatLabel("both", True)
