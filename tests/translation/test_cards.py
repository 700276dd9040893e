from __future__ import annotations

import pytest

from adk_stream_protocol.lifecycle import CallKind, CallState
from adk_stream_protocol.translation.cards import approval_json, call_answered, card, time_text
from translation.builders import held_call

BASE = {
    "toolCallId": "c1",
    "toolName": "pay",
    "status": "pending",
    "title": "Pay",
    "hint": "Sure?",
    "risk": "high",
    "createdAt": "1970-01-01T00:00:00.000Z",
    "expiresAt": "1970-01-01T01:00:00.000Z",
}


def test_times_are_written_as_javascript_writes_them() -> None:
    assert time_text(1_800_000_000.1234) == "2027-01-15T08:00:00.123Z"


def test_card_of_a_pending_call_leaves_out_what_is_not_known() -> None:
    assert card(held_call()) == BASE


def test_card_of_a_decided_call_says_who_decided_and_how() -> None:
    call = held_call(
        state=CallState.DENIED,
        decided_at=60.0,
        decided_by="bob",
        reason="Too much.",
        payload={"days": 3},
        ui={"icon": "coin"},
    )
    assert card(call) == BASE | {
        "status": "denied",
        "payload": {"days": 3},
        "ui": {"icon": "coin"},
        "decidedAt": "1970-01-01T00:01:00.000Z",
        "decidedBy": "bob",
        "reason": "Too much.",
    }


def test_approval_is_its_card_with_ids_and_input() -> None:
    assert approval_json(held_call()) == BASE | {
        "id": "adk-1",
        "chatId": "chat",
        "owner": "ann",
        "input": {"amount": 5},
        "argumentsHash": held_call().arguments_hash,
    }


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (CallState.APPROVED, "approved"),
        (CallState.RUNNING, "approved"),
        (CallState.DONE, "approved"),
        (CallState.FAILED, "approved"),
        (CallState.UNKNOWN, "approved"),
        (CallState.DENIED, "denied"),
        (CallState.EXPIRED, "expired"),
        (CallState.CANCELLED, "cancelled"),
    ],
)
def test_outcome_is_that_of_the_recorded_state(state: CallState, outcome: str) -> None:
    assert call_answered(held_call(state=state)).outcome == outcome


def test_answer_carries_reason_and_card_and_no_result() -> None:
    call = held_call(state=CallState.DONE, reason="Fine.", result={"paid": 5})
    told = call_answered(call)
    assert (told.approval_id, told.call_id, told.kind) == ("adk-1", "c1", "tool")
    assert (told.reason, told.approval, told.card) == ("Fine.", True, card(call))
    assert (told.output, told.error) == (None, None)


def test_answer_to_a_question_carries_the_reply() -> None:
    call = held_call(
        kind=CallKind.INPUT, approval=False, state=CallState.DONE, result="Tokyo", done_at=1.0
    )
    told = call_answered(call)
    assert (told.kind, told.approval, told.output, told.error) == ("input", False, "Tokyo", None)


def test_answer_to_a_question_carries_why_there_is_no_reply() -> None:
    call = held_call(kind=CallKind.INPUT, approval=False, state=CallState.FAILED, error="No idea.")
    assert call_answered(call).error == "No idea."
