"""What an interrupted turn left to do, read from the session and the ledger.

Pure: nothing is changed here. A turn can be cut off between any two of ADK's events; what is
stored tells how far it came. Nothing that may have had an effect is ever done again from here: a
tool runs only under the gate's claim, and the model is told what is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import CallId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.cards import call_answered
from adk_stream_protocol.translation.held import is_request
from adk_stream_protocol.translation.history import PastTurn, steering_of
from adk_stream_protocol.translation.live_turns import LiveTurnEnd
from adk_stream_protocol.wire.profiles import outcome_text

__all__ = ["Aftermath", "aftermath_of"]

_NOT_KNOWN: Final = (
    "The server was interrupted while this ran. It is not known whether it took effect."
)
_NOT_RUN: Final = "The server was interrupted before this ran. The call was not run."
_NOT_ASKED: Final = "The server was interrupted before anyone could be asked. The call was not run."


@dataclass(frozen=True, slots=True)
class Aftermath:
    """How a turn goes on: at most one of these is so; none: it had come to its end, or waits."""

    rerun: bool = False
    """Only what the user said is stored: the model is asked anew."""
    deliver: tuple[HeldCall, ...] = ()
    """Answers that ADK must get, again if it had them: it never came to act on them."""
    respond: tuple[types.FunctionResponse, ...] = ()
    """Results that the model must get: it never answered them."""
    steer: tuple[Event, ...] = ()
    """Messages in the middle of the turn that the model must get, with the results or alone."""


@dataclass(slots=True)
class _Stored:
    """What a turn's events say, by id."""

    calls: dict[str, str] = field(default_factory=dict)
    """The names of the tools called that must have a result."""
    results: dict[str, types.FunctionResponse] = field(default_factory=dict)
    """The newest result of each call, placeholders left out."""
    placeholders: set[str] = field(default_factory=set)
    """Calls that wait, or would, if the request had been stored too."""
    answered_at: dict[str, int] = field(default_factory=dict)
    """Where each request was first answered."""
    resulted_at: dict[str, int] = field(default_factory=dict)
    """Where the newest result of each call is."""


def aftermath_of(turn: PastTurn, rows: Sequence[HeldCall]) -> Aftermath:
    """Return what is left to do of a turn.

    Args:
        turn: its events, as the session has them.
        rows: the ledger's calls of the turn; those whose process died are marked already.
    """
    stored = _stored(turn.events)
    if any(row.is_open for row in rows):
        return Aftermath()
    asked = [row for row in rows if not row.automatic]
    unused = tuple(row for row in asked if not _is_used(row, stored, turn.events))
    if any(row.state is not CallState.CANCELLED for row in unused):
        return Aftermath(deliver=unused)
    last = _last(turn.events)
    if last is None or (last.author == "user" and not last.get_function_responses()):
        return Aftermath(rerun=turn.said is not None)
    respond = tuple(_unanswered(last, stored, rows))
    if not respond:
        return Aftermath(steer=_unheard(turn) if turn.live else ())
    # ADK leaves out what stands between a call and the result that it is given.
    return Aftermath(respond=respond, steer=tuple(_steering(_since(turn.events)).values()))


def _since(events: Sequence[Event]) -> Sequence[Event]:
    """Return what came after the model last said something."""
    for at, event in reversed(list(enumerate(events))):
        if event.content is not None and event.author != "user" and not _results(event):
            return events[at:]
    return events


def _results(event: Event) -> bool:
    return bool(event.get_function_responses())


def _steering(events: Sequence[Event]) -> dict[str, Event]:
    """Return the events that steered a turn, by message."""
    steering = ((steering_of(event), event) for event in events)
    return {message.id: event for message, event in steering if message is not None}


def _unheard(turn: PastTurn) -> tuple[Event, ...]:
    """Return what a live model heard and did not come to answer."""
    end, known = LiveTurnEnd(), set[str]()
    for event in turn.events:
        message = steering_of(event)
        if message is None:
            if end.feed(event, blocks=False):
                return ()
        elif message.id in known:
            # It was told again, after the answer before it: it is the last that is awaited.
            end = LiveTurnEnd(is_doubtful=True)
        else:
            known.add(message.id)
            end.expect_answer()
    steering = tuple(_steering(turn.events).values())
    return steering[-end.awaited :] if end.awaited else ()


def _stored(events: Sequence[Event]) -> _Stored:
    stored = _Stored()
    for index, event in enumerate(events):
        for call in event.get_function_calls():
            # A long-running call owes no result: the turn ends without it.
            if not is_request(call.name) and call.id not in (event.long_running_tool_ids or ()):
                stored.calls[call.id or ""] = call.name or ""
        for response in event.get_function_responses():
            _note(stored, event, response, index)
    return stored


def _note(stored: _Stored, event: Event, response: types.FunctionResponse, index: int) -> None:
    name = response.id or ""
    if event.author == "user" and name not in stored.calls:
        stored.answered_at.setdefault(name, index)
    elif name in event.actions.requested_tool_confirmations:
        stored.placeholders.add(name)
    else:
        stored.results[name] = response
        stored.resulted_at[name] = index


def _is_used(row: HeldCall, stored: _Stored, events: Sequence[Event]) -> bool:
    """Whether ADK has acted on an answer."""
    answered = stored.answered_at.get(row.request_id)
    if answered is None:
        return False
    if row.kind in {CallKind.TOOL, CallKind.BROWSER} and row.call_id in stored.calls:
        return stored.resulted_at.get(row.call_id, -1) > answered
    # A question, a sign-in, a workflow's tool: what follows shows that ADK went on.
    return any(event.author != "user" for event in events[answered + 1 :])


def _recorded(row: HeldCall) -> dict[str, object]:
    """Return how a call ended that a policy decided: ADK cannot be made to run it again."""
    match row.state:
        case CallState.DONE:
            return dict(row.result) if isinstance(row.result, dict) else {"result": row.result}
        case CallState.FAILED:
            return {"error": row.error or _NOT_KNOWN}
        case CallState.APPROVED:
            return {"error": _NOT_RUN}
        case CallState.DENIED | CallState.EXPIRED | CallState.CANCELLED:
            return {"error": outcome_text(call_answered(row))}
        case _:
            return {"error": _NOT_KNOWN}


def _last(events: Sequence[Event]) -> Event | None:
    """Return the newest event that says something."""
    said = [event for event in events if event.content is not None and event.content.parts]
    # What steered the turn is in its history: the model gets it with whatever it is given next.
    said = [event for event in said if steering_of(event) is None]
    return said[-1] if said else None


def _unanswered(
    last: Event, stored: _Stored, rows: Sequence[HeldCall]
) -> Iterator[types.FunctionResponse]:
    """Yield the results that the model has not seen, if its turn is next."""
    held = {row.call_id for row in rows if not row.automatic}
    alone = {row.call_id: row for row in rows if row.automatic}
    open_calls = [name for name in stored.calls if name not in stored.results]
    dangling = [name for name in open_calls if name not in held]
    for call_id in dangling:
        why = _NOT_ASKED if call_id in stored.placeholders else _NOT_KNOWN
        told = _recorded(alone[CallId(call_id)]) if call_id in alone else {"error": why}
        yield types.FunctionResponse(id=call_id, name=stored.calls[call_id], response=told)
    if dangling or last.actions.skip_summarization:
        return
    for response in last.get_function_responses():
        # Given again: ADK asks the model only when it is given something.
        if response.id in stored.results:
            yield types.FunctionResponse(
                id=response.id, name=response.name, response=response.response
            )
