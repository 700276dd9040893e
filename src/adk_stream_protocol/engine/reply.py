"""One reader's view of a reply: from where in the log, and what it already has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from adk_stream_protocol.identifiers import ApprovalId, ChatId, ReplyId
from adk_stream_protocol.ports import Batch, Log
from adk_stream_protocol.wire.chunks import (
    StartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.entries import CallHeld, Entry, OwnBegins
from adk_stream_protocol.wire.values import JsonObject

__all__ = ["LoggedReply", "Reply", "ToldReply"]


_ALTERED: Final = frozenset({OwnBegins, CallHeld, ToolOutputAvailableChunk, ToolOutputErrorChunk})
"""What not every reader gets as it was written."""


class Reply:
    """Entries to send, in order, until they end."""

    chat_id: ChatId

    async def next(self) -> Batch:
        """Return the entries that are ready, waiting for at least one or the end.

        Canceling this is safe: nothing is lost, the next call returns the same entries.
        """
        raise NotImplementedError

    def delivered(self) -> None:
        """Note that a client was sent all of it.

        Transports call this before they tell the client that this was the end: what it asks then
        may depend on it.
        """


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
    known: frozenset[str] = frozenset()
    """Calls whose output this reader itself brought; it is not sent back."""
    cards: Mapping[ApprovalId, JsonObject] = field(default_factory=dict)
    """How calls that wait stand now, where that is newer than what was written."""
    on_delivered: Callable[[], None] | None = None
    """Called once a client was sent all of the reply; None: nobody asks."""
    _cursor: int = 0
    """How many entries of the log were read."""
    _is_whole: bool = False
    """True once the end was read; a log that is gone has none."""

    async def next(self) -> Batch:
        while True:
            batch = await self.log.read(self.reply_id, self._cursor)
            if batch is None:
                return Batch((), ended=True)
            if self.begun and self._cursor == 0:
                self.own_only = self.own_only or any(map(self._is_begun, batch.entries))
            self._cursor += len(batch.entries)
            self._is_whole = batch.ended
            if not self.own_only and _ALTERED.isdisjoint(map(type, batch.entries)):
                return batch
            entries = self._own(batch.entries)
            if entries or batch.ended:
                return Batch(entries, batch.ended)

    def delivered(self) -> None:
        if self._is_whole and self.on_delivered is not None:
            self.on_delivered()

    def _own(self, entries: Sequence[Entry]) -> list[Entry]:
        own: list[Entry] = []
        for entry in entries:
            if isinstance(entry, OwnBegins):
                own = [] if self.own_only else own
                self.own_only = False
            elif not self._has(entry):
                own.append(self._renewed(entry))
        return [] if self.own_only else own

    def _renewed(self, entry: Entry) -> Entry:
        if isinstance(entry, CallHeld) and entry.approval_id in self.cards:
            return dataclasses.replace(entry, card=self.cards[ApprovalId(entry.approval_id)])
        return entry

    def _is_begun(self, entry: Entry) -> bool:
        return isinstance(entry, StartChunk) and entry.message_id in self.begun

    def _has(self, entry: Entry) -> bool:
        if isinstance(entry, ToolOutputAvailableChunk | ToolOutputErrorChunk):
            return entry.tool_call_id in self.known
        return False


@dataclass(slots=True)
class ToldReply(Reply):
    """A reply that needs no run: it says how things stand."""

    chat_id: ChatId
    entries: Sequence[Entry] = field(default_factory=tuple)

    async def next(self) -> Batch:
        entries, self.entries = self.entries, ()
        return Batch(entries, ended=True)
