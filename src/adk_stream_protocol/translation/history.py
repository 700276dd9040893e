"""A stored ADK session as the messages of a chat.

The same translator that streams a reply reads the session's events back, so a reloaded page shows
what was streamed. Ids of messages come from the stamp that the engine leaves in each event's
custom metadata; sessions made elsewhere get ids derived from ADK's.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import InvocationId, MessageId, ReplyId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.cards import call_answered, card
from adk_stream_protocol.translation.events import EventTranslator, TranslationOptions
from adk_stream_protocol.translation.metadata import created_metadata
from adk_stream_protocol.translation.resuming import Resumption, with_outcomes
from adk_stream_protocol.wire.assembler import assemble
from adk_stream_protocol.wire.chunks import ErrorChunk, SteeringMessageChunk, fit
from adk_stream_protocol.wire.data_parts import ErrorData, data_chunk
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry, OwnBegins
from adk_stream_protocol.wire.messages import Part, UIMessage
from adk_stream_protocol.wire.profiles import Audience
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, as_text, jsonable

__all__ = [
    "PastTurn",
    "lane_of",
    "messages_of",
    "past_turns",
    "reply_of",
    "retell",
    "stamp",
    "steering_in",
    "steering_of",
    "steering_stamp",
    "unanswered",
    "user_message",
    "with_card",
    "with_message_so_far",
    "without_rewound",
]

_STAMP: Final = "adk_stream"


def stamp(
    *,
    user_message: MessageId | None,
    message: MessageId,
    reply: ReplyId | None = None,
    mode: str = "",
    created_at: int | None = None,
) -> dict[str, object]:
    """Return the custom metadata that ties a run's events to the chat's messages and replies."""
    ids: dict[str, str | int] = {"message": message}
    if mode:
        ids["mode"] = mode
    if user_message:
        ids["user"] = user_message
    if reply:
        ids["reply"] = reply
    if created_at is not None:
        ids["createdAt"] = created_at
    return {_STAMP: ids}


def steering_stamp(message: MessageId, reply: ReplyId) -> dict[str, object]:
    """Return the custom metadata of a message that the user sent into a running turn."""
    return {_STAMP: {"steering": message, "reply": reply}}


def steering_of(event: Event) -> SteeringMessageChunk | None:
    """Return the message that an event steered its turn with; None: it did not."""
    message_id = as_text(_ids_of(event).get("steering"))
    if not message_id or event.content is None:
        return None
    shown = user_message(message_id, event.content)
    return SteeringMessageChunk(message_id, cast("JsonValue", shown.parts))


def steering_in(events: Iterable[Event]) -> frozenset[str]:
    """Return the ids of the messages that steered turns."""
    return frozenset(found.id for event in events if (found := steering_of(event)) is not None)


def reply_of(event: Event) -> ReplyId | None:
    """Return the reply whose run left an event, or None if it was made elsewhere."""
    return ReplyId(as_text(_ids_of(event).get("reply"))) or None


def _ids_of(event: Event) -> JsonObject:
    return as_object(jsonable((event.custom_metadata or {}).get(_STAMP)))


def lane_of(event: Event) -> str:
    """Return which agent of an invocation an event is of."""
    return f"{event.author}@{event.branch or ''}"


@dataclass(slots=True)
class PastTurn:
    """The events of one invocation: what the user said and all that answered it."""

    invocation_id: InvocationId
    message_id: MessageId
    user_message_id: MessageId
    said: types.Content | None = None
    """None: the turn was not started by a message."""
    live: bool = False
    """A live run made it."""
    created_at: int | None = None
    """When it began, in milliseconds since the epoch; None: with its first event."""
    events: list[Event] = field(default_factory=list)

    @property
    def began_at(self) -> int | None:
        """When it began, in milliseconds since the epoch; None: nothing is stored of it."""
        if self.created_at is None and self.events:
            return int(self.events[0].timestamp * 1000)
        return self.created_at

    def lane_of(self, request_id: str) -> str:
        """Return which agent made a request of ADK's."""
        for event in self.events:
            if any(call.id == request_id for call in event.get_function_calls()):
                return lane_of(event)
        return ""


def without_rewound(events: Sequence[Event]) -> list[Event]:
    """Return the events that still count: a rewind hides its target and all since."""
    kept: list[Event] = []
    for event in events:
        target = event.actions.rewind_before_invocation_id
        if not target:
            kept.append(event)
            continue
        for index, earlier in enumerate(kept):
            if earlier.invocation_id == target:
                del kept[index:]
                break
    return kept


def past_turns(events: Sequence[Event]) -> list[PastTurn]:
    """Return the turns of a session, oldest first, rewound ones left out."""
    turns: dict[str, PastTurn] = {}
    for event in without_rewound(events):
        if not event.invocation_id:
            continue
        turn = turns.get(event.invocation_id)
        if turn is None and not _tells(event) and _is_live(event):
            # Live runs also store what belongs to no turn: how much one cost that has ended.
            continue
        if turn is None:
            turn = turns[event.invocation_id] = _turn(event)
        turn.events.append(event)
        turn.created_at = turn.created_at or _created_at(event)
        said = _speech(event)
        if turn.said is None:
            turn.said = said
        elif said is not None and event.input_transcription is not None:
            # The user went on speaking.
            parts = [*(turn.said.parts or []), *(said.parts or [])]
            turn.said = types.Content(role="user", parts=parts)
    return list(turns.values())


def _is_live(event: Event) -> bool:
    return _ids_of(event).get("mode") == "live"


def _tells(event: Event) -> bool:
    """Whether an event says something."""
    transcribed = event.input_transcription or event.output_transcription
    return bool(event.content or event.error_code or event.output is not None or transcribed)


def _turn(event: Event) -> PastTurn:
    ids = _ids_of(event)
    return PastTurn(
        invocation_id=InvocationId(event.invocation_id),
        message_id=MessageId(as_text(ids.get("message")) or f"msg-{event.invocation_id}"),
        user_message_id=MessageId(as_text(ids.get("user")) or f"user-{event.invocation_id}"),
        live=_is_live(event),
    )


def _created_at(event: Event) -> int | None:
    """Return when the turn of an event began, if the event says so."""
    created_at = _ids_of(event).get("createdAt")
    return created_at if isinstance(created_at, int) else None


def _speech(event: Event) -> types.Content | None:
    """Return what the user said in an event, typed or aloud; None: nothing."""
    if event.author != "user" or _ids_of(event).get("steering"):
        return None
    heard = event.input_transcription
    if heard is not None and heard.text and not event.partial:
        return types.Content(role="user", parts=[types.Part(text=heard.text)])
    parts = (event.content.parts if event.content else None) or []
    return event.content if any(part.function_response is None for part in parts) else None


def retell(
    turn: PastTurn,
    calls: Mapping[str, HeldCall],
    options: TranslationOptions | None = None,
    *,
    own: ReplyId | None = None,
) -> tuple[EventTranslator, list[Entry]]:
    """Tell a turn again, up to where it stands; return the translator that can go on from there.

    Args:
        turn: the turn.
        calls: the ledger's rows of the chat, by ADK's request id.
        options: what a client may see.
        own: the reply whose part of the turn is told as the new reply's own.
    """
    translator = EventTranslator(
        turn.message_id, options or TranslationOptions(), created_at=turn.began_at
    )
    told: list[Entry] = []
    if own is None or reply_of(turn.events[0]) != own:
        told += translator.begin()
    asked: dict[str, CallHeld] = {}
    # A workflow asks under the same ids in every turn.
    rows = {key: call for key, call in calls.items() if call.invocation_id == turn.invocation_id}
    _note_decided(translator, rows)
    for event in turn.events:
        if own is not None and reply_of(event) == own:
            told += _begin_own(translator, told)
            own = None
        for entry in _tell(event, translator, asked, rows):
            told.append(with_card(entry, rows))
            if isinstance(entry, CallHeld):
                asked[entry.request_id] = entry
    for request_id in asked:
        if request_id in rows:
            told += _undelivered(rows[request_id], translator)
    return translator, told


def _note_decided(translator: EventTranslator, rows: Mapping[str, HeldCall]) -> None:
    """Let the translator know what a policy decided: the session has no request for it."""
    for call in rows.values():
        if call.automatic:
            translator.decided(call_answered(call))


def _begin_own(translator: EventTranslator, told: Sequence[Entry]) -> Iterator[Entry]:
    if told:
        yield from translator.close()
    yield OwnBegins()
    yield from translator.begin()


def _undelivered(call: HeldCall, translator: EventTranslator) -> Iterator[Entry]:
    """Yield an answer that ADK has not got yet, because it waits for others."""
    if call.state is CallState.PENDING or (call.decided_at is None and call.done_at is None):
        return
    yield from translator.answer(call_answered(call))
    if call.kind is CallKind.BROWSER and call.done_at is not None:
        yield from translator.give(call.call_id, call.result, call.error)
    elif call.approved and call.kind in {CallKind.TOOL, CallKind.BROWSER}:
        translator.wait_on(call.call_id)


def _tell(
    event: Event,
    translator: EventTranslator,
    asked: dict[str, CallHeld],
    calls: Mapping[str, HeldCall],
) -> Iterator[Entry]:
    if event.author != "user":
        yield from translator.feed(event)
        return
    steering = steering_of(event)
    if steering is not None:
        yield from translator.steer(steering)
        return
    responses = event.get_function_responses()
    if any(response.id in asked for response in responses):
        # The answers began a reply of their own.
        yield from translator.close()
    for response in responses:
        held = asked.pop(response.id or "", None)
        if held is not None:
            yield from translator.answer(_recorded(held, response, calls))
        else:
            yield from translator.respond(response)


def _recorded(
    held: CallHeld, response: types.FunctionResponse, calls: Mapping[str, HeldCall]
) -> CallAnswered:
    """Return the answer as the ledger recorded it, or else as the session did."""
    call = calls.get(held.request_id)
    if call is not None:
        return call_answered(call)
    told = as_object(jsonable(response.response or {}))
    refused = held.approval and told.get("confirmed") is not True
    output, error = _reply(told) if held.kind == "input" else (None, None)
    return CallAnswered(
        approval_id=held.approval_id,
        call_id=held.call_id,
        outcome="denied" if refused else "approved",
        approval=held.approval,
        kind=held.kind,
        output=output,
        error=error,
        card={"status": "denied" if refused else "approved"},
    )


def _reply(told: JsonObject) -> tuple[JsonValue, str | None]:
    """Return what a person replied, without the wrapping in which ADK takes it."""
    if set(told) == {"error"}:
        return None, as_text(told["error"])
    return (told["result"] if set(told) == {"result"} else told), None


def unanswered(told: Sequence[Entry]) -> list[CallHeld]:
    """Return the calls that were held and have no answer in what was told."""
    answered = {entry.approval_id for entry in told if isinstance(entry, CallAnswered)}
    held = [entry for entry in told if isinstance(entry, CallHeld)]
    return [entry for entry in held if entry.approval_id not in answered]


def with_card(entry: Entry, calls: Mapping[str, HeldCall]) -> Entry:
    """Return the entry with what the ledger knows of a held call."""
    if isinstance(entry, CallHeld) and entry.request_id in calls:
        call = calls[entry.request_id]
        return dataclasses.replace(
            entry,
            card=card(call),
            hint=call.hint or entry.hint,
            # As the tool's rule said, whatever the session's request says.
            approval=call.approval,
            kind=call.kind.value,
        )
    return entry


def messages_of(
    events: Sequence[Event],
    calls: Iterable[HeldCall],
    audience: Audience,
    options: TranslationOptions | None = None,
) -> list[UIMessage]:
    """Return a session's messages, ready for `useChat({messages})`, pending approvals included."""
    rows = list(calls)
    reader = _reader(audience)
    messages: list[UIMessage] = []
    for turn in past_turns(events):
        if turn.said is not None:
            messages.append(user_message(turn.user_message_id, turn.said, created_at=turn.began_at))
        own = {row.request_id: row for row in rows if row.invocation_id == turn.invocation_id}
        translator, entries = retell(turn, own, options)
        # Unlike an approval, a message in the middle of another is no part that v6 knows.
        entries = [_fit_steering(entry, audience) for entry in entries]
        if translator.failed:
            entries += translator.show(data_chunk(ErrorData("This reply ended with an error.")))
        entries += translator.finish()
        message = assemble(reader.render(with_outcomes(entries)))
        if message.parts:
            messages.append(message)
    return messages


def with_message_so_far(
    messages: Sequence[UIMessage],
    entries: Sequence[Entry],
    calls: Iterable[HeldCall],
    audience: Audience,
) -> list[UIMessage]:
    """Return a session's messages with that of a reply which runs, as far as it has come.

    The session holds no more of it than the responses that the model has completed.
    """
    renewed = Resumption.of(calls).renewed(entries)
    # The reply is about to end: that it broke is told by whoever reads it.
    told = [
        _fit_steering(entry, audience) for entry in renewed if not isinstance(entry, ErrorChunk)
    ]
    message = assemble(_reader(audience).render(with_outcomes(told)))
    if not message.parts:
        return list(messages)
    if any(known.id == message.id for known in messages):
        return [message if known.id == message.id else known for known in messages]
    return [*messages, message]


def _fit_steering(entry: Entry, audience: Audience) -> Entry:
    if isinstance(entry, SteeringMessageChunk):
        return fit(entry, audience.sdk) or entry
    return entry


def _reader(audience: Audience) -> Audience:
    # A stored message is read by no chunk validator, so it may tell what only v7 streams can: that
    # an approval was given. And no client runs what it finds there.
    return dataclasses.replace(audience, sdk=7, runs_after_approval=lambda _name: False)


def user_message(
    message_id: str, content: types.Content, *, created_at: int | None = None
) -> UIMessage:
    """Return what a user said as a client shows it."""
    parts = [shown for part in content.parts or [] for shown in _user_part(part)]
    return UIMessage(message_id, "user", parts, metadata=created_metadata(created_at))


def _user_part(part: types.Part) -> Iterator[Part]:
    if part.text:
        yield {"type": "text", "text": part.text}
    blob = part.inline_data
    if blob is not None and blob.data is not None:
        kind = blob.mime_type or "application/octet-stream"
        encoded = base64.b64encode(blob.data).decode("ascii")
        shown: Part = {"type": "file", "mediaType": kind, "url": f"data:{kind};base64,{encoded}"}
        if blob.display_name:
            shown["filename"] = blob.display_name
        yield shown
