"""The checks see what they are there to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from faults.agent import TOLD, YES
from faults.case import Case, Outcome
from faults.checks import Ending, check
from faults.user import Heard

SAID: dict[str, Any] = {"role": "user", "parts": [{"type": "text", "text": "Pay."}]}
PAID: dict[str, Any] = {"toolCallId": "c1", "state": "output-available"}
UNKNOWN: dict[str, Any] = {
    "toolCallId": "c1",
    "state": "output-error",
    "errorText": "It is not known whether it took effect.",
}


def told(part: Mapping[str, Any], text: str = TOLD) -> list[dict[str, Any]]:
    return [SAID, {"role": "assistant", "parts": [part, {"type": "text", "text": text}]}]


def row(state: str, tool: str = "pay") -> list[dict[str, Any]]:
    return [{"call_id": "c1", "tool_name": tool, "state": state}]


CLEAN = Ending(
    case=Case(()),
    running=0,
    resumed=Heard(200, done=True),
    messages=told(PAID),
    calls=row("done"),
    effects=[("pay", "c1")],
    decided_again=[(200, 409)],
    said_more=Heard(200, [{"type": "text-delta", "delta": YES}], done=True),
)
LOST = {"calls": row("unknown"), "messages": told(UNKNOWN), "running": 1}


def checked(**changes: Any) -> Outcome:
    outcome = Outcome()
    check(replace(CLEAN, **changes), outcome)
    return outcome


@pytest.mark.parametrize("effects", [[], [("pay", "c1")]])
def test_a_story_that_went_well_has_no_violations(effects: list[tuple[str, str]]) -> None:
    assert checked() == Outcome()
    assert checked(**LOST, effects=effects) == Outcome(unknown=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"effects": [("pay", "c1"), ("pay", "c1")]},
        {"effects": [("pay", "c1"), ("pay", "c2")]},
        {"messages": told(PAID, TOLD + TOLD)},
        {
            "case": Case((), verdict=False),
            "calls": row("denied"),
            "messages": told({"toolCallId": "c1", "state": "output-denied"}),
        },
    ],
)
def test_what_happened_twice_or_against_the_verdict_is_seen(changes: dict[str, Any]) -> None:
    assert checked(**changes).doubles


@pytest.mark.parametrize(
    "changes",
    [
        {"resumed": Heard(200, done=False)},
        {"said_more": Heard(409, done=True)},
    ],
)
def test_a_chat_that_does_not_go_on_is_seen(changes: dict[str, Any]) -> None:
    assert checked(**changes).stuck


@pytest.mark.parametrize(
    "changes",
    [
        {"effects": []},
        {"messages": [SAID, *told(PAID)]},
        {"messages": told({"toolCallId": "c1", "state": "input-available"})},
        {"messages": told(UNKNOWN)},
        {"calls": row("approved")},
        {"calls": row("running")},
        {"calls": row("failed")},
        {"decided_again": [(409, 409)]},
        {"decided_again": [(200, 200)]},
        {**LOST, "running": 0},
        {**LOST, "calls": row("unknown", "pay_once")},
        {**LOST, "messages": told({**UNKNOWN, "errorText": "Failed."})},
        {"calls": []},
    ],
)
def test_what_is_lost_or_said_wrongly_is_seen(changes: dict[str, Any]) -> None:
    assert checked(**changes).losses
