from __future__ import annotations

import dataclasses

import pytest

from adk_stream_protocol.engine.repeated_answers import RepeatedAnswers, still_awaited
from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.instructions import Answer, Decision, Output

CHAT, OTHER = ChatId("c"), ChatId("other")
YES: tuple[Answer, ...] = (Decision(ApprovalId("a"), approved=True),)
NO: tuple[Answer, ...] = (Decision(ApprovalId("a"), approved=False),)
GIVEN: tuple[Answer, ...] = (Output(ApprovalId("b"), {"playing": "jazz"}),)


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def repeated(clock: Clock) -> RepeatedAnswers:
    return RepeatedAnswers(clock)


@pytest.mark.parametrize("answers", [YES, NO, GIVEN, (*YES, *GIVEN)])
def test_the_third_repetition_is_too_many_and_so_are_those_after_it(
    repeated: RepeatedAnswers, answers: tuple[Answer, ...]
) -> None:
    told = [repeated.are_too_many(CHAT, answers) for _ in range(5)]
    assert told == [False, False, True, True, True]


def test_another_answer_begins_the_count_anew(repeated: RepeatedAnswers) -> None:
    told = [repeated.are_too_many(CHAT, answers) for answers in (YES, YES, NO, YES, YES, YES)]
    assert told == [False, False, False, False, False, True]


def test_chats_are_counted_apart(repeated: RepeatedAnswers) -> None:
    assert not any(repeated.are_too_many(chat, YES) for chat in (CHAT, OTHER, CHAT, OTHER))
    assert repeated.are_too_many(CHAT, YES)


def test_repetitions_that_are_far_apart_are_no_loop(
    repeated: RepeatedAnswers, clock: Clock
) -> None:
    for _ in range(10):
        assert not repeated.are_too_many(CHAT, YES)
        clock.time += 11


def test_a_slow_loop_is_one_too(repeated: RepeatedAnswers, clock: Clock) -> None:
    told: list[bool] = []
    for _ in range(3):
        told.append(repeated.are_too_many(CHAT, YES))
        clock.time += 9
    assert told == [False, False, True]


def test_two_instances_that_take_turns_end_a_loop_together(clock: Clock) -> None:
    instances = RepeatedAnswers(clock), RepeatedAnswers(clock)
    told = [instances[count % 2].are_too_many(CHAT, YES) for count in range(6)]
    assert told == [False, False, False, False, True, True]


def test_chats_that_are_quiet_are_forgotten(repeated: RepeatedAnswers, clock: Clock) -> None:
    for number in range(100):
        repeated.are_too_many(ChatId(f"c{number}"), YES)
        clock.time += 1
    assert len(repeated._last) <= 11


def held(tool_name: str, state: CallState = CallState.PENDING) -> HeldCall:
    return HeldCall(
        approval_id=ApprovalId(f"a-{tool_name}"),
        call_id=CallId(tool_name),
        owner=UserId("alice"),
        chat_id=CHAT,
        invocation_id=InvocationId("e-1"),
        tool_name=tool_name,
        arguments={},
        arguments_hash="",
        created_at=0.0,
        expires_at=1.0,
        state=state,
    )


def test_what_is_awaited_is_named_and_what_is_answered_is_not() -> None:
    runs = dataclasses.replace(held("locate", CallState.APPROVED), kind=CallKind.BROWSER)
    calls = [held("pay"), held("wire", CallState.APPROVED), runs]
    assert still_awaited(calls).error_text.endswith("pay (a decision), locate (its output).")


def test_of_many_awaited_calls_some_are_named() -> None:
    text = still_awaited([held(f"pay{number}") for number in range(8)]).error_text
    assert text.endswith("pay4 (a decision), 3 more.")
