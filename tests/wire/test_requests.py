from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.wire.requests import (
    BEGINNING,
    ChatRequest,
    parse_chat_id,
    parse_request,
)
from adk_stream_protocol.wire.values import JsonValue

HELLO: dict[str, JsonValue] = {
    "id": "u1",
    "role": "user",
    "parts": [{"type": "text", "text": "hello"}],
}

JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def test_request_of_use_chat_is_read() -> None:
    request = parse_request(
        {"id": "chat", "messages": [HELLO], "trigger": "regenerate-message", "messageId": "m1"}
    )
    assert request.chat_id == "chat"
    assert [message.text for message in request.messages] == ["hello"]
    assert request.trigger == "regenerate-message"
    assert request.message_id == "m1"


def test_request_with_messages_alone_is_a_submit_without_a_chat() -> None:
    request = parse_request({"messages": [HELLO]})
    assert request == ChatRequest(chat_id=None, messages=request.messages, has_trigger=False)
    assert request.trigger == "submit-message"
    assert request.message_id is None
    assert request.parent_id is None


@pytest.mark.parametrize("messages", [{}, {"messages": []}, {"messages": None}])
def test_single_message_is_read_as_a_list_of_one(messages: dict[str, JsonValue]) -> None:
    assert parse_request({"id": "chat", "message": HELLO, **messages}) == parse_request(
        {"id": "chat", "messages": [HELLO]}
    )


def test_list_of_messages_is_read_before_a_single_message() -> None:
    other: dict[str, JsonValue] = {**HELLO, "id": "u2"}
    assert parse_request({"messages": [HELLO, other], "message": HELLO}).messages[-1].id == "u2"


@pytest.mark.parametrize("rest", [{}, {"messageId": "m1"}, {"messages": []}, {"messages": None}])
def test_regenerate_needs_no_message(rest: dict[str, JsonValue]) -> None:
    request = parse_request({"id": "chat", "trigger": "regenerate-message", **rest})
    assert request.messages == ()
    assert request.message_id == rest.get("messageId")


def test_trigger_that_is_sent_is_told_from_one_that_is_not() -> None:
    assert parse_request({"messages": [HELLO], "trigger": "submit-message"}).has_trigger
    assert not parse_request({"messages": [HELLO]}).has_trigger


@pytest.mark.parametrize(
    ("parent", "read"), [({}, None), ({"parentId": None}, BEGINNING), ({"parentId": "m1"}, "m1")]
)
def test_parent_is_a_message_the_beginning_or_not_said(
    parent: dict[str, JsonValue], read: str | None
) -> None:
    assert parse_request({"messages": [HELLO], **parent}).parent_id == read


@pytest.mark.parametrize("body", ["hello", {"prompt": "hello"}, {"prompt": "hello", "x": 1}])
def test_prompt_is_a_new_message_of_the_user(body: JsonValue) -> None:
    (message,) = parse_request(body).messages
    assert (message.role, message.text, message.id) == ("user", "hello", "")


def test_prompt_may_name_its_chat_and_gives_way_to_messages() -> None:
    request = parse_request({"id": "chat", "prompt": "bye", "messages": [HELLO]})
    assert (request.chat_id, request.messages[0].text) == ("chat", "hello")


@pytest.mark.parametrize("message_id", ["", None, 7])
def test_message_id_that_is_no_text_names_no_message(message_id: JsonValue) -> None:
    assert parse_request({"messages": [HELLO], "messageId": message_id}).message_id is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (None, "bad_request"),
        ([HELLO], "bad_request"),
        (7, "bad_request"),
        ({"prompt": 7}, "bad_prompt"),
        ({"prompt": None}, "bad_prompt"),
        ({"prompt": "hello", "messages": []}, "no_messages"),
        ({}, "no_messages"),
        ({"messages": []}, "no_messages"),
        ({"messages": "hello"}, "no_messages"),
        ({"messages": {"0": HELLO}}, "no_messages"),
        ({"message": None}, "no_messages"),
        ({"messageId": "m1"}, "no_messages"),
        ({"messages": "hello", "trigger": "regenerate-message"}, "no_messages"),
        ({"message": "hello"}, "bad_message"),
        ({"message": [HELLO]}, "bad_message"),
        ({"messages": [HELLO], "parentId": ""}, "bad_parent_id"),
        ({"messages": [HELLO], "parentId": 7}, "bad_parent_id"),
        ({"messages": [HELLO], "parentId": "x" * 129}, "bad_parent_id"),
        ({"messages": [{"role": "robot"}]}, "bad_message"),
        ({"messages": [HELLO], "trigger": "shout"}, "bad_trigger"),
        ({"messages": [HELLO], "trigger": None}, "bad_trigger"),
        ({"messages": [HELLO], "trigger": ["submit-message"]}, "bad_trigger"),
        ({"messages": [HELLO], "id": 7}, "bad_chat_id"),
        ({"messages": [HELLO], "id": ""}, "bad_chat_id"),
    ],
)
def test_request_that_makes_no_sense_is_a_bad_request(body: JsonValue, code: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_request(body)
    assert caught.value.code == code


FIELDS = ("id", "messages", "message", "trigger", "messageId", "parentId")


@given(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)))
def test_any_body_is_read_or_refused(body: JsonValue) -> None:
    with contextlib.suppress(BadRequest):
        request = parse_request(body)
        assert request.messages or request.trigger == "regenerate-message"


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.just("chat"),
            "trigger": st.sampled_from(["submit-message", "regenerate-message"]),
            "messageId": st.sampled_from(["u1", "m1"]),
            "parentId": st.sampled_from([None, "m0"]),
        },
    ),
    st.sampled_from([HELLO, {"id": "m1", "role": "assistant", "parts": []}]),
)
def test_message_alone_means_what_a_list_of_it_means(
    rest: dict[str, JsonValue], message: JsonValue
) -> None:
    assert parse_request({**rest, "message": message}) == parse_request(
        {**rest, "messages": [message]}
    )


@pytest.mark.parametrize("chat_id", ["a", "x" * 128, "chat 1", "日本"])
def test_chat_id_that_can_name_a_session_is_kept(chat_id: str) -> None:
    assert parse_chat_id(chat_id) == chat_id


@pytest.mark.parametrize("chat_id", ["", "x" * 129, "a/b", "a\nb", "a\x00", "\ud800"])
def test_chat_id_that_cannot_name_a_session_is_a_bad_request(chat_id: str) -> None:
    with pytest.raises(BadRequest, match="1 to 128 printable") as caught:
        parse_chat_id(chat_id)
    assert caught.value.code == "bad_chat_id"
