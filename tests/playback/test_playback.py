"""What a recording tells: chats as they were in the end, and their replies in order."""

from __future__ import annotations

from typing import Any

import pytest

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.playback import Playlist
from support.recordings import line, playlist, reply, said, text_chunks

ASKED: list[dict[str, Any]] = [
    {"type": "start", "messageId": "m1"},
    {"type": "start-step"},
    {"type": "tool-input-start", "toolCallId": "t", "toolName": "pay"},
    {"type": "tool-input-available", "toolCallId": "t", "toolName": "pay", "input": {"amount": 5}},
    {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "t"},
    {"type": "finish-step"},
]
HELD: list[dict[str, Any]] = [*ASKED, {"type": "finish", "finishReason": "tool-calls"}]
DONE: list[dict[str, Any]] = [
    {"type": "start", "messageId": "m1"},
    {"type": "tool-output-available", "toolCallId": "t", "output": {"paid": 5}},
    {"type": "finish", "finishReason": "stop"},
]
YES = {"id": "a", "approved": True}
ANSWER = line(
    "send",
    "in",
    request="2",
    messageId="m1",
    messages=[
        {
            "id": "m1",
            "role": "assistant",
            "parts": [
                {
                    "type": "tool-pay",
                    "toolCallId": "t",
                    "state": "approval-responded",
                    "approval": YES,
                    "input": {"forged": True},
                }
            ],
        }
    ],
)


def texts(found: Playlist, chat: str = "c") -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in found.chats[chat].messages]


def test_a_chat_is_what_was_said_and_answered() -> None:
    found = playlist(
        said("Hi", "1"),
        *reply(text_chunks("Hello."), "1"),
        said("More", "2", "u2"),
        *reply(text_chunks("And more.", "m2"), "2"),
    )
    assert texts(found) == [
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "More"),
        ("assistant", "And more."),
    ]
    assert found.chats["c"].title == "Hi"
    assert found.replies == found.chats["c"].replies
    assert len(found.replies) == 2


def test_replies_that_overlap_are_told_apart_by_their_requests() -> None:
    one, two = reply(text_chunks("One."), "1"), reply(text_chunks("Two.", "m2"), "2", chat="d")
    mixed = [each for pair in zip(one, two, strict=True) for each in pair]
    found = playlist(said("1", "1"), said("2", "2", chat="d"), *mixed)
    assert texts(found)[-1] == ("assistant", "One.")
    assert texts(found, "d")[-1] == ("assistant", "Two.")


def test_an_answer_and_its_continuation_are_one_message() -> None:
    found = playlist(said("Pay", "1"), *reply(HELD, "1"), ANSWER, *reply(DONE, "2"))
    message = found.chats["c"].messages[-1]
    part = next(part for part in message.parts if part["type"] == "tool-pay")
    assert part == {
        "type": "tool-pay",
        "toolCallId": "t",
        "state": "output-available",
        "input": {"amount": 5},
        "approval": YES,
        "output": {"paid": 5},
    }
    assert [each.waits for each in found.replies] == [True, False]
    assert [each.profile for each in found.replies] == ["ai-sdk", None]


def test_an_edit_and_another_try_take_back_what_came_after() -> None:
    again = {"trigger": "regenerate-message", "messageId": "m2"}
    found = playlist(
        said("Hi", "1"),
        *reply(text_chunks("Hello."), "1"),
        said("Hey", "2", messageId="u1"),
        *reply(text_chunks("Hey you.", "m2"), "2"),
        said("Hey", "3", **again),
        *reply(text_chunks("Hey again.", "m3"), "3"),
    )
    assert texts(found) == [("user", "Hey"), ("assistant", "Hey again.")]
    assert len(found.replies) == 3


def test_another_try_needs_no_message_and_may_bring_another_text() -> None:
    again = {"trigger": "regenerate-message"}
    found = playlist(
        said("Hi", "1"),
        *reply(text_chunks("Hello."), "1"),
        line("send", "in", request="2", messages=[], messageId="m1", **again),
        *reply(text_chunks("Hello, hello.", "m2"), "2"),
        said("Hey", "3", **again),
        *reply(text_chunks("Hey you.", "m3"), "3"),
        said("Ho", "4", messageId="u1", **again),
        *reply(text_chunks("Ho yourself.", "m4"), "4"),
    )
    assert texts(found) == [("user", "Ho"), ("assistant", "Ho yourself.")]
    assert len(found.replies) == 4


def test_a_branch_takes_back_what_came_after_its_parent() -> None:
    found = playlist(
        said("Hi", "1", parentId=None),
        *reply(text_chunks("Hello."), "1"),
        said("More", "2", "u2", parentId="m1"),
        *reply(text_chunks("And more.", "m2"), "2"),
        said("Other", "3", "u3", parentId="m1"),
        *reply(text_chunks("Another.", "m3"), "3"),
    )
    assert texts(found)[1:] == [
        ("assistant", "Hello."),
        ("user", "Other"),
        ("assistant", "Another."),
    ]
    unknown = said("Lost", "4", "u4", parentId="gone")
    first = said("First", "5", "u5", parentId=None)
    assert texts(playlist(said("Hi", "1"), unknown)) == [("user", "Hi"), ("user", "Lost")]
    assert texts(playlist(said("Hi", "1"), first)) == [("user", "First")]


def test_what_is_resumed_and_was_read_before_is_no_other_reply() -> None:
    found = playlist(
        said("Pay", "1"),
        *reply(HELD, "1"),
        ANSWER,
        *reply(DONE, "2"),
        line("resume", "in", request="3"),
        *reply([*ASKED, *DONE], "3"),
        line("resume", "in", request="4"),
        line("no-active", request="4"),
    )
    assert len(found.replies) == 2
    assert len(found.chats["c"].messages) == 2


def test_a_reply_that_was_cut_off_is_completed_by_the_one_that_resumed_it() -> None:
    chunks = text_chunks("Hello.")
    found = playlist(
        said("Hi", "1"),
        *reply(chunks[:3], "1", ended=False),
        line("resume", "in", request="2", at=5.0),
        *reply(chunks, "2", at=6.0),
    )
    assert [[at for at, _ in each.chunks] for each in found.replies] == [[0, 0, 0, 6, 6]]
    assert texts(found) == [("user", "Hi"), ("assistant", "Hello.")]


def test_what_was_only_resumed_is_a_reply_of_its_own() -> None:
    found = playlist(
        said("Hi", "1"),
        *reply(text_chunks("Hello."), "1"),
        line("active"),
        line("resume", "in", request="2"),
        *reply(text_chunks("By the way.", "m2"), "2"),
    )
    assert [each.resumed for each in found.replies] == [False, True]
    assert texts(found)[-1] == ("assistant", "By the way.")


def test_one_stream_for_a_whole_turn_is_parted_where_the_person_answered() -> None:
    stream = reply([*HELD, *DONE], "1")
    held, done = stream[: len(HELD) + 1], stream[len(HELD) + 1 :]
    answer = line("tool_result", "in", request="2", data={"toolCallId": "a"}, at=9.0)
    for each in done:
        each["at"] = 10.0
    found = playlist(said("Pay", "1"), *held, answer, *done, said("More", "3", "u2"))
    assert [[at for at, _ in each.chunks] for each in found.replies] == [[0.0] * 7, [1.0] * 3]
    assert [message.id for message in found.chats["c"].messages] == ["u1", "m1", "u2"]


def test_a_refusal_is_a_reply_and_leaves_no_message() -> None:
    found = playlist(said("Hi", "1"), line("error", request="1", errorText="Busy."))
    assert [each.error for each in found.replies] == ["Busy."]
    assert texts(found) == [("user", "Hi")]


def test_who_named_no_chat_is_found_by_the_answer() -> None:
    unnamed = said("Hi", "1")
    del unnamed["chat"]
    found = playlist(unnamed, *reply(text_chunks("Hello."), "1"))
    assert texts(found) == [("user", "Hi"), ("assistant", "Hello.")]


def test_a_stream_that_breaks_leaves_what_came_before() -> None:
    chunks = [*text_chunks("Hello.")[:3], {"type": "text-delta", "id": "9", "delta": "?"}]
    found = playlist(said("Hi", "1"), *reply(chunks, "1"))
    assert texts(found)[-1] == ("assistant", "Hello.")


def test_the_profile_with_confirmations_is_known_by_them() -> None:
    asked = {**HELD[2], "toolName": "adk_request_confirmation"}
    found = playlist(said("Pay", "1"), *reply([HELD[0], asked], "1"))
    assert found.replies[0].profile == "adk"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (line("chunk", request="1", chunk={"type": "nothing"}), "Line 3: Unknown chunk type"),
        (line("chunk", request="1"), "Line 3: Unknown chunk type"),
        (
            line("chunk", request="1", chunk={"type": "text-start", "id": 7}),
            "Line 3: id of the chunk text-start must be text",
        ),
        (
            line("send", "in", request="2", messages=[{"role": "king"}]),
            'Line 3: Each message needs a "role"',
        ),
    ],
)
def test_what_cannot_be_replayed_is_refused_by_line(bad: dict[str, Any], told: str) -> None:
    with pytest.raises(BadRequest) as refused:
        playlist(said("Hi", "1"), bad)
    assert told in refused.value.message
    assert refused.value.code == "bad_recording"


def test_what_is_not_known_is_passed_over() -> None:
    found = playlist(line("left-out", lines=3), line("new", "in", request="1"), line("stop", "in"))
    assert (found.chats, found.replies) == ({}, [])
