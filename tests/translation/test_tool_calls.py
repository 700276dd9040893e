from __future__ import annotations

from collections.abc import Iterable

import pytest
from google.genai import types

from adk_stream_protocol.translation.tool_calls import ToolCalls, is_code
from adk_stream_protocol.wire.chunks import Chunk, to_json
from adk_stream_protocol.wire.values import JsonObject
from translation.builders import text

CODE = types.Part(executable_code=types.ExecutableCode(code="1+1"))
RESULT = types.Part(code_execution_result=types.CodeExecutionResult(output="2"))


@pytest.fixture
def calls() -> ToolCalls:
    calls = ToolCalls()
    list(calls.show("c1", "pay", {"amount": 5}))
    return calls


def sent(chunks: Iterable[Chunk]) -> list[JsonObject]:
    return [to_json(chunk) for chunk in chunks]


def test_input_is_shown_as_the_ai_sdk_does() -> None:
    assert sent(ToolCalls().show("c1", "pay", {"amount": 5})) == [
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "pay"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"amount":5}'},
        {
            "type": "tool-input-available",
            "toolCallId": "c1",
            "toolName": "pay",
            "input": {"amount": 5},
        },
    ]


def test_input_is_shown_once_ever(calls: ToolCalls) -> None:
    assert sent(calls.show("c1", "pay", {"amount": 6})) == []


def test_call_is_on_the_wire_once_it_was_shown(calls: ToolCalls) -> None:
    calls.hide("c1")
    calls.hide("c2")
    assert "c1" in calls
    assert "c2" not in calls
    assert "c3" not in calls


def test_hidden_call_can_still_be_shown(calls: ToolCalls) -> None:
    calls.hide("c2")
    assert len(sent(calls.show("c2", "pay", {}))) == 3
    assert not calls.is_settled("c2")


def test_call_is_settled_by_its_result(calls: ToolCalls) -> None:
    assert not calls.is_settled("c1")
    assert sent(calls.result("c1", {"paid": 5})) == [
        {"type": "tool-output-available", "toolCallId": "c1", "output": {"paid": 5}}
    ]
    assert calls.is_settled("c1")


def test_hidden_and_unknown_calls_are_settled(calls: ToolCalls) -> None:
    calls.hide("c2")
    assert calls.is_settled("c2")
    assert calls.is_settled("c3")


@pytest.mark.parametrize(
    ("error", "shown"), [("No money.", "No money."), ({"code": 7}, '{"code":7}')]
)
def test_object_with_only_an_error_is_a_failure(
    calls: ToolCalls, error: str | JsonObject, shown: str
) -> None:
    assert sent(calls.result("c1", {"error": error})) == [
        {"type": "tool-output-error", "toolCallId": "c1", "errorText": shown}
    ]
    assert calls.is_settled("c1")


@pytest.mark.parametrize("result", [{"error": "x", "code": 7}, {"error": None}])
def test_object_with_more_than_an_error_is_a_result(calls: ToolCalls, result: JsonObject) -> None:
    assert sent(calls.result("c1", result))[0]["output"] == result


def test_results_of_a_long_running_call_stay_preliminary(calls: ToolCalls) -> None:
    list(calls.show("c2", "slow", {}, long_running=True))
    for progress in (1, 2):
        assert sent(calls.result("c2", {"progress": progress}))[0]["preliminary"] is True
    assert not calls.is_settled("c2")


def test_held_call_waits_until_it_is_released(calls: ToolCalls) -> None:
    assert not calls.is_waiting
    calls.hold("c1")
    assert calls.is_waiting
    calls.release("c1", settled=False)
    assert not calls.is_waiting
    assert not calls.is_settled("c1")


def test_call_that_will_not_run_is_settled_by_its_release(calls: ToolCalls) -> None:
    calls.hold("c1")
    calls.release("c1", settled=True)
    assert calls.is_settled("c1")


def test_unknown_call_can_be_neither_held_nor_released(calls: ToolCalls) -> None:
    calls.hold("c9")
    calls.release("c9", settled=True)
    assert not calls.is_waiting
    assert "c9" not in calls


def test_result_ends_the_wait(calls: ToolCalls) -> None:
    calls.hold("c1")
    list(calls.result("c1", {"paid": 5}))
    assert not calls.is_waiting


def test_client_gives_an_output_or_an_error(calls: ToolCalls) -> None:
    list(calls.show("c2", "pay", {}, long_running=True))
    assert sent([*calls.give("c1", output=None), *calls.give("c2", error="No.")]) == [
        {"type": "tool-output-available", "toolCallId": "c1", "output": None},
        {"type": "tool-output-error", "toolCallId": "c2", "errorText": "No."},
    ]
    assert calls.is_settled("c1")
    assert calls.is_settled("c2")


def test_open_calls_are_settled_with_an_error_and_held_ones_spared(calls: ToolCalls) -> None:
    list(calls.show("held", "pay", {}))
    calls.hold("held")
    list(calls.show("slow", "pay", {}, long_running=True))
    calls.hide("hidden")
    ended = sent(calls.settle_open("Over.", spare_long_running=True))
    assert [chunk["toolCallId"] for chunk in ended] == ["c1"]
    assert [chunk["toolCallId"] for chunk in sent(calls.settle_open("Over."))] == ["slow"]
    assert calls.is_waiting


def test_call_is_open_until_it_is_settled_unless_it_may_run_on(calls: ToolCalls) -> None:
    list(calls.show("slow", "pay", {}, long_running=True))
    assert calls.any_open(["slow", "c1"])
    assert not calls.any_open(["slow"])
    list(calls.result("c1", {"paid": 5}))
    assert not calls.any_open(["slow", "c1"])


def test_code_and_what_it_gave_are_known_from_other_parts() -> None:
    assert is_code(CODE)
    assert is_code(RESULT)
    assert not is_code(text("1+1"))


def test_code_is_a_provider_executed_call() -> None:
    calls = ToolCalls()
    python = types.Part(
        executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON)
    )
    fine = types.Part(
        code_execution_result=types.CodeExecutionResult(
            outcome=types.Outcome.OUTCOME_OK, output="2"
        )
    )
    assert sent([*calls.code(python), *calls.code(fine)]) == [
        {
            "type": "tool-input-start",
            "toolCallId": "code-1",
            "toolName": "code_execution",
            "providerExecuted": True,
        },
        {
            "type": "tool-input-available",
            "toolCallId": "code-1",
            "toolName": "code_execution",
            "input": {"code": "1+1", "language": "PYTHON"},
            "providerExecuted": True,
        },
        {
            "type": "tool-output-available",
            "toolCallId": "code-1",
            "output": {"outcome": "OUTCOME_OK", "output": "2"},
            "providerExecuted": True,
        },
    ]


def test_code_may_lack_everything() -> None:
    calls = ToolCalls()
    bare = types.Part(executable_code=types.ExecutableCode())
    nothing = types.Part(code_execution_result=types.CodeExecutionResult())
    assert sent(calls.code(bare))[1]["input"] == {"code": ""}
    assert sent(calls.code(nothing))[0]["output"] == {"outcome": "", "output": ""}


def test_code_that_gave_nothing_is_settled_like_a_tool() -> None:
    calls = ToolCalls()
    calls.code(CODE)
    ended = sent(calls.settle_open("Over.", spare_long_running=True))
    assert [chunk["toolCallId"] for chunk in ended] == ["code-1"]


def test_result_without_code_and_other_parts_are_nothing() -> None:
    assert ToolCalls().code(RESULT) == []
    assert ToolCalls().code(text("hi")) == []
