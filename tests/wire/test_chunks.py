from __future__ import annotations

import dataclasses
import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.wire.chunks import (
    AbortChunk,
    Chunk,
    CustomChunk,
    DataChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningFileChunk,
    ReasoningStartChunk,
    ResetStepChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    StartChunk,
    StartStepChunk,
    SteeringMessageChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    encode,
    fit,
    parse_chunk,
    to_json,
)

KINDS: tuple[type[Chunk], ...] = get_args(Chunk)

META = {"adk": {"author": "root"}}

EXAMPLES: list[tuple[Chunk, dict[str, object]]] = [
    (StartChunk("m1", {"a": 1}), {"messageId": "m1", "messageMetadata": {"a": 1}}),
    (FinishChunk("stop", {"a": 1}), {"finishReason": "stop", "messageMetadata": {"a": 1}}),
    (AbortChunk("user"), {"reason": "user"}),
    (ErrorChunk("kaput"), {"errorText": "kaput"}),
    (MessageMetadataChunk({"a": None}), {"messageMetadata": {"a": None}}),
    (StartStepChunk(), {}),
    (FinishStepChunk(), {}),
    (ResetStepChunk(), {}),
    (TextStartChunk("1", META), {"id": "1", "providerMetadata": META}),
    (TextDeltaChunk("1", "hi", META), {"id": "1", "delta": "hi", "providerMetadata": META}),
    (TextEndChunk("1", META, []), {"id": "1", "providerMetadata": META, "citations": []}),
    (ReasoningStartChunk("1", META), {"id": "1", "providerMetadata": META}),
    (ReasoningDeltaChunk("1", "hm", META), {"id": "1", "delta": "hm", "providerMetadata": META}),
    (ReasoningEndChunk("1", META), {"id": "1", "providerMetadata": META}),
    (
        ReasoningFileChunk("u", "image/png", META),
        {"url": "u", "mediaType": "image/png", "providerMetadata": META},
    ),
    (
        FileChunk("u", "image/png", META),
        {"url": "u", "mediaType": "image/png", "providerMetadata": META},
    ),
    (
        SourceUrlChunk("s", "u", "title", META),
        {"sourceId": "s", "url": "u", "title": "title", "providerMetadata": META},
    ),
    (
        SourceDocumentChunk("s", "text/plain", "title", "a.txt", META),
        {
            "sourceId": "s",
            "mediaType": "text/plain",
            "title": "title",
            "filename": "a.txt",
            "providerMetadata": META,
        },
    ),
    (CustomChunk("adk.x", META), {"kind": "adk.x", "providerMetadata": META}),
    (DataChunk("approval", {"a": 1}, "i", True), {"data": {"a": 1}, "id": "i", "transient": True}),
    (SteeringMessageChunk("s", []), {"id": "s", "parts": []}),
    (
        ToolInputStartChunk("c1", "pay", True, "Pay", False),
        {
            "toolCallId": "c1",
            "toolName": "pay",
            "dynamic": True,
            "title": "Pay",
            "providerExecuted": False,
        },
    ),
    (ToolInputDeltaChunk("c1", "{"), {"toolCallId": "c1", "inputTextDelta": "{"}),
    (
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}, True, "Pay", True),
        {
            "toolCallId": "c1",
            "toolName": "pay",
            "input": {"amount": 5},
            "dynamic": True,
            "title": "Pay",
            "providerExecuted": True,
        },
    ),
    (
        ToolInputErrorChunk("c1", "pay", "x", "bad", True, "Pay", True),
        {
            "toolCallId": "c1",
            "toolName": "pay",
            "input": "x",
            "errorText": "bad",
            "dynamic": True,
            "title": "Pay",
            "providerExecuted": True,
        },
    ),
    (
        ToolApprovalRequestChunk("a1", "c1", "over limit", True),
        {"approvalId": "a1", "toolCallId": "c1", "reason": "over limit", "isAutomatic": True},
    ),
    (
        ToolApprovalResponseChunk("a1", False, "no"),
        {"approvalId": "a1", "approved": False, "reason": "no"},
    ),
    (
        ToolOutputAvailableChunk("c1", 5, True, True, True),
        {
            "toolCallId": "c1",
            "output": 5,
            "preliminary": True,
            "dynamic": True,
            "providerExecuted": True,
        },
    ),
    (
        ToolOutputErrorChunk("c1", "declined", True, True),
        {"toolCallId": "c1", "errorText": "declined", "dynamic": True, "providerExecuted": True},
    ),
    (ToolOutputDeniedChunk("c1"), {"toolCallId": "c1"}),
]

# The fields that every v6 client knows, 6.0.0 included: ../reference, section 1.
SAFE_FOR_V6 = {
    "start": {"messageId", "messageMetadata"},
    "finish": {"finishReason", "messageMetadata"},
    "abort": set[str](),
    "error": {"errorText"},
    "message-metadata": {"messageMetadata"},
    "start-step": set[str](),
    "finish-step": set[str](),
    "text-start": {"id", "providerMetadata"},
    "text-delta": {"id", "delta", "providerMetadata"},
    "text-end": {"id", "providerMetadata"},
    "reasoning-start": {"id", "providerMetadata"},
    "reasoning-delta": {"id", "delta", "providerMetadata"},
    "reasoning-end": {"id", "providerMetadata"},
    "file": {"url", "mediaType", "providerMetadata"},
    "source-url": {"sourceId", "url", "title", "providerMetadata"},
    "source-document": {"sourceId", "mediaType", "title", "filename", "providerMetadata"},
    "data": {"data", "id", "transient"},
    "tool-input-start": {"toolCallId", "toolName", "dynamic", "title", "providerExecuted"},
    "tool-input-delta": {"toolCallId", "inputTextDelta"},
    "tool-input-available": {
        "toolCallId",
        "toolName",
        "input",
        "dynamic",
        "title",
        "providerExecuted",
    },
    "tool-input-error": {
        "toolCallId",
        "toolName",
        "input",
        "errorText",
        "dynamic",
        "title",
        "providerExecuted",
    },
    "tool-approval-request": {"approvalId", "toolCallId"},
    "tool-output-available": {
        "toolCallId",
        "output",
        "preliminary",
        "dynamic",
        "providerExecuted",
    },
    "tool-output-error": {"toolCallId", "errorText", "dynamic", "providerExecuted"},
    "tool-output-denied": {"toolCallId"},
}

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Surrogates too: tools return file names and cut strings.
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(st.characters()),
    "bool": st.booleans(),
    "JsonValue": JSON,
    "FinishReason": st.sampled_from(get_args(FinishReason)),
    "ProviderMetadata": st.dictionaries(
        st.text(), st.dictionaries(st.text(), JSON, max_size=2), max_size=2
    ),
}


def field_strategy(field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    # The modules postpone annotations, so a field's type is its text.
    name, _, optional = str(field.type).partition(" | ")
    return st.none() | FIELDS[name] if optional else FIELDS[name]


def chunks_of(kind: type[Chunk]) -> st.SearchStrategy[Chunk]:
    fields = {field.name: field_strategy(field) for field in dataclasses.fields(kind)}
    return st.builds(kind, **fields)


def test_examples_show_every_kind_of_chunk() -> None:
    assert {type(chunk) for chunk, _ in EXAMPLES} == set(KINDS)


@pytest.mark.parametrize(("chunk", "fields"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_chunk_is_written_under_the_names_a_client_reads(
    chunk: Chunk, fields: dict[str, object]
) -> None:
    assert to_json(chunk) == {"type": chunk.type, **fields}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_every_chunk_comes_back_equal_from_its_json(kind: type[Chunk], data: st.DataObject) -> None:
    chunk = data.draw(chunks_of(kind))
    sent = encode(chunk).encode()
    assert parse_chunk(json.loads(sent)) == chunk


@given(data=st.data())
def test_no_chunk_writes_null_for_an_absent_field(data: st.DataObject) -> None:
    chunk = data.draw(st.sampled_from(KINDS).flatmap(chunks_of))
    nulls = {key for key, value in to_json(chunk).items() if value is None}
    assert nulls <= {"input", "output", "data", "messageMetadata", "parts"}


def test_required_values_are_written_even_if_null() -> None:
    assert encode(ToolOutputAvailableChunk("c1", None)) == (
        '{"type":"tool-output-available","toolCallId":"c1","output":null}'
    )
    assert to_json(ToolInputAvailableChunk("c1", "pay", None))["input"] is None
    assert to_json(DataChunk("x", None)) == {"type": "data-x", "data": None}


def test_false_and_empty_are_written() -> None:
    assert to_json(DataChunk("x", 0, id="", transient=False)) == {
        "type": "data-x",
        "data": 0,
        "id": "",
        "transient": False,
    }


def test_value_that_is_not_json_is_not_encoded() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        encode(ToolOutputAvailableChunk("c1", float("nan")))


@pytest.mark.parametrize("name", ["text", "", "tool-output", None, 7])
def test_unknown_type_is_a_bad_request(name: str | int | None) -> None:
    with pytest.raises(BadRequest, match="Unknown chunk type") as caught:
        parse_chunk({"type": name})
    assert caught.value.code == "unknown_chunk"


def test_chunk_without_a_required_field_is_a_bad_request() -> None:
    with pytest.raises(BadRequest, match="'text-delta' has no 'delta'") as caught:
        parse_chunk({"type": "text-delta", "id": "1"})
    assert caught.value.code == "bad_chunk"


def test_fields_we_do_not_know_are_ignored() -> None:
    known = {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"}
    assert parse_chunk({**known, "signature": "x"}) == ToolApprovalRequestChunk("a1", "c1")


@given(data=st.data())
def test_what_fits_v6_has_only_fields_that_every_v6_client_knows(data: st.DataObject) -> None:
    chunk = data.draw(st.sampled_from(KINDS).flatmap(chunks_of))
    fitting = fit(chunk, 6)
    if fitting is not None:
        written = to_json(fitting)
        name = "data" if isinstance(fitting, DataChunk) else fitting.type
        assert set(written) - {"type"} <= SAFE_FOR_V6[name]
        assert written.get("finishReason") != "interrupted"


@given(data=st.data())
def test_everything_fits_v7_as_it_is(data: st.DataObject) -> None:
    chunk = data.draw(st.sampled_from(KINDS).flatmap(chunks_of))
    assert fit(chunk, 7) is chunk


@pytest.mark.parametrize(
    "chunk",
    [
        ResetStepChunk(),
        CustomChunk("adk.x"),
        ToolApprovalResponseChunk("a1", approved=True),
    ],
    ids=lambda chunk: chunk.type,
)
def test_chunk_that_is_fatal_for_v6_does_not_fit_it(chunk: Chunk) -> None:
    assert fit(chunk, 6) is None


def test_a_message_in_the_middle_of_another_is_data_for_v6() -> None:
    steering = SteeringMessageChunk("s", [{"type": "text", "text": "hi"}])
    assert fit(steering, 7) == steering
    assert fit(steering, 6) == DataChunk("adk-steering", {"parts": steering.parts}, id="s")


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (ReasoningFileChunk("u", "image/png", META), FileChunk("u", "image/png")),
        (AbortChunk("user"), AbortChunk()),
        (FinishChunk("interrupted", {"a": 1}), FinishChunk("other", {"a": 1})),
        (FinishChunk("stop"), FinishChunk("stop")),
        (TextEndChunk("1", META, [{"x": 1}]), TextEndChunk("1", META)),
        (TextEndChunk("1", META, []), TextEndChunk("1", META)),
        (TextEndChunk("1"), TextEndChunk("1")),
        (
            ToolApprovalRequestChunk("a1", "c1", "why", is_automatic=True),
            ToolApprovalRequestChunk("a1", "c1"),
        ),
        (TextStartChunk("1"), TextStartChunk("1")),
    ],
)
def test_chunk_is_cut_down_to_what_v6_knows(chunk: Chunk, expected: Chunk) -> None:
    assert fit(chunk, 6) == expected
