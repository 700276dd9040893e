"""The format of recordings: what is written is read, and what is no recording is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.identifiers import ChatId, RequestId
from adk_stream_protocol.recording import (
    Decided,
    Header,
    Line,
    Said,
    header_text,
    line_of,
    line_text,
    read_recording,
)
from adk_stream_protocol.wire.chunks import TextDeltaChunk
from adk_stream_protocol.wire.frames import (
    Abort,
    Active,
    Audio,
    ChunkFrame,
    Ended,
    Failed,
    Interrupt,
    NoActive,
    Ping,
    Pong,
    Resume,
    Send,
    Started,
    ToolResult,
)
from adk_stream_protocol.wire.requests import parse_request

HEADER = Header("adk-stream-protocol", "2026-11-16T09:00:00.000Z", redacted=True)
R = RequestId("r")


def asked(**fields: Any) -> Send:
    return Send(R, parse_request({"id": "c", **fields}))


def user(text: str, message_id: str = "u") -> dict[str, Any]:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (
            asked(messages=[user("before", "u0"), user("now")]),
            {
                "direction": "in",
                "type": "send",
                "trigger": "submit-message",
                "messages": [user("now")],
            },
        ),
        (
            asked(messages=[user("again")], trigger="regenerate-message", messageId="m"),
            {
                "direction": "in",
                "type": "send",
                "trigger": "regenerate-message",
                "messageId": "m",
                "messages": [user("again")],
            },
        ),
        (
            asked(trigger="regenerate-message", messageId="m", parentId=None),
            {
                "direction": "in",
                "type": "send",
                "trigger": "regenerate-message",
                "messageId": "m",
                "parentId": None,
                "messages": [],
            },
        ),
        (Resume(R, ChatId("c")), {"direction": "in", "type": "resume"}),
        (Abort(R), {"direction": "in", "type": "abort"}),
        (Interrupt(), {"direction": "in", "type": "stop"}),
        (
            ToolResult("call", "", {"confirmed": True}),
            {
                "direction": "in",
                "type": "tool_result",
                "data": {"toolCallId": "call", "result": {"confirmed": True}},
            },
        ),
        (
            Decided({"approvalId": "a", "approved": False}),
            {
                "direction": "in",
                "type": "decision",
                "data": {"approvalId": "a", "approved": False},
            },
        ),
        (Started(R), {"direction": "out", "type": "start"}),
        (
            ChunkFrame(R, 3, TextDeltaChunk("1", "Hi")),
            {
                "direction": "out",
                "type": "chunk",
                "chunk": {"type": "text-delta", "id": "1", "delta": "Hi"},
            },
        ),
        (Ended(R), {"direction": "out", "type": "end"}),
        (Failed(R, "No."), {"direction": "out", "type": "error", "errorText": "No."}),
        (NoActive(R), {"direction": "out", "type": "no-active"}),
        (Active(ChatId("c")), {"direction": "out", "type": "active"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_thing_that_is_said_has_its_line(said: Said, written: dict[str, Any]) -> None:
    line = line_of(said, 1.23456, chat="c", request="r")
    assert line is not None
    assert json.loads(line_text(line)) == {"at": 1.235, "chat": "c", "request": "r", **written}


@pytest.mark.parametrize("said", [Ping(), Pong(), Audio(b"", 16000, 1, 16)])
def test_sound_and_pings_have_none(said: Said) -> None:
    assert line_of(said, 0.0, chat=None, request=None) is None


def test_the_older_form_of_messages_is_kept() -> None:
    content = [{"type": "tool-result", "toolCallId": "a", "result": {"confirmed": True}}]
    line = line_of(
        asked(messages=[{"role": "user", "content": content}]), 0.0, chat=None, request=None
    )
    assert line is not None
    written = json.loads(line_text(line))
    assert written["messages"][0]["content"] == content
    assert "chat" not in written
    assert "request" not in written


NAMES = st.text(min_size=1)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
LINES = st.builds(
    Line,
    st.floats(0, 1e6).map(lambda at: round(at, 3)),
    st.sampled_from(["in", "out"]),
    NAMES,
    st.none() | NAMES,
    st.none() | NAMES,
    st.dictionaries(st.sampled_from(["chunk", "data", "errorText", "messages", "new"]), JSON),
)


@given(st.lists(LINES, max_size=5))
def test_what_is_written_is_read(lines: list[Line]) -> None:
    text = header_text(HEADER) + "".join(map(line_text, lines))
    # As a file would hold it: also halves of characters have a way through UTF-8.
    found = read_recording(text.encode().decode().split("\n"))
    assert found.header == HEADER
    assert [(line.number, line_text(line)) for line in found.lines] == [
        (number, line_text(line)) for number, line in enumerate(lines, start=2)
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "The file is empty"),
        ("\n\n", "The file is empty"),
        ("hello", "Line 1 is not JSON"),
        ('{"level":"info"}', "Line 1: a recording begins with"),
        ('{"recording":true}', "Line 1: a recording begins with"),
        ('{"recording":2}', "Line 1: this is a recording of format 2; this release reads format 1"),
        ('{"recording":1}\n[]', "Line 2 is not a JSON object"),
        ('{"recording":1}\n\n{"at":', "Line 3 is not JSON. If it is the last one"),
        ('{"recording":1}\n{"at":"x","direction":"in"}', 'Line 2: "at" must be'),
        ('{"recording":1}\n{"at":1}', 'Line 2: "direction" must be'),
        ('{"recording":1}\n' + "[" * 100_000, "Line 2 is not JSON"),
    ],
)
def test_what_is_no_recording_is_refused_by_line(text: str, told: str) -> None:
    with pytest.raises(BadRequest) as refused:
        read_recording(text.split("\n"))
    assert told in refused.value.message
    assert refused.value.code == "bad_recording"


def test_types_and_fields_that_are_not_known_are_no_error() -> None:
    lines = ['{"recording":1,"by":"me","later":1}', '{"direction":"out","type":"new","later":[]}']
    found = read_recording(lines)
    assert found.header == Header("me", "")
    assert found.lines == (Line(0.0, "out", "new", fields={"later": []}, number=2),)
