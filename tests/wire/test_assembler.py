from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.wire.assembler import Assembler, StreamBroken, StreamFailed, assemble
from adk_stream_protocol.wire.chunks import (
    AbortChunk,
    Chunk,
    CustomChunk,
    DataChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
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
    parse_chunk,
)
from adk_stream_protocol.wire.messages import Part, UIMessage
from adk_stream_protocol.wire.values import JsonValue, as_object

META = {"adk": {"author": "root"}}
OTHER_META = {"adk": {"author": "helper"}}


def read_traces() -> dict[str, list[Chunk]]:
    """Return what the real `streamText` of ai 7.0.169 sent, by the title of each block."""
    text = (Path(__file__).parent / "data" / "streamtext-traces.txt").read_text("utf-8")
    blocks = [block.splitlines() for block in text.split("\n## ")[1:]]
    return {
        title: [parse_chunk(json.loads(line)) for line in lines if line] for title, *lines in blocks
    }


TRACES = read_traces()
FAILING = {
    "model error": "kaput",
    "-> approved, forged input": "invalid signature",
    "-> approved, missing signature": "missing signature",
}
CONTINUES = {"-> c1 yes, c2 no": "two approvals + one free tool"}
"""What each continuation continues, unless it is the one approval request."""


def parts_of(*chunks: Chunk) -> list[Part]:
    return assemble(chunks).parts


def answered(message: UIMessage, **decisions: bool) -> UIMessage:
    """Do what `addToolApprovalResponse` does in the browser, for each call by its id."""
    for part in message.parts:
        approved = decisions.get(str(part.get("toolCallId")))
        if approved is not None:
            part["state"] = "approval-responded"
            part["approval"] = {**as_object(part["approval"]), "approved": approved}
    return message


def step_with_text(text: str) -> list[Part]:
    return [{"type": "step-start"}, {"type": "text", "text": text, "state": "done"}]


def pay_part(call_id: str, amount: int, state: str, **fields: JsonValue) -> Part:
    return {
        "type": "tool-pay",
        "toolCallId": call_id,
        "state": state,
        "input": {"amount": amount},
        **fields,
    }


APPROVAL = {"id": "aitxt-jWDSyYHpyxQOtkqNAgXEYbT0"}
FIRST_OF_TWO = {"id": "aitxt-OuqGJY4B5Fb0ZUtSpyAgQ2Ui"}
SECOND_OF_TWO = {"id": "aitxt-RVUpOd7YEW7A3wM7ypgwD6PR"}


# The traces of the real server.


@pytest.mark.parametrize("title", [title for title in TRACES if title not in FAILING])
def test_trace_of_the_real_server_assembles(title: str) -> None:
    before = None
    if title.startswith("->"):
        before = assemble(TRACES[CONTINUES.get(title, "approval request")])
    message = assemble(TRACES[title], before)
    assert message.role == "assistant"
    assert message.id == ("" if title.startswith("v7 steering") else "MSG")
    assert message.parts
    if "finish" in TRACES[title][-1].type:
        assert "streaming" not in {part.get("state") for part in message.parts}


@pytest.mark.parametrize("title", FAILING)
def test_trace_that_ends_in_an_error_fails_with_its_text(title: str) -> None:
    before = assemble(TRACES["approval request"]) if title.startswith("->") else None
    with pytest.raises(StreamFailed, match=FAILING[title]) as caught:
        assemble(TRACES[title], before)
    assert caught.value.error_text.endswith(FAILING[title])


def test_answer_in_words_is_one_step_with_text() -> None:
    assembler = Assembler()
    for chunk in TRACES["text"]:
        assembler.feed(chunk)
    assert assembler.message == UIMessage("MSG", "assistant", step_with_text("hi"))
    assert assembler.finish_reason == "stop"


def test_server_tool_is_shown_with_its_output_and_the_answer() -> None:
    assert assemble(TRACES["server tool + answer"]).parts == [
        {"type": "step-start"},
        {
            "type": "tool-free",
            "toolCallId": "c1",
            "state": "output-available",
            "input": {},
            "output": "free!",
        },
        *step_with_text("ok"),
    ]


def test_server_tool_that_throws_is_shown_with_its_error() -> None:
    assert assemble(TRACES["server tool throws"]).parts == [
        {"type": "step-start"},
        pay_part("c1", 13, "output-error", errorText="declined"),
        *step_with_text("ok"),
    ]


def test_input_that_does_not_fit_the_tool_is_shown_raw() -> None:
    part = assemble(TRACES["invalid tool input"]).parts[1]
    assert part.pop("errorText")
    assert part == {
        "type": "tool-pay",
        "toolCallId": "c1",
        "state": "output-error",
        "rawInput": {"amount": "x"},
    }


def test_client_tool_is_left_waiting_for_its_output() -> None:
    assert assemble(TRACES["client tool"]).parts == [
        {"type": "step-start"},
        {"type": "tool-client", "toolCallId": "c1", "state": "input-available", "input": {}},
    ]


def test_approval_request_leaves_the_call_waiting() -> None:
    assert assemble(TRACES["approval request"]).parts == [
        {"type": "step-start"},
        pay_part("c1", 5, "approval-requested", approval=APPROVAL),
    ]


def test_approved_call_keeps_its_approval_and_gets_its_output() -> None:
    asked = answered(assemble(TRACES["approval request"]), c1=True)
    assert assemble(TRACES["-> approved"], asked).parts == [
        {"type": "step-start"},
        pay_part(
            "c1",
            5,
            "output-available",
            approval={**APPROVAL, "approved": True},
            output={"paid": 5},
        ),
        *step_with_text("paid"),
    ]


def test_denied_call_keeps_its_approval_and_has_no_output() -> None:
    asked = answered(assemble(TRACES["approval request"]), c1=False)
    assert assemble(TRACES["-> denied"], asked).parts == [
        {"type": "step-start"},
        pay_part("c1", 5, "output-denied", approval={**APPROVAL, "approved": False}),
        *step_with_text("not paid"),
    ]


def test_two_approvals_of_one_step_are_settled_each_by_its_own_answer() -> None:
    asked = assemble(TRACES["two approvals + one free tool"])
    free: Part = {
        "type": "tool-free",
        "toolCallId": "c3",
        "state": "output-available",
        "input": {},
        "output": "free!",
    }
    assert asked.parts == [
        {"type": "step-start"},
        pay_part("c1", 5, "approval-requested", approval=FIRST_OF_TWO),
        pay_part("c2", 6, "approval-requested", approval=SECOND_OF_TWO),
        free,
    ]
    assert assemble(TRACES["-> c1 yes, c2 no"], answered(asked, c1=True, c2=False)).parts == [
        {"type": "step-start"},
        pay_part(
            "c1",
            5,
            "output-available",
            approval={**FIRST_OF_TWO, "approved": True},
            output={"paid": 5},
        ),
        pay_part("c2", 6, "output-denied", approval={**SECOND_OF_TWO, "approved": False}),
        free,
        *step_with_text("done"),
    ]


def test_chained_approvals_grow_in_one_message() -> None:
    asked = answered(assemble(TRACES["approval request"]), c1=True)
    assert assemble(TRACES["-> approved, then a second approval"], asked).parts == [
        {"type": "step-start"},
        pay_part(
            "c1",
            5,
            "output-available",
            approval={**APPROVAL, "approved": True},
            output={"paid": 5},
        ),
        {"type": "step-start"},
        pay_part("c9", 7, "approval-requested", approval={"id": "aitxt-wCNk6XzAb2llFwvhyLRHzsJD"}),
    ]


def test_aborted_answer_stays_open_and_has_no_finish_reason() -> None:
    assembler = Assembler()
    for chunk in TRACES["abort mid stream"]:
        assembler.feed(chunk)
    assert assembler.message.parts[-1] == {"type": "text", "text": "a", "state": "streaming"}
    assert assembler.finish_reason is None


def test_automatic_denial_of_v7_is_shown_with_its_reason() -> None:
    part = assemble(TRACES["v7 automatic denial"]).parts[1]
    assert part == pay_part(
        "c1",
        5,
        "output-denied",
        approval={
            "id": "aitxt-61ZoxjD1I0XYjtY72nvyVNEd",
            "isAutomatic": True,
            "approved": False,
            "reason": "policy",
        },
    )


def test_automatic_approval_of_v7_is_shown_with_the_output() -> None:
    part = assemble(TRACES["v7 automatic approval"]).parts[1]
    assert part == pay_part(
        "c1",
        5,
        "output-available",
        approval={
            "id": "aitxt-ZQeS7VdodQVb6i8yJFEHUUIo",
            "isAutomatic": True,
            "approved": True,
        },
        output={"paid": 5},
    )


def test_reason_of_a_v7_request_is_kept_apart_from_the_answers_reason() -> None:
    part = assemble(TRACES["v7 user-approval with reason"]).parts[1]
    assert part["approval"] == {
        "id": "aitxt-1ITuUDANolgfo3tXJEbqGxTF",
        "requestReason": "over limit",
    }


def test_what_the_user_said_in_between_stands_before_the_step_that_heard_it() -> None:
    assert assemble(TRACES["v7 steering before first step"]).parts[:2] == [
        {
            "type": "steering-message",
            "id": "st1",
            "parts": [{"type": "text", "text": "I meant Paris, Texas"}],
        },
        {"type": "step-start"},
    ]


# The message itself.


def test_nothing_fed_is_an_empty_assistant_message() -> None:
    assert assemble([]) == UIMessage(id="", role="assistant")


def test_message_given_is_continued_in_a_copy() -> None:
    given_message = UIMessage("m1", "assistant", [pay_part("c1", 5, "input-available")], {"a": 1})
    result = assemble(
        [StartChunk(message_metadata={"b": 2}), ToolOutputAvailableChunk("c1", 1)], given_message
    )
    assert result == UIMessage(
        "m1", "assistant", [pay_part("c1", 5, "output-available", output=1)], {"a": 1, "b": 2}
    )
    assert given_message == UIMessage(
        "m1", "assistant", [pay_part("c1", 5, "input-available")], {"a": 1}
    )


def test_message_of_a_user_is_not_continued() -> None:
    question = UIMessage("u1", "user", [{"type": "text", "text": "hi"}])
    assert assemble([StartStepChunk()], question) == UIMessage(
        "", "assistant", [{"type": "step-start"}]
    )


def test_start_names_the_message_and_without_an_id_leaves_its_name() -> None:
    assert assemble([StartChunk("m1"), StartChunk()]).id == "m1"


def test_message_read_early_is_the_same_object_and_grows() -> None:
    assembler = Assembler()
    for chunk in (TextStartChunk("1"), TextDeltaChunk("1", "a")):
        assembler.feed(chunk)
    message = assembler.message
    assert message.text == "a"
    for chunk in (TextDeltaChunk("1", "b"), TextDeltaChunk("1", "c")):
        assembler.feed(chunk)
    assert assembler.message is message
    assert message.text == "abc"


def test_finish_reason_is_the_last_one_given() -> None:
    assembler = Assembler()
    for chunk in (FinishChunk("tool-calls"), FinishChunk()):
        assembler.feed(chunk)
    assert assembler.finish_reason == "tool-calls"


def test_metadata_is_merged_deeply_and_lists_are_replaced() -> None:
    message = assemble(
        [
            StartChunk("m1", {"usage": {"in": 1, "by": [1, 2]}, "model": "a"}),
            MessageMetadataChunk({"usage": {"out": 2, "by": [3]}, "model": {"name": "b"}}),
            MessageMetadataChunk(None),
            FinishChunk("stop", {"model": None, "usage": {"in": 5}}),
        ]
    )
    assert message.metadata == {"usage": {"in": 5, "out": 2, "by": [3]}, "model": None}


def test_metadata_never_merges_into_a_prototype() -> None:
    first = {"a": 1}
    unsafe = {"__proto__": 1, "constructor": 2, "prototype": 3, "b": 2}
    message = assemble([MessageMetadataChunk(first), MessageMetadataChunk(unsafe)])
    assert message.metadata == {"a": 1, "b": 2}
    assert first == {"a": 1}


# Text and reasoning.


def test_text_and_reasoning_of_one_id_are_two_blocks() -> None:
    assert parts_of(
        ReasoningStartChunk("1"),
        TextStartChunk("1"),
        ReasoningDeltaChunk("1", "hm"),
        TextDeltaChunk("1", "hi"),
        ReasoningEndChunk("1"),
        TextEndChunk("1"),
    ) == [
        {"type": "reasoning", "id": "1", "text": "hm", "state": "done"},
        {"type": "text", "text": "hi", "state": "done"},
    ]


def test_newest_provider_metadata_of_a_block_is_kept() -> None:
    blocks = parts_of(
        TextStartChunk("1", META),
        TextDeltaChunk("1", "a"),
        TextEndChunk("1"),
        TextStartChunk("2", META),
        TextDeltaChunk("2", "b", OTHER_META),
        TextEndChunk("2"),
        ReasoningStartChunk("3", META),
        ReasoningEndChunk("3", OTHER_META),
    )
    assert [block["providerMetadata"] for block in blocks] == [META, OTHER_META, OTHER_META]


def test_citations_come_with_the_end_of_the_text() -> None:
    assert parts_of(TextStartChunk("1"), TextEndChunk("1", citations=[{"a": 1}])) == [
        {"type": "text", "text": "", "state": "done", "citations": [{"a": 1}]}
    ]


def test_id_can_be_used_again_after_its_end() -> None:
    blocks = parts_of(
        TextStartChunk("1"),
        TextDeltaChunk("1", "a"),
        TextEndChunk("1"),
        TextStartChunk("1"),
        TextDeltaChunk("1", "b"),
        TextEndChunk("1"),
    )
    assert [block["text"] for block in blocks] == ["a", "b"]


def test_block_whose_id_is_opened_again_stays_open_with_what_it_had() -> None:
    assert parts_of(
        TextStartChunk("1"),
        TextDeltaChunk("1", "a"),
        TextStartChunk("1"),
        TextDeltaChunk("1", "b"),
        TextEndChunk("1"),
    ) == [
        {"type": "text", "text": "a", "state": "streaming"},
        {"type": "text", "text": "b", "state": "done"},
    ]


@pytest.mark.parametrize(
    "chunk",
    [
        TextDeltaChunk("1", "a"),
        TextEndChunk("1"),
        ReasoningDeltaChunk("1", "a"),
        ReasoningEndChunk("1"),
    ],
    ids=lambda chunk: chunk.type,
)
def test_block_that_is_not_open_breaks_the_stream(chunk: Chunk) -> None:
    with pytest.raises(StreamBroken, match="'1', which is not open"):
        assemble([chunk])


def test_end_of_a_step_forgets_open_text() -> None:
    with pytest.raises(StreamBroken):
        assemble([TextStartChunk("1"), FinishStepChunk(), TextDeltaChunk("1", "a")])


def test_after_a_break_the_message_holds_what_came_before() -> None:
    assembler = Assembler()
    assembler.feed(TextStartChunk("1"))
    assembler.feed(TextDeltaChunk("1", "a"))
    with pytest.raises(StreamBroken):
        assembler.feed(TextEndChunk("2"))
    assert assembler.message.parts == [{"type": "text", "text": "a", "state": "streaming"}]


# Parts that come whole.


def test_files_and_sources_become_parts_with_the_fields_of_their_chunk() -> None:
    assert parts_of(
        FileChunk("u", "image/png"),
        ReasoningFileChunk("u", "image/png", META),
        SourceUrlChunk("s", "u"),
        SourceDocumentChunk("s", "text/plain", "title", "a.txt"),
        CustomChunk("adk.x", META),
        SteeringMessageChunk("st", []),
    ) == [
        {"type": "file", "url": "u", "mediaType": "image/png"},
        {"type": "reasoning-file", "url": "u", "mediaType": "image/png", "providerMetadata": META},
        {"type": "source-url", "sourceId": "s", "url": "u"},
        {
            "type": "source-document",
            "sourceId": "s",
            "mediaType": "text/plain",
            "title": "title",
            "filename": "a.txt",
        },
        {"type": "custom", "kind": "adk.x", "providerMetadata": META},
        {"type": "steering-message", "id": "st", "parts": []},
    ]


def test_data_of_one_name_and_id_is_replaced_in_place() -> None:
    assert parts_of(
        DataChunk("approval", 1, id="a1"),
        DataChunk("approval", 2, id="a2"),
        DataChunk("other", 3, id="a1"),
        DataChunk("approval", None, id="a1"),
    ) == [
        {"type": "data-approval", "data": None, "id": "a1"},
        {"type": "data-approval", "data": 2, "id": "a2"},
        {"type": "data-other", "data": 3, "id": "a1"},
    ]


def test_data_without_an_id_is_added_each_time() -> None:
    assert parts_of(DataChunk("x", 1), DataChunk("x", 1, transient=False)) == [
        {"type": "data-x", "data": 1},
        {"type": "data-x", "data": 1, "transient": False},
    ]


def test_transient_data_leaves_no_part() -> None:
    assert parts_of(DataChunk("x", 1, id="i"), DataChunk("x", 2, id="i", transient=True)) == [
        {"type": "data-x", "data": 1, "id": "i"}
    ]


# Steps.


def test_reset_forgets_the_parts_of_the_step_and_what_was_open() -> None:
    begun: list[Chunk] = [
        StartStepChunk(),
        TextStartChunk("1"),
        TextEndChunk("1"),
        StartStepChunk(),
        TextStartChunk("2"),
        ToolInputStartChunk("c1", "pay"),
        ResetStepChunk(),
    ]
    assert parts_of(*begun) == [*step_with_text(""), {"type": "step-start"}]
    for late in (TextDeltaChunk("2", "a"), ToolInputDeltaChunk("c1", "{")):
        with pytest.raises(StreamBroken):
            assemble([*begun, late])


def test_reset_before_any_step_forgets_all_parts() -> None:
    assert parts_of(FileChunk("u", "image/png"), ResetStepChunk()) == []


def test_abort_changes_nothing_and_more_may_follow() -> None:
    assert parts_of(
        TextStartChunk("1"), AbortChunk("user"), TextDeltaChunk("1", "a"), TextEndChunk("1")
    ) == [{"type": "text", "text": "a", "state": "done"}]


def test_error_chunk_fails_the_stream_with_its_text() -> None:
    with pytest.raises(StreamFailed, match="kaput") as caught:
        assemble([ErrorChunk("kaput")])
    assert caught.value.error_text == "kaput"
    assert isinstance(caught.value, StreamBroken)


# Tool calls.


def test_input_that_still_streams_is_shown_as_far_as_it_came() -> None:
    assembler = Assembler()
    seen: list[JsonValue] = []
    assembler.feed(ToolInputStartChunk("c1", "pay", title="Pay", provider_executed=True))
    assert assembler.message.parts == [
        {
            "type": "tool-pay",
            "toolCallId": "c1",
            "state": "input-streaming",
            "title": "Pay",
            "providerExecuted": True,
        }
    ]
    for delta in ('{"amo', 'unt": 1', '2, "to": "An', 'n"}'):
        assembler.feed(ToolInputDeltaChunk("c1", delta))
        seen.append(assembler.message.parts[0]["input"])
    assert seen == [{}, {"amount": 1}, {"amount": 12, "to": "An"}, {"amount": 12, "to": "Ann"}]
    assert assembler.message.parts[0]["rawInput"] == '{"amount": 12, "to": "Ann"}'


PARTIAL_INPUTS: list[tuple[str, Part]] = [
    ("", {}),
    (" ", {}),
    ("{", {"input": {}}),
    ('{"a', {"input": {}}),
    ('{"a\\u00', {"input": {}}),
    ('{"a":', {"input": {}}),
    ('{"a": -', {"input": {}}),
    ('{"a": -1.', {"input": {"a": -1}}),
    ('{"a": 1e', {"input": {"a": 1}}),
    ('{"a": 1,', {"input": {"a": 1}}),
    ('{"a": 1, "b', {"input": {"a": 1}}),
    ('{"a": "x\\', {"input": {"a": "x"}}),
    ('{"a": "x\\u00e', {"input": {"a": "x"}}),
    ('{"a": "x\\u00e9', {"input": {"a": "xé"}}),
    ('{"a": "x\\"', {"input": {"a": 'x"'}}),
    ('{"a": t', {"input": {"a": True}}),
    ('{"a": [1, {"b": nul', {"input": {"a": [1, {"b": None}]}}),
    ('{"a": {}, "b": [', {"input": {"a": {}, "b": []}}),
    ('["x", fals', {"input": ["x", False]}),
    ("tr", {"input": True}),
    ("1e999", {"input": None}),
    ("NaN", {}),
    ("}", {}),
    ('{"a": nonsense', {}),
    ('{"__proto__": 1}', {}),
    ('{"constructor": {"prototype": 1', {}),
    ('{"constructor": "Ford"}', {"input": {"constructor": "Ford"}}),
    ("[" * 100_000, {}),
]


@pytest.mark.parametrize(("text", "shown"), PARTIAL_INPUTS, ids=lambda value: str(value)[:20])
def test_text_of_an_input_is_read_as_a_client_reads_it(text: str, shown: Part) -> None:
    part = parts_of(ToolInputStartChunk("c1", "pay"), ToolInputDeltaChunk("c1", text))[0]
    assert part.pop("rawInput") == text
    assert part == {
        "type": "tool-pay",
        "toolCallId": "c1",
        "state": "input-streaming",
        **shown,
    }


def test_input_for_a_call_that_never_started_breaks_the_stream() -> None:
    with pytest.raises(StreamBroken, match="'c1', which never started"):
        assemble([ToolInputAvailableChunk("c1", "pay", {}), ToolInputDeltaChunk("c1", "{")])


def test_null_is_an_input_and_an_output() -> None:
    assert parts_of(
        ToolInputAvailableChunk("c1", "pay", None), ToolOutputAvailableChunk("c1", None)
    ) == [
        {
            "type": "tool-pay",
            "toolCallId": "c1",
            "state": "output-available",
            "input": None,
            "output": None,
        }
    ]


def test_input_sent_again_in_its_step_undoes_the_outcome_but_keeps_the_approval() -> None:
    assert parts_of(
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}, title="Pay", provider_executed=True),
        ToolApprovalRequestChunk("a1", "c1"),
        ToolOutputAvailableChunk("c1", 1, preliminary=True),
        ToolInputAvailableChunk("c1", "pay", {"amount": 6}),
    ) == [
        pay_part(
            "c1", 6, "input-available", approval={"id": "a1"}, title="Pay", providerExecuted=True
        )
    ]


def test_input_sent_again_in_another_step_makes_a_second_part() -> None:
    assert parts_of(
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        StartStepChunk(),
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        ToolOutputAvailableChunk("c1", 1),
    ) == [
        pay_part("c1", 5, "input-available"),
        {"type": "step-start"},
        pay_part("c1", 5, "output-available", output=1),
    ]


def test_outcome_goes_to_the_last_part_of_a_call_from_earlier_steps() -> None:
    parts = parts_of(
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        StartStepChunk(),
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        StartStepChunk(),
        ToolOutputDeniedChunk("c1"),
    )
    assert [part.get("state") for part in parts if "state" in part] == [
        "input-available",
        "output-denied",
    ]


def test_preliminary_output_is_marked_until_the_final_one_comes() -> None:
    called = ToolInputAvailableChunk("c1", "pay", {"amount": 5})
    first = ToolOutputAvailableChunk("c1", 1, preliminary=True, provider_executed=True)
    assert parts_of(called, first) == [
        pay_part("c1", 5, "output-available", output=1, preliminary=True, providerExecuted=True)
    ]
    assert parts_of(called, first, ToolOutputAvailableChunk("c1", 2)) == [
        pay_part("c1", 5, "output-available", output=2, providerExecuted=True)
    ]


def test_error_after_an_output_replaces_it() -> None:
    assert parts_of(
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        ToolOutputAvailableChunk("c1", 1),
        ToolOutputErrorChunk("c1", "declined", provider_executed=False),
    ) == [pay_part("c1", 5, "output-error", errorText="declined", providerExecuted=False)]


def test_dynamic_tool_is_named_in_its_part() -> None:
    assert parts_of(
        ToolInputStartChunk("c1", "look", dynamic=True, title="Look"),
        ToolInputDeltaChunk("c1", '{"at":'),
        ToolInputAvailableChunk("c1", "look", {"at": 1}, dynamic=True),
        ToolApprovalRequestChunk("a1", "c1"),
        ToolOutputErrorChunk("c1", "dark"),
    ) == [
        {
            "type": "dynamic-tool",
            "toolName": "look",
            "toolCallId": "c1",
            "state": "output-error",
            "title": "Look",
            "input": {"at": 1},
            "approval": {"id": "a1"},
            "errorText": "dark",
        }
    ]


def test_call_shown_both_ways_has_two_parts() -> None:
    parts = parts_of(
        ToolInputStartChunk("c1", "look", dynamic=True), ToolInputAvailableChunk("c1", "look", {})
    )
    assert [part["type"] for part in parts] == ["dynamic-tool", "tool-look"]


def test_bad_input_of_a_static_tool_is_raw_and_stays_so_after_the_error() -> None:
    bad = ToolInputErrorChunk("c1", "pay", "x", "bad", title="not taken", provider_executed=True)
    expected: Part = {
        "type": "tool-pay",
        "toolCallId": "c1",
        "state": "output-error",
        "rawInput": "x",
        "errorText": "bad",
        "providerExecuted": True,
    }
    assert parts_of(bad) == [expected]
    assert parts_of(bad, ToolOutputErrorChunk("c1", "worse")) == [
        {**expected, "errorText": "worse"}
    ]


@pytest.mark.parametrize("said", [True, None])
def test_bad_input_goes_to_the_part_the_call_already_has(said: bool | None) -> None:
    begun: list[Chunk] = [ToolInputStartChunk("c1", "look", dynamic=True)] if said is None else []
    assert parts_of(*begun, ToolInputErrorChunk("c1", "look", "x", "bad", dynamic=said)) == [
        {
            "type": "dynamic-tool",
            "toolName": "look",
            "toolCallId": "c1",
            "state": "output-error",
            "input": "x",
            "errorText": "bad",
        }
    ]


def test_second_request_for_a_call_replaces_the_first() -> None:
    assert parts_of(
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        ToolApprovalRequestChunk("a1", "c1", reason="why"),
        ToolApprovalRequestChunk("a2", "c1", is_automatic=False),
    ) == [pay_part("c1", 5, "approval-requested", approval={"id": "a2"})]


def test_answer_finds_its_call_by_the_approval() -> None:
    assert parts_of(
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        ToolInputAvailableChunk("c2", "pay", {"amount": 6}),
        ToolApprovalRequestChunk("a2", "c2"),
        ToolApprovalResponseChunk("a2", approved=True),
    ) == [
        pay_part("c1", 5, "input-available"),
        pay_part("c2", 6, "approval-responded", approval={"id": "a2", "approved": True}),
    ]


def test_answer_to_an_approval_nobody_asked_for_breaks_the_stream() -> None:
    with pytest.raises(StreamBroken, match="approval 'a1'"):
        assemble(
            [
                ToolInputAvailableChunk("c1", "pay", {}),
                ToolApprovalResponseChunk("a1", approved=True),
            ]
        )


@pytest.mark.parametrize(
    "chunk",
    [
        ToolApprovalRequestChunk("a1", "c1"),
        ToolOutputAvailableChunk("c1", 1),
        ToolOutputErrorChunk("c1", "no"),
        ToolOutputDeniedChunk("c1"),
    ],
    ids=lambda chunk: chunk.type,
)
def test_outcome_of_an_unknown_call_breaks_the_stream(chunk: Chunk) -> None:
    with pytest.raises(StreamBroken, match="No tool invocation found for call 'c1'"):
        assemble([TextStartChunk("c1"), chunk])


@pytest.mark.parametrize(
    ("late", "state"),
    [
        (ToolOutputDeniedChunk("c1"), "output-denied"),
        (ToolApprovalRequestChunk("a1", "c1"), "approval-requested"),
        (ToolApprovalResponseChunk("a0", approved=True), "approval-responded"),
    ],
    ids=lambda value: getattr(value, "type", value),
)
def test_outcome_may_come_while_the_input_still_streams(late: Chunk, state: str) -> None:
    begun: list[Chunk] = [
        ToolInputStartChunk("c1", "pay", title="Pay"),
        ToolApprovalRequestChunk("a0", "c1"),
        ToolInputDeltaChunk("c1", '{"amount": 5'),
        late,
    ]
    part = parts_of(*begun)[0]
    assert (part["state"], part["input"]) == (state, {"amount": 5})
    part = parts_of(*begun, ToolInputDeltaChunk("c1", "6}"))[0]
    assert (part["state"], part["input"]) == ("input-streaming", {"amount": 56})


def test_output_keeps_the_input_as_far_as_it_came() -> None:
    assert parts_of(
        ToolInputStartChunk("c1", "pay"),
        ToolInputDeltaChunk("c1", '{"amount": 5'),
        ToolOutputAvailableChunk("c1", 1),
    ) == [pay_part("c1", 5, "output-available", output=1)]


@pytest.mark.parametrize("dynamic", [None, True])
def test_input_that_goes_on_in_another_step_is_shown_there_too(dynamic: bool | None) -> None:
    assembler = Assembler()
    for chunk in (
        ToolInputStartChunk("c1", "pay", dynamic=dynamic, title="Pay"),
        ToolInputDeltaChunk("c1", '{"amount":'),
        StartStepChunk(),
        ToolInputDeltaChunk("c1", " 5"),
    ):
        assembler.feed(chunk)
    first, _, second = assembler.message.parts
    assert (first["input"], first["rawInput"]) == ({}, '{"amount":')
    assert (second["input"], second["title"]) == ({"amount": 5}, "Pay")
    # The client itself shows the text of a dynamic call a delta late.
    assert ("rawInput" in second) is (dynamic is None)
    assembler.feed(ToolInputDeltaChunk("c1", "6}"))
    second = assembler.message.parts[-1]
    assert (second["input"], second["rawInput"]) == ({"amount": 56}, '{"amount": 56}')


@pytest.mark.parametrize("dynamic", [None, True])
def test_input_of_a_continued_message_goes_on_where_it_stopped(dynamic: bool | None) -> None:
    before = assemble(
        [
            ToolInputAvailableChunk("c0", "pay", {}),
            StartStepChunk(),
            TextStartChunk("1"),
            ToolInputAvailableChunk("c2", "pay", {}),
            ToolInputStartChunk("c1", "pay", dynamic=dynamic, title="Pay"),
            ToolInputDeltaChunk("c1", '{"amount":'),
        ]
    )
    part = assemble([ToolInputDeltaChunk("c1", " 5}")], before).parts[-1]
    assert (part["state"], part["input"], part["title"]) == (
        "input-streaming",
        {"amount": 5},
        "Pay",
    )
    for call_id in ("c0", "c2"):
        with pytest.raises(StreamBroken):
            assemble([ToolInputDeltaChunk(call_id, "{")], before)


# Laws.

TEXTS = st.lists(st.text(max_size=5), max_size=4)


@st.composite
def blocks(draw: st.DrawFn, name: str) -> list[Chunk]:
    """A block that starts and ends, named so that several can be open at once."""
    deltas = draw(TEXTS)
    match draw(st.sampled_from(["text", "reasoning", "tool", "held", "data", "file"])):
        case "text":
            text = [TextDeltaChunk(name, delta) for delta in deltas]
            return [TextStartChunk(name), *text, TextEndChunk(name)]
        case "reasoning":
            thoughts = [ReasoningDeltaChunk(name, delta) for delta in deltas]
            return [ReasoningStartChunk(name), *thoughts, ReasoningEndChunk(name)]
        case "tool":
            inputs = [ToolInputDeltaChunk(name, delta) for delta in deltas]
            called = ToolInputAvailableChunk(name, "free", {"x": 1})
            output = ToolOutputAvailableChunk(name, draw(st.none() | st.integers()))
            return [ToolInputStartChunk(name, "free"), *inputs, called, output]
        case "held":
            return [
                ToolInputAvailableChunk(name, "pay", {"x": 1}),
                ToolApprovalRequestChunk(f"a-{name}", name),
            ]
        case "data":
            return [DataChunk("x", draw(st.integers()), id=draw(st.sampled_from(["i", "j"])))]
        case _:
            return [FileChunk("u", "image/png")]


@st.composite
def steps(draw: st.DrawFn, prefix: str) -> list[Chunk]:
    """A step whose blocks run side by side, each in its own order."""
    count = draw(st.integers(0, 3))
    lanes = [draw(blocks(f"{prefix}-{index}")) for index in range(count)]
    order = draw(st.permutations([index for index, lane in enumerate(lanes) for _ in lane]))
    running = [iter(lane) for lane in lanes]
    return [StartStepChunk(), *(next(running[index]) for index in order), FinishStepChunk()]


@st.composite
def replies(draw: st.DrawFn, prefix: str) -> list[Chunk]:
    inner = [draw(steps(f"{prefix}-{index}")) for index in range(draw(st.integers(0, 3)))]
    metadata = st.none() | st.dictionaries(
        st.sampled_from("ab"), st.integers() | st.dictionaries(st.just("c"), st.integers())
    )
    return [
        StartChunk("m1", draw(metadata)),
        *(chunk for step in inner for chunk in step),
        FinishChunk("stop", draw(metadata)),
    ]


@given(replies("r"))
def test_blocks_that_start_and_end_always_assemble_and_are_done(reply: list[Chunk]) -> None:
    parts = assemble(reply).parts
    assert all(part["state"] == "done" for part in parts if part["type"] in {"text", "reasoning"})
    assert all(
        part["state"] in {"output-available", "approval-requested"}
        for part in parts
        if str(part["type"]).startswith("tool-")
    )
    started = [chunk for chunk in reply if isinstance(chunk, (TextStartChunk, ReasoningStartChunk))]
    assert len(started) == sum(part["type"] in {"text", "reasoning"} for part in parts)


@given(replies("r"))
def test_no_text_is_lost_or_moved(reply: list[Chunk]) -> None:
    blocks_by_id: dict[str, str] = {}
    for chunk in reply:
        if isinstance(chunk, TextStartChunk):
            blocks_by_id[chunk.id] = ""
        elif isinstance(chunk, TextDeltaChunk):
            blocks_by_id[chunk.id] += chunk.delta
    shown = [part["text"] for part in assemble(reply).parts if part["type"] == "text"]
    assert shown == list(blocks_by_id.values())


@given(replies("a"), replies("b"))
def test_two_replies_folded_one_after_the_other_equal_one_fold(
    first: list[Chunk], second: list[Chunk]
) -> None:
    assert assemble(second, assemble(first)) == assemble([*first, *second])


@given(replies("r"), st.data())
def test_looking_at_the_message_early_changes_nothing(
    reply: list[Chunk], data: st.DataObject
) -> None:
    assembler = Assembler()
    for chunk in reply:
        assembler.feed(chunk)
        if data.draw(st.booleans()):
            _ = assembler.message
    assert assembler.message == assemble(reply)
