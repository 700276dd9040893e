"""Recorded ADK runs, told again the way the server tells them.

A dump holds what ADK yielded, what it stored, and notes. `read_dump` finds the runs in it and the
answers that each run was started with; `replay` makes of them the replies that clients would have
read, with the real translator and a real ledger whose clock stands still.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.engine.reply import LoggedReply, Shown
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.policy import Policy
from adk_stream_protocol.identifiers import ChatId, InvocationId, MessageId, ReplyId, UserId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.stores.memory import MemoryCalls, MemoryLog
from adk_stream_protocol.translation.cards import call_answered, card
from adk_stream_protocol.translation.events import EventTranslator
from adk_stream_protocol.translation.history import PastTurn, retell
from adk_stream_protocol.translation.instructions import Decision, Output
from adk_stream_protocol.wire.entries import CallHeld, Entry, OwnBegins
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object

__all__ = ["DUMPS", "Dump", "Reply", "Run", "Told", "read_dump", "replay"]

DUMPS = Path(__file__).parent / "adk-events"

_OWNER = UserId("ann")
_CHAT = ChatId("chat")
_NOON = 1_800_000_000.0
"""The ledger's clock stands still, so that cards are the same in every run."""
_PUBLIC = "The agent could not finish this reply (error 0123456789ab). Please try again."


@dataclass(slots=True)
class Run:
    """One execution of the agent: what it was told and what it yielded."""

    invocation_id: str
    answers: list[types.FunctionResponse] = field(default_factory=list)
    """What the client answered to start it; empty if a message did."""
    events: list[Event] = field(default_factory=list)
    raised: bool = False
    """It ended with an exception."""


@dataclass(frozen=True, slots=True)
class Dump:
    """One recording."""

    name: str
    runs: list[Run]
    session: list[Event]
    """What ADK stored, in order; made up of the runs where the recording does not say."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a message, as its log holds it."""

    whole: list[Entry]
    """What a client reads that resumes it: the message so far, told again, and the reply's own."""
    own: list[Entry]
    """What the client reads that asked for it."""
    answered: list[HeldCall]
    """The calls whose answers that client brought."""


@dataclass(frozen=True, slots=True)
class Told:
    """One assistant message, over all its replies."""

    message_id: str
    replies: list[Reply] = field(default_factory=list)


# Dumps


@dataclass(slots=True)
class _Line:
    kind: str
    event: Event | None = None
    note: JsonObject = field(default_factory=dict)


def read_dump(path: Path) -> Dump:
    """Return the recording in a file."""
    lines = [_line(text) for text in path.read_text(encoding="utf-8").splitlines()]
    session = [line.event for line in lines if line.kind == "session" and line.event]
    if not any(line.kind == "yield" for line in lines):
        # Recorded from a database only: what was stored is all there is to tell.
        lines = [_Line("yield", event) for event in session if event.author != "user"]
    runs = list(_runs(lines, _answers(session)))
    if not session:
        _answer_by_notes(runs, lines)
    # Some recordings end with runs that came after the session was looked at.
    known = {event.invocation_id for event in session}
    later = [run for run in runs if run.invocation_id not in known]
    return Dump(path.stem, runs, [*session, *(event for run in later for event in _stored(run))])


def _line(text: str) -> _Line:
    read = json.loads(text)
    kind = read.pop("_")
    if kind == "note":
        return _Line(kind, note=read)
    return _Line(kind, Event.model_validate_json(json.dumps(read["event"])))


def _answers(session: Sequence[Event]) -> dict[str, list[types.FunctionResponse]]:
    """Return the answers that were stored right before an event, by the event's id."""
    found: dict[str, list[types.FunctionResponse]] = {}
    waiting: list[types.FunctionResponse] = []
    for event in session:
        if event.author == "user":
            waiting += event.get_function_responses()
        elif waiting:
            found[event.id], waiting = waiting, []
    return found


def _runs(
    lines: Sequence[_Line], answers: Mapping[str, list[types.FunctionResponse]]
) -> Iterator[Run]:
    run: Run | None = None
    noted = False
    for line in lines:
        if line.kind == "note":
            noted = True
            if run is not None and "raised" in line.note:
                run.raised = True
        elif line.kind == "yield" and line.event is not None:
            event = line.event
            last = run.events[-1].id if run is not None else ""
            given = answers.get(event.id, []) if event.id != last else []
            if run is None or noted or given or run.invocation_id != event.invocation_id:
                if run is not None:
                    yield run
                run = Run(event.invocation_id, answers=given)
            run.events.append(event)
            noted = False
    if run is not None:
        yield run


def _answer_by_notes(runs: Sequence[Run], lines: Sequence[_Line]) -> None:
    """Add the answers to a recording without a session: its notes count the tool's calls."""
    ran = any(line.note.get("calls") for line in lines)
    for before, run in itertools.pairwise(runs):
        asked = [call for event in before.events for call in event.get_function_calls()]
        run.answers = [
            types.FunctionResponse(id=call.id, name=call.name, response={"confirmed": ran})
            for call in asked
            if (call.name or "").startswith("adk_request_")
        ]


def _stored(run: Run) -> Iterator[Event]:
    """Yield what ADK stores of a run: the answers, and every event that is not partial."""
    if run.answers:
        yield _answer_event(run)
    yield from (event for event in run.events if not event.partial)


def _answer_event(run: Run) -> Event:
    parts = [types.Part(function_response=answer) for answer in run.answers]
    return Event(
        author="user",
        invocation_id=run.invocation_id,
        content=types.Content(role="user", parts=parts),
    )


# Replies


async def replay(dump: Dump) -> tuple[list[Told], list[HeldCall]]:
    """Return the messages of a recording, and the ledger's rows after all of it."""
    server = _Server()
    for run in dump.runs:
        await server.tell(run)
    return list(server.told.values()), list(await server.rows())


class _Server:
    """As much of a server as one recording needs."""

    def __init__(self) -> None:
        self.told: dict[str, Told] = {}
        self._stored: dict[str, list[Event]] = {}
        self._ledger = Ledger(MemoryCalls(lambda: _NOON), Policy())

    async def rows(self) -> Sequence[HeldCall]:
        return await self._ledger.calls.of_chat(_CHAT)

    async def tell(self, run: Run) -> None:
        """Produce the reply of one run, as `engine.turn` does."""
        message_id = f"msg-{run.invocation_id}"
        told = self.told.setdefault(run.invocation_id, Told(message_id))
        stored = self._stored.setdefault(run.invocation_id, [])
        answered = [row for answer in run.answers if (row := await self._answer(answer))]
        if told.replies:
            translator, entries = await self._resumed(told, stored, answered)
        else:
            translator = EventTranslator(message_id)
            entries = [OwnBegins(), *translator.begin()]
        for event in run.events:
            entries += [await self._opened(entry, run) for entry in translator.feed(event)]
        entries += _conclusion(translator, raised=run.raised)
        stored += _stored(run)
        told.replies.append(await _logged(entries, answered))

    async def _resumed(
        self, told: Told, stored: Sequence[Event], answered: Sequence[HeldCall]
    ) -> tuple[EventTranslator, list[Entry]]:
        """Begin a reply that continues its message, as `engine.preparation` does."""
        asked = {
            call.request_id: dataclasses.replace(call, state=CallState.PENDING, decided_at=None)
            for call in answered
        }
        calls = {call.request_id: call for call in await self.rows()}
        turn = PastTurn(
            InvocationId(stored[0].invocation_id),
            MessageId(told.message_id),
            MessageId("user"),
            events=list(stored),
        )
        translator, entries = retell(turn, {**calls, **asked})
        entries += translator.close()
        entries.append(OwnBegins())
        entries += translator.begin()
        for call in answered:
            entries += translator.answer(call_answered(call))
        return translator, entries

    async def _opened(self, entry: Entry, run: Run) -> Entry:
        if not isinstance(entry, CallHeld):
            return entry
        call = await self._ledger.open(
            entry,
            owner=_OWNER,
            chat_id=_CHAT,
            invocation_id=InvocationId(run.invocation_id),
        )
        return dataclasses.replace(entry, card=card(call), hint=call.hint or entry.hint)

    async def _answer(self, answer: types.FunctionResponse) -> HeldCall | None:
        """Record an answer; None for one that the server would not pass on to ADK (again)."""
        rows = {row.request_id: row for row in await self.rows()}
        row = rows.get(answer.id or "")
        if row is None or not row.is_open:
            return None
        ruling, row = await self._ledger.answer(_as_client_sends_it(row, answer), user=_OWNER)
        assert ruling == "accepted"
        return row


async def _logged(entries: Sequence[Entry], answered: list[HeldCall]) -> Reply:
    """Return the reply as two readers of its log see it."""
    log, reply_id = MemoryLog(lambda: _NOON), ReplyId("reply")
    await log.open(reply_id)
    await log.append(reply_id, entries)
    await log.end(reply_id)
    brought = frozenset(row.call_id for row in answered if not row.approval)
    asking = LoggedReply(_CHAT, log, reply_id, own_only=True, shown=Shown(brought))
    resuming = LoggedReply(_CHAT, log, reply_id)
    own, whole = await asking.next(), await resuming.next()
    return Reply(list(whole.entries), list(own.entries), answered)


def _as_client_sends_it(row: HeldCall, answer: types.FunctionResponse) -> Decision | Output:
    response = cast("Mapping[str, JsonValue]", answer.response or {})
    if row.approval:
        return Decision(row.approval_id, response["confirmed"] is True)
    if row.kind is CallKind.CREDENTIAL:
        exchanged = as_object(response.get("exchangedAuthCredential"))
        oauth2 = as_object(exchanged.get("oauth2"))
        keys = ("authResponseUri", "redirectUri")
        return Output(row.approval_id, {key: oauth2[key] for key in keys})
    return Output(row.approval_id, response["result"] if list(response) == ["result"] else response)


def _conclusion(translator: EventTranslator, *, raised: bool) -> Iterator[Entry]:
    if raised or translator.failed:
        return translator.fail(_PUBLIC)
    if translator.aborted:
        return translator.stop()
    return translator.finish()
