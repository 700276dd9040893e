"""What every store promises of requests that wait for their chats.

A part of the contract, with its fixtures: see `stores.contract`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import anyio
import pytest

from adk_stream_protocol.errors import TooMany
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import (
    Attached,
    Began,
    Busy,
    Queued,
    TurnRecord,
    Turns,
    Waiting,
    WaitingRequest,
)
from adk_stream_protocol.wire.requests import BusyPolicy
from adk_stream_protocol.wire.values import JsonObject
from stores.contract import ANN, BOB, CHAT, OTHER_CHAT, R1, R2, Backend, turn

pytestmark = pytest.mark.anyio

R3, R4 = ReplyId("reply-3"), ReplyId("reply-4")


@pytest.fixture
def waiting(backend: Backend) -> Waiting:
    return backend.stores.waiting


def asking(
    reply_id: ReplyId = R2,
    key: str = "say:2",
    policy: BusyPolicy = "queue",
    *,
    chat: ChatId = CHAT,
    owner: UserId = ANN,
) -> WaitingRequest:
    """Return a request, as its client wrote it."""
    said: JsonObject = {"id": key, "parts": [{"type": "text", "text": "花子"}]}
    body: JsonObject = {"id": chat, "messages": [said]}
    return WaitingRequest(chat, owner, reply_id, key, request=body, mode="live", policy=policy)


async def ask(
    turns: Turns,
    request: WaitingRequest,
    *,
    repeatable: bool = False,
    rewinds: bool = False,
    most: int | None = None,
    most_waiting: int | None = None,
) -> Began | Attached | Busy | Queued:
    """Make a request: it takes its chat, or waits for it."""
    record = TurnRecord(request.chat_id, request.owner, request.reply_id, request.key)
    return await turns.begin(
        record,
        repeatable=repeatable,
        rewinds=rewinds,
        most=most,
        request=request,
        most_waiting=most_waiting,
    )


async def queued(turns: Turns, *requests: WaitingRequest) -> None:
    for request in requests:
        assert isinstance(await ask(turns, request), Queued)


async def carry_out(
    turns: Turns, request: WaitingRequest, *, rewinds: bool = False
) -> Began | Attached | Busy | Queued:
    """Begin the turn of a request that waited."""
    record = TurnRecord(request.chat_id, request.owner, request.reply_id, request.key)
    return await turns.begin(record, repeatable=True, rewinds=rewinds, waited=True)


async def latest(turns: Turns) -> TurnRecord:
    found = await turns.latest(CHAT)
    assert found is not None
    return found


def names(requests: Sequence[WaitingRequest]) -> list[ReplyId]:
    return [request.reply_id for request in requests]


# Waiting


async def test_a_request_takes_a_free_chat_and_does_not_wait(
    turns: Turns, waiting: Waiting
) -> None:
    assert isinstance(await ask(turns, asking()), Began)
    assert await waiting.of_chat(CHAT) == []
    assert await waiting.get(R2) is None


async def test_a_request_for_a_busy_chat_waits_as_it_was_made(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    assert await ask(turns, asking()) == Queued(asking(), turn())
    assert await waiting.get(R2) == asking()
    assert await waiting.of_chat(CHAT) == [asking()]
    assert await waiting.of_chat(OTHER_CHAT) == []
    # What runs is not asked to stop.
    assert await turns.renew([R1]) == [turn()]


async def test_requests_wait_in_the_order_in_which_they_came(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    came = [asking(ReplyId(f"reply-{number}"), f"say:{number}") for number in (9, 3, 7, 5)]
    await queued(turns, *came)
    assert await waiting.of_chat(CHAT) == came
    await turns.end(CHAT, R1)
    assert isinstance(await carry_out(turns, came[0]), Began)
    await queued(turns, asking(ReplyId("reply-1a"), "say:1a"))
    assert names(await waiting.of_chat(CHAT)) == ["reply-3", "reply-7", "reply-5", "reply-1a"]


async def test_nobody_overtakes_what_waits_for_a_chat_that_is_free(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    await turns.end(CHAT, R1)
    later = asking(R3, "say:3")
    assert isinstance(await ask(turns, later), Queued)
    assert await waiting.of_chat(CHAT) == [asking(), later]


async def test_answers_do_not_wait_behind_messages(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    await turns.end(CHAT, R1)
    assert isinstance(await turns.begin(turn(R3, "answers:a"), repeatable=False), Began)


async def test_a_request_without_a_place_to_wait_finds_the_chat_busy(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    assert await turns.begin(turn(R2, "say:2"), repeatable=False) == Busy(turn())


async def test_a_request_does_not_wait_for_a_turn_that_lapsed(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.release(CHAT, R1)
    refused = await ask(turns, asking())
    assert isinstance(refused, Busy)
    assert refused.turn.lapsed
    assert await waiting.of_chat(CHAT) == []


# The same request again


async def test_the_same_request_again_is_the_one_that_waits(turns: Turns, waiting: Waiting) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    assert await ask(turns, asking(R3)) == Queued(asking(), turn())
    await turns.end(CHAT, R1)
    again = await ask(turns, asking(R3))
    assert isinstance(again, Queued)
    assert again.request == asking()
    assert names(await waiting.of_chat(CHAT)) == [R2]


async def test_the_same_request_again_attaches_to_the_turn_that_carries_it_out(
    turns: Turns,
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    await turns.end(CHAT, R1)
    await carry_out(turns, asking())
    again = await ask(turns, asking(R3))
    assert isinstance(again, Attached)
    assert (again.turn.reply_id, again.turn.running) == (R2, True)
    await turns.end(CHAT, R2, carried=R2)
    again = await ask(turns, asking(R3))
    assert isinstance(again, Attached)
    assert (again.turn.reply_id, again.turn.running) == (R2, False)


@pytest.mark.parametrize("others", [(), (asking(R4, "say:4"),)], ids=["first", "behind another"])
async def test_of_many_same_requests_at_once_one_waits(
    turns: Turns, waiting: Waiting, others: tuple[WaitingRequest, ...]
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, *others)
    replies: set[ReplyId] = set()

    async def make(number: int) -> None:
        made = await ask(turns, asking(ReplyId(f"again-{number}")))
        assert isinstance(made, Queued)
        replies.add(made.request.reply_id)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(make, number)
    assert len(replies) == 1
    assert names(await waiting.of_chat(CHAT)) == [*names(others), *replies]


async def test_a_regeneration_that_was_stopped_while_it_waited_can_be_asked_for_again(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await ask(turns, asking(key="regenerate:"), repeatable=True)
    await waiting.stop(CHAT)
    again = asking(R3, "regenerate:")
    made = await ask(turns, again, repeatable=True)
    assert isinstance(made, Queued)
    assert made.request == again
    # A message is one message, however often it is sent.
    await queued(turns, asking(R4))
    await waiting.stop(CHAT)
    repeated = await ask(turns, asking(ReplyId("reply-5")))
    assert isinstance(repeated, Queued)
    assert repeated.request.reply_id == R4


# Limits


async def test_only_so_many_requests_wait_for_a_chat(turns: Turns, waiting: Waiting) -> None:
    await turns.begin(turn(), repeatable=False)
    await ask(turns, asking(), most_waiting=1)
    third = asking(R3, "say:3", "interrupt")
    with pytest.raises(TooMany, match="1 messages wait"):
        await ask(turns, third, most_waiting=1)
    assert names(await waiting.of_chat(CHAT)) == [R2]
    assert not (await latest(turns)).stopping
    # One that waits already is no other.
    assert isinstance(await ask(turns, asking(R4), most_waiting=1), Queued)
    # What is carried out does not wait.
    await turns.end(CHAT, R1)
    await carry_out(turns, asking())
    assert isinstance(await ask(turns, third, most_waiting=1), Queued)


async def test_turns_that_were_asked_to_stop_do_not_count(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False, most=1)
    other = asking(R2, chat=OTHER_CHAT)
    with pytest.raises(TooMany):
        await ask(turns, other, most=1)
    await turns.ask_to_stop(CHAT)
    assert isinstance(await ask(turns, other, most=1), Began)


async def test_who_has_too_many_turns_may_still_ask_in_a_chat_that_is_busy(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False, most=1)
    assert isinstance(await ask(turns, asking(), most=1), Queued)


# Interrupting


async def test_an_interrupting_request_asks_the_turn_to_stop_gently(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    stopping = dataclasses.replace(turn(), stopping=True, gently=True)
    asked = asking(policy="interrupt")
    assert await ask(turns, asked) == Queued(asked, stopping)
    assert await turns.renew([R1]) == [stopping]
    assert await latest(turns) == stopping


async def test_a_person_who_stops_is_not_gentle_whoever_was_first(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking(policy="interrupt"))
    stopping = await turns.ask_to_stop(CHAT)
    assert stopping is not None
    assert (stopping.stopping, stopping.gently) == (True, False)
    await queued(turns, asking(R3, "say:3", "interrupt"))
    assert await turns.renew([R1]) == [stopping]


async def test_what_waits_to_interrupt_is_stopped_by_the_next_and_what_is_queued_is_not(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    first, between, last = (
        asking(R2, "say:2", "interrupt"),
        asking(R3, "say:3"),
        asking(R4, "say:4", "interrupt"),
    )
    await queued(turns, first, between, last)
    stopped = dataclasses.replace(first, stopping=True)
    assert await waiting.of_chat(CHAT) == [stopped, between, last]


async def test_an_interruption_of_a_turn_is_one_of_its_recovery(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking(policy="interrupt"))
    await turns.release(CHAT, R1)
    recovery = dataclasses.replace(turn(R3), origin=R1)
    begun = await turns.begin(recovery, repeatable=False, over=R1)
    assert isinstance(begun, Began)
    assert (begun.turn.stopping, begun.turn.gently) == (True, True)
    await turns.end(CHAT, R3)
    # The next turn is another's.
    begun = await carry_out(turns, asking())
    assert isinstance(begun, Began)
    assert (begun.turn.stopping, begun.turn.gently) == (False, False)


# Carrying out


async def test_a_request_that_waited_is_taken_once(turns: Turns, waiting: Waiting) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    assert isinstance(await carry_out(turns, asking()), Busy)
    assert await waiting.of_chat(CHAT) == [asking()]
    await turns.end(CHAT, R1)
    begun = await carry_out(turns, asking())
    assert isinstance(begun, Began)
    assert begun.turn == turn(R2, "say:2")
    assert not isinstance(await carry_out(turns, asking()), Began)
    taken = dataclasses.replace(asking(), taken_in=R2)
    assert await waiting.of_chat(CHAT) == []
    assert await waiting.get(R2) == taken
    assert await waiting.carried(R2) == [taken]


async def test_a_request_that_was_carried_out_does_not_begin_again(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    await turns.end(CHAT, R1)
    await carry_out(turns, asking())
    await turns.end(CHAT, R2, carried=R2)
    assert await waiting.get(R2) is None
    ended = await latest(turns)
    assert isinstance(await carry_out(turns, asking()), Busy)
    assert await latest(turns) == ended


async def test_of_many_who_carry_a_request_out_at_once_one_begins(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    await turns.end(CHAT, R1)
    came: list[type] = []

    async def begin() -> None:
        came.append(type(await carry_out(turns, asking())))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(begin)
    assert came.count(Began) == 1


async def test_the_turn_of_a_request_that_was_stopped_is_stopping(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    assert await waiting.stop(CHAT) == 1
    assert await waiting.stop(CHAT) == 0
    await turns.end(CHAT, R1)
    begun = await carry_out(turns, asking())
    assert isinstance(begun, Began)
    assert (begun.turn.stopping, begun.turn.gently) == (True, False)
    assert await turns.renew([R2]) == [begun.turn]


async def test_a_request_that_rewinds_when_its_turn_comes_forgets_what_was_answered_before(
    turns: Turns,
) -> None:
    await turns.begin(turn(), repeatable=False)
    edit = asking()
    assert isinstance(await ask(turns, edit, rewinds=True), Queued)
    await turns.end(CHAT, R1)
    assert isinstance(await carry_out(turns, edit, rewinds=True), Began)
    assert await turns.answered_in(CHAT, "say:1") is None
    assert await turns.answered_in(CHAT, "say:2") == R2


async def test_the_row_of_a_turn_that_is_cut_off_stays_until_its_recovery_has_ended(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    await turns.end(CHAT, R1)
    await carry_out(turns, asking())
    await turns.release(CHAT, R2)
    recovery = dataclasses.replace(turn(R3, "say:2"), origin=R2, recoveries=1)
    await turns.begin(recovery, repeatable=False, over=R2)
    assert names(await waiting.carried(R2)) == [R2]
    assert await turns.answered_in(CHAT, "say:2") == R3
    # Whoever was paused meanwhile ends nothing, and forgets nothing.
    await turns.end(CHAT, R2, carried=R2)
    await turns.restore(turn(R2, "say:2"), turn())
    assert names(await waiting.carried(R2)) == [R2]
    assert await latest(turns) == recovery
    await turns.end(CHAT, R3, carried=R2)
    assert await waiting.get(R2) is None


async def test_a_request_that_cannot_be_carried_out_is_forgotten(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking(), asking(R3, "say:3"))
    await turns.end(CHAT, R1)
    begun = await carry_out(turns, asking())
    assert isinstance(begun, Began)
    await turns.restore(begun.turn, begun.previous)
    assert await waiting.get(R2) is None
    assert await turns.answered_in(CHAT, "say:2") is None
    assert await waiting.of_chat(CHAT) == [asking(R3, "say:3")]


async def test_a_request_of_a_turn_that_failed_is_forgotten_and_may_be_made_again(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking())
    await turns.end(CHAT, R1)
    await carry_out(turns, asking())
    await turns.end(CHAT, R2, failed=True, carried=R2)
    assert await waiting.get(R2) is None
    assert isinstance(await ask(turns, asking(R3)), Began)


# Chats that somebody must look after


async def test_chats_are_found_that_nothing_runs_in_though_something_waits(
    turns: Turns, waiting: Waiting
) -> None:
    assert await waiting.chats() == []
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking(), asking(R3, "say:3"))
    assert await waiting.chats() == []
    await turns.release(CHAT, R1)
    # It is recovered first.
    assert await waiting.chats() == []
    recovery = dataclasses.replace(turn(R4), origin=R1)
    await turns.begin(recovery, repeatable=False, over=R1)
    assert await waiting.chats() == []
    await turns.end(CHAT, R4)
    assert await waiting.chats() == [CHAT]
    await carry_out(turns, asking())
    assert await waiting.chats() == []
    await turns.end(CHAT, R2, carried=R2)
    assert await waiting.chats() == [CHAT]


async def test_what_waits_for_a_chat_is_forgotten_with_it(turns: Turns, waiting: Waiting) -> None:
    await turns.begin(turn(), repeatable=False)
    await turns.begin(turn(R3, chat=OTHER_CHAT), repeatable=False)
    await queued(turns, asking(), asking(R4, chat=OTHER_CHAT))
    await turns.forget(CHAT)
    assert await waiting.get(R2) is None
    assert names(await waiting.of_chat(OTHER_CHAT)) == [R4]
    assert isinstance(await ask(turns, asking(R2, owner=BOB)), Began)


# Stopping


async def test_one_request_that_waits_is_stopped_and_no_other(
    turns: Turns, waiting: Waiting
) -> None:
    await turns.begin(turn(), repeatable=False)
    await queued(turns, asking(), asking(R3, "say:3"))
    assert await waiting.stop(CHAT, reply_id=R4) == 0
    assert await waiting.stop(OTHER_CHAT, reply_id=R3) == 0
    assert await waiting.stop(CHAT, reply_id=R3) == 1
    assert [one.stopping for one in await waiting.of_chat(CHAT)] == [False, True]
    await turns.end(CHAT, R1)
    await carry_out(turns, asking())
    # It does not wait any more.
    assert await waiting.stop(CHAT, reply_id=R2) == 0
    assert await waiting.stop(CHAT) == 0


async def test_a_turn_is_asked_to_stop_by_its_reply(turns: Turns) -> None:
    await turns.begin(turn(), repeatable=False)
    assert await turns.ask_to_stop(CHAT, reply_id=R2) is None
    assert await turns.ask_to_stop(OTHER_CHAT, reply_id=R1) is None
    assert not (await latest(turns)).stopping
    stopping = await turns.ask_to_stop(CHAT, reply_id=R1)
    assert stopping == dataclasses.replace(turn(), stopping=True)


# Steering


async def steered(turns: Turns, *requests: WaitingRequest) -> None:
    """Let a turn run that these wait to steer."""
    await turns.begin(turn(), repeatable=False)
    await queued(turns, *requests)


async def test_a_turn_learns_that_it_may_be_steered(turns: Turns, waiting: Waiting) -> None:
    await steered(turns, asking())
    await turns.begin(turn(R3, chat=OTHER_CHAT), repeatable=False)
    assert [kept.steered for kept in await turns.renew([R1, R3])] == [False, False]
    await queued(turns, asking(R4, "say:4", "steer"))
    assert {kept.reply_id: kept.steered for kept in await turns.renew([R1, R3])} == {
        R1: True,
        R3: False,
    }
    await waiting.stop(CHAT, reply_id=R4)
    assert [kept.steered for kept in await turns.renew([R1])] == [False]


async def test_a_turn_takes_what_steers_it_in_order_and_once(
    turns: Turns, waiting: Waiting
) -> None:
    came = [
        asking(ReplyId("reply-9"), "say:9", "steer"),
        asking(R2, "say:2", "queue"),
        asking(R3, "say:3", "steer"),
        asking(R4, "say:4", "steer"),
    ]
    await steered(turns, *came)
    await waiting.stop(CHAT, reply_id=R4)
    taken = await waiting.steer(CHAT, R1, carries=R1)
    assert taken == [
        dataclasses.replace(came[0], taken_in=R1),
        dataclasses.replace(came[2], taken_in=R1),
    ]
    assert await waiting.carried(R1) == taken
    assert await waiting.steer(CHAT, R1, carries=R1) == []
    assert names(await waiting.of_chat(CHAT)) == [R2, R4]
    assert await turns.answered_in(CHAT, "say:9") == R1
    assert await turns.answered_in(CHAT, "say:2") is None


async def test_only_a_turn_that_holds_its_chat_is_steered(turns: Turns, waiting: Waiting) -> None:
    await steered(turns, asking(policy="steer"))
    assert await waiting.steer(CHAT, R3, carries=R3) == []
    await turns.release(CHAT, R1)
    assert await waiting.steer(CHAT, R1, carries=R1) == []
    recovery = dataclasses.replace(turn(R3), origin=R1)
    await turns.begin(recovery, repeatable=False, over=R1)
    assert await waiting.steer(CHAT, R1, carries=R1) == []
    # Under the first reply's name, and answered by the one that there is.
    assert names(await waiting.steer(CHAT, R3, carries=R1)) == [R2]
    assert names(await waiting.carried(R1)) == [R2]
    assert await turns.answered_in(CHAT, "say:2") == R3
    await turns.end(CHAT, R3, carried=R1, heard=[R2])
    assert await waiting.steer(CHAT, R3, carries=R1) == []


async def test_what_a_turn_heard_is_forgotten_at_its_end_and_the_rest_waits_again(
    turns: Turns, waiting: Waiting
) -> None:
    unheard = asking(R3, "say:3", "steer")
    await steered(turns, asking(policy="steer"), unheard)
    await waiting.steer(CHAT, R1, carries=R1)
    await turns.end(CHAT, R1, carried=R1, heard=[R2])
    assert await waiting.get(R2) is None
    assert await waiting.of_chat(CHAT) == [unheard]
    assert await turns.answered_in(CHAT, "say:2") == R1
    assert await turns.answered_in(CHAT, "say:3") is None
    assert isinstance(await carry_out(turns, unheard), Began)


async def test_a_request_that_was_not_heard_waits_again_in_its_place(
    turns: Turns, waiting: Waiting
) -> None:
    first, second = asking(policy="steer"), asking(R3, "say:3")
    await steered(turns, first, second)
    await waiting.steer(CHAT, R1, carries=R1)
    await waiting.put_back(R4, [R2])
    assert await waiting.of_chat(CHAT) == [second]
    await waiting.put_back(R1, [R2, R3])
    assert await waiting.of_chat(CHAT) == [first, second]
    assert await turns.answered_in(CHAT, "say:2") is None
    assert names(await waiting.steer(CHAT, R1, carries=R1)) == [R2]


async def test_a_request_that_steered_a_turn_attaches_to_it_when_it_is_made_again(
    turns: Turns, waiting: Waiting
) -> None:
    await steered(turns, asking(policy="steer"))
    await waiting.steer(CHAT, R1, carries=R1)
    again = asking(R3, policy="steer")
    assert await ask(turns, again) == Attached(turn())
    await turns.end(CHAT, R1, carried=R1, heard=[R2])
    assert await ask(turns, again) == Attached(dataclasses.replace(turn(), running=False))
    await turns.begin(turn(R4, "say:4"), repeatable=False)
    late = await ask(turns, again)
    assert isinstance(late, Attached)
    assert (late.turn.reply_id, late.turn.running) == (R1, False)
    assert await waiting.of_chat(CHAT) == []


async def test_a_turn_that_ends_while_it_is_steered_leaves_nothing_behind(
    turns: Turns, waiting: Waiting
) -> None:
    for number in range(20):
        own, other = ReplyId(f"own-{number}"), ReplyId(f"other-{number}")
        asked = asking(other, f"say:{other}", "steer")
        await turns.begin(turn(own, f"say:{own}"), repeatable=False)
        await queued(turns, asked)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(waiting.steer, carries=own), CHAT, own)
            await turns.end(CHAT, own, carried=own)
        assert names(await waiting.of_chat(CHAT)) == [other]
        assert isinstance(await carry_out(turns, asked), Began)
        await turns.end(CHAT, other, carried=other)
    assert await waiting.chats() == []
