from __future__ import annotations

from collections.abc import Iterable, Sequence

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import MessageId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.events import EventTranslator, TranslationOptions
from adk_stream_protocol.translation.held import browser_payload
from adk_stream_protocol.translation.history import (
    PastTurn,
    lane_of,
    messages_of,
    past_turns,
    retell,
    stamp,
    with_card,
    without_rewound,
)
from adk_stream_protocol.wire.chunks import TextDeltaChunk
from adk_stream_protocol.wire.entries import CallHeld, Entry
from adk_stream_protocol.wire.messages import Part, UIMessage
from adk_stream_protocol.wire.profiles import EXPIRED_TEXT, Audience, Profile
from adk_stream_protocol.wire.values import JsonValue
from translation.builders import (
    call,
    confirmation,
    event,
    held_call,
    kinds,
    question,
    response,
    shown,
    sign_in,
    text,
)


def said(
    *parts: types.Part, invocation: str = "e-1", mark: dict[str, object] | None = None
) -> Event:
    given = parts or (text("hi"),)
    return event(*given, author="user", invocation=invocation, custom_metadata=mark)


ASKED = [
    said(text("pay")),
    event(call("c1", amount=5)),
    event(confirmation("adk-1", "c1")),
    event(
        response("c1", error="requires confirmation"),
        actions={"requested_tool_confirmations": {"c1": {"hint": "", "confirmed": False}}},
    ),
]


def assistant(
    events: Sequence[Event], calls: Iterable[HeldCall] = (), profile: Profile = "ai-sdk"
) -> UIMessage:
    """Return the one assistant message of a session."""
    (message,) = [
        message
        for message in messages_of(events, calls, Audience(profile))
        if message.role == "assistant"
    ]
    return message


def tool(message: UIMessage, call_id: str = "c1") -> Part:
    (part,) = [part for part in message.parts if part.get("toolCallId") == call_id]
    return part


def told(events: Sequence[Event], *calls: HeldCall) -> tuple[EventTranslator, list[Entry]]:
    (turn,) = past_turns(events)
    return retell(turn, {row.request_id: row for row in calls})


# Turns


def test_turn_is_all_that_shares_an_invocation() -> None:
    turns = past_turns(
        [
            said(),
            event(text("Hello")),
            said(text("more"), invocation="e-2"),
            event(text("late"), invocation="e-1"),
        ]
    )
    assert [turn.invocation_id for turn in turns] == ["e-1", "e-2"]
    assert [len(turn.events) for turn in turns] == [3, 1]
    assert [turn.said is not None for turn in turns] == [True, True]


def test_ids_of_a_turn_come_from_its_stamp() -> None:
    mark = stamp(user_message=MessageId("u7"), message=MessageId("m7"))
    (turn,) = past_turns([said(mark=mark)])
    assert (turn.user_message_id, turn.message_id) == ("u7", "m7")


def test_a_turn_began_when_its_stamp_says_so_or_with_its_first_event() -> None:
    user, message = MessageId("u7"), MessageId("m7")
    late = stamp(user_message=user, message=message, created_at=5)
    events = [said(mark=stamp(user_message=user, message=message)), said(mark=late)]
    (turn,) = past_turns(events)
    assert turn.began_at == 5
    (turn,) = past_turns(events[:1])
    assert turn.began_at == int(events[0].timestamp * 1000)


def test_ids_of_a_turn_made_elsewhere_come_from_adk() -> None:
    (turn,) = past_turns([said()])
    assert (turn.user_message_id, turn.message_id) == ("user-e-1", "msg-e-1")


def test_stamp_without_a_user_message_names_only_ours() -> None:
    assert stamp(user_message=None, message=MessageId("m1")) == {"adk_stream": {"message": "m1"}}


def test_answers_and_empty_events_of_the_user_are_no_speech() -> None:
    (turn,) = past_turns([said(response("adk-1", "adk_request_confirmation", confirmed=True))])
    assert turn.said is None
    (turn,) = past_turns([event(author="user")])
    assert turn.said is None


def test_event_without_an_invocation_belongs_to_no_turn() -> None:
    assert past_turns([event(text("?"), invocation="")]) == []


def test_rewind_hides_its_target_and_all_since() -> None:
    first, second = said(invocation="e-1"), said(invocation="e-2")
    back = event(author="user", invocation="e-3", actions={"rewind_before_invocation_id": "e-2"})
    third = said(invocation="e-4")
    assert without_rewound([first, second, event(text("x"), invocation="e-2"), back, third]) == [
        first,
        third,
    ]


def test_rewind_to_a_turn_that_is_gone_hides_nothing() -> None:
    back = event(author="user", actions={"rewind_before_invocation_id": "e-9"})
    kept = said()
    assert without_rewound([kept, back]) == [kept]


def test_agent_that_asked_is_known_by_name_and_branch() -> None:
    asking = event(confirmation("adk-1", "c1"), author="payer", branch="par.payer")
    (turn,) = past_turns([said(), asking])
    assert turn.lane_of("adk-1") == lane_of(asking) == "payer@par.payer"
    assert turn.lane_of("adk-2") == ""
    assert lane_of(event(text("hi"))) == "root@"


# Held calls


def test_answers_begin_a_reply_of_their_own() -> None:
    _, entries = told([*ASKED, answer(confirmed=True), event(text("Paid."))])
    sent = kinds(entries)
    assert sent.index("finish-step") == sent.index("tool-approval-request") + 2


def test_pending_call_waits_with_what_the_ledger_knows_of_it() -> None:
    translator, entries = told(ASKED, held_call())
    assert translator.is_waiting
    (asked,) = [entry for entry in entries if isinstance(entry, CallHeld)]
    assert (asked.hint, asked.card["title"]) == ("Sure?", "Pay")
    part = tool(assistant(ASKED, [held_call()]))
    assert (part["state"], part["approval"]) == ("approval-requested", {"id": "adk-1"})


def test_pending_call_without_a_row_still_waits() -> None:
    assert tool(assistant(ASKED))["state"] == "approval-requested"


def answer(**reply: object) -> Event:
    return said(response("adk-1", "adk_request_confirmation", **reply))


def test_answer_is_told_as_the_ledger_recorded_it() -> None:
    denied = held_call(state=CallState.DENIED, decided_at=1.0, reason="No.")
    part = tool(assistant([*ASKED, answer(confirmed=False)], [denied]))
    assert part["state"] == "output-denied"
    assert part["approval"] == {"id": "adk-1", "approved": False, "reason": "No."}


def test_expired_call_is_told_as_such() -> None:
    expired = held_call(state=CallState.EXPIRED, decided_at=1.0)
    part = tool(assistant([*ASKED, answer(confirmed=False)], [expired]))
    assert (part["state"], part["errorText"]) == ("output-error", EXPIRED_TEXT)


def test_answer_without_a_row_is_told_as_the_session_recorded_it() -> None:
    yes = [*ASKED, answer(confirmed=True), event(response("c1", paid=5))]
    part = tool(assistant(yes))
    assert (part["state"], part["output"]) == ("output-available", {"paid": 5})
    assert part["approval"] == {"id": "adk-1", "approved": True}
    for no in (answer(confirmed=False), answer(confirmed="yes"), answer()):
        assert tool(assistant([*ASKED, no]))["state"] == "output-denied"


def test_second_answer_to_a_call_changes_nothing() -> None:
    twice = [*ASKED, answer(confirmed=True), answer(confirmed=False)]
    _, entries = told(twice)
    assert kinds(entries).count("data-approval") == 2


def test_decision_that_waits_for_another_is_told_already() -> None:
    approved = held_call(state=CallState.APPROVED, decided_at=1.0)
    _, entries = told(ASKED, approved)
    assert shown(entries)[-1]["type"] == "data-approval"
    denied = held_call(state=CallState.DENIED, decided_at=1.0)
    assert kinds(told(ASKED, denied)[1])[-1] == "tool-output-denied"


def test_undecided_call_is_not_told_as_answered_even_if_it_once_was() -> None:
    # As `engine.preparation` hands over the calls that the reply itself will answer.
    again = held_call(state=CallState.PENDING, done_at=1.0)
    assert kinds(told(ASKED, again)[1])[-1] == "data-approval"
    assert told(ASKED, again)[0].is_waiting


def handed_to_browser(*, approval: bool = False) -> list[Event]:
    payload = browser_payload(approval=approval)
    return [
        said(),
        event(call("c1", "get_location")),
        event(confirmation("adk-1", "c1", name="get_location", payload=payload)),
    ]


def test_browser_call_that_was_not_run_yet_stays_open() -> None:
    row = held_call(kind=CallKind.BROWSER, approval=False)
    assert tool(assistant(handed_to_browser(), [row]))["state"] == "input-available"


def test_output_that_waits_for_another_answer_is_told_already() -> None:
    given = held_call(
        kind=CallKind.BROWSER,
        approval=False,
        state=CallState.DONE,
        result={"lat": 1},
        done_at=1.0,
    )
    part = tool(assistant(handed_to_browser(), [given]))
    assert (part["state"], part["output"]) == ("output-available", {"lat": 1})


def test_browser_call_that_was_approved_and_failed_is_told_with_both() -> None:
    failed = held_call(
        kind=CallKind.BROWSER,
        state=CallState.FAILED,
        error="No signal.",
        decided_at=1.0,
        done_at=2.0,
    )
    part = tool(assistant(handed_to_browser(approval=True), [failed]))
    assert (part["state"], part["errorText"]) == ("output-error", "No signal.")
    assert part["approval"] == {"id": "adk-1", "approved": True}


def reply(row: HeldCall | None = None, **given: object) -> Part:
    """Return the part of a question that was answered."""
    events = [said(), event(question("adk-q"))]
    if given:
        events.append(said(response("adk-q", "adk_request_input", **given)))
    return tool(assistant(events, [row] if row else []), "adk-q")


def asked(state: CallState, **fields: object) -> HeldCall:
    result, error = fields.get("result"), fields.get("error")
    return held_call(
        "adk-q",
        "adk-q",
        kind=CallKind.INPUT,
        approval=False,
        state=state,
        result=result if isinstance(result, str) else None,
        error=error if isinstance(error, str) else None,
        done_at=1.0,
    )


def test_reply_to_a_question_is_told_from_ledger_or_session() -> None:
    for part in (
        reply(asked(CallState.DONE, result="Tokyo"), result="Tokyo"),
        reply(asked(CallState.DONE, result="Tokyo")),
        reply(result="Tokyo"),
    ):
        assert (part["state"], part["output"]) == ("output-available", "Tokyo")
    assert reply(ok=True)["output"] == {"ok": True}


def test_question_that_was_not_answered_is_told_from_ledger_or_session() -> None:
    for part in (
        reply(asked(CallState.FAILED, error="No idea."), error="No idea."),
        reply(error="No idea."),
    ):
        assert (part["state"], part["errorText"]) == ("output-error", "No idea.")


def test_sign_in_is_told_by_its_address_only() -> None:
    events = [
        said(),
        event(call("c1", "calendar")),
        event(sign_in("adk-s", "c1")),
        said(response("adk-s", "adk_request_credential", authConfig="SECRET")),
        event(response("c1", "calendar", ok=True)),
    ]
    message = assistant(events)
    assert tool(message)["output"] == {"ok": True}
    assert "SECRET" not in str(message)


def test_rows_of_another_turn_are_not_this_turns() -> None:
    other = held_call(state=CallState.DENIED, decided_at=1.0, invocation="e-2")
    assert told(ASKED, other)[0].is_waiting
    assert tool(assistant(ASKED, [other, held_call()]))["state"] == "approval-requested"


def test_card_is_only_added_to_calls_the_ledger_knows() -> None:
    chunk = TextDeltaChunk("1", "hi")
    unknown = CallHeld("ask9", "c9", "pay", {}, "", request_id="ask9")
    rows = {"adk-1": held_call()}
    assert with_card(chunk, rows) is chunk
    assert with_card(unknown, rows) is unknown


# Messages


def test_chat_is_what_was_said_and_what_answered_it() -> None:
    events = [said(text("hi")), event(text("Hello"))]
    metadata = {"createdAt": int(events[0].timestamp * 1000)}
    messages = messages_of(events, [], Audience())
    assert [message.to_json() for message in messages] == [
        {
            "id": "user-e-1",
            "role": "user",
            "metadata": metadata,
            "parts": [{"type": "text", "text": "hi"}],
        },
        {
            "id": "msg-e-1",
            "role": "assistant",
            "metadata": metadata,
            "parts": [{"type": "step-start"}, {"type": "text", "text": "Hello", "state": "done"}],
        },
    ]


def test_files_of_the_user_are_shown_again() -> None:
    blobs = [
        types.Blob(data=b"png", mime_type="image/png", display_name="a.png"),
        types.Blob(data=b"?"),
        types.Blob(mime_type="image/png"),
    ]
    parts = [types.Part(inline_data=blob) for blob in blobs]
    (message,) = messages_of([said(*parts)], [], Audience())
    expected: list[dict[str, JsonValue]] = [
        {
            "type": "file",
            "mediaType": "image/png",
            "url": "data:image/png;base64,cG5n",
            "filename": "a.png",
        },
        {
            "type": "file",
            "mediaType": "application/octet-stream",
            "url": "data:application/octet-stream;base64,Pw==",
        },
    ]
    assert message.parts == expected


def test_user_message_without_parts_is_empty() -> None:
    turn = said()
    assert turn.content is not None
    (past,) = past_turns([turn])
    turn.content.parts = None
    assert past.said is turn.content
    assert messages_of([turn], [], Audience()) == []


def test_turn_that_nobody_began_has_no_user_message() -> None:
    messages = messages_of([event(text("Hello"))], [], Audience())
    assert [message.role for message in messages] == ["assistant"]


def test_turn_without_an_answer_has_no_assistant_message() -> None:
    messages = messages_of([said()], [], Audience())
    assert [message.role for message in messages] == ["user"]


def test_turn_that_failed_says_so_in_public_words() -> None:
    message = assistant([said(), event(error_code="ValueError", error_message="SECRET")])
    assert message.parts[-1] == {
        "type": "data-adk-error",
        "data": {"message": "This reply ended with an error."},
    }
    assert "SECRET" not in str(message)


def test_history_is_shown_in_the_readers_profile() -> None:
    message = assistant(ASKED, [held_call()], "adk")
    assert tool(message)["providerExecuted"] is True
    assert tool(message, "adk-1")["type"] == "tool-adk_request_confirmation"


def test_options_apply_to_history_too() -> None:
    options = TranslationOptions(show_transfers=True)
    events = [said(), event(call("t1", "transfer_to_agent", agent_name="a"))]
    messages = messages_of(events, [], Audience(), options)
    assert messages[-1].parts[-1]["type"] == "tool-transfer_to_agent"


def test_retold_turn_can_go_on() -> None:
    turn = PastTurn(past_turns(ASKED)[0].invocation_id, MessageId("m1"), MessageId("u1"))
    turn.events = list(ASKED)
    translator, entries = retell(turn, {})
    assert kinds(entries)[0] == "start"
    assert translator.message_id == "m1"
    assert kinds(translator.finish())[-1] == "finish"
