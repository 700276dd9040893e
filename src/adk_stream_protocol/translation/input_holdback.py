"""When a tool call is shown as complete: not before it is known whether a client must answer it.

A client may answer a call as soon as it sees `tool-input-available`. Whether the call waits for the
client is known a moment after the model made it, so until then it is held back. Pure: entries in,
the entries that may be written out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeGuard

from adk_stream_protocol.wire.chunks import (
    AbortChunk,
    ErrorChunk,
    FinishChunk,
    FinishStepChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry

__all__ = ["InputHoldback"]

_INPUTS: Final = frozenset({ToolInputStartChunk, ToolInputDeltaChunk, ToolInputAvailableChunk})
_ABOUT_CALLS: Final = (
    ToolInputStartChunk,
    ToolInputDeltaChunk,
    ToolInputAvailableChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
_ENDS: Final = frozenset({FinishStepChunk, FinishChunk, ErrorChunk, AbortChunk})
"""After these a client would take the input of an earlier call for another call's."""


@dataclass(slots=True)
class InputHoldback:
    """Holds back `tool-input-available` of each call until the call waits in the ledger, or runs.

    Entries keep their order as long as nothing else has to be written. Only when another call runs
    meanwhile, or something else is said, does the chunk alone stay behind: what was said before it,
    the call's `tool-input-start` included, is written then.
    """

    _known: set[str] = field(default_factory=set)
    """The calls that wait for a client, run on the server, or have ended."""
    _waiting: list[Entry] = field(default_factory=list)
    """What begins with a call that is not known; empty: nothing waits."""
    _inputs: dict[str, ToolInputAvailableChunk] = field(default_factory=dict)
    """The chunks that stayed behind, by call."""

    def add(self, entries: Sequence[Entry], *, running: Iterable[str] = ()) -> Sequence[Entry]:
        """Return what may be written now that these entries follow; a call among them may wait.

        Args:
            entries: what follows.
            running: the calls that run on the server by now.
        """
        holds_nothing = not self._waiting and not self._inputs
        if not entries or (holds_nothing and not any(map(_is_input, entries))):
            return entries
        self._known.update(running, _named(entries))
        before, self._waiting = self._waiting, []
        unknown = self._unknown((*before, *entries))
        if not before and unknown and self._may_wait(entries):
            first = next(index for index, entry in enumerate(entries) if _call(entry) in unknown)
            self._waiting = list(entries[first:])
            entries = entries[:first]
        return list(self._without_unknown((*before, *entries)))

    def runs(self, running: Iterable[str]) -> Sequence[Entry]:
        """Return what may be written now that calls run on the server."""
        if not self._waiting and not self._inputs:
            return ()
        self._known.update(running)
        names = [name for name in self._inputs if name in self._known]
        ready: list[Entry] = [self._inputs.pop(name) for name in names]
        if self._known.isdisjoint(map(_call, self._waiting)):
            return ready
        before, self._waiting = self._waiting, []
        return [*ready, *self._without_unknown(before)]

    def _unknown(self, entries: Iterable[Entry]) -> set[str]:
        """Return the calls among these that are shown as complete and are not known."""
        shown = {entry.tool_call_id for entry in entries if _is_input(entry)}
        return shown - self._known

    def _may_wait(self, entries: Sequence[Entry]) -> bool:
        """Whether nobody misses these entries: none is about a call that is known, or an end."""
        calls = {_call(entry) for entry in entries} - {""}
        return calls.isdisjoint(self._known) and _ENDS.isdisjoint(map(type, entries))

    def _without_unknown(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            if type(entry) in _ENDS:
                yield from self._inputs.values()
                self._inputs.clear()
            elif _is_input(entry) and entry.tool_call_id not in self._known:
                self._inputs[entry.tool_call_id] = entry
                continue
            elif (about := _call(entry)) in self._inputs and about in self._known:
                yield self._inputs.pop(about)
            yield entry


def _is_input(entry: Entry) -> TypeGuard[ToolInputAvailableChunk]:
    """Whether an entry shows a call of the agent's as complete; code that a model ran is none."""
    return type(entry) is ToolInputAvailableChunk and not entry.provider_executed


def _call(entry: Entry) -> str:
    """Return the call that an entry is about; empty: none."""
    if isinstance(entry, CallHeld | CallAnswered):
        return entry.call_id
    return entry.tool_call_id if isinstance(entry, _ABOUT_CALLS) else ""


def _named(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the calls of which these entries tell what becomes of them."""
    for entry in entries:
        if type(entry) not in _INPUTS and (call_id := _call(entry)):
            yield call_id
