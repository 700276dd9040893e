from __future__ import annotations

import pytest

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.wire.messages import (
    ToolPart,
    UIMessage,
    parse_message,
    tool_name_of,
    tool_parts,
)
from adk_stream_protocol.wire.values import JsonValue


def test_message_of_the_ai_sdk_comes_back_as_it_was_sent() -> None:
    sent: dict[str, JsonValue] = {
        "id": "m1",
        "role": "assistant",
        "metadata": {"model": "x"},
        "parts": [{"type": "step-start"}, {"type": "text", "text": "hi", "state": "done"}],
    }
    assert parse_message(sent).to_json() == sent


def test_message_without_metadata_writes_none() -> None:
    message = parse_message({"id": "m1", "role": "user", "parts": []})
    assert message.to_json() == {"id": "m1", "role": "user", "parts": []}


def test_text_of_a_message_is_its_text_parts_joined() -> None:
    parts: JsonValue = [
        {"type": "text", "text": "a"},
        {"type": "reasoning", "text": "hidden"},
        {"type": "text", "text": "b"},
        {"type": "text"},
    ]
    assert parse_message({"role": "user", "parts": parts}).text == "ab"


def test_older_form_with_a_text_is_read_as_content() -> None:
    message = parse_message({"role": "user", "content": "hi"})
    assert message == UIMessage(id="", role="user", content=({"type": "text", "text": "hi"},))


def test_older_form_with_items_is_read_as_content() -> None:
    item = {"type": "tool-result", "toolCallId": "c1"}
    assert parse_message({"role": "user", "content": [item, 7]}).content == (item,)


def test_what_is_not_a_part_is_left_out() -> None:
    parts: JsonValue = [None, "text", {"text": "no type"}, {"type": 3}, {"type": "x-new", "a": 1}]
    message = parse_message({"id": 7, "role": "system", "parts": parts})
    assert message.parts == [{"type": "x-new", "a": 1}]
    assert message.id == ""


@pytest.mark.parametrize("parts", [None, "text", {"type": "text"}, 7])
def test_parts_that_are_no_list_are_no_parts(parts: JsonValue) -> None:
    assert parse_message({"role": "user", "parts": parts}).parts == []


@pytest.mark.parametrize("value", [None, "hi", [], {}, {"role": "tool"}, {"role": ["user"]}])
def test_message_without_a_known_role_is_a_bad_request(value: JsonValue) -> None:
    with pytest.raises(BadRequest, match='needs a "role"') as caught:
        parse_message(value)
    assert caught.value.code == "bad_message"


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"type": "tool-pay"}, "pay"),
        ({"type": "tool-my-tool"}, "my-tool"),
        ({"type": "dynamic-tool", "toolName": "pay"}, "pay"),
        ({"type": "dynamic-tool"}, ""),
        ({"type": "text"}, ""),
        ({}, ""),
    ],
)
def test_name_of_a_tool_is_read_from_its_part(part: dict[str, JsonValue], name: str) -> None:
    assert tool_name_of(part) == name


def test_tool_calls_of_a_message_are_found_in_order() -> None:
    message = parse_message(
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "hi"},
                {
                    "type": "tool-pay",
                    "toolCallId": "c1",
                    "state": "approval-responded",
                    "approval": {"id": "a1", "approved": True},
                },
                {
                    "type": "dynamic-tool",
                    "toolName": "look",
                    "toolCallId": "c2",
                    "state": "output-available",
                    "output": None,
                },
                {
                    "type": "tool-pay",
                    "toolCallId": "c3",
                    "state": "output-error",
                    "errorText": "no",
                    "approval": "nonsense",
                },
            ],
        }
    )
    assert list(tool_parts(message)) == [
        ToolPart(
            "pay", "c1", "approval-responded", None, "", {"id": "a1", "approved": True}, False
        ),
        ToolPart("look", "c2", "output-available", None, "", {}, True),
        ToolPart("pay", "c3", "output-error", None, "no", {}, False),
    ]
