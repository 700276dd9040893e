from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.cards import call_answered, call_held, card
from adk_stream_protocol.translation.resuming import Resumption, with_outcomes
from adk_stream_protocol.wire.assembler import assemble
from adk_stream_protocol.wire.chunks import (
    FinishChunk,
    FinishStepChunk,
    StartChunk,
    StartStepChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
)
from adk_stream_protocol.wire.entries import CallFinished, CallHeld, Entry, InputReleased, Resumed
from adk_stream_protocol.wire.messages import Part
from adk_stream_protocol.wire.profiles import Audience
from translation.builders import held_call

V6, V7 = Audience(), Audience(sdk=7)
INPUT = {"amount": 5}


def call(call_id: str, name: str = "pay") -> list[Entry]:
    return [
        ToolInputStartChunk(call_id, name),
        ToolInputDeltaChunk(call_id, '{"amount":5}'),
        ToolInputAvailableChunk(call_id, name, INPUT),
    ]


def asked(*rows: HeldCall) -> list[Entry]:
    """Return a reply that asked for calls, as it was when nobody had answered."""
    shown = [each for row in rows for each in call(row.call_id, row.tool_name)]
    open_state = {True: CallState.PENDING, False: CallState.APPROVED}
    held = [
        call_held(dataclasses.replace(row, state=open_state[row.approval], decided_at=None))
        for row in rows
    ]
    end: list[Entry] = [FinishStepChunk(), FinishChunk("tool-calls")]
    return [StartChunk("m1"), StartStepChunk(), *shown, *held, *end]


def parts(entries: Sequence[Entry], rows: Sequence[HeldCall], audience: Audience) -> list[Part]:
    message = assemble(audience.render(Resumption.of(rows).retold(entries)))
    return [part for part in message.parts if "toolCallId" in part]


def states(entries: Sequence[Entry], rows: Sequence[HeldCall], audience: Audience) -> list[object]:
    return [part["state"] for part in parts(entries, rows, audience)]


def calls_of(entries: Sequence[Entry], rows: Sequence[HeldCall], audience: Audience) -> list[str]:
    """Return the calls that a client's `onToolCall` is given."""
    chunks = audience.render(Resumption.of(rows).retold(entries))
    return [chunk.tool_call_id for chunk in chunks if isinstance(chunk, ToolInputAvailableChunk)]


def decided(state: CallState, done_at: float | None = None, delivered_in: str = "") -> HeldCall:
    return held_call(
        state=state,
        decided_at=2.0,
        decided_by="alice",
        done_at=done_at,
        delivered_in=delivered_in or None,
    )


def browser(state: CallState = CallState.APPROVED, *, approval: bool = True) -> HeldCall:
    return held_call(
        "adk-2",
        "c2",
        tool_name="locate",
        kind=CallKind.BROWSER,
        approval=approval,
        state=state,
        decided_at=2.0 if approval and state is not CallState.PENDING else None,
    )


def test_a_reply_without_held_calls_is_told_as_it_is_but_for_calls_that_are_over() -> None:
    entries: list[Entry] = [
        StartChunk("m1"),
        *call("c1"),
        ToolOutputAvailableChunk("c1", 1),
        *call("c2"),
    ]
    told = Resumption.of([]).retold(entries)
    assert (
        told
        == [
            entries[0],
            entries[1],
            Resumed(entries[2]),  # type: ignore[arg-type]  # a delta
            Resumed(entries[3]),  # type: ignore[arg-type]  # an input
            *entries[4:],
        ]
    )


def test_a_call_that_waits_is_told_as_it_is_with_its_newest_card() -> None:
    row = held_call(reason="changed")
    entries = asked(held_call())
    told = Resumption.of([row]).retold(entries)
    (held,) = [entry for entry in told if isinstance(entry, CallHeld)]
    assert held.card == card(row)
    assert [entry for entry in told if isinstance(entry, Resumed)] == []


@pytest.mark.parametrize("audience", [V6, V7], ids=["v6", "v7"])
def test_an_approval_that_waits_for_another_is_no_reason_to_wait_for_ever(
    audience: Audience,
) -> None:
    rows = [decided(CallState.APPROVED), held_call("adk-2", "c2")]
    # v6 cannot be told: the person confirms what they said, which changes nothing.
    first = "approval-requested" if audience is V6 else "approval-responded"
    assert states(asked(*rows), rows, audience) == [first, "approval-requested"]


@pytest.mark.parametrize(
    ("state", "v6", "v7"),
    [
        (CallState.DENIED, "output-error", "output-denied"),
        (CallState.EXPIRED, "output-error", "output-error"),
        (CallState.CANCELLED, "output-error", "output-error"),
    ],
)
def test_a_refusal_that_waits_for_another_is_told(state: CallState, v6: str, v7: str) -> None:
    rows = [decided(state), held_call("adk-2", "c2")]
    for audience, shown in ((V6, v6), (V7, v7)):
        (first, second) = parts(asked(*rows), rows, audience)
        assert (first["state"], second["state"]) == (shown, "approval-requested")
        assert ("approval" in first) is (shown == "output-denied")
        assert calls_of(asked(*rows), rows, audience) == ["c2"]


def test_an_approved_browser_call_is_released_after_its_verdict() -> None:
    row = browser()
    told = Resumption.of([row]).retold(asked(row))
    assert InputReleased("c2", "locate", row.arguments) in told
    for audience in (V6, V7):
        assert calls_of(asked(row), [row], audience) == ["c2"]
        (part,) = parts(asked(row), [row], audience)
        assert part["state"] == "input-available"
        assert ("approval" in part) is (audience is V7)


def test_a_browser_call_that_nobody_approved_is_not_released() -> None:
    row = browser(CallState.PENDING)
    for audience in (V6, V7):
        assert calls_of(asked(row), [row], audience) == []
        assert states(asked(row), [row], audience) == ["approval-requested"]


@pytest.mark.parametrize("error", [None, "No."])
@pytest.mark.parametrize("approval", [True, False])
def test_an_output_that_waits_for_another_answer_is_told_and_not_made_again(
    approval: bool, error: str | None
) -> None:
    ended = CallState.DONE if error is None else CallState.FAILED
    done = dataclasses.replace(
        browser(ended, approval=approval), done_at=3.0, result={"at": 1}, error=error
    )
    rows = [held_call(), done]
    shown = "output-available" if error is None else "output-error"
    for audience in (V6, V7):
        assert states(asked(*rows), rows, audience) == ["approval-requested", shown]
        assert calls_of(asked(*rows), rows, audience) == ["c1"]


def test_a_call_whose_result_is_on_its_way_is_not_made_again() -> None:
    done = dataclasses.replace(browser(CallState.DONE, approval=False), done_at=3.0)
    entries = [*asked(done), StartChunk("m1"), call_answered(done)]
    assert calls_of(entries, [done], V6) == []


def test_a_call_that_runs_is_not_asked_for_where_its_verdict_cannot_be_told() -> None:
    row = decided(CallState.RUNNING, delivered_in="r2")
    entries = [*asked(row), StartChunk("m1"), call_answered(row)]
    assert states(entries, [row], V6) == ["input-available"]
    assert states(entries, [row], V7) == ["approval-responded"]
    assert calls_of(entries, [row], V6) == ["c1"]


def test_an_answered_question_is_told_with_its_answer() -> None:
    row = held_call(
        tool_name="adk_request_input",
        kind=CallKind.INPUT,
        approval=False,
        state=CallState.DONE,
        done_at=3.0,
        result="Tokyo",
    )
    (part,) = parts(asked(row), [row], V6)
    assert (part["state"], part["output"]) == ("output-available", "Tokyo")


def test_a_sign_in_is_no_call() -> None:
    row = held_call(
        kind=CallKind.CREDENTIAL, approval=False, state=CallState.EXPIRED, decided_at=2.0
    )
    entries: list[Entry] = [StartChunk("m1"), call_held(row), FinishChunk("tool-calls")]
    assert Resumption.of([row]).retold(entries) == entries


def test_all_cards_are_the_newest() -> None:
    row = decided(CallState.DONE, done_at=3.0, delivered_in="r2")
    old = decided(CallState.APPROVED, delivered_in="r2")
    entries: list[Entry] = [
        *asked(row),
        call_answered(old),
        ToolOutputAvailableChunk("c1", 1),
        CallFinished("adk-1", {"status": "failed"}),
    ]
    message = assemble(V7.render(Resumption.of([row]).retold(entries)))
    (shown,) = [part["data"] for part in message.parts if part["type"] == "data-approval"]
    assert shown == card(row)
    renewed = Resumption.of([row]).renewed(entries)
    assert renewed[-1] == CallFinished("adk-1", card(row))
    assert renewed[-2] == entries[-2]
    assert Resumption.of([]).renewed(entries) == entries


@pytest.mark.parametrize(
    ("state", "approval"),
    [
        (CallState.APPROVED, {"id": "adk-1", "approved": True}),
        (CallState.DENIED, {"id": "adk-1", "approved": False}),
        (CallState.EXPIRED, None),
        (CallState.CANCELLED, None),
    ],
)
def test_a_stored_part_holds_an_approval_only_if_somebody_decided(
    state: CallState, approval: object
) -> None:
    row = decided(state)
    entries = with_outcomes([*asked(row), call_answered(row)])
    (part,) = [part for part in assemble(V7.render(entries)).parts if "toolCallId" in part]
    assert part.get("approval") == approval
