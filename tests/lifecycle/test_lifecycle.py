from __future__ import annotations

import itertools

import pytest

from adk_stream_protocol.lifecycle import (
    TRANSITIONS,
    CallEvent,
    CallKind,
    CallState,
    IllegalTransition,
    next_state,
)
from translation.builders import held_call

PATHS = [
    (["approve", "claim", "finish"], "done"),
    (["approve", "claim", "fail"], "failed"),
    (["approve", "claim", "lapse"], "unknown"),
    (["approve", "claim", "lapse", "resolve_done"], "done"),
    (["approve", "claim", "lapse", "resolve_failed"], "failed"),
    (["approve", "claim", "release", "claim", "finish"], "done"),
    (["approve", "claim", "release", "lapse"], "unknown"),
    (["step", "approve", "claim", "finish"], "done"),
    (["approve", "output"], "done"),
    (["approve", "output_error"], "failed"),
    (["approve", "expire"], "expired"),
    (["approve", "cancel"], "cancelled"),
    (["deny"], "denied"),
    (["expire"], "expired"),
    (["cancel"], "cancelled"),
]
ENDS = {"denied", "expired", "cancelled", "done", "failed"}


@pytest.mark.parametrize(("events", "end"), PATHS)
def test_call_can_live_this_life(events: list[str], end: str) -> None:
    state = CallState.PENDING
    for event in events:
        state = next_state(state, CallEvent(event))
    assert state == end


def test_every_step_that_the_lives_do_not_take_is_illegal() -> None:
    taken: set[tuple[str, str]] = set()
    for events, _ in PATHS:
        state = CallState.PENDING
        for event in events:
            taken.add((state, event))
            state = next_state(state, CallEvent(event))
    for state, event in itertools.product(CallState, CallEvent):
        if (state.value, event.value) not in taken:
            with pytest.raises(IllegalTransition, match=f"is {state} cannot {event}"):
                next_state(state, event)


def test_every_state_has_a_row_and_ends_have_an_empty_one() -> None:
    assert set(TRANSITIONS) == set(CallState)
    assert {state for state, steps in TRANSITIONS.items() if not steps} == ENDS


def test_call_after_an_event_is_another_value() -> None:
    call = held_call()
    assert call.after(CallEvent.APPROVE).state is CallState.APPROVED
    assert call.state is CallState.PENDING
    with pytest.raises(IllegalTransition):
        call.after(CallEvent.CLAIM)


@pytest.mark.parametrize("kind", CallKind)
def test_pending_call_waits_for_the_client_whoever_runs_it(kind: CallKind) -> None:
    assert held_call(kind=kind).is_open


@pytest.mark.parametrize("kind", CallKind)
def test_approved_call_waits_for_the_client_unless_the_server_runs_it(kind: CallKind) -> None:
    approved = held_call(kind=kind, state=CallState.APPROVED)
    assert approved.is_open is (kind is not CallKind.TOOL)
    assert approved.is_deliverable is (kind is CallKind.TOOL)


@pytest.mark.parametrize("state", [state for state in CallState if state != "pending"])
def test_answered_call_is_delivered_once(state: CallState) -> None:
    call = held_call(state=state)
    assert call.is_deliverable
    assert not call.is_open


def test_delivered_and_pending_calls_are_not_deliverable() -> None:
    assert not held_call().is_deliverable
    delivered = held_call(state=CallState.APPROVED, delivered_in="reply-1")
    assert not delivered.is_deliverable


@pytest.mark.parametrize("state", CallState)
def test_call_was_let_through_unless_it_waits_or_was_turned_away(state: CallState) -> None:
    turned_away = {"pending", "denied", "expired", "cancelled"}
    assert held_call(state=state).approved is (state not in turned_away)
