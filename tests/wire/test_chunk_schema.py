"""The published JSON Schema: it is what the types say, and what every recorded chunk is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

from adk_stream_protocol.identifiers import ApprovalId, CallId, ChatId, InvocationId, UserId
from adk_stream_protocol.lifecycle import ApprovalStep, CallEvent, CallState, HeldCall
from adk_stream_protocol.translation.cards import card
from adk_stream_protocol.wire.chunk_schema import SCHEMA_ID, chunk_schema, chunk_schema_text
from adk_stream_protocol.wire.chunks import Chunk, DataChunk, to_json
from adk_stream_protocol.wire.data_parts import ApprovalStatus, DataPart
from support.chunk_schema import chunk_errors
from wire.test_chunks import EXAMPLES, JSON, KINDS, chunks_of

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "src/adk_stream_protocol/chunks.schema.json"
RECORDED = [
    *sorted((ROOT / "tests/golden/expected").rglob("*.jsonl")),
    *sorted((ROOT / "tests/golden/seeds").glob("*.jsonl")),
    *sorted((ROOT / "tests/stories/expected").rglob("*.jsonl")),
]
KNOWN = [(chunk, fields) for chunk, fields in EXAMPLES if not isinstance(chunk, DataChunk)]
CARD = {
    "toolCallId": "c1",
    "toolName": "pay",
    "status": "pending",
    "title": "Payment",
    "hint": "",
    "risk": "",
    "createdAt": "2026-11-01T12:00:00.000Z",
    "expiresAt": "2026-11-01T13:00:00.000Z",
}


# What is published


def test_the_published_file_is_what_the_types_say(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("golden_update", default=False):
        PUBLISHED.write_text(chunk_schema_text(), encoding="utf-8")
    published = files("adk_stream_protocol").joinpath("chunks.schema.json").read_text("utf-8")
    assert published == chunk_schema_text(), (
        "The schema is stale: run `make golden`, and commit it."
    )


def test_the_schema_is_one_and_says_which_draft_and_which_it_is() -> None:
    schema = chunk_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == SCHEMA_ID


def described() -> dict[str, dict[str, Any]]:
    """Return the kinds of chunks in the schema, by their type on the wire."""
    schema: Any = chunk_schema()
    named = [choice["$ref"].removeprefix("#/$defs/") for choice in schema["oneOf"]]
    kinds = [schema["$defs"][name] for name in named]
    return {kind["properties"]["type"]["const"]: kind for kind in kinds}


def test_every_chunk_and_every_data_part_is_described_once() -> None:
    schema: Any = chunk_schema()
    chunks = [kind.type for kind in get_args(Chunk) if kind is not DataChunk]
    parts = [f"data-{part.name}" for part in get_args(DataPart)]
    assert list(described()) == [*chunks, *parts]
    assert len(schema["oneOf"]) == len(described())


# What is sent


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_recorded_chunk_is_valid(path: Path) -> None:
    wrong = [(chunk, chunk_errors(chunk)) for chunk in recorded(path)]
    assert [(chunk, errors) for chunk, errors in wrong if errors] == []


def recorded(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a file; the seeds' ones have envelopes, of which some hold none."""
    for line in path.read_text("utf-8").splitlines():
        item = json.loads(line) if line else None
        if isinstance(item, dict) and "direction" in item:
            item = item["data"] if item["direction"] == "in" else None
        if isinstance(item, dict):
            yield item


def test_the_recordings_hold_chunks() -> None:
    assert len(RECORDED) > 100
    assert all(any(recorded(path)) for path in RECORDED)


@given(data=st.data())
def test_every_chunk_that_can_be_made_is_valid(data: st.DataObject) -> None:
    kinds = [kind for kind in KINDS if kind is not DataChunk]
    chunk = data.draw(st.sampled_from(kinds).flatmap(chunks_of))
    assert chunk_errors(to_json(chunk)) == []


TEXT = st.text(max_size=3)
CALLS = st.builds(
    HeldCall,
    approval_id=TEXT.map(ApprovalId),
    call_id=TEXT.map(CallId),
    owner=TEXT.map(UserId),
    chat_id=TEXT.map(ChatId),
    invocation_id=TEXT.map(InvocationId),
    tool_name=TEXT,
    arguments=st.just({}),
    arguments_hash=TEXT,
    created_at=st.just(1.0),
    expires_at=st.just(2.0),
    state=st.sampled_from(CallState),
    title=TEXT,
    payload=JSON,
    ui=st.dictionaries(TEXT, JSON, max_size=1),
    decided_at=st.none() | st.just(1.5),
    decided_by=st.none() | TEXT,
    reason=st.none() | TEXT,
    steps=st.lists(
        st.builds(
            ApprovalStep,
            name=TEXT,
            by=st.lists(TEXT, max_size=2).map(tuple),
            four_eyes=st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
    step=st.integers(0, 1),
    schema=st.none() | st.just({"type": "object"}),
    edited=st.none() | st.just({"amount": 1}),
    edited_hash=st.none() | st.just("h"),
    automatic=st.booleans(),
    remember=st.booleans(),
    trail=st.lists(
        st.fixed_dictionaries(
            {"at": st.just(1.0), "event": st.sampled_from([event.value for event in CallEvent])},
            optional={
                "by": TEXT,
                "reason": TEXT,
                "argumentsHash": st.just("h"),
                "rememberable": st.booleans(),
            },
        ),
        max_size=2,
    ).map(tuple),
)


@given(call=CALLS)
def test_the_card_of_every_call_is_valid(call: HeldCall) -> None:
    assert chunk_errors({"type": "data-approval", "id": "a1", "data": card(call)}) == []


def test_a_card_has_the_status_of_its_call() -> None:
    assert [state.value for state in CallState] == list(get_args(ApprovalStatus))


# What is refused


@pytest.mark.parametrize(("chunk", "fields"), KNOWN, ids=lambda value: type(value).__name__)
def test_a_chunk_that_lacks_a_field_or_has_one_too_many_is_refused(
    chunk: Chunk, fields: dict[str, Any]
) -> None:
    whole = {"type": chunk.type, **fields}
    assert chunk_errors(whole) == []
    for field in described()[chunk.type]["required"]:
        assert chunk_errors({key: value for key, value in whole.items() if key != field})
    assert chunk_errors({**whole, "surprise": 1})


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        [],
        "[DONE]",
        None,
        {"type": "text"},
        {"type": "data-surprise", "data": {}},
        {"type": "data-", "data": {}},
        {"type": "text-delta", "id": 1, "delta": "a"},
        {"type": "text-delta", "id": "1", "delta": None},
        {"type": "text-delta", "id": "1", "delta": "a", "providerMetadata": None},
        {"type": "text-delta", "id": "1", "delta": "a", "providerMetadata": {"adk": 1}},
        {"type": "start", "messageId": None},
        {"type": "start", "messageMetadata": None},
        {"type": "start", "message_id": "m1"},
        {"type": "finish", "finishReason": "done"},
        {"type": "tool-output-available", "toolCallId": "c1"},
        {"type": "tool-approval-request", "approvalId": "a1"},
        {"type": "tool-approval-response", "approvalId": "a1", "approved": "yes"},
        {"type": "data-approval", "data": CARD},
        {"type": "data-approval", "id": "a1", "data": {"status": "pending"}},
        {"type": "data-approval", "id": "a1", "data": {**CARD, "status": "maybe"}},
        {"type": "data-approval", "id": "a1", "data": {**CARD, "reason": None}},
        {"type": "data-approval", "id": "a1", "data": {**CARD, "step": {"n": 1, "of": 2}}},
        {"type": "data-approval", "id": "a1", "data": {**CARD, "approvedBy": "ann"}},
        {"type": "data-adk-agent", "data": {}},
        {"type": "data-adk-artifact", "id": "f", "data": {"filename": "f", "version": "1"}},
        {"type": "data-adk-credential", "data": {"id": "a1", "authUri": "https://x.example"}},
        {"type": "data-adk-state", "data": []},
        {"type": "data-adk-transcription", "data": {"side": "output", "text": "", "final": True}},
    ],
    ids=json.dumps,
)
def test_what_is_no_chunk_of_ours_is_refused(wrong: object) -> None:
    assert chunk_errors(wrong)


def test_the_refused_cards_are_wrong_in_what_they_say() -> None:
    assert chunk_errors({"type": "data-approval", "id": "a1", "data": CARD}) == []
