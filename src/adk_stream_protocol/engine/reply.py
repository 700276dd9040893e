"""One reader's view of a reply: from where in the log, and what it already has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Final

from adk_stream_protocol.engine.readers import Readers
from adk_stream_protocol.identifiers import ApprovalId, ChatId, ReplyId
from adk_stream_protocol.ports import LOST, Batch, Log, Stores, WaitingRequest, turns_topic
from adk_stream_protocol.translation.resuming import Resumption
from adk_stream_protocol.wire.chunks import (
    ErrorChunk,
    FinishChunk,
    StartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.data_parts import SteeredData, data_chunk
from adk_stream_protocol.wire.entries import CallAnswered, Entry, OwnBegins

__all__ = ["LoggedReply", "Reply", "Shown", "ToldReply", "WaitingReply"]

_LOOK: Final = 1.0
"""How often a request that waits is looked at without a hint: hints may be lost."""

_LEAVING: Final = ErrorChunk(
    "The server is stopping. Your message is kept: reload the chat in a moment to see its answer."
)
_FORGOTTEN: Final = ErrorChunk("This message was not answered: its chat was deleted.")


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
    shown: Shown = field(default_factory=Shown)
    """What the reader answered itself, and its message shows already."""
    resumption: Resumption | None = None
    """What is known of its calls, for a reader that begins anew, until it has read what there is;
    None: it goes on."""
    readers: Readers | None = None
    """Counts this reader; None: nobody wants to know who reads."""
    on_delivered: Callable[[], None] | None = None
    """Called once a client was sent all of the reply; None: nobody asks."""
    _cursor: int = 0
    """How many entries of the log were read."""
    _is_whole: bool = False
    """True once the end was read; a log that is gone has none."""

    async def next(self) -> Batch:
        while True:
            with nullcontext() if self.readers is None else self.readers.reading(self.reply_id):
                batch = await self.log.read(self.reply_id, self._cursor)
            if batch is None:
                return Batch((), ended=True)
            if self.begun and self._cursor == 0:
                self.own_only = self.own_only or any(map(self._is_begun, batch.entries))
            self._cursor += len(batch.entries)
            self._is_whole = batch.ended
            if self.resumption is not None:
                batch = Batch(self.resumption.retold(batch.entries), batch.ended)
                # What is written from now on is news.
                self.resumption = None
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
            elif self.own_only and isinstance(entry, ErrorChunk):
                # No message tells that: the turn broke before it began one.
                own, self.own_only = [entry], False
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


@dataclass(slots=True)
class WaitingReply(Reply):
    """The reply to a request that waits for its chat: it begins when the request's turn comes.

    If the request steers another turn, that turn's reply is the one that answers it.
    """

    request: WaitingRequest
    stores: Stores
    is_leaving: Callable[[], bool] = lambda: False
    """Whether this process begins no more turns: another one carries the request out."""
    readers: Readers | None = None
    """Counts this reader; None: nobody wants to know who reads."""
    on_delivered: Callable[[], None] | None = None
    """Called once a client was sent all of the reply; None: nobody asks."""
    has: frozenset[str] = frozenset()
    """The assistant's messages that the reader has; one that runs reaches it by another stream."""
    _reply: Reply | None = None
    """The reply itself; None: it has not begun."""
    _is_empty: bool = True
    """Nothing of the reply was read yet."""

    @property
    def chat_id(self) -> ChatId:  # type: ignore[override]  # the request's, and never set
        return self.request.chat_id

    @property
    def reply_id(self) -> ReplyId:
        """The reply under whose name the request waits."""
        return self.request.reply_id

    async def next(self) -> Batch:
        while True:
            waiting = await self._look() if self._is_empty else None
            if self._reply is not None:
                batch = await self._reply.next()
                begun = not batch.ended or any(entry != LOST for entry in batch.entries)
                if begun or not self._is_empty:
                    self._is_empty = False
                    return batch
                if waiting is None:
                    return batch if batch.entries else Batch((_FORGOTTEN,), ended=True)
            # It waits, or its turn was cut off before it wrote anything: another takes its place.
            if self.is_leaving():
                return Batch((_LEAVING,), ended=True)
            await self.stores.wake.wait(turns_topic(self.chat_id), _LOOK)

    def delivered(self) -> None:
        if self._reply is not None:
            self._reply.delivered()

    async def _look(self) -> WaitingRequest | None:
        """Find the reply, if it has begun; return the request, or None once it was carried out."""
        waiting = await self.stores.waiting.get(self.reply_id)
        if waiting is None or waiting.taken_in is not None:
            self._reply = await self._begun()
        return waiting

    async def _begun(self) -> Reply:
        """Return the reply that answers the request."""
        # Not where it was taken: that turn may have been cut off, and another may answer since.
        found = await self.stores.turns.answered_in(self.chat_id, self.request.key)
        log, readers = self.stores.log, self.readers
        if found is None or found == self.reply_id:
            return LoggedReply(
                self.chat_id,
                log,
                self.reply_id,
                own_only=True,
                on_delivered=self.on_delivered,
                readers=readers,
            )
        running = LoggedReply(self.chat_id, log, found, readers=readers)
        return _SteeredReply(self.chat_id, running, self.has)


@dataclass(slots=True)
class _SteeredReply(Reply):
    """A running reply, for whoever sent a message into it.

    A client that shows the reply's message gets it by the stream that it has. A second one would
    write the same message twice, so this one says only that the message was heard.
    """

    chat_id: ChatId
    reply: LoggedReply
    has: frozenset[str]
    _is_quiet: bool = False

    async def next(self) -> Batch:
        while True:
            batch = await self.reply.next()
            for entry in batch.entries if not self._is_quiet else ():
                if isinstance(entry, StartChunk) and entry.message_id in self.has:
                    self._is_quiet = True
                    told = SteeredData(entry.message_id or "")
                    heard = data_chunk(told, transient=True)
                    end = (FinishChunk("stop"),) if batch.ended else ()
                    return Batch((heard, *end), batch.ended)
            if not self._is_quiet:
                return batch
            if batch.ended:
                return Batch((FinishChunk("stop"),), ended=True)
