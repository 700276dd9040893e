"""The cards of approved calls, kept up to date while a reply shows what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from adk_stream_protocol.identifiers import ApprovalId
from adk_stream_protocol.ports import Calls
from adk_stream_protocol.translation.cards import card
from adk_stream_protocol.wire.chunks import ToolOutputAvailableChunk, ToolOutputErrorChunk
from adk_stream_protocol.wire.entries import CallAnswered, CallFinished, Entry
from adk_stream_protocol.wire.values import JsonObject

__all__ = ["ToldCards"]


@dataclass(slots=True)
class ToldCards:
    """What a reply showed of the calls that were approved, until they have their results."""

    calls: Calls
    _shown: dict[str, tuple[ApprovalId, JsonObject]] = field(default_factory=dict)
    """The approval and the card of each call without a result, by call id."""

    def note(self, entries: Sequence[Entry]) -> None:
        """Remember the calls that are shown as approved."""
        for entry in entries:
            if type(entry) is CallAnswered and entry.approval and entry.outcome == "approved":
                self._shown[entry.call_id] = ApprovalId(entry.approval_id), entry.card

    async def renewed(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the entries, each result of an approved call with the card that it then has."""
        self.note(entries)
        if not self._shown:
            return entries
        told: list[Entry] = []
        for entry in entries:
            told.append(entry)
            if isinstance(entry, ToolOutputAvailableChunk | ToolOutputErrorChunk):
                told += await self._finished(entry.tool_call_id)
        return told

    async def _finished(self, call_id: str) -> list[Entry]:
        shown = self._shown.pop(call_id, None)
        call = None if shown is None else await self.calls.get(shown[0])
        if shown is None or call is None or card(call) == shown[1]:
            return []
        return [CallFinished(call.approval_id, card(call))]

    async def give_up(self) -> None:
        """Cancel the calls that were approved and have not started: they never will."""
        for approval_id, _ in self._shown.values():
            await self.calls.abort(approval_id)
