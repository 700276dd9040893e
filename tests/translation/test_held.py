from __future__ import annotations

import pytest
from google.genai import types

from adk_stream_protocol.translation.held import (
    authorization_uri,
    browser_payload,
    held_request,
    is_request,
)
from adk_stream_protocol.wire.entries import CallHeld
from translation.builders import call, confirmation, question, sign_in


def held(part: types.Part) -> CallHeld:
    assert part.function_call is not None
    request = held_request(part.function_call, invocation_id="e-1")
    assert request is not None
    return request


def test_three_calls_of_adk_ask_the_client() -> None:
    assert is_request("adk_request_confirmation")
    assert is_request("adk_request_input")
    assert is_request("adk_request_credential")
    assert not is_request("pay")
    assert not is_request(None)


def test_confirmation_holds_the_original_call() -> None:
    assert held(confirmation("adk-1", "c1", payload={"days": 3})) == CallHeld(
        approval_id="adk-1",
        call_id="c1",
        tool_name="pay",
        input={"amount": 5},
        hint="Sure?",
        payload={"days": 3},
        request_id="adk-1",
    )


def test_confirmation_of_a_call_without_arguments_has_an_empty_input() -> None:
    original: dict[str, object] = {"id": "c1", "name": "pay", "args": None}
    part = call("adk-1", "adk_request_confirmation", originalFunctionCall=original)
    assert held(part).input == {}
    assert held(part).hint == ""


@pytest.mark.parametrize("original", [None, {}, {"id": 7}])
def test_confirmation_without_an_original_call_is_malformed(original: object) -> None:
    asked = types.FunctionCall(
        id="adk-1", name="adk_request_confirmation", args={"originalFunctionCall": original}
    )
    assert held_request(asked, invocation_id="e-1") is None


@pytest.mark.parametrize("approval", [True, False])
def test_confirmation_with_our_mark_hands_the_call_to_the_browser(approval: bool) -> None:
    request = held(confirmation("adk-1", "c1", payload=browser_payload(approval=approval)))
    assert (request.kind, request.approval, request.payload) == ("browser", approval, None)


def test_payload_that_only_looks_like_our_mark_is_the_tools_own() -> None:
    request = held(confirmation("adk-1", "c1", payload={"adkStreamBrowser": "yes"}))
    assert (request.kind, request.approval) == ("tool", True)
    assert request.payload == {"adkStreamBrowser": "yes"}
    assert held(confirmation("adk-1", "c1", payload="text")).payload == "text"


def test_question_is_answered_under_its_own_id() -> None:
    request = held(question("adk-1"))
    assert (request.approval_id, request.call_id) == ("adk-1", "adk-1")
    assert (request.tool_name, request.kind) == ("adk_request_input", "input")
    assert (request.approval, request.hint) == (False, "Which city?")


def test_question_that_names_itself_is_unique_by_its_invocation() -> None:
    request = held(question("ask1"))
    assert (request.approval_id, request.request_id) == ("ask1@e-1", "ask1")


def test_gated_node_of_a_workflow_asks_for_approval() -> None:
    part = call(
        "wf_tool_confirmation:wf@1/pay@1",
        "adk_request_input",
        message="Sure?",
        payload={"tool_name": "pay", "args": {"amount": 7}},
        response_schema={"title": "ToolConfirmation"},
    )
    approval_id = "wf_tool_confirmation:wf@1/pay@1@e-1"
    assert held(part) == CallHeld(
        approval_id=approval_id,
        call_id=f"{approval_id}#call",
        tool_name="pay",
        input={"amount": 7},
        hint="Sure?",
        request_id="wf_tool_confirmation:wf@1/pay@1",
    )


def test_gated_node_may_have_no_arguments() -> None:
    part = call(
        "w1",
        "adk_request_input",
        payload={"tool_name": "pay"},
        response_schema={"title": "ToolConfirmation"},
    )
    assert held(part).input == {}


def test_question_with_the_schema_of_a_confirmation_but_no_tool_stays_a_question() -> None:
    part = call("w1", "adk_request_input", response_schema={"title": "ToolConfirmation"})
    assert held(part).kind == "input"


def test_sign_in_gives_away_its_address_only() -> None:
    request = held(sign_in("adk-1", "c1"))
    assert (request.kind, request.approval) == ("credential", False)
    assert authorization_uri(request) == "https://idp/auth"


def test_sign_in_without_an_address_has_none() -> None:
    assert authorization_uri(held(call("adk-1", "adk_request_credential"))) == ""


def test_other_calls_are_no_requests() -> None:
    assert held_request(types.FunctionCall(id="c1", name="pay"), invocation_id="e-1") is None


def test_request_without_an_id_is_unique_by_its_invocation() -> None:
    asked = types.FunctionCall(name="adk_request_input")
    request = held_request(asked, invocation_id="e-1")
    assert request is not None
    assert request.approval_id == "@e-1"
