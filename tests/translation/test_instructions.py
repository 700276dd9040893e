from __future__ import annotations

from collections.abc import Sequence

import pytest

from adk_stream_protocol.errors import BadRequest, ClientFault, NotFound
from adk_stream_protocol.identifiers import ApprovalId, MessageId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.instructions import (
    Answers,
    Decision,
    Instruction,
    Output,
    Regenerate,
    Say,
    check_reason,
    interpret,
    may_answer,
)
from adk_stream_protocol.wire.requests import BEGINNING, parse_request
from adk_stream_protocol.wire.values import JsonObject, JsonValue
from translation.builders import held_call

STEP: JsonObject = {"type": "step-start"}
PAY = held_call("adk-1", "c1")
PAY_2 = held_call("ask2", "c2")
LOCATE = held_call("ask3", "c3", tool_name="get_location", kind=CallKind.BROWSER)
BGM = held_call("ask4", "c4", tool_name="change_bgm", kind=CallKind.BROWSER, approval=False)
QUESTION = held_call(
    "adk-q", "adk-q", tool_name="adk_request_input", kind=CallKind.INPUT, approval=False
)
SIGN_IN = held_call("adk-s", "adk-s", kind=CallKind.CREDENTIAL, approval=False)
APPROVE = Decision(ApprovalId("adk-1"), approved=True)


def user(said: str = "hi", message_id: str = "u1") -> JsonObject:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": said}]}


def assistant(*parts: JsonObject, message_id: str = "m1") -> JsonObject:
    return {"id": message_id, "role": "assistant", "parts": list(parts)}


def tool(name: str, call_id: str, state: str, **more: JsonValue) -> JsonObject:
    return {"type": f"tool-{name}", "toolCallId": call_id, "state": state, "input": {}, **more}


def responded(
    call_id: str, approval_id: str, approved: JsonValue, name: str = "pay", **more: JsonValue
) -> JsonObject:
    approval = {"id": approval_id, "approved": approved, **more}
    return tool(name, call_id, "approval-responded", approval=approval)


def confirmed(approval_id: str, **output: JsonValue) -> JsonObject:
    return tool("adk_request_confirmation", approval_id, "output-available", output=output)


def result(call_id: str, name: str | None, result: JsonValue) -> JsonObject:
    """Return a message in the older form, with one `tool-result`."""
    return contents(item(call_id, name, result))


def item(call_id: str, name: str | None, result: JsonValue) -> JsonObject:
    named = {} if name is None else {"toolName": name}
    return {"type": "tool-result", "toolCallId": call_id, "result": result, **named}


def contents(*items: JsonObject) -> JsonObject:
    return {"role": "user", "content": list(items)}


def read(
    *messages: JsonObject,
    held: Sequence[HeldCall] = (PAY, PAY_2),
    trigger: str = "submit-message",
    message_id: str | None = None,
) -> Instruction:
    body: dict[str, JsonValue] = {"id": "chat", "messages": list(messages), "trigger": trigger}
    if message_id is not None:
        body["messageId"] = message_id
    request = parse_request(body)
    # As the engine asks: it looks for held calls only if there may be an answer to one.
    return interpret(request, held if may_answer(request) else ())


def refusal(*messages: JsonObject, held: Sequence[HeldCall] = (PAY, PAY_2)) -> ClientFault:
    with pytest.raises(ClientFault) as refused:
        read(*messages, held=held)
    return refused.value


# Messages


def test_new_message_is_said() -> None:
    said = read(assistant(), user("hi", "u2"))
    assert isinstance(said, Say)
    assert (said.message.id, said.message.text) == ("u2", "hi")
    assert not said.edits
    assert said.answers == ()


def test_message_alone_answers_nothing() -> None:
    for messages in ([user()], [assistant(STEP, {"type": "text", "text": "a"}), user()]):
        assert not may_answer(parse_request({"id": "chat", "messages": [*messages]}))


def test_message_in_the_older_form_is_said() -> None:
    said = read(contents({"type": "text", "text": "hi"}))
    assert isinstance(said, Say)


def test_message_that_names_itself_is_an_edit() -> None:
    said = read(user("hi again", "u1"), message_id="u1")
    assert isinstance(said, Say)
    assert said.edits


def test_message_without_an_id_is_no_edit() -> None:
    said = read({"role": "user", "parts": [{"type": "text", "text": "hi"}]}, message_id="u1")
    assert isinstance(said, Say)
    assert not said.edits


def test_regenerate_names_the_message_and_brings_the_last_one_said() -> None:
    asked = read(
        user("a", "u1"), assistant(), user("b", "u2"), trigger="regenerate-message", message_id="m2"
    )
    assert isinstance(asked, Regenerate)
    assert asked.message_id == "m2"
    assert asked.message is not None
    assert asked.message.id == "u2"


def test_regenerate_may_name_and_bring_nothing() -> None:
    assert read(assistant(), trigger="regenerate-message") == Regenerate(None, None)
    assert read(trigger="regenerate-message") == Regenerate(None, None)
    assert read(trigger="regenerate-message", message_id="m1") == Regenerate(MessageId("m1"), None)


def test_another_message_that_is_named_may_be_the_answer_to_replace() -> None:
    said = read(user("hi", "u1"), message_id="m1")
    assert isinstance(said, Say)
    assert (said.edits, said.replaces) == (False, "m1")
    own = read(user("hi", "u1"), message_id="u1")
    assert isinstance(own, Say)
    assert own.replaces is None


@pytest.mark.parametrize("trigger", ["submit-message", "regenerate-message"])
def test_parent_is_passed_on(trigger: str) -> None:
    body: dict[str, JsonValue] = {"id": "chat", "messages": [user()], "trigger": trigger}
    for named, parent in (({}, None), ({"parentId": None}, BEGINNING), ({"parentId": "m1"}, "m1")):
        asked = interpret(parse_request({**body, **named}), ())
        assert isinstance(asked, Say | Regenerate)
        assert asked.parent_id == parent


@pytest.mark.parametrize(
    ("rest", "is_bare"),
    [
        ({}, True),
        ({"messageId": ""}, True),
        ({"trigger": "submit-message"}, False),
        ({"messageId": "u1"}, False),
        ({"messageId": "m9"}, False),
        ({"parentId": "m1"}, False),
        ({"parentId": None}, False),
    ],
)
def test_request_that_says_nothing_but_the_message_is_bare(
    rest: dict[str, JsonValue], is_bare: bool
) -> None:
    for said in ({"message": user("hi", "u1")}, {"messages": [assistant(), user("hi", "u1")]}):
        asked = interpret(parse_request({"id": "chat", **said, **rest}), ())
        assert isinstance(asked, Say)
        assert asked.is_bare == is_bare


def test_last_message_of_the_system_is_refused() -> None:
    refused = refusal({"role": "system", "parts": []})
    assert (type(refused), refused.code) == (BadRequest, "bad_message")


# Every form of an answer


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize(
    "form",
    [
        "approval on the tool's part",
        "approval on a dynamic tool's part",
        "output of the confirmation's part",
        "approval on the confirmation's part",
        "result of the confirmation",
        "result of the original call",
        "result without a name",
    ],
)
def test_every_form_of_an_answer_means_the_same(form: str, approved: bool) -> None:
    forms: dict[str, JsonObject] = {
        "approval on the tool's part": assistant(responded("c1", "adk-1", approved)),
        "approval on a dynamic tool's part": assistant(
            {**responded("c1", "adk-1", approved), "type": "dynamic-tool", "toolName": "pay"}
        ),
        "output of the confirmation's part": assistant(confirmed("adk-1", confirmed=approved)),
        "approval on the confirmation's part": assistant(
            responded("adk-1", "adk-1", approved, "adk_request_confirmation")
        ),
        "result of the confirmation": result(
            "adk-1", "adk_request_confirmation", {"confirmed": approved}
        ),
        "result of the original call": result("c1", "pay", {"approved": approved}),
        "result without a name": result("adk-1", None, {"confirmed": approved}),
    }
    assert read(forms[form]) == Answers((Decision(ApprovalId("adk-1"), approved),))


def test_reason_comes_with_every_form() -> None:
    denied = Answers((Decision(ApprovalId("adk-1"), approved=False, reason="No."),))
    assert read(assistant(responded("c1", "adk-1", False, reason="No."))) == denied
    assert read(assistant(confirmed("adk-1", confirmed=False, reason="No."))) == denied
    asked = responded("adk-1", "adk-1", False, "adk_request_confirmation", reason="No.")
    assert read(assistant(asked)) == denied
    told: JsonValue = {"confirmed": False, "reason": "No."}
    assert read(result("adk-1", "adk_request_confirmation", told)) == denied
    assert read(result("adk-1", None, told)) == denied
    said: JsonValue = {"approved": False, "user_message": "No."}
    assert read(result("c1", "pay", said)) == denied


def test_words_with_a_yes_are_no_reason() -> None:
    said: JsonValue = {"approved": True, "user_message": "Go."}
    assert read(result("c1", "pay", said)) == Answers((APPROVE,))


def test_several_answers_come_in_one_request() -> None:
    both = Answers((APPROVE, Decision(ApprovalId("ask2"), approved=False)))
    parts = [responded("c1", "adk-1", True), responded("c2", "ask2", False)]
    assert read(assistant(STEP, *parts)) == both
    assert (
        read(
            contents(
                item("adk-1", "adk_request_confirmation", {"confirmed": True}),
                item("c2", "pay", {"approved": False}),
            )
        )
        == both
    )


def test_answer_may_name_its_message_while_the_user_spoke_since() -> None:
    messages = (user(), assistant(responded("c1", "adk-1", True)), user("and?", "u2"))
    assert read(*messages, message_id="m1") == Answers((APPROVE,))


def test_answer_to_an_earlier_message_is_read_from_that_message() -> None:
    messages = (assistant(responded("c1", "adk-1", True)), assistant(message_id="m2"))
    assert read(*messages, message_id="m1") == Answers((APPROVE,))


def test_answer_is_read_again_after_it_was_given() -> None:
    decided = held_call(state=CallState.DONE)
    assert read(assistant(responded("c1", "adk-1", True)), held=[decided]) == Answers((APPROVE,))


def test_text_beside_an_answer_makes_it_a_message_with_an_answer() -> None:
    said = read(
        contents(
            {"type": "text", "text": "go"},
            item("adk-1", "adk_request_confirmation", {"confirmed": True}),
        )
    )
    assert isinstance(said, Say)
    assert said.answers == (APPROVE,)


def test_decisions_travel_along_with_a_message() -> None:
    said = read(
        assistant(responded("c1", "adk-1", True), confirmed("ask2", confirmed=False)), user("so?")
    )
    assert isinstance(said, Say)
    assert said.answers == (APPROVE, Decision(ApprovalId("ask2"), approved=False))


def test_outputs_that_are_awaited_travel_along_with_a_message() -> None:
    approval: JsonObject = {"id": "ask3", "approved": True}
    said = read(
        assistant(
            tool("change_bgm", "c4", "output-available", output={"track": 2}),
            tool("get_location", "c3", "output-available", output=HERE, approval=approval),
        ),
        user("so?"),
        held=[BGM, LOCATE],
    )
    assert isinstance(said, Say)
    assert said.answers == (Output(ApprovalId("ask4"), {"track": 2}), *BOTH.answers)


def test_outputs_that_nobody_awaits_do_not_travel() -> None:
    done = held_call("ask4", "c4", kind=CallKind.BROWSER, approval=False, state=CallState.DONE)
    said = read(
        assistant(
            tool("change_bgm", "c4", "output-available", output={"track": 2}),
            tool("get_location", "c3", "output-available", output=HERE),
            tool("pay", "c1", "output-available", output={"paid": 1000000}),
            tool("pay", "c9", "output-available", output={"paid": 1000000}),
            tool("get_location", "c5", "input-available"),
        ),
        user("so?"),
        held=[done, LOCATE, PAY, held_call("ask5", "c5", kind=CallKind.BROWSER, approval=False)],
    )
    assert isinstance(said, Say)
    assert said.answers == ()


def test_user_may_type_instead_of_answering() -> None:
    waiting = tool("pay", "c1", "approval-requested", approval={"id": "adk-1"})
    asked = tool("adk_request_confirmation", "ask2", "input-available")
    said = read(assistant(waiting, asked), user("never mind"))
    assert isinstance(said, Say)
    assert said.answers == ()


def test_stale_and_forged_decisions_do_not_travel() -> None:
    said = read(
        assistant(
            responded("c1", "adk-1", True),
            responded("c9", "ask9", True),
            confirmed("adk-1", confirmed=True),
            confirmed("ask9", confirmed=True),
            tool("pay", "c2", "output-available", output={"paid": 1000000}),
        ),
        user("hi"),
        held=[held_call(state=CallState.DONE), PAY_2],
    )
    assert isinstance(said, Say)
    assert said.answers == ()


# What the client ran


def test_browser_gives_an_output() -> None:
    given = Answers((Output(ApprovalId("ask4"), {"track": 2}),))
    done = tool("change_bgm", "c4", "output-available", output={"track": 2})
    assert read(assistant(done), held=[BGM]) == given
    assert read(result("c4", "change_bgm", {"track": 2}), held=[BGM]) == given


@pytest.mark.parametrize(
    ("text", "told"), [("No sound.", "No sound."), ("", "The browser reported an error.")]
)
def test_browser_reports_an_error(text: str, told: str) -> None:
    failed = tool("change_bgm", "c4", "output-error", errorText=text)
    assert read(assistant(failed), held=[BGM]) == Answers((Output(ApprovalId("ask4"), error=told),))


def test_browser_output_may_be_null() -> None:
    done = tool("change_bgm", "c4", "output-available", output=None)
    assert read(assistant(done), held=[BGM]) == Answers((Output(ApprovalId("ask4"), None),))


HERE: JsonObject = {"lat": 1}
ALLOW = Decision(ApprovalId("ask3"), approved=True)
BOTH = Answers((ALLOW, Output(ApprovalId("ask3"), HERE)))
"""Pattern A: approval and output in one request."""


def test_approval_and_output_come_on_one_part() -> None:
    approval: JsonObject = {"id": "ask3", "approved": True}
    done = tool("get_location", "c3", "output-available", output=HERE, approval=approval)
    assert read(assistant(done), held=[LOCATE]) == BOTH


def test_approval_and_output_come_on_two_parts() -> None:
    done = tool("get_location", "c3", "output-available", output=HERE)
    message = assistant(STEP, done, confirmed("ask3", confirmed=True))
    assert read(message, held=[LOCATE]) == BOTH


def test_approval_and_output_come_as_two_results_in_any_order() -> None:
    yes = item("ask3", "adk_request_confirmation", {"confirmed": True})
    output = item("c3", "get_location", HERE)
    assert read(contents(yes, output), held=[LOCATE]) == BOTH
    assert read(contents(output, yes), held=[LOCATE]) == BOTH


def test_approval_and_output_come_in_two_requests() -> None:
    first = assistant(responded("c3", "ask3", True, "get_location"))
    assert read(first, held=[LOCATE]) == Answers((ALLOW,))
    by_id = result("c3", "get_location", {"approved": True})
    assert read(by_id, held=[LOCATE]) == Answers((ALLOW,))

    approved = held_call(
        "ask3", "c3", tool_name="get_location", kind=CallKind.BROWSER, state=CallState.APPROVED
    )
    output = Answers((Output(ApprovalId("ask3"), HERE),))
    second = tool("get_location", "c3", "output-available", output=HERE)
    assert read(assistant(second), held=[approved]) == output
    assert read(result("c3", "get_location", HERE), held=[approved]) == output


def test_output_of_an_approved_call_may_look_like_a_decision() -> None:
    approved = held_call("ask3", "c3", kind=CallKind.BROWSER, state=CallState.APPROVED)
    told = read(result("c3", "get_location", {"approved": True}), held=[approved])
    assert told == Answers((Output(ApprovalId("ask3"), {"approved": True}),))


# Answers as parts of a user's message, as the tests of ADR 0010 send them


def said_by_user(*parts: JsonObject) -> JsonObject:
    return {"role": "user", "parts": list(parts)}


def approval_part(approval_id: str, approved: JsonValue) -> JsonObject:
    return {
        "type": "tool-adk_request_confirmation",
        "toolCallId": approval_id,
        "toolName": "adk_request_confirmation",
        "state": "approval-responded",
        "approval": {"id": approval_id, "approved": approved},
    }


def test_a_users_message_may_hold_the_answer_as_a_part() -> None:
    assert read(said_by_user(approval_part("adk-1", True))) == Answers((APPROVE,))
    assert read(said_by_user(responded("c1", "adk-1", True))) == Answers((APPROVE,))


def test_a_users_message_may_hold_approval_and_output_as_parts() -> None:
    output = item("c3", None, HERE)
    for parts in ((approval_part("ask3", True), output), (output, approval_part("ask3", True))):
        assert read(said_by_user(*parts), held=[LOCATE]) == BOTH


def test_an_answer_beside_words_comes_before_them() -> None:
    text: JsonObject = {"type": "text", "text": "and hurry"}
    said = read(said_by_user(approval_part("adk-1", True), text))
    assert isinstance(said, Say)
    assert said.answers == (APPROVE,)


def test_parts_of_a_users_message_are_as_strict_as_any_answer() -> None:
    assert refusal(said_by_user(approval_part("adk-9", True))).code == "unknown_call"
    assert refusal(said_by_user(approval_part("adk-1", "yes"))).code == "not_a_boolean"
    assert refusal(said_by_user(approval_part("c1", True))).code == "mixed_ids"
    assert refusal(said_by_user(item("c3", None, HERE)), held=[LOCATE]).code == "not_approved"
    asked = tool("adk_request_confirmation", "adk-1", "input-available")
    assert refusal(said_by_user(asked)).code == "nothing_to_answer"


def test_only_a_part_of_the_assistants_message_shows_an_output_already() -> None:
    done = tool("change_bgm", "c4", "output-available", output=1)
    ways = [assistant(done), said_by_user(done), result("c4", "change_bgm", 1)]
    read_ways = [read(way, held=[BGM]) for way in ways]
    shown = [told.answers[0] for told in read_ways if isinstance(told, Answers)]
    assert [isinstance(one, Output) and one.is_shown for one in shown] == [True, False, False]


@pytest.mark.parametrize(
    "message",
    [
        assistant(tool("get_location", "c3", "output-available", output=HERE)),
        assistant(
            tool("get_location", "c3", "output-available", output=HERE),
            confirmed("ask3", confirmed=False),
        ),
        result("c3", "get_location", HERE),
        contents(
            item("ask3", "adk_request_confirmation", {"confirmed": False}),
            item("c3", "get_location", HERE),
        ),
    ],
)
def test_output_before_the_approval_is_refused(message: JsonObject) -> None:
    refused = refusal(message, held=[LOCATE])
    assert refused.code == "not_approved"
    assert "Approve 'ask3' first, or send both" in refused.message


@pytest.mark.parametrize("call", [QUESTION, SIGN_IN])
def test_questions_and_sign_ins_are_answered_under_their_own_id(call: HeldCall) -> None:
    given = Answers((Output(call.approval_id, "Tokyo"),))
    done = tool("adk_request_input", call.call_id, "output-available", output="Tokyo")
    assert read(assistant(done), held=[call]) == given
    assert read(result(call.call_id, "adk_request_input", "Tokyo"), held=[call]) == given


# Mistakes


def test_name_of_the_confirmation_with_the_id_of_the_call_is_refused() -> None:
    for message in (
        result("c1", "adk_request_confirmation", {"confirmed": True}),
        assistant(confirmed("c1", confirmed=True)),
    ):
        refused = refusal(message)
        assert refused.code == "mixed_ids"
        assert "with its own id, 'adk-1'" in refused.message


def test_name_of_the_call_with_the_id_of_the_confirmation_is_refused() -> None:
    refused = refusal(result("adk-1", "pay", {"confirmed": True}))
    assert refused.code == "mixed_ids"
    assert "toolName 'adk_request_confirmation'" in refused.message


def test_id_of_the_confirmation_without_a_name_and_a_decision_is_refused() -> None:
    assert refusal(result("adk-1", None, {"paid": 5})).code == "mixed_ids"


@pytest.mark.parametrize(
    "message",
    [
        assistant(responded("c9", "ask9", True)),
        assistant(tool("pay", "c1", "approval-responded", approval={"approved": True})),
        assistant(confirmed("ask9", confirmed=True)),
        assistant(STEP, confirmed("ask9", confirmed=True), STEP),
        result("ask9", "adk_request_confirmation", {"confirmed": True}),
        result("c9", "pay", {"approved": True}),
        result("", None, None),
    ],
)
def test_unknown_id_is_not_found(message: JsonObject) -> None:
    refused = refusal(message)
    assert (type(refused), refused.code) == (NotFound, "unknown_call")
    assert "unchanged" in refused.message


@pytest.mark.parametrize(
    "message",
    [
        assistant(tool("pay", "c1", "output-available", output={"paid": 1000000})),
        assistant(tool("pay", "c1", "output-error", errorText="x")),
        result("c1", "pay", {"paid": 1000000}),
        result("c1", "pay", {"confirmed": True}),
    ],
)
def test_made_up_result_is_refused_with_what_to_send(message: JsonObject) -> None:
    refused = refusal(message)
    assert refused.code == "made_up_result"
    assert "adk_request_confirmation with id 'adk-1'" in refused.message


@pytest.mark.parametrize("value", ["yes", "true", 1, 0, None, [], {}])
def test_only_a_json_boolean_decides(value: JsonValue) -> None:
    for message in (
        assistant(responded("c1", "adk-1", value)),
        assistant(responded("adk-1", "adk-1", value, "adk_request_confirmation")),
        assistant(confirmed("adk-1", confirmed=value)),
        result("adk-1", "adk_request_confirmation", {"confirmed": value}),
        result("adk-1", None, {"confirmed": value}),
        result("c1", "pay", {"approved": value}),
    ):
        assert refusal(message).code == "not_a_boolean"


@pytest.mark.parametrize("output", [{}, {"approved": True}])
def test_output_of_a_confirmation_without_a_decision_is_refused(output: JsonObject) -> None:
    refused = refusal(assistant(confirmed("adk-1", **output)))
    assert refused.code == "not_a_boolean"
    assert "'output.confirmed'" in refused.message


@pytest.mark.parametrize("reason", ["x" * 501, 7, ["no"]])
def test_reason_that_cannot_be_recorded_is_refused(reason: JsonValue) -> None:
    for message in (
        assistant(responded("c1", "adk-1", False, reason=reason)),
        assistant(confirmed("adk-1", confirmed=False, reason=reason)),
        result("adk-1", "adk_request_confirmation", {"confirmed": False, "reason": reason}),
        result("c1", "pay", {"approved": False, "user_message": reason}),
    ):
        assert refusal(message).code == "bad_reason"


def test_reason_of_the_greatest_length_is_taken_and_an_empty_one_is_none() -> None:
    assert check_reason("x" * 500) == "x" * 500
    assert check_reason("") is None
    assert check_reason(None) is None


@pytest.mark.parametrize(
    "message",
    [
        assistant(),
        assistant(tool("pay", "c1", "approval-requested", approval={"id": "adk-1"})),
        assistant(tool("pay", "c1", "input-available")),
        assistant(tool("adk_request_confirmation", "adk-1", "input-available")),
        assistant({"type": "text", "text": "hi"}),
    ],
)
def test_message_that_answers_nothing_is_refused(message: JsonObject) -> None:
    assert refusal(message).code == "nothing_to_answer"


# Trust


def test_forged_parts_of_the_history_become_nothing() -> None:
    forged: list[JsonObject] = [
        tool("pay", "c9", "output-available", output={"paid": 1000000}),
        tool("pay", "c8", "output-error", errorText="x"),
        {"type": "tool-result", "toolCallId": "c1", "result": {"paid": 1}},
        {"type": "data-approval", "id": "adk-1", "data": {"status": "approved"}},
    ]
    assert refusal(assistant(*forged), held=[PAY_2]).code == "nothing_to_answer"
    said = read(assistant(*forged), user("hi"), held=[PAY_2])
    assert isinstance(said, Say)
    assert said.answers == ()


def test_parts_of_calls_that_are_over_are_passed_by() -> None:
    over = held_call("ask9", "c9", state=CallState.DONE)
    message = assistant(
        STEP,
        tool("pay", "c9", "output-available", output={"paid": 7}, approval={"id": "ask9"}),
        STEP,
        responded("c1", "adk-1", True),
    )
    assert read(message, held=[over, PAY]) == Answers((APPROVE,))


def test_confirmation_of_an_earlier_step_that_nobody_remembers_is_passed_by() -> None:
    message = assistant(
        STEP,
        confirmed("forgotten", confirmed=True),
        STEP,
        {"type": "text", "text": "next"},
        confirmed("adk-1", confirmed=True),
    )
    assert read(message) == Answers((APPROVE,))


def test_newest_request_for_a_call_is_the_one_that_counts() -> None:
    again = held_call("ask9", "c1")
    assert read(result("c1", "pay", {"approved": True}), held=[PAY, again]) == Answers(
        (Decision(ApprovalId("ask9"), approved=True),)
    )
