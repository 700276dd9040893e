"""What a recording does not tell: laws for all chunks, and the places where secrets hide."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_stream_protocol.recording import Line, line_text
from adk_stream_protocol.redaction import Redaction, masked_text
from adk_stream_protocol.wire.chunks import (
    Chunk,
    DataChunk,
    FinishReason,
    ToolInputAvailableChunk,
    parse_chunk,
    to_json,
)

KINDS: tuple[type[Chunk], ...] = get_args(Chunk)

# Letters and digits that no name of the protocol has: what is left of them was said by somebody.
SAID = st.text("ΑΒΓΔ日本送金ЖЩ١٢٣ⅷ½🎉 .,:/-\n{}\"\\'", max_size=20)
NAMES = st.text("abcdefgh-0123456789", max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | SAID,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
NAMED = {
    "id",
    "message_id",
    "source_id",
    "tool_call_id",
    "tool_name",
    "approval_id",
    "kind",
    "name",
}
LEAKS = set("ΑΒΓΔ日本送金ЖЩ١٢٣ⅷ½🎉")


def values_of(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    name, _, optional = str(field.type).partition(" | ")
    found: st.SearchStrategy[Any] = {
        "str": NAMES if field.name in NAMED else SAID,
        "bool": st.booleans(),
        "JsonValue": VALUES,
        "FinishReason": st.sampled_from(get_args(FinishReason)),
        "ProviderMetadata": st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=2)),
    }[name]
    return st.none() | found if optional else found


def chunks_of(kind: type[Chunk]) -> st.SearchStrategy[Chunk]:
    return st.builds(kind, **{field.name: values_of(field) for field in dataclasses.fields(kind)})


def chunk_line(chunk: Chunk, request: str = "r") -> Line:
    return Line(0.0, "out", "chunk", "c", request, {"chunk": to_json(chunk)})


def redacted(line: Line, *, keep_text: bool = False) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(line_text(Redaction(keep_text=keep_text).line(line)))
    return written


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shape(item) for item in value]
    return value if value is None or isinstance(value, bool) else type(value)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=30)
@given(data=st.data())
def test_nothing_that_was_said_is_left_and_the_chunk_is_one(
    kind: type[Chunk], data: st.DataObject
) -> None:
    chunk = data.draw(chunks_of(kind))
    written = redacted(chunk_line(chunk))["chunk"]

    assert not LEAKS & set(json.dumps(written, ensure_ascii=False))
    back = parse_chunk(written)
    assert type(back) is type(chunk)
    for field in dataclasses.fields(chunk):
        before, after = getattr(chunk, field.name), getattr(back, field.name)
        if field.name in NAMED | {"finish_reason"}:
            assert after == before
        else:
            assert shape(after) == shape(before)


@given(data=st.data())
def test_what_keeps_the_words_keeps_the_chunk(data: st.DataObject) -> None:
    chunk = data.draw(st.sampled_from(KINDS).flatmap(chunks_of))
    parse_chunk(redacted(chunk_line(chunk), keep_text=True)["chunk"])


@given(st.text())
def test_a_masked_text_is_as_long_and_has_no_letters_but_x(text: str) -> None:
    masked = masked_text(text)
    assert len(masked) == len(text)
    assert {letter for letter in masked if letter.isalnum()} <= {"x", "0"}
    assert masked.split() == masked_text(" ".join(text.split())).split()


def test_what_names_things_stays() -> None:
    message: dict[str, Any] = {
        "id": "u1",
        "role": "assistant",
        "metadata": {"model": "gemini"},
        "parts": [
            {"type": "text", "text": "Pay Hanako", "state": "done"},
            {
                "type": "tool-pay",
                "toolCallId": "call-1",
                "state": "approval-responded",
                "input": {"amount": 50, "to": "Hanako", "id": "DE89", "urgent": True},
                "approval": {"id": "a1", "approved": True, "reason": "fine by me"},
            },
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo="},
        ],
    }
    line = Line(0.0, "in", "send", "c", "r", {"trigger": "submit-message", "messages": [message]})

    assert redacted(line)["messages"] == [
        {
            "id": "u1",
            "role": "assistant",
            "metadata": {"model": "xxxxxx"},
            "parts": [
                {"type": "text", "text": "xxx xxxxxx", "state": "done"},
                {
                    "type": "tool-pay",
                    "toolCallId": "call-1",
                    "state": "approval-responded",
                    "input": {"amount": 0, "to": "xxxxxx", "id": "xx00", "urgent": True},
                    "approval": {"id": "a1", "approved": True, "reason": "xxxx xx xx"},
                },
                {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"},
            ],
        }
    ]


def test_a_card_and_a_confirmation_keep_what_a_client_needs() -> None:
    card: dict[str, Any] = {
        "toolCallId": "call-1",
        "toolName": "pay",
        "status": "pending",
        "title": "Send money",
        "createdAt": "2026-11-16T09:00:00.000Z",
        "step": {"n": 1, "of": 2, "name": "manager", "by": ["ann"]},
        "decidedBy": "ann",
    }
    assert redacted(chunk_line(DataChunk("approval", card, id="a1")))["chunk"]["data"] == {
        **card,
        "title": "xxxx xxxxx",
        "step": {"n": 1, "of": 2, "name": "xxxxxxx", "by": ["xxx"]},
        "decidedBy": "xxx",
    }
    asked: dict[str, Any] = {
        "originalFunctionCall": {"id": "call-1", "name": "pay", "args": {"to": "Hanako"}},
        "toolConfirmation": {"hint": "Pay?", "confirmed": False},
    }
    confirmation = ToolInputAvailableChunk("a1", "adk_request_confirmation", asked)
    assert redacted(chunk_line(confirmation))["chunk"]["input"] == {
        "originalFunctionCall": {"id": "call-1", "name": "pay", "args": {"to": "xxxxxx"}},
        "toolConfirmation": {"hint": "xxx?", "confirmed": False},
    }


def test_an_answer_keeps_its_verdict() -> None:
    result = Line(
        0.0,
        "in",
        "tool_result",
        "c",
        "r",
        {"data": {"toolCallId": "a", "result": {"confirmed": True}}},
    )
    assert redacted(result)["data"] == {"toolCallId": "a", "result": {"confirmed": True}}
    decision = Line(
        0.0,
        "in",
        "decision",
        "c",
        "r",
        {"data": {"approvalId": "a", "approved": False, "reason": "No"}},
    )
    assert redacted(decision)["data"] == {"approvalId": "a", "approved": False, "reason": "xx"}


SECRETS: dict[str, Any] = {
    "password": "hunter2-and-more",
    "dbPassword": "hunter2-and-more",
    "api_key": "hunter2-and-more",
    "apiKey": "hunter2-and-more",
    "X-Api-Key": "hunter2-and-more",
    "Authorization": "hunter2-and-more",
    "set-cookie": "hunter2-and-more",
    "access_token": ["hunter2-and-more"],
    "client_secret": {"value": "hunter2-and-more"},
}


@pytest.mark.parametrize("keep_text", [False, True])
@pytest.mark.parametrize("key", SECRETS)
def test_values_of_keys_that_name_secrets_are_hidden(key: str, keep_text: bool) -> None:
    chunk = ToolInputAvailableChunk(
        "call-1", "log_in", {"user": "ann", "more": {key: SECRETS[key]}}
    )
    written = redacted(chunk_line(chunk), keep_text=keep_text)["chunk"]["input"]
    assert "hunter2" not in json.dumps(written)
    assert written["user"] == ("ann" if keep_text else "xxx")
    assert key in written["more"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("use sk-proj-abcDEF123 now", "use xxxxxxxxxxxxxxxxx now"),
        ("AIzaSyA-1234567890abcdef.", "xxxxxxxxxxxxxxxxxxxxxxxxx"),
        ("eyJhbGciOi.eyJzdWIi.c2ln end", "xxxxxxxxxxxxxxxxxxxxxxxx end"),
        ("Authorization: Bearer abc.def", "Authorization: xxxxxx xxxxxxx"),
        ("curl -H 'bearer abcdef'", "curl -H 'bearer xxxxxxx"),
        ("https://x.example/?token=abc&page=2", "https://x.example/?token=xxx&page=2"),
        ('{"password": "hunter2", "user": "ann"}', '{"password": "xxxxxxx", "user": "ann"}'),
        ("Cookie: a=1; b=2\nnext", "Cookie: xxxxxxxx\nnext"),
        ("a task-list and a desk-lamp", "a task-list and a desk-lamp"),
        ("日本語の文", "日本語の文"),
    ],
)
def test_what_looks_like_a_key_is_hidden_among_words(text: str, left: str) -> None:
    line = Line(0.0, "out", "error", "c", "r", {"errorText": text})
    assert redacted(line, keep_text=True)["errorText"] == left


def deltas(redaction: Redaction, pieces: list[str], request: str = "r") -> str:
    told = ""
    for piece in pieces:
        chunk: dict[str, Any] = {"type": "text-delta", "id": "1", "delta": piece}
        line = redaction.line(Line(0.0, "out", "chunk", "c", request, {"chunk": chunk}))
        told += json.loads(line_text(line))["chunk"]["delta"]
    return told


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_key_that_comes_in_pieces_is_hidden_once_it_shows(size: int) -> None:
    text = "It is sk-abcdefghijklmnop, and password: hunter2 too."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    told = deltas(Redaction(keep_text=True), pieces)
    assert len(told) == len(text)
    assert told.startswith("It is ")
    assert told.endswith(" too.")
    assert "efghij" not in told
    assert "nter2" not in told


def test_blocks_of_other_requests_are_other_texts() -> None:
    redaction = Redaction(keep_text=True)
    assert deltas(redaction, ["the token: "], "r1") == "the token: "
    assert deltas(redaction, ["fine"], "r2") == "fine"
    assert deltas(redaction, ["abc"], "r1") == "xxx"


def test_arguments_that_stream_are_masked_even_where_words_are_kept() -> None:
    chunk: dict[str, Any] = {
        "type": "tool-input-delta",
        "toolCallId": "1",
        "inputTextDelta": '{"password":"hun',
    }
    line = Line(0.0, "out", "chunk", "c", "r", {"chunk": chunk})
    assert redacted(line, keep_text=True)["chunk"]["inputTextDelta"] == '{"xxxxxxxx":"xxx'


def test_counts_of_tokens_are_no_secrets() -> None:
    chunk: dict[str, Any] = {"type": "finish", "messageMetadata": {"usage": {"totalTokens": 12}}}
    line = Line(0.0, "out", "chunk", "c", "r", {"chunk": chunk})
    kept = redacted(line, keep_text=True)["chunk"]["messageMetadata"]
    assert kept == {"usage": {"totalTokens": 12}}


def test_what_names_messages_is_kept() -> None:
    fields = {"trigger": "regenerate-message", "messageId": "m1", "parentId": "u1"}
    line = Line(0.0, "in", "send", "c", "1", {**fields, "messages": []})
    assert Redaction(keep_text=False).line(line).fields == {**fields, "messages": []}
