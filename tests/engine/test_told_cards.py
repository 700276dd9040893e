from __future__ import annotations

import dataclasses

import pytest

from adk_stream_protocol.engine.told_cards import ToldCards
from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.ports import Stores, TurnRecord, Verdict
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.translation.cards import call_answered, card
from adk_stream_protocol.wire.chunks import ToolOutputAvailableChunk, ToolOutputErrorChunk
from adk_stream_protocol.wire.entries import CallFinished, Entry

pytestmark = pytest.mark.anyio

CHAT, OWNER, REPLY = ChatId("c"), UserId("alice"), ReplyId("r1")
RESULT = ToolOutputAvailableChunk("c1", {"paid": 5})


@pytest.fixture
def stores() -> Stores:
    return memory_stores()


async def approved(stores: Stores) -> HeldCall:
    await stores.turns.begin(TurnRecord(CHAT, OWNER, REPLY, key="k"), repeatable=False)
    await stores.calls.open(
        HeldCall(
            approval_id=ApprovalId("a1"),
            call_id=CallId("c1"),
            owner=OWNER,
            chat_id=CHAT,
            invocation_id=InvocationId("e-1"),
            tool_name="pay",
            arguments={},
            arguments_hash="",
            created_at=0.0,
            expires_at=await stores.calls.now() + 60,
        )
    )
    _, call = await stores.calls.decide(ApprovalId("a1"), Verdict(True, by=OWNER))
    return call


async def finished(stores: Stores) -> HeldCall:
    claimed = await stores.calls.claim(ApprovalId("a1"), REPLY)
    assert claimed is not None
    await stores.calls.finish(claimed.approval_id, claimed.fence, result={"paid": 5}, error=None)
    call = await stores.calls.get(claimed.approval_id)
    assert call is not None
    return call


async def test_a_result_brings_the_card_that_the_call_then_has(stores: Stores) -> None:
    told = ToldCards(stores.calls)
    answer = call_answered(await approved(stores))
    assert await told.renewed([answer]) == [answer]
    done = await finished(stores)
    assert await told.renewed([RESULT]) == [RESULT, CallFinished("a1", card(done))]
    # Once: a part has one result.
    assert await told.renewed([RESULT]) == [RESULT]


async def test_a_card_that_has_not_changed_is_not_told_again(stores: Stores) -> None:
    told = ToldCards(stores.calls)
    await approved(stores)
    done = await finished(stores)
    told.note([call_answered(done)])
    assert await told.renewed([RESULT]) == [RESULT]


async def test_results_of_other_calls_are_told_as_they_are(stores: Stores) -> None:
    told = ToldCards(stores.calls)
    call = await approved(stores)
    denied = dataclasses.replace(call_answered(call), outcome="denied", call_id="c2")
    unasked = dataclasses.replace(call_answered(call), approval=False, call_id="c3")
    told.note([denied, unasked])
    results: list[Entry] = [ToolOutputErrorChunk("c2", "No."), ToolOutputAvailableChunk("c3", 1)]
    assert await told.renewed(results) == results


async def test_what_has_not_started_when_a_reply_is_stopped_is_told_as_cancelled(
    stores: Stores,
) -> None:
    told = ToldCards(stores.calls)
    told.note([call_answered(await approved(stores))])
    await told.give_up()
    stopped = ToolOutputErrorChunk("c1", "Stopped.")
    (_, shown) = await told.renewed([stopped])
    assert isinstance(shown, CallFinished)
    assert shown.card["status"] == "cancelled"


async def test_what_has_started_is_not_given_up(stores: Stores) -> None:
    told = ToldCards(stores.calls)
    told.note([call_answered(await approved(stores))])
    done = await finished(stores)
    await told.give_up()
    assert await told.renewed([RESULT]) == [RESULT, CallFinished("a1", card(done))]
