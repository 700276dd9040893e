from __future__ import annotations

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import MessageId, ReplyId
from adk_stream_protocol.translation.history import past_turns, stamp
from adk_stream_protocol.translation.rewinds import RewindNote, last_rewind
from translation.builders import event, text

R1, R2 = ReplyId("reply-1"), ReplyId("reply-2")
SAID = types.Content(
    role="user",
    parts=[
        types.Part(text="Look."),
        types.Part(inline_data=types.Blob(data=b"\xff\x00", mime_type="image/png")),
    ],
)


def turn(number: int, *, user_message: str | None = None) -> list[Event]:
    invocation = f"e-{number}"
    ids = stamp(
        user_message=MessageId(user_message or f"u{number}"), message=MessageId(f"a{number}")
    )
    said = event(text("hi"), author="user", invocation=invocation, custom_metadata=ids)
    return [said, event(text("Yes."), invocation=invocation, custom_metadata=ids)]


def rewind(before: str, note: RewindNote | None = None) -> Event:
    # As a database gives it back.
    made = event(
        author="user",
        invocation="e-rewind",
        actions={"rewind_before_invocation_id": before},
        custom_metadata=None if note is None else note.metadata(),
    )
    return Event.model_validate_json(made.model_dump_json())


def test_note_is_read_back_files_and_all() -> None:
    note = RewindNote(R1, MessageId("u2"), SAID, keeps=True, live=True)
    found = last_rewind([*turn(1), rewind("e-1", note)], R1)
    assert found is not None
    assert (found.note, found.said, found.is_kept) == (note, SAID, False)
    assert found.first.user_message_id == "u1"


def test_message_that_is_answered_again_is_found_in_the_turn_that_was_taken_back() -> None:
    found = last_rewind([*turn(1), *turn(2), rewind("e-2", RewindNote(R1, MessageId("u2")))], R1)
    assert found is not None
    assert found.said == found.first.said
    assert (found.first.user_message_id, found.note.live) == ("u2", False)


def test_rewind_of_another_request_or_of_none_is_not_found() -> None:
    events = [*turn(1), rewind("e-1", RewindNote(R2, MessageId("u1"), SAID))]
    assert last_rewind(events, R1) is None
    assert last_rewind([*turn(1), rewind("e-1")], R1) is None
    assert last_rewind(turn(1), R1) is None
    assert last_rewind([], None) is None


def test_rewind_whose_turn_is_gone_is_not_found() -> None:
    assert last_rewind([rewind("e-1", RewindNote(R1, MessageId("u1"), SAID))], R1) is None


def test_newest_rewind_of_a_request_counts() -> None:
    first = [*turn(1), rewind("e-1", RewindNote(R1, MessageId("u2"), SAID))]
    again = [*turn(2), rewind("e-2", RewindNote(R1, MessageId("u2")))]
    found = last_rewind([*first, *again], R1)
    assert found is not None
    assert found.first.invocation_id == "e-2"


def test_message_that_was_stored_again_is_known_to_be() -> None:
    note = RewindNote(R1, MessageId("u2"), SAID, keeps=True)
    stored = turn(3, user_message="u1")[:1]
    found = last_rewind([*turn(1), rewind("e-1", note), *stored], R1)
    assert found is not None
    assert found.is_kept


def test_rewind_is_no_turn() -> None:
    note = RewindNote(R1, MessageId("u2"), SAID)
    assert past_turns([*turn(1), rewind("e-1", note)]) == []
