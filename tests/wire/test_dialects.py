"""How frames are spelled: what each dialect reads, refuses and writes."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.errors import BadFrame
from adk_stream_protocol.identifiers import ChatId, MessageId, RequestId
from adk_stream_protocol.wire.chunks import FinishChunk, TextDeltaChunk
from adk_stream_protocol.wire.dialects import AiSdkDialect, Dialect, EnvelopeDialect
from adk_stream_protocol.wire.frames import (
    Abort,
    Active,
    Audio,
    AudioControl,
    ChunkFrame,
    Ended,
    Failed,
    Interrupt,
    NoActive,
    Ping,
    Pong,
    Refused,
    Resume,
    Send,
    ServerFrame,
    Started,
    ToolResult,
)
from adk_stream_protocol.wire.requests import BEGINNING

STOCK = AiSdkDialect()
ENVELOPE = EnvelopeDialect()
R1 = RequestId("r1")
SAID = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def stock(**fields: object) -> str:
    """Return a frame as a stock client writes it: what is undefined is left out."""
    head = {"type": "send", "requestId": "r1", "id": "c1"}
    return json.dumps(head | {"headers": {}, "body": {}} | fields, separators=(",", ":"))


def refused(dialect: Dialect[object], text: str) -> tuple[str, str | None]:
    with pytest.raises(BadFrame) as refused:
        dialect.parse(text)
    assert refused.value.status == 400
    return refused.value.code, refused.value.request_id


# The AI SDK's frames


def test_a_send_frame_is_a_chat_request() -> None:
    frame = STOCK.parse(stock(trigger="submit-message", messageId="m1", messages=[SAID]))
    assert isinstance(frame, Send)
    assert frame.request_id == "r1"
    assert frame.request.chat_id == "c1"
    assert frame.request.message_id == MessageId("m1")
    assert [message.text for message in frame.request.messages] == ["hi"]


def test_a_regeneration_is_a_send_frame_too() -> None:
    frame = STOCK.parse(stock(trigger="regenerate-message", messages=[SAID]))
    assert isinstance(frame, Send)
    assert frame.request.trigger == "regenerate-message"


def test_a_send_frame_may_bring_one_message_or_only_name_one() -> None:
    alone = STOCK.parse(stock(message=SAID))
    assert isinstance(alone, Send)
    assert [message.text for message in alone.request.messages] == ["hi"]
    named = STOCK.parse(stock(trigger="regenerate-message", messageId="m1"))
    assert isinstance(named, Send)
    assert (named.request.messages, named.request.message_id) == ((), "m1")


def test_what_a_transport_adds_to_the_body_is_read_and_replaces_nothing() -> None:
    added = {"parentId": "m1", "message": {**SAID, "id": "u9"}, "id": "other", "trigger": "no"}
    frame = STOCK.parse(stock(messages=[SAID], trigger="submit-message", body=added))
    assert isinstance(frame, Send)
    assert frame.request.parent_id == "m1"
    assert (frame.request.chat_id, frame.request.trigger) == ("c1", "submit-message")
    assert frame.request.messages[0].id != "u9"
    assert isinstance(STOCK.parse(stock(messages=[SAID], body="none")), Send)


def test_resume_and_abort_are_read() -> None:
    assert STOCK.parse(stock(type="resume")) == Resume(R1, ChatId("c1"))
    assert STOCK.parse('{"type":"abort","requestId":"r1"}') == Abort(R1)


@pytest.mark.parametrize(
    ("text", "code", "request_id"),
    [
        ("{", "not_json", None),
        ("[]", "bad_frame", None),
        ('{"type":"abort","type":"abort"}', "duplicate_key", None),
        ("[" * 50 + "]" * 50, "too_deep", None),
        ('{"requestId":"r1"}', "bad_frame", None),
        ('{"type":"abort"}', "bad_frame", None),
        ('{"type":"abort","requestId":7}', "bad_frame", None),
        ('{"type":"abort","requestId":""}', "bad_frame", None),
        ('{"type":"abort","requestId":"-"}', "bad_frame", None),
        (json.dumps({"type": "abort", "requestId": "r" * 129}), "bad_frame", None),
        ('{"type":"ping","requestId":"r1"}', "bad_frame", "r1"),
        (stock(type="resume", id=None), "bad_frame", "r1"),
        (stock(type="resume", id="a/b"), "bad_chat_id", "r1"),
        (stock(type="resume", lastSequence=3), "bad_frame", "r1"),
        (stock(id=None, messages=[SAID]), "bad_frame", "r1"),
        (stock(messages=[]), "no_messages", "r1"),
        (stock(messages=[SAID], trigger="other"), "bad_trigger", "r1"),
        (stock(messages=[{"role": "robot"}]), "bad_message", "r1"),
    ],
)
def test_a_frame_that_means_nothing_is_refused_for_its_request(
    text: str, code: str, request_id: str | None
) -> None:
    assert refused(STOCK, text) == (code, request_id)


def test_the_request_of_a_frame_is_seen_without_reading_it() -> None:
    assert STOCK.request_of(stock(messages=[SAID])) == "r1"
    assert STOCK.request_of(stock(messages=[SAID])[:60]) == "r1"
    assert STOCK.request_of('{"requestId":"r1","type":"send"}') is None
    assert STOCK.request_of("nonsense") is None


@pytest.mark.parametrize(
    ("frame", "written"),
    [
        (Started(R1), {"type": "start", "requestId": "r1"}),
        (Ended(R1), {"type": "end", "requestId": "r1"}),
        (NoActive(R1), {"type": "no-active", "requestId": "r1"}),
        (Failed(R1, "No."), {"type": "error", "requestId": "r1", "errorText": "No."}),
        (Active(ChatId("c1")), {"type": "active", "requestId": "-", "id": "c1"}),
        (
            ChunkFrame(R1, 3, TextDeltaChunk("t1", '花"')),
            {
                "type": "chunk",
                "requestId": "r1",
                "sequence": 3,
                "chunk": {"type": "text-delta", "id": "t1", "delta": '花"'},
            },
        ),
    ],
)
def test_frames_are_written_as_the_stock_client_reads_them(
    frame: ServerFrame, written: dict[str, object]
) -> None:
    text = STOCK.render(frame)
    assert text is not None
    assert json.loads(text) == written


def test_the_ai_sdk_has_no_pong() -> None:
    assert STOCK.render(Pong()) is None


@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_whatever_the_ids_and_texts_hold_a_frame_is_json_that_utf8_can_carry(
    name: str, delta: str
) -> None:
    text = STOCK.render(ChunkFrame(RequestId(name), 0, TextDeltaChunk("t1", delta)))
    assert text is not None
    read = json.loads(text.encode())
    assert (read["requestId"], read["chunk"]["delta"]) == (name, delta)


@given(st.text(max_size=200) | st.dictionaries(st.text(max_size=9), st.text()).map(json.dumps))
def test_no_text_is_more_than_refused(text: str) -> None:
    dialects: list[Dialect[object]] = [STOCK, ENVELOPE]
    for dialect in dialects:
        with pytest.raises(BadFrame):
            dialect.parse(text)


# The envelope


def envelope(kind: str, data: object = None, **fields: object) -> str:
    frame = {"type": kind, "version": "1.0"} | ({} if data is None else {"data": data})
    return json.dumps(frame | fields)


def test_a_message_is_a_chat_request_in_either_form() -> None:
    new = ENVELOPE.parse(envelope("message", {"id": "c1", "messages": [SAID]}))
    assert isinstance(new, Send)
    assert new.request.chat_id == "c1"
    old = ENVELOPE.parse(
        envelope(
            "message",
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
        )
    )
    assert isinstance(old, Send)
    assert old.request.chat_id is None
    assert old.request.messages[0].content == ({"type": "text", "text": "hi"},)


def test_a_message_may_come_alone_or_only_be_named() -> None:
    alone = ENVELOPE.parse(envelope("message", {"message": SAID, "parentId": None}))
    assert isinstance(alone, Send)
    assert [message.text for message in alone.request.messages] == ["hi"]
    assert alone.request.parent_id == BEGINNING
    named = {"trigger": "regenerate-message", "messageId": "m1"}
    again = ENVELOPE.parse(envelope("message", named))
    assert isinstance(again, Send)
    assert (again.request.messages, again.request.message_id) == ((), "m1")


def test_a_tool_result_keeps_its_result_as_it_is() -> None:
    given: dict[str, Any] = {"toolCallId": "adk-1", "result": {"confirmed": True}}
    assert ENVELOPE.parse(envelope("tool_result", given)) == ToolResult(
        "adk-1", "", {"confirmed": True}
    )
    named = given | {"toolName": "pay", "result": None}
    assert ENVELOPE.parse(envelope("tool_result", named)) == ToolResult("adk-1", "pay", None)


def test_interrupt_and_ping_need_no_data() -> None:
    assert ENVELOPE.parse(envelope("interrupt")) == Interrupt()
    assert ENVELOPE.parse(envelope("ping", {})) == Ping()


def test_audio_comes_as_base64_with_its_format() -> None:
    chunk = base64.b64encode(b"\x01\x02").decode()
    told = {"chunk": chunk, "sampleRate": 24000, "channels": 2, "bitDepth": 8}
    assert ENVELOPE.parse(envelope("audio_chunk", told)) == Audio(b"\x01\x02", 24000, 2, 8)
    assert ENVELOPE.parse(envelope("audio_chunk", {"chunk": chunk})) == Audio(
        b"\x01\x02", 16000, 1, 16
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "not_json"),
        (envelope("ping", version="2.0"), "bad_version"),
        (envelope("ping", version=1.0), "bad_version"),
        ('{"type":"ping"}', "bad_version"),
        (envelope("ping", []), "bad_frame"),
        (envelope("dance"), "bad_frame"),
        (envelope("message", {"messages": []}), "no_messages"),
        (envelope("tool_result", {"result": 1}), "bad_frame"),
        (envelope("tool_result", {"toolCallId": "", "result": 1}), "bad_frame"),
        (envelope("tool_result", {"toolCallId": "adk-1"}), "bad_frame"),
        (envelope("audio_chunk", {}), "bad_frame"),
        (envelope("audio_chunk", {"chunk": "*"}), "bad_frame"),
        (envelope("audio_chunk", {"chunk": "A" * 90_000}), "bad_frame"),
        (envelope("audio_chunk", {"chunk": "", "sampleRate": 0}), "bad_frame"),
        (envelope("audio_chunk", {"chunk": "", "channels": True}), "bad_frame"),
        (envelope("audio_chunk", {"chunk": "", "bitDepth": "16"}), "bad_frame"),
        (envelope("audio_control"), "bad_frame"),
        (envelope("audio_control", action="louder"), "bad_frame"),
    ],
)
def test_an_envelope_that_means_nothing_is_refused(text: str, code: str) -> None:
    assert refused(ENVELOPE, text) == (code, None)


def test_an_unknown_version_is_refused_by_name() -> None:
    with pytest.raises(BadFrame, match=r'speaks version "1\.0", not "2\.0"'):
        ENVELOPE.parse(envelope("ping", version="2.0"))


def test_a_message_is_the_only_frame_of_the_envelope_that_asks_for_a_turn() -> None:
    assert ENVELOPE.request_of(' { "type" : "message", "version": "1.0" ...') == ""
    assert ENVELOPE.request_of(envelope("tool_result")) is None
    assert ENVELOPE.request_of("anything") is None


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("message", {"id": "c1", "messages": [SAID], "trigger": "submit-message"}),
        ("tool_result", {"toolCallId": "adk-1", "toolName": "pay", "result": {"approved": True}}),
        ("interrupt", {"reason": "user_abort"}),
        ("audio_chunk", {"chunk": "AAA=", "sampleRate": 16000}),
        ("audio_control", {"action": "stop"}),
    ],
)
def test_a_frame_means_the_same_with_and_without_data(kind: str, data: dict[str, Any]) -> None:
    flat = ENVELOPE.parse(envelope(kind, timestamp=5, **data))
    assert flat == ENVELOPE.parse(envelope(kind, data))


def test_what_stands_beside_data_is_not_read() -> None:
    frame = envelope("tool_result", {"toolCallId": "a", "result": 1}, toolCallId="b", result=2)
    assert ENVELOPE.parse(frame) == ToolResult("a", "", 1)


@pytest.mark.parametrize(("timestamp", "read"), [(5, 5), (1.5, 1.5), ("5", None), (True, None)])
def test_a_ping_keeps_its_timestamp_if_that_is_a_number(
    timestamp: object, read: float | None
) -> None:
    assert ENVELOPE.parse(envelope("ping", timestamp=timestamp)) == Ping(read)
    assert ENVELOPE.parse(envelope("ping", {"timestamp": timestamp})) == Ping(read)


def test_push_to_talk_turns_the_microphone_on_and_off() -> None:
    assert ENVELOPE.parse(envelope("audio_control", action="start")) == AudioControl("start")
    assert ENVELOPE.parse(envelope("audio_control", {"action": "stop"})) == AudioControl("stop")


@pytest.mark.parametrize(
    ("frame", "written"),
    [
        (
            ChunkFrame(R1, 0, FinishChunk(finish_reason="stop")),
            'data: {"type":"finish","finishReason":"stop"}\n\n',
        ),
        (Ended(R1), "data: [DONE]\n\n"),
        (Failed(R1, "No."), 'data: {"type":"error","errorText":"No."}\n\n'),
        (Pong(), '{"type":"pong","version":"1.0"}'),
        (Pong(5), '{"type":"pong","version":"1.0","timestamp":5}'),
        (Refused("No."), '{"type":"refused","version":"1.0","message":"No."}'),
        (
            Refused("No.", "unknown_call", "adk-1"),
            '{"type":"refused","version":"1.0","code":"unknown_call","message":"No.",'
            '"toolCallId":"adk-1"}',
        ),
        (Started(R1), None),
        (NoActive(R1), None),
        (Active(ChatId("c1")), None),
    ],
)
def test_the_envelope_answers_with_the_text_of_an_event_stream(
    frame: ServerFrame, written: str | None
) -> None:
    assert ENVELOPE.render(frame) == written
