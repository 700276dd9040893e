from __future__ import annotations

import dataclasses

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from adk_stream_protocol.identifiers import MessageId, ReplyId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.aftermath import Aftermath, aftermath_of
from adk_stream_protocol.translation.history import past_turns, stamp, steering_stamp
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL
from translation.builders import call, confirmation, event, held_call, question, response, text

SAID = event(text("pay 5"), author="user")
CALLED = event(text("Paying."), call("c1"))
ASKED = event(confirmation("adk-1", "c1"), long_running_tool_ids={"adk-1"})
WAITING = event(
    response("c1", error="This tool call requires confirmation."),
    actions=EventActions(
        skip_summarization=True, requested_tool_confirmations={"c1": ToolConfirmation(hint="?")}
    ),
)
HELD = (SAID, CALLED, ASKED, WAITING)
ANSWERED = event(response("adk-1", CONFIRMATION_TOOL, confirmed=True), author="user")
PAID = event(response("c1", paid=5))
TOLD = event(text("Paid."))
STEERED, MORE = (
    event(
        text(name),
        author="user",
        custom_metadata=steering_stamp(MessageId(name), ReplyId("reply-1")),
    )
    for name in ("m1", "m2")
)
SPOKEN = event(
    text("hello"),
    author="user",
    custom_metadata=stamp(
        user_message=MessageId("u1"), message=MessageId("a1"), reply=ReplyId("r1"), mode="live"
    ),
)
COMPLETE = event(turn_complete=True)


def left(*events: Event, rows: tuple[HeldCall, ...] = ()) -> Aftermath:
    (turn,) = past_turns(events)
    return aftermath_of(turn, rows)


def given(after: Aftermath) -> list[tuple[str | None, object]]:
    return [(item.id, item.response) for item in after.respond]


def row(state: CallState, **more: object) -> HeldCall:
    return dataclasses.replace(held_call("adk-1", "c1", state=state), **more)  # type: ignore[arg-type]  # its own fields


def test_what_was_only_said_is_answered_anew() -> None:
    assert left(SAID) == Aftermath(rerun=True)


def test_what_was_answered_is_over() -> None:
    assert left(SAID, TOLD) == Aftermath()
    assert left(*HELD, ANSWERED, PAID, TOLD, rows=(row(CallState.DONE),)) == Aftermath()


def test_a_call_that_waits_goes_on_waiting() -> None:
    assert left(*HELD, rows=(row(CallState.PENDING),)) == Aftermath()
    browser = row(CallState.APPROVED, kind=CallKind.BROWSER)
    assert left(*HELD, rows=(browser,)) == Aftermath()


@pytest.mark.parametrize("answer", [(), (ANSWERED,), (ANSWERED, ANSWERED)])
@pytest.mark.parametrize(
    "state", [state for state in CallState if state not in {CallState.PENDING, CallState.CANCELLED}]
)
def test_an_answer_that_adk_did_not_act_on_is_delivered(
    state: CallState, answer: tuple[Event, ...]
) -> None:
    decided = row(state)
    assert left(*HELD, *answer, rows=(decided,)) == Aftermath(deliver=(decided,))


def test_a_cancelled_call_is_not_delivered_alone() -> None:
    cancelled, denied = row(CallState.CANCELLED), row(CallState.DENIED, call_id="c2")
    assert left(*HELD, rows=(cancelled,)).deliver == ()
    assert left(*HELD, rows=(cancelled, denied)).deliver == (cancelled, denied)


def test_answers_wait_for_each_other() -> None:
    approved, pending = row(CallState.APPROVED), row(CallState.PENDING, call_id="c2")
    assert left(*HELD, rows=(approved, pending)) == Aftermath()


def test_a_result_that_the_model_has_not_answered_is_given_again() -> None:
    assert given(left(*HELD, ANSWERED, PAID, rows=(row(CallState.DONE),))) == [("c1", {"paid": 5})]
    assert given(left(SAID, CALLED, PAID)) == [("c1", {"paid": 5})]


def test_a_tool_that_was_cut_off_is_not_known() -> None:
    ((call_id, told),) = given(left(SAID, CALLED))
    assert call_id == "c1"
    assert "not known" in str(told)


def test_a_call_that_nobody_could_be_asked_for_was_not_run() -> None:
    ((call_id, told),) = given(left(SAID, CALLED, WAITING))
    assert call_id == "c1"
    assert "was not run" in str(told)


def test_only_what_has_no_result_is_not_known() -> None:
    both = event(call("c1"), call("c2", "add"))
    assert [name for name, _ in given(left(SAID, both, PAID))] == ["c2"]


def test_a_result_that_needs_no_answer_gets_none() -> None:
    last = event(response("c1", done=True), actions=EventActions(skip_summarization=True))
    assert left(SAID, CALLED, last) == Aftermath()


def test_a_long_running_call_owes_no_result() -> None:
    started = event(call("c1"), long_running_tool_ids={"c1"})
    assert left(SAID, started) == Aftermath()


def test_a_question_counts_as_answered_once_adk_went_on() -> None:
    asked = event(question("q1"), long_running_tool_ids={"q1"})
    reply = event(response("q1", "adk_request_input", result="Rome"), author="user")
    replied = dataclasses.replace(
        held_call("q1@e-1", "q1@e-1", kind=CallKind.INPUT, approval=False, state=CallState.DONE),
        request_id="q1",
    )
    assert left(SAID, asked, reply, rows=(replied,)).deliver == (replied,)
    assert left(SAID, asked, reply, TOLD, rows=(replied,)) == Aftermath()


def test_what_began_without_a_message_is_not_run_anew() -> None:
    empty = Event(author="user", invocation_id="e-1", actions=EventActions(state_delta={"a": 1}))
    assert left(empty) == Aftermath()


def test_events_that_say_nothing_do_not_count() -> None:
    quiet = event(actions=EventActions(state_delta={"a": 1}))
    assert left(SAID, quiet) == Aftermath(rerun=True)
    assert given(left(SAID, CALLED, PAID, quiet)) == [("c1", {"paid": 5})]


def test_responses_carry_their_names() -> None:
    (told,) = left(SAID, CALLED, PAID).respond
    assert isinstance(told, types.FunctionResponse)
    assert told.name == "pay"


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (CallState.DONE, {"paid": 5}),
        (CallState.FAILED, {"error": "No money."}),
        (CallState.DENIED, {"error": "Denied by policy; no person was asked."}),
    ],
)
def test_what_a_policy_decided_is_told_as_it_was_recorded(
    state: CallState, told: dict[str, object]
) -> None:
    error = "No money." if state is CallState.FAILED else None
    alone = row(state, automatic=True, result={"paid": 5}, error=error)
    after = left(SAID, CALLED, rows=(alone,))
    assert (after.deliver, given(after)) == ((), [("c1", told)])


def test_a_result_that_is_no_object_is_wrapped() -> None:
    after = left(SAID, CALLED, rows=(row(CallState.DONE, automatic=True, result=[5]),))
    assert given(after) == [("c1", {"result": [5]})]


@pytest.mark.parametrize(
    ("state", "told"),
    [(CallState.APPROVED, "was not run"), (CallState.UNKNOWN, "not known whether")],
)
def test_what_a_policy_let_through_and_nobody_saw_end_is_not_run_again(
    state: CallState, told: str
) -> None:
    after = left(SAID, CALLED, rows=(row(state, automatic=True),))
    ((call_id, said),) = given(after)
    assert (after.deliver, call_id) == ((), "c1")
    assert told in str(said)


def test_what_a_policy_decided_and_adk_went_on_with_is_over() -> None:
    alone = row(CallState.DONE, automatic=True)
    assert left(SAID, CALLED, PAID, TOLD, rows=(alone,)) == Aftermath()


def test_what_steered_a_turn_is_no_message_that_began_it() -> None:
    assert left(SAID, STEERED) == Aftermath(rerun=True)
    assert left(SAID, CALLED, PAID, STEERED, TOLD) == Aftermath()


def test_what_steered_a_turn_goes_with_the_results_that_are_given_again() -> None:
    after = left(SAID, CALLED, PAID, STEERED, MORE)
    assert (given(after), after.steer) == ([("c1", {"paid": 5})], (STEERED, MORE))
    # And once more, if that was cut off, too.
    again = event(response("c1", paid=5), author="user")
    after = left(SAID, CALLED, PAID, STEERED, again)
    assert (given(after), after.steer) == ([("c1", {"paid": 5})], (STEERED,))


def test_what_the_model_has_answered_since_is_not_told_again() -> None:
    second = event(call("c2"))
    after = left(SAID, CALLED, PAID, STEERED, second, event(response("c2", paid=6)))
    assert (given(after), after.steer) == ([("c2", {"paid": 6})], ())


@pytest.mark.parametrize(
    ("since", "unheard"),
    [
        ((STEERED, TOLD), (STEERED,)),
        ((STEERED, TOLD, COMPLETE), (STEERED,)),
        ((TOLD, STEERED), (STEERED,)),
        ((STEERED, TOLD, COMPLETE, TOLD), ()),
        ((STEERED, TOLD, COMPLETE, TOLD, COMPLETE), ()),
        ((STEERED, MORE, TOLD, COMPLETE), (STEERED, MORE)),
        ((STEERED, MORE, TOLD, COMPLETE, TOLD), (MORE,)),
        # It was told again, after a cut.
        ((STEERED, TOLD, STEERED), (STEERED,)),
        ((STEERED, TOLD, STEERED, TOLD), ()),
        ((STEERED, TOLD, STEERED, TOLD, COMPLETE), ()),
    ],
)
def test_a_live_model_is_told_again_what_it_did_not_come_to_answer(
    since: tuple[Event, ...], unheard: tuple[Event, ...]
) -> None:
    assert left(SPOKEN, *since) == Aftermath(steer=unheard)
