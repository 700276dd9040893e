"""A reply for a reader that begins anew: as it stands now, and not as it came about.

A client that resumes empties its message and folds all chunks again. Told as it came about, it
would run the browser's tools a second time and ask the person for what is decided. So each call is
told with what is known of it by now, from the entries themselves and from the ledger.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from adk_stream_protocol.identifiers import ApprovalId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.cards import call_answered, card, input_released
from adk_stream_protocol.wire.chunks import (
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.entries import (
    CallAnswered,
    CallFinished,
    CallHeld,
    Entry,
    Outcome,
    Progress,
    Resumed,
)

__all__ = ["Resumption", "with_outcomes"]

_Carded = TypeVar("_Carded", bound=CallHeld | CallAnswered | CallFinished)


@dataclass(frozen=True, slots=True)
class Resumption:
    """What the ledger knows of a chat's calls when a reader resumes."""

    calls: Mapping[ApprovalId, HeldCall]

    @classmethod
    def of(cls, calls: Iterable[HeldCall]) -> Resumption:
        """Return what these rows tell."""
        return cls({call.approval_id: call for call in calls})

    def retold(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return what a reply holds so far, for a reader that begins anew.

        A call that has its result is told so that nothing is run again. Answers that wait for
        others, and so are in no reply yet, are added.
        """
        standing = _Standing.of(entries, self.calls)
        return [told for entry in entries for told in standing.tell(entry)]

    def renewed(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries with the newest card of each call."""
        return [
            _with_card(entry, self.calls)
            if isinstance(entry, CallHeld | CallAnswered | CallFinished)
            else entry
            for entry in entries
        ]


@dataclass(frozen=True, slots=True)
class _Standing:
    """How the calls of a reply stand."""

    calls: Mapping[ApprovalId, HeldCall]
    answers: Mapping[str, CallAnswered]
    """The answers to what was asked, by approval id."""
    added: Mapping[str, Sequence[Entry]]
    """What of these no reply has told yet."""
    over: frozenset[str]
    """The calls that have their result, by call id."""
    held_back: frozenset[str]
    """The calls that the browser may run only once they are approved."""

    @classmethod
    def of(cls, entries: Sequence[Entry], calls: Mapping[ApprovalId, HeldCall]) -> _Standing:
        told = {entry.approval_id: entry for entry in entries if isinstance(entry, CallAnswered)}
        asked = [entry for entry in entries if isinstance(entry, CallHeld)]
        rows = [calls[key] for each in asked if (key := ApprovalId(each.approval_id)) in calls]
        added: dict[str, list[Entry]] = {
            row.approval_id: list(_recorded(row)) for row in rows if row.approval_id not in told
        }
        more = [entry for answer in added.values() for entry in answer]
        answers = {entry.approval_id: entry for entry in more if isinstance(entry, CallAnswered)}
        over = {call_id for entry in (*entries, *more) for call_id in _ended(entry)}
        # Its result may be on its way into the reply.
        over |= {row.call_id for row in rows if row.done_at is not None}
        browser = {each.call_id for each in asked if each.kind == "browser" and each.approval}
        return cls(calls, {**told, **answers}, added, frozenset(over), frozenset(browser - over))

    def tell(self, entry: Entry) -> Iterator[Entry]:
        """Yield what a reader gets for an entry."""
        match entry:
            case ToolInputDeltaChunk() | ToolInputAvailableChunk():
                yield self._input(entry)
            case CallHeld():
                yield self._resumed(entry)
                for added in self.added.get(entry.approval_id, ()):
                    yield self._resumed(added) if isinstance(added, CallAnswered) else added
            case CallAnswered() if entry.call_id in self.over:
                yield self._resumed(entry)
            case CallAnswered() | CallFinished():
                yield _with_card(entry, self.calls)
            case _:
                yield entry

    def _input(self, entry: ToolInputDeltaChunk | ToolInputAvailableChunk) -> Entry:
        if entry.tool_call_id in self.over:
            return Resumed(entry)
        if isinstance(entry, ToolInputAvailableChunk) and entry.tool_call_id in self.held_back:
            return Resumed(entry, progress="released")
        return entry

    def _resumed(self, entry: CallHeld | CallAnswered) -> Entry:
        answered = self.answers.get(entry.approval_id)
        renewed = _with_card(entry, self.calls)
        if answered is None:
            return renewed
        return Resumed(renewed, _verdict(answered), self._progress(answered))

    def _progress(self, answered: CallAnswered) -> Progress:
        if answered.call_id in self.over:
            return "over"
        # What the browser runs does not wait for others.
        waits = answered.approval_id in self.added and answered.kind == "tool"
        return "recorded" if waits else "released"


def _verdict(answered: CallAnswered) -> Outcome:
    """Return what was decided, whatever became of the call after that."""
    return "approved" if answered.was_approved else answered.outcome


def _recorded(call: HeldCall) -> Iterator[Entry]:
    """Yield an answer as far as it is given."""
    if call.state is CallState.PENDING or (call.decided_at is None and call.done_at is None):
        return
    if call.kind is CallKind.CREDENTIAL:
        # A sign-in is no call on the wire.
        return
    yield call_answered(call)
    if call.kind is CallKind.TOOL or not call.approved:
        return
    if call.awaits_browser:
        yield input_released(call)
    elif call.error is not None:
        yield ToolOutputErrorChunk(call.call_id, call.error)
    else:
        yield ToolOutputAvailableChunk(call.call_id, call.result)


def _ended(entry: Entry) -> Iterator[str]:
    """Yield the call that an entry ends."""
    match entry:
        case ToolOutputAvailableChunk() | ToolOutputErrorChunk() | ToolOutputDeniedChunk():
            yield entry.tool_call_id
        case CallAnswered() if entry.outcome != "approved":
            yield entry.call_id
        case _:
            return


def _with_card(entry: _Carded, calls: Mapping[ApprovalId, HeldCall]) -> _Carded:
    call = calls.get(ApprovalId(entry.approval_id))
    return entry if call is None else dataclasses.replace(entry, card=card(call))


def with_outcomes(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of a message that is stored: what nobody decided was never asked for.

    The AI SDK's `validateUIMessages` refuses a part that has a result and an approval without a
    verdict.
    """
    answers = {
        entry.approval_id: _verdict(entry) for entry in entries if isinstance(entry, CallAnswered)
    }
    return [
        Resumed(entry, answers[entry.approval_id])
        if isinstance(entry, CallHeld) and entry.approval and entry.approval_id in answers
        else entry
        for entry in entries
    ]
