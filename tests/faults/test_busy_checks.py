"""The checks of busy chats see what they are there to see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from faults.agent import NOW, PAY, TALK, TALK_ON, WORK, YES
from faults.busy_checks import BusyEnding, check_busy
from faults.case import Case, Outcome
from faults.user import Heard

HERE = "Here it is."


def said(*texts: str) -> list[dict[str, Any]]:
    """Return messages, by turns of the person and of the model."""
    roles = ("user", "assistant")
    return [
        {"role": roles[number % 2], "parts": [{"type": "text", "text": text}] if text else []}
        for number, text in enumerate(texts)
    ]


def steered(text: str) -> list[dict[str, Any]]:
    part = {"type": "data-adk-steering", "data": {"parts": [{"type": "text", "text": text}]}}
    first, second = said(WORK, HERE)
    return [first, {**second, "parts": [part, *second["parts"]]}]


def rows(**more: object) -> dict[str, Any]:
    return {"calls": [], "turns": [{"running": False}], "waiting": [], **more}


def call(state: str) -> list[dict[str, Any]]:
    return [{"call_id": "c1", "tool_name": "pay_slowly", "state": state}]


CLEAN = BusyEnding(
    case=Case((), busy="interrupt"),
    running=0,
    resumed=Heard(200, done=True),
    messages=said(TALK, "One. ", NOW, HERE),
    rows=rows(),
    effects=[],
    said_more=Heard(200, [{"type": "text-delta", "delta": YES}], done=True),
)


def checked(**changes: Any) -> Outcome:
    outcome = Outcome()
    check_busy(replace(CLEAN, **changes), outcome)
    return outcome


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"messages": said(TALK, "", NOW, HERE)},
        {"case": Case((), busy="steer"), "messages": steered(NOW)},
        {"case": Case((), busy="steer"), "messages": said(WORK, "All is told.", NOW, HERE)},
        {"case": Case((), busy="tabs"), "messages": said(TALK_ON, "Uno. ", TALK, "One. Two.")},
        {
            "case": Case((), busy="thanks"),
            "messages": said(PAY, "", NOW, HERE),
            "rows": rows(calls=call("done")),
            "effects": [("pay_slowly", "c1")],
        },
    ],
)
def test_a_story_that_went_well_has_no_violations(changes: dict[str, Any]) -> None:
    assert checked(**changes) == Outcome()


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": said(TALK, "One. Two.", NOW, HERE)},
        {"messages": said(TALK, "One. ", NOW, HERE + HERE)},
        {"effects": [("work", "c1"), ("work", "c1")]},
    ],
)
def test_what_was_done_twice_or_after_a_stop_is_seen(changes: dict[str, Any]) -> None:
    assert checked(**changes).doubles


@pytest.mark.parametrize(
    "changes",
    [
        {"resumed": Heard(200, done=False)},
        {"said_more": Heard(429, done=True)},
        {"rows": rows(waiting=[{"reply_id": "r"}])},
        {"rows": rows(turns=[{"running": True}])},
    ],
)
def test_a_chat_that_does_not_go_on_is_seen(changes: dict[str, Any]) -> None:
    assert checked(**changes).stuck


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": said(NOW, HERE)},
        {"messages": said(TALK, "", NOW, HERE, NOW)},
        {"messages": said(NOW, HERE, TALK, "")},
        {"messages": said(TALK, "One. ", NOW, "")},
        {"case": Case((), busy="steer"), "messages": steered(TALK)},
        {"case": Case((), busy="tabs"), "messages": said(TALK, "One. Two.", TALK_ON, "Uno. ")},
        {"rows": rows(calls=call("cancelled"))},
        {"rows": rows(calls=call("done"))},
        {"rows": rows(calls=call("unknown"))},
        {"heard": [Heard(200, [{"type": "error"}], done=True)]},
    ],
)
def test_what_is_lost_is_seen(changes: dict[str, Any]) -> None:
    assert checked(**changes).losses


def test_a_call_that_ran_when_its_server_died_may_be_unknown() -> None:
    assert checked(rows=rows(calls=call("unknown")), running=1) == Outcome(unknown=1)
