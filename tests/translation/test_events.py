from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.events.ui_widget import UiWidget
from google.genai import types

from adk_stream_protocol.translation.events import EventTranslator, TranslationOptions
from adk_stream_protocol.wire.chunks import DataChunk
from adk_stream_protocol.wire.entries import CallHeld, Entry
from adk_stream_protocol.wire.profiles import CANCELLED_TEXT, EXPIRED_TEXT
from adk_stream_protocol.wire.values import JsonValue
from translation.builders import (
    INVOCATION,
    answered,
    call,
    confirmation,
    event,
    feed,
    kinds,
    partial,
    question,
    response,
    shown,
    sign_in,
    text,
    thought,
)

PNG = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
CODE = types.Part(executable_code=types.ExecutableCode(code="1+1", language=types.Language.PYTHON))
CODE_RESULT = types.Part(
    code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="2")
)
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=7, candidates_token_count=3, total_token_count=10
)


@pytest.fixture
def translator() -> EventTranslator:
    return EventTranslator("m1")


def placeholder(*call_ids: str) -> Event:
    """Return ADK's answer to calls that wait for a person."""
    parts = [response(call_id, error="This call requires confirmation.") for call_id in call_ids]
    asked = {call_id: {"hint": "Sure?", "confirmed": False} for call_id in call_ids}
    return event(*parts, actions={"requested_tool_confirmations": asked})


def asked_to_pay(translator: EventTranslator) -> list[Entry]:
    return feed(
        translator,
        event(call("c1", amount=5)),
        event(confirmation("adk-1", "c1")),
        placeholder("c1"),
    )


# Text


def test_reply_starts_with_its_message_id(translator: EventTranslator) -> None:
    assert shown(translator.begin()) == [{"type": "start", "messageId": "m1"}]


def test_what_the_user_said_adds_nothing(translator: EventTranslator) -> None:
    assert feed(translator, event(text("hi"), author="user")) == []


def test_text_that_was_streamed_is_not_sent_again(translator: EventTranslator) -> None:
    told = feed(translator, partial(text("Hel")), partial(text("lo")), event(text("Hello")))
    assert shown(told) == [
        {"type": "start-step"},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "Hel"},
        {"type": "text-delta", "id": "1", "delta": "lo"},
        {"type": "text-end", "id": "1"},
    ]


def test_text_that_was_not_streamed_is_sent_whole(translator: EventTranslator) -> None:
    told = feed(translator, event(text("Hello")))
    assert kinds(told) == ["start-step", "text-start", "text-delta", "text-end"]


def test_thoughts_are_reasoning(translator: EventTranslator) -> None:
    told = feed(translator, event(thought("hm"), text("Hi")))
    assert kinds(told) == [
        "start-step",
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta", "text-end"),
    ]


def test_empty_text_opens_nothing(translator: EventTranslator) -> None:
    assert feed(translator, partial(text("")), event(text(""))) == []


def test_text_is_held_until_it_is_final_where_callbacks_redact() -> None:
    translator = EventTranslator("m1", TranslationOptions(hold_text=True))
    assert feed(translator, partial(text("secret"))) == []
    assert translator.unfinished_text == ""
    told = shown(feed(translator, event(text("[redacted]"))))
    assert [chunk["delta"] for chunk in told if "delta" in chunk] == ["[redacted]"]


def test_text_of_an_incomplete_response_is_unfinished(translator: EventTranslator) -> None:
    feed(translator, partial(text("Hel")))
    assert translator.unfinished_text == "Hel"
    feed(translator, event(text("Hello")))
    assert translator.unfinished_text == ""


def test_text_ends_before_a_tool_begins(translator: EventTranslator) -> None:
    told = feed(translator, partial(text("Paying.")), event(text("Paying."), call("c1")))
    sent = kinds(told)
    assert sent.index("text-end") < sent.index("tool-input-start")


def test_result_that_comes_while_text_streams_does_not_double_the_text(
    translator: EventTranslator,
) -> None:
    told = feed(
        translator,
        event(call("c1")),
        partial(text("While ")),
        event(response("c1", paid=5)),
        partial(text("it runs")),
        event(text("While it runs")),
    )
    deltas = [chunk["delta"] for chunk in shown(told) if "delta" in chunk]
    assert deltas == ["While ", "it runs"]


def test_request_that_comes_while_text_streams_does_not_double_the_text(
    translator: EventTranslator,
) -> None:
    told = feed(
        translator,
        event(call("c1")),
        partial(text("One ")),
        event(confirmation("adk-1", "c1")),
        partial(text("moment")),
        event(text("One moment")),
    )
    deltas = [chunk["delta"] for chunk in shown(told) if "delta" in chunk]
    assert deltas == ["One ", "moment"]


# Steps


def test_each_model_response_is_a_step(translator: EventTranslator) -> None:
    told = feed(translator, event(call("c1")), event(response("c1", paid=5)), event(text("Done.")))
    assert kinds(told) == [
        "start-step",
        *("tool-input-start", "tool-input-delta", "tool-input-available"),
        "tool-output-available",
        "finish-step",
        "start-step",
        *("text-start", "text-delta", "text-end"),
    ]


def test_step_does_not_end_while_another_lane_speaks(translator: EventTranslator) -> None:
    told = feed(
        translator,
        partial(text("A1"), author="A", branch="par.A"),
        partial(text("B1"), author="B", branch="par.B"),
        event(text("A1"), author="A", branch="par.A"),
        partial(text("B2"), author="B", branch="par.B"),
        event(text("B1B2"), author="B", branch="par.B"),
    )
    sent = shown(told)
    assert [chunk["type"] for chunk in sent].count("start-step") == 1
    assert "finish-step" not in [chunk["type"] for chunk in sent]
    assert [chunk["delta"] for chunk in sent if "delta" in chunk] == ["A1", "B1", "B2"]


def test_new_block_in_a_lane_waits_for_the_other_lanes_before_a_step(
    translator: EventTranslator,
) -> None:
    told = feed(
        translator,
        partial(text("B1"), author="B", branch="par.B"),
        event(text("A1"), author="A", branch="par.A"),
        event(text("A2"), author="A", branch="par.A"),
        event(text("B1"), author="B", branch="par.B"),
        event(text("A3"), author="A", branch="par.A"),
    )
    sent = kinds(told)
    assert sent.count("start-step") == 2
    assert sent[sent.index("finish-step") :] == [
        "finish-step",
        "start-step",
        *("text-start", "text-delta", "text-end"),
    ]


def test_closing_ends_what_is_open(translator: EventTranslator) -> None:
    feed(translator, partial(text("Hel")))
    assert kinds(translator.close()) == ["text-end", "finish-step"]
    assert kinds(translator.close()) == []


def test_own_chunk_is_shown_in_a_step_of_its_own(translator: EventTranslator) -> None:
    feed(translator, event(text("Hi")))
    assert kinds(translator.show(DataChunk("note", 1))) == [
        *("finish-step", "start-step"),
        "data-note",
    ]
    assert kinds(feed(translator, event(text("More"))))[:2] == ["finish-step", "start-step"]


# Tools


def test_call_in_a_partial_event_is_not_shown(translator: EventTranslator) -> None:
    assert feed(translator, partial(call("other-id")), partial(response("other-id"))) == []
    sent = shown(feed(translator, event(call("c1"))))
    assert {chunk["toolCallId"] for chunk in sent if "toolCallId" in chunk} == {"c1"}


def test_call_without_arguments_has_an_empty_input(translator: EventTranslator) -> None:
    bare = types.Part(function_call=types.FunctionCall(id="c1", name="now"))
    assert shown(feed(translator, event(bare)))[-1]["input"] == {}


def test_result_is_shown_once(translator: EventTranslator) -> None:
    feed(translator, event(call("c1")))
    assert kinds(feed(translator, event(response("c1", paid=5)))) == ["tool-output-available"]
    assert feed(translator, event(response("c1", paid=6))) == []


def test_result_of_a_call_never_seen_is_not_shown(translator: EventTranslator) -> None:
    assert feed(translator, event(response("c9", paid=5))) == []


def test_response_without_content_is_an_empty_output(translator: EventTranslator) -> None:
    feed(translator, event(call("c1")))
    bare = types.Part(function_response=types.FunctionResponse(id="c1", name="pay"))
    assert shown(feed(translator, event(bare)))[0]["output"] == {}


def test_files_of_a_result_follow_it(translator: EventTranslator) -> None:
    feed(translator, event(call("c1")))
    result = response("c1", ok=True)
    assert result.function_response is not None
    result.function_response.parts = [
        types.FunctionResponsePart(
            inline_data=types.FunctionResponseBlob(data=b"png", mime_type="image/png")
        )
    ]
    assert kinds(feed(translator, event(result))) == ["tool-output-available", "file"]


def test_transfer_is_not_shown_as_a_tool(translator: EventTranslator) -> None:
    told = feed(
        translator,
        event(call("t1", "transfer_to_agent", agent_name="payer")),
        event(response("t1", "transfer_to_agent")),
        event(text("I pay."), author="payer"),
    )
    assert shown(told)[:2] == [
        {"type": "start-step"},
        {"type": "data-adk-agent", "data": {"agent": "payer"}},
    ]


def test_transfer_is_shown_as_a_tool_by_option() -> None:
    translator = EventTranslator("m1", TranslationOptions(show_transfers=True))
    told = feed(translator, event(call("t1", "transfer_to_agent", agent_name="payer")))
    assert "tool-input-available" in kinds(told)


def test_agents_in_branches_change_without_a_word(translator: EventTranslator) -> None:
    told = feed(
        translator,
        event(text("A"), author="A", branch="par.A"),
        event(text("B"), author="B", branch="par.B"),
    )
    assert "data-adk-agent" not in kinds(told)


def test_model_response_set_by_a_tool_is_an_object(translator: EventTranslator) -> None:
    told = feed(
        translator,
        event(call("s1", "set_model_response", city="Tokyo")),
        event(
            response("s1", "set_model_response", city="Tokyo"),
            actions={"set_model_response": {"city": "Tokyo"}},
        ),
    )
    assert shown(told) == [{"type": "data-adk-object", "data": {"city": "Tokyo"}}]


def test_long_running_call_may_end_without_a_result(translator: EventTranslator) -> None:
    feed(translator, event(call("c1"), long_running_tool_ids={"c1"}))
    assert kinds(translator.finish()) == ["finish-step", "finish"]


def test_result_of_a_long_running_call_is_preliminary(translator: EventTranslator) -> None:
    feed(translator, event(call("c1"), long_running_tool_ids={"c1"}))
    told = shown(feed(translator, event(response("c1", status="pending"))))
    assert told[0]["preliminary"] is True


# Files and code


def test_file_is_sent_at_first_sight_and_once(translator: EventTranslator) -> None:
    told = feed(translator, partial(text("See: ")), partial(PNG), event(text("See: "), PNG))
    assert kinds(told) == [
        "start-step",
        *("text-start", "text-delta", "text-end"),
        "file",
    ]
    assert kinds(feed(translator, event(PNG))) == ["finish-step", "start-step", "file"]


def test_file_without_bytes_is_nothing(translator: EventTranslator) -> None:
    empty = types.Part(inline_data=types.Blob(mime_type="image/png"))
    assert feed(translator, event(empty)) == []


def test_part_of_an_unknown_kind_is_nothing(translator: EventTranslator) -> None:
    assert feed(translator, event(types.Part())) == []


def test_code_is_a_tool_the_model_ran_and_shown_once(translator: EventTranslator) -> None:
    told = feed(translator, partial(CODE), partial(CODE_RESULT), event(CODE, CODE_RESULT))
    told += feed(translator, event(CODE, CODE_RESULT))
    ids = [chunk["toolCallId"] for chunk in shown(told) if "toolCallId" in chunk]
    assert ids == ["code-1"] * 3 + ["code-2"] * 3
    assert kinds(translator.fail("broken")) == ["finish-step", "error"]


# Held calls


def test_gated_call_waits_in_the_step_that_asks(translator: EventTranslator) -> None:
    told = [*asked_to_pay(translator), *translator.finish()]
    assert kinds(told) == [
        "start-step",
        *("tool-input-start", "tool-input-delta", "tool-input-available"),
        *("tool-approval-request", "data-approval"),
        *("finish-step", "finish"),
    ]
    assert shown(told)[-1]["finishReason"] == "tool-calls"
    assert translator.is_waiting


def test_placeholder_may_come_before_the_request(translator: EventTranslator) -> None:
    told = feed(
        translator,
        event(call("c1", amount=5)),
        placeholder("c1"),
        event(confirmation("adk-1", "c1")),
    )
    assert kinds(told)[-2:] == ["tool-approval-request", "data-approval"]


def test_request_that_overtakes_its_call_shows_it(translator: EventTranslator) -> None:
    told = feed(
        translator,
        partial(text("Paying.")),
        event(confirmation("adk-1", "c1")),
        event(text("Paying."), call("c1", amount=5)),
    )
    sent = kinds(told)
    assert sent.count("tool-input-available") == 1
    assert sent.index("text-end") < sent.index("tool-input-start")
    assert sent.index("tool-input-available") < sent.index("tool-approval-request")


def test_hidden_call_that_needs_approval_is_shown_after_all(translator: EventTranslator) -> None:
    told = feed(
        translator,
        event(call("c1", "transfer_to_agent", agent_name="payer")),
        event(confirmation("adk-1", "c1", name="transfer_to_agent")),
    )
    assert kinds(told)[-3:] == ["tool-input-available", "tool-approval-request", "data-approval"]


def test_malformed_request_is_nothing(translator: EventTranslator) -> None:
    assert feed(translator, event(call("adk-1", "adk_request_confirmation"))) == []


def test_approved_call_goes_on_with_its_result(translator: EventTranslator) -> None:
    asked_to_pay(translator)
    list(translator.close())
    told = [
        *translator.begin(),
        *translator.answer(answered("adk-1", "c1")),
        *feed(translator, event(response("c1", paid=5)), event(text("Paid."))),
        *translator.finish(),
    ]
    assert kinds(told) == [
        *("start", "data-approval", "tool-output-available"),
        "start-step",
        *("text-start", "text-delta", "text-end"),
        *("finish-step", "finish"),
    ]


def test_denied_call_is_told_from_the_decision_and_not_from_the_tool(
    translator: EventTranslator,
) -> None:
    asked_to_pay(translator)
    list(translator.close())
    told = [
        *translator.answer(answered("adk-1", "c1", "denied")),
        *feed(translator, event(response("c1", error="This tool call is rejected."))),
    ]
    assert kinds(told) == ["data-approval", "tool-output-denied"]
    assert kinds(told, "adk") == ["tool-output-available", "tool-output-error"]


@pytest.mark.parametrize(
    ("outcome", "error"), [("expired", EXPIRED_TEXT), ("cancelled", CANCELLED_TEXT)]
)
def test_call_that_nobody_decided_ends_with_an_error(
    translator: EventTranslator, outcome: str, error: str
) -> None:
    asked_to_pay(translator)
    ending = answered("adk-1", "c1", "expired" if outcome == "expired" else "cancelled")
    told = shown(translator.answer(ending))
    assert told[-1] == {"type": "tool-output-error", "toolCallId": "c1", "errorText": error}
    assert not translator.is_waiting


def test_answers_that_the_agent_says_nothing_to_are_followed_by_a_step(
    translator: EventTranslator,
) -> None:
    asked_to_pay(translator)
    list(translator.close())
    told = [
        *translator.answer(answered("adk-1", "c1")),
        *feed(translator, event(response("c1", paid=5))),
        *translator.finish(),
    ]
    assert kinds(told)[-4:] == ["start-step", "message-metadata", "finish-step", "finish"]


def test_stopped_answers_are_followed_by_a_step(translator: EventTranslator) -> None:
    asked_to_pay(translator)
    list(translator.close())
    told = [*translator.answer(answered("adk-1", "c1")), *translator.stop()]
    assert kinds(told) == [
        *("data-approval", "tool-output-error"),
        *("start-step", "message-metadata", "finish-step"),
        "abort",
    ]


def test_no_step_follows_while_another_answer_is_awaited(translator: EventTranslator) -> None:
    feed(
        translator,
        event(call("c1"), call("c2")),
        event(confirmation("adk-1", "c1"), confirmation("adk-2", "c2")),
        placeholder("c1", "c2"),
    )
    list(translator.close())
    told = [*translator.answer(answered("adk-1", "c1", "denied")), *translator.finish()]
    assert kinds(told) == ["data-approval", "tool-output-denied", "finish"]


def test_question_is_a_tool_that_the_person_answers(translator: EventTranslator) -> None:
    told = feed(translator, partial(text("One thing. ")), event(question("adk-1")))
    assert kinds(told) == [
        "start-step",
        *("text-start", "text-delta", "text-end"),
        *("tool-input-start", "tool-input-delta", "tool-input-available"),
    ]
    list(translator.close())
    reply = translator.answer(answered("adk-1", "adk-1", kind="input", output="Tokyo"))
    assert shown(reply) == [
        {"type": "tool-output-available", "toolCallId": "adk-1", "output": "Tokyo"}
    ]
    assert "tool-output-error" not in kinds(translator.finish())


def test_question_that_could_not_be_answered_ends_with_why(translator: EventTranslator) -> None:
    feed(translator, event(question("adk-1")))
    reply = translator.answer(answered("adk-1", "adk-1", kind="input", error="No idea."))
    assert shown(reply) == [
        {"type": "tool-output-error", "toolCallId": "adk-1", "errorText": "No idea."}
    ]


def test_question_that_expired_ends_with_an_error(translator: EventTranslator) -> None:
    feed(translator, event(question("adk-1")))
    reply = translator.answer(answered("adk-1", "adk-1", "expired", kind="input"))
    assert kinds(reply) == ["tool-output-error"]


def test_interrupt_id_of_a_question_stays_here(translator: EventTranslator) -> None:
    told = feed(
        translator, event(call("ask1", "adk_request_input", interruptId="ask1", message="Go?"))
    )
    (held,) = [entry for entry in told if isinstance(entry, CallHeld)]
    assert held.call_id == f"ask1@{INVOCATION}"
    assert shown(told)[-1]["input"] == {"message": "Go?"}


def test_sign_in_shows_the_address_and_nothing_else(translator: EventTranslator) -> None:
    told = feed(
        translator,
        event(call("c1", "calendar")),
        event(sign_in("adk-1", "c1")),
        event(response("c1", "calendar", pending=True), actions=needs_credential("c1")),
    )
    data = {"id": "adk-1", "authUri": "https://idp/auth"}
    assert shown(told)[-1] == {"type": "data-adk-credential", "id": "adk-1", "data": data}
    assert translator.is_waiting
    assert kinds(translator.finish()) == ["finish-step", "finish"]


def needs_credential(call_id: str) -> dict[str, object]:
    return {"requested_auth_configs": {call_id: {"auth_scheme": {"type": "http", "scheme": "x"}}}}


def test_call_goes_on_after_the_sign_in(translator: EventTranslator) -> None:
    feed(translator, event(call("c1", "calendar")), event(sign_in("adk-1", "c1")))
    list(translator.close())
    told = [
        *translator.answer(answered("adk-1", "adk-1", kind="credential")),
        *feed(translator, event(response("c1", "calendar", ok=True)), event(text("Here."))),
        *translator.finish(),
    ]
    assert kinds(told) == [
        "tool-output-available",
        "start-step",
        *("text-start", "text-delta", "text-end"),
        *("finish-step", "finish"),
    ]


def test_call_fails_when_the_sign_in_is_given_up(translator: EventTranslator) -> None:
    feed(translator, event(call("c1", "calendar")), event(sign_in("adk-1", "c1")))
    list(translator.close())
    told = [
        *translator.answer(answered("adk-1", "adk-1", "cancelled", kind="credential")),
        *translator.finish(),
    ]
    assert shown(told)[0]["toolCallId"] == "c1"
    assert kinds(told)[0] == "tool-output-error"
    assert not translator.is_waiting


def test_client_gives_the_output_of_a_call_it_ran(translator: EventTranslator) -> None:
    asked_to_pay(translator)
    assert shown(translator.give("c1", {"lat": 1}, None)) == [
        {"type": "tool-output-available", "toolCallId": "c1", "output": {"lat": 1}}
    ]
    assert not translator.is_waiting


# Endings


def test_reply_ends_with_reason_and_usage(translator: EventTranslator) -> None:
    feed(
        translator,
        event(text("Hi"), usage_metadata=USAGE, finish_reason=types.FinishReason.MAX_TOKENS),
        event(usage_metadata=USAGE),
    )
    assert shown(translator.finish())[-1] == {
        "type": "finish",
        "finishReason": "length",
        "messageMetadata": {
            "usage": {"inputTokens": 14, "outputTokens": 6, "totalTokens": 20},
        },
    }


def test_usage_of_partial_events_is_not_counted(translator: EventTranslator) -> None:
    feed(translator, event(text("Hi"), partial=True, usage_metadata=USAGE))
    assert "messageMetadata" not in shown(translator.finish())[-1]


def test_event_without_content_does_not_change_why_the_model_stopped(
    translator: EventTranslator,
) -> None:
    feed(
        translator,
        event(text("Hi"), finish_reason=types.FinishReason.MAX_TOKENS),
        event(actions={"end_of_agent": True}),
    )
    assert shown(translator.finish())[-1]["finishReason"] == "length"


def test_why_an_earlier_response_ended_does_not_matter(translator: EventTranslator) -> None:
    feed(
        translator,
        event(call("c1"), finish_reason=types.FinishReason.MAX_TOKENS),
        event(response("c1", paid=5)),
        event(text("Done.")),
    )
    assert shown(translator.finish())[-1]["finishReason"] == "stop"


def test_filter_outlives_a_later_stop_of_the_same_response(translator: EventTranslator) -> None:
    feed(
        translator,
        partial(text("Bad")),
        event(error_code="SAFETY", partial=False),
        event(text("Bad"), finish_reason=types.FinishReason.STOP),
    )
    assert not translator.failed
    assert shown(translator.finish())[-1]["finishReason"] == "content-filter"


def test_open_call_gets_an_error_at_the_end(translator: EventTranslator) -> None:
    feed(translator, event(call("c1")))
    assert kinds(translator.finish()) == ["tool-output-error", "finish-step", "finish"]


def test_failure_closes_tools_and_text_before_it_says_so(translator: EventTranslator) -> None:
    feed(
        translator,
        event(call("c1"), long_running_tool_ids={"c1"}),
        partial(text("Hel")),
        event(error_code="RuntimeError", error_message="SECRET"),
    )
    assert translator.failed
    assert shown(translator.fail("Sorry."))[-1] == {"type": "error", "errorText": "Sorry."}
    feed(translator, event(call("c2")), partial(text("Hel")))
    assert kinds(translator.fail("Sorry.")) == [
        *("tool-output-error", "text-end", "finish-step", "error"),
    ]


def test_stop_closes_tools_and_text_before_it_says_so(translator: EventTranslator) -> None:
    feed(
        translator,
        event(call("c1")),
        partial(text("Hel")),
        event(error_code="INVOCATION_ABORTED"),
    )
    assert translator.aborted
    assert not translator.failed
    assert kinds(translator.stop()) == ["tool-output-error", "text-end", "finish-step", "abort"]


# Everything else


def test_sources_are_told_once(translator: EventTranslator) -> None:
    cited = types.CitationMetadata(citations=[types.Citation(uri="https://a", title="A")])
    told = feed(
        translator,
        event(text("Hi"), partial=True, citation_metadata=cited),
        event(text("Hi"), citation_metadata=cited),
    )
    assert kinds(told).count("source-url") == 1


def test_artifacts_and_widgets_are_data(translator: EventTranslator) -> None:
    actions = EventActions(
        artifact_delta={"a.txt": 2},
        render_ui_widgets=[UiWidget(id="w1", provider="mcp", payload={"uri": "ui://x"})],
        state_delta={"secret": 1},
    )
    assert shown(feed(translator, event(actions=actions))) == [
        {"type": "data-adk-artifact", "id": "a.txt", "data": {"filename": "a.txt", "version": 2}},
        {
            "type": "data-adk-widget",
            "id": "w1",
            "data": {"id": "w1", "provider": "mcp", "payload": {"uri": "ui://x"}},
        },
    ]


def test_state_is_told_by_option_and_only_when_complete() -> None:
    translator = EventTranslator("m1", TranslationOptions(state_keys=frozenset({"mood"})))
    actions = EventActions(state_delta={"mood": "good", "secret": 1})
    assert feed(translator, event(partial=True, actions=actions)) == []
    told = shown(feed(translator, event(actions=actions)))
    assert told == [{"type": "data-adk-state", "data": {"mood": "good"}}]


def test_custom_metadata_is_told_by_option() -> None:
    translator = EventTranslator("m1", TranslationOptions(metadata_keys=frozenset({"model"})))
    feed(translator, event(text("Hi"), custom_metadata={"model": "g", "adk_stream": {}}))
    assert shown(translator.finish())[-1]["messageMetadata"] == {"model": "g"}


def test_a_message_says_when_it_began_in_each_of_its_replies() -> None:
    translator = EventTranslator("m1", created_at=1_700_000_000_000)
    for _ in range(2):
        (start,) = shown(translator.begin())
        assert start["messageMetadata"] == {"createdAt": 1_700_000_000_000}
    assert "messageMetadata" not in shown(EventTranslator("m1").begin())[0]


def test_the_model_that_answered_last_is_named() -> None:
    translator = EventTranslator("m1")
    feed(translator, event(text("Hi"), model_version="first"))
    feed(translator, event(text("there"), model_version="second"))
    feed(translator, event(response("c1")))
    assert shown(translator.finish())[-1]["messageMetadata"] == {"model": "second"}


def test_the_models_name_can_be_kept_back() -> None:
    translator = EventTranslator("m1", TranslationOptions(show_model=False))
    feed(translator, event(text("Hi"), model_version="secret"))
    assert "secret" not in str(shown(translator.finish()))


def test_output_of_a_workflow_is_data(translator: EventTranslator) -> None:
    told = feed(translator, event(output={"n": 1}, node_info={"path": "wf@1/a@1"}))
    assert shown(told) == [{"type": "data-adk-output", "id": "wf@1/a@1", "data": {"n": 1}}]
    assert "id" not in shown(feed(translator, event(output=[1])))[0]


def node(path: str, *outputs: str) -> dict[str, JsonValue]:
    return {"path": path, "outputFor": list(outputs)}


def test_last_word_of_a_silent_workflow_is_text(translator: EventTranslator) -> None:
    feed(translator, event(question("ask1")))
    told = feed(translator, event(output="done", node_info=node("wf@1/a@1", "wf@1/a@1", "wf@1")))
    assert kinds(told)[-3:] == ["text-start", "text-delta", "text-end"]
    assert kinds(feed(translator, event(output="more"))) == ["data-adk-output"]


def test_text_that_a_node_hands_on_is_data(translator: EventTranslator) -> None:
    told = feed(translator, event(output="for b", node_info=node("wf@1/a@1", "wf@1/a@1")))
    assert kinds(told) == ["data-adk-output"]


def test_last_word_after_others_is_data(translator: EventTranslator) -> None:
    feed(translator, event(text("Hi")))
    assert kinds(feed(translator, event(output="done"))) == ["data-adk-output"]


def workflow_request() -> types.Part:
    return call(
        "wf_tool_confirmation:wf@1/pay@1",
        "adk_request_input",
        message="Sure?",
        payload={"tool_name": "pay", "args": {"amount": 7}},
        response_schema={"title": "ToolConfirmation"},
    )


@pytest.mark.parametrize(
    ("output", "told"), [({"paid": 7}, {"paid": 7}), ("paid", {"result": "paid"})]
)
def test_output_of_a_gated_node_is_its_tools_result(
    translator: EventTranslator, output: JsonValue, told: JsonValue
) -> None:
    feed(translator, event(workflow_request()))
    approval = f"wf_tool_confirmation:wf@1/pay@1@{INVOCATION}"
    list(translator.answer(answered(approval, f"{approval}#call")))
    sent = shown(feed(translator, event(output=output, node_info={"path": "wf@1/pay@1"})))
    assert sent == [
        {"type": "tool-output-available", "toolCallId": f"{approval}#call", "output": told}
    ]


def test_output_of_a_denied_node_is_not_shown(translator: EventTranslator) -> None:
    feed(translator, event(workflow_request()))
    approval = f"wf_tool_confirmation:wf@1/pay@1@{INVOCATION}"
    list(translator.answer(answered(approval, f"{approval}#call", "denied")))
    assert feed(translator, event(output={"x": 1}, node_info={"path": "wf@1/pay@1"})) == []


def test_what_a_policy_let_through_is_told_between_the_call_and_its_result(
    translator: EventTranslator,
) -> None:
    told = feed(translator, event(call("c1", amount=5)))
    decided = dataclasses.replace(answered("auto-1", "c1"), automatic=True)
    translator.decided(decided)
    told += feed(translator, event(response("c1", paid=5)), event(text("Paid.")))
    told += translator.finish()
    assert told.count(decided) == 1
    at = told.index(decided)
    kind = [chunk["type"] for chunk in shown(told[:at])][-1]
    assert kind == "tool-input-available"
    assert shown(told[at + 1 :])[0]["type"] == "tool-output-available"


def test_what_a_policy_refused_ends_once_and_its_result_is_not_shown(
    translator: EventTranslator,
) -> None:
    told = feed(translator, event(call("c1", amount=5)))
    translator.decided(dataclasses.replace(answered("auto-1", "c1", "denied"), automatic=True))
    told += feed(translator, event(response("c1", error="Denied by policy.")))
    told += translator.finish()
    # Clients of ai 6 have no verdict to show: the part of a denied call would be invalid.
    assert "tool-output-denied" not in kinds(told)
    assert kinds(told).count("tool-output-error") == 1


@pytest.mark.parametrize(
    "end",
    [EventTranslator.finish, EventTranslator.stop, lambda translator: translator.fail("Broken.")],
)
def test_what_a_policy_decided_is_told_also_if_no_result_comes(
    translator: EventTranslator, end: Callable[[EventTranslator], Iterator[Entry]]
) -> None:
    told = feed(translator, event(call("c1", amount=5)))
    decided = dataclasses.replace(answered("auto-1", "c1"), automatic=True)
    translator.decided(decided)
    told += end(translator)
    assert told.index(decided) < len(told) - 1
    assert kinds(told[told.index(decided) :])[1] == "tool-output-error"
