from __future__ import annotations

import dataclasses

import pytest
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.held_calls.editing import check_edit, schemas_of, with_changes
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.wire.values import JsonObject
from translation.builders import held_call

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "maximum": 100}, "to": {"type": "string"}},
    "required": ["amount"],
    "additionalProperties": False,
}
EDITABLE = dataclasses.replace(held_call(), schema=SCHEMA)


def request(*declared: types.FunctionDeclaration) -> LlmRequest:
    tools: list[types.Tool] = [types.Tool(function_declarations=list(declared))]
    return LlmRequest(config=types.GenerateContentConfig(tools=[*tools]))


def schema_of(declared: types.FunctionDeclaration) -> JsonObject | None:
    return dict(schemas_of(request(declared), lambda _: True)).get("pay")


def test_a_json_schema_is_taken_as_it_is_and_closed() -> None:
    declared = types.FunctionDeclaration(
        name="pay", parameters_json_schema={"type": "object", "properties": {"a": {}}}
    )
    assert schema_of(declared) == {
        "type": "object",
        "properties": {"a": {}},
        "additionalProperties": False,
    }


def test_a_schema_of_geminis_own_becomes_a_json_schema() -> None:
    amount = types.Schema(type=types.Type.INTEGER, nullable=True)
    parameters = types.Schema(
        type=types.Type.OBJECT, properties={"amount": amount}, required=["amount"]
    )
    schema = schema_of(types.FunctionDeclaration(name="pay", parameters=parameters))
    assert schema is not None
    call = dataclasses.replace(held_call(), schema=schema)
    check_edit(call, {"amount": None}, approved=True, step=0)
    with pytest.raises(BadRequest, match=r"\$\.amount: 'x' is not of type"):
        check_edit(call, {"amount": "x"}, approved=True, step=0)


def test_a_tool_without_parameters_takes_none() -> None:
    schema = schema_of(types.FunctionDeclaration(name="pay"))
    call = dataclasses.replace(held_call(), schema=schema)
    check_edit(call, {}, approved=True, step=0)
    with pytest.raises(BadRequest, match="Additional properties"):
        check_edit(call, {"a": 1}, approved=True, step=0)


def test_only_editable_tools_with_a_schema_that_makes_sense_are_kept() -> None:
    broken = types.FunctionDeclaration(name="pay", parameters_json_schema={"type": 5})
    other = types.FunctionDeclaration(name="other")
    assert schema_of(broken) is None
    assert dict(schemas_of(request(broken, other), lambda name: name == "pay")) == {}
    assert list(schemas_of(LlmRequest(), lambda _: True)) == []


def test_arguments_within_the_schema_are_taken() -> None:
    check_edit(EDITABLE, {"amount": 7, "to": "bob"}, approved=True, step=0)


@pytest.mark.parametrize(
    ("edited", "told"),
    [
        ({"amount": "7"}, r"\$\.amount: '7' is not of type 'integer'"),
        ({"amount": 101}, r"\$\.amount: 101 is greater than the maximum of 100"),
        ({}, "'amount' is a required property"),
        ({"amount": 1, "sudo": True}, "'sudo' was unexpected"),
        ({"amount": "x" * 10_000}, r"^.{0,500}$"),
    ],
)
def test_what_does_not_fit_is_told_field_by_field(edited: JsonObject, told: str) -> None:
    with pytest.raises(BadRequest, match=told) as refused:
        check_edit(EDITABLE, edited, approved=True, step=0)
    assert refused.value.code == "bad_input"


def test_of_many_problems_a_few_are_told() -> None:
    schema = {"properties": {f"f{n}": {"type": "string"} for n in range(30)}}
    call = dataclasses.replace(held_call(), schema=schema)
    with pytest.raises(BadRequest) as refused:
        check_edit(call, {f"f{n}": n for n in range(30)}, approved=True, step=0)
    assert refused.value.message.count("is not of type") == 10
    assert refused.value.message.endswith("and more.")


@pytest.mark.parametrize(
    ("call", "approved", "step"),
    [
        (held_call(), True, 0),
        (EDITABLE, False, 0),
        (EDITABLE, True, 1),
        (dataclasses.replace(held_call(), schema={"$ref": "http://example.com/x.json"}), True, 0),
    ],
    ids=["not editable", "denied", "a later step", "a schema that is elsewhere"],
)
def test_what_may_not_be_edited_is_said(call: HeldCall, approved: bool, step: int) -> None:
    with pytest.raises(BadRequest) as refused:
        check_edit(call, {"amount": 1}, approved=approved, step=step)
    assert refused.value.code == "not_editable"


def test_an_edit_told_again_once_it_is_settled_is_no_error() -> None:
    settled = dataclasses.replace(EDITABLE, state=CallState.DONE)
    check_edit(settled, {"amount": 1}, approved=True, step=1)


def test_a_result_says_with_what_the_tool_ran_and_the_tools_own_object_is_left_alone() -> None:
    kept: dict[str, object] = {"paid": 7}
    told = with_changes(kept, {"amount": 7})
    assert told == {"paid": 7, "approved_with_changes": {"amount": 7}}
    assert kept == {"paid": 7}


def test_a_result_that_is_no_object_is_wrapped_and_an_error_stays_one() -> None:
    edited = {"amount": 7}
    wrapped = {"result": [1], "approved_with_changes": edited}
    assert with_changes([1], edited) == wrapped
    failed = with_changes({"error": "No money."}, edited)
    assert failed == {"error": 'No money. (It ran with changed arguments: {"amount":7})'}


def test_declarations_of_several_tools_are_all_read() -> None:
    names = [f"tool-{number}" for number in range(3)]
    declared = [types.FunctionDeclaration(name=name) for name in names]
    pairs = schemas_of(request(*declared), lambda _: True)
    assert [name for name, _ in pairs] == names
