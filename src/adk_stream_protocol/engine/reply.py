"""One reader's view of a reply: from where in the log, and what it already has."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adk_stream_protocol.identifiers import ApprovalId, ChatId, ReplyId
from adk_stream_protocol.ports import Batch, Log
from adk_stream_protocol.translation.resuming import Resumption
from adk_stream_protocol.wire.chunks import (
    StartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.entries import CallAnswered, Entry, OwnBegins

__all__ = ["LoggedReply", "Reply", "Shown", "ToldReply"]


_ALTERED: Final = frozenset(
    {OwnBegins, CallAnswered, ToolOutputAvailableChunk, ToolOutputErrorChunk}
)
"""What not every reader gets as it was written."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reader's own page shows of the calls that it answered."""

    outputs: frozenset[str] = frozenset()
    """The calls whose output it brought, by call id: that is not sent back."""
    verdicts: Mapping[ApprovalId, bool] = field(default_factory=dict)
    """What it decided, by approval id."""

    def seen(self, entries: Iterable[Entry]) -> list[Entry]:
        """Return the entries as this reader needs them."""
        return [self._with_verdict(entry) for entry in entries if not self._has(entry)]

    def _has(self, entry: Entry) -> bool:
        if isinstance(entry, ToolOutputAvailableChunk | ToolOutputErrorChunk):
            return entry.tool_call_id in self.outputs
        return False

    def _with_verdict(self, entry: Entry) -> Entry:
        if not isinstance(entry, CallAnswered):
            return entry
        own = self.verdicts.get(ApprovalId(entry.approval_id))
        # What it ran, it knows to be approved.
        ran = True if entry.call_id in self.outputs else None
        return dataclasses.replace(entry, own_verdict=ran if own is None else own)


class Reply:
    """Entries to send, in order, until they end."""

    chat_id: ChatId

    async def next(self) -> Batch:
        """Return the entries that are ready, waiting for at least one or the end.

        Canceling this is safe: nothing is lost, the next call returns the same entries.
        """
        raise NotImplementedError


@dataclass(slots=True)
class LoggedReply(Reply):
    """A reply that is read from the log, while it is written or later."""

    chat_id: ChatId
    log: Log
    reply_id: ReplyId
    own_only: bool = False
    """True: skip what retells the message, because the reader has it."""
    begun: frozenset[str] = frozenset()
    """Messages that the reader has the beginning of: of these only what is new is sent."""
    shown: Shown = field(default_factory=Shown)
    """What the reader answered itself."""
    resumption: Resumption | None = None
    """What is known of its calls, for a reader that begins anew, until it has read what there is;
    None: it goes on."""
    _cursor: int = 0
    """How many entries of the log were read."""

    async def next(self) -> Batch:
        while True:
            batch = await self.log.read(self.reply_id, self._cursor)
            if batch is None:
                return Batch((), ended=True)
            if self.begun and self._cursor == 0:
                self.own_only = self.own_only or any(map(self._is_begun, batch.entries))
            self._cursor += len(batch.entries)
            if self.resumption is not None:
                batch = Batch(self.resumption.retold(batch.entries), batch.ended)
                # What is written from now on is news.
                self.resumption = None
            if not self.own_only and _ALTERED.isdisjoint(map(type, batch.entries)):
                return batch
            entries = self._own(batch.entries)
            if entries or batch.ended:
                return Batch(entries, batch.ended)

    def _own(self, entries: Sequence[Entry]) -> list[Entry]:
        own: list[Entry] = []
        for entry in entries:
            if isinstance(entry, OwnBegins):
                own = [] if self.own_only else own
                self.own_only = False
            else:
                own.append(entry)
        return [] if self.own_only else self.shown.seen(own)

    def _is_begun(self, entry: Entry) -> bool:
        return isinstance(entry, StartChunk) and entry.message_id in self.begun


@dataclass(slots=True)
class ToldReply(Reply):
    """A reply that needs no run: it says how things stand."""

    chat_id: ChatId
    entries: Sequence[Entry] = field(default_factory=tuple)

    async def next(self) -> Batch:
        entries, self.entries = self.entries, ()
        return Batch(entries, ended=True)
