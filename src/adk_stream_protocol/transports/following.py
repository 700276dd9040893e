"""One chat, followed: its replies one after another, whoever asked for them.

A turn that waits for a person has several replies. Here is known which calls of which message still
wait: so which reply goes on with what this reader has, and when a turn is over.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import anyio

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.engine.reply import LoggedReply, Reply, WaitingReply
from adk_stream_protocol.errors import trace_of
from adk_stream_protocol.identifiers import ApprovalId, ChatId, ReplyId, UserId
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.ports import turns_topic
from adk_stream_protocol.wire.chunks import FinishChunk, StartChunk
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry, Resumed

__all__ = ["Following"]

logger = logging.getLogger(__name__)

_REMEMBERED: Final = 64
"""How many replies are remembered as read: only the newest ones are met again."""


class Following:
    """What one reader of a chat has, and what comes next."""

    def __init__(
        self, conversations: Conversations, *, user: UserId, chat_id: ChatId, look_seconds: float
    ) -> None:
        self.chat_id = chat_id
        self._conversations = conversations
        self._user = user
        # How often the chat is looked at without a hint: hints may be lost.
        self._look_seconds = look_seconds
        # What the reader asked for and has nothing of yet.
        self._ready: deque[Reply] = deque()
        # What it reads; None between replies.
        self._reply: Reply | None = None
        # The message of that; None before its start.
        self._message: str | None = None
        # Why it ended; None before its end.
        self._reason: str | None = None
        # The replies that are no news, the newest at the end.
        self._known: deque[ReplyId] = deque(maxlen=_REMEMBERED)
        # The calls of each message that the reader was asked for, and has no answer of.
        self._held: dict[str, set[str]] = {}
        # How many of the reader's requests are carried out: what begins may be theirs.
        self._asking = 0
        self._changed = anyio.Event()

    # What the reader asks for

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Follow nothing that began elsewhere until the block ends: it may be the reader's own."""
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            self._notify()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked for."""
        return not self._asking and not self._ready

    async def add(self, reply: Reply) -> None:
        """Let the reader have a reply that it asked for, unless it is about to."""
        if not isinstance(reply, LoggedReply | WaitingReply):
            if not self._known:
                # The turn before is told of, not begun.
                await self.begin_after()
        elif any(_is_same(reply, coming) for coming in self._coming):
            return
        else:
            self._known.append(reply.reply_id)
        self._ready.append(reply)

    async def begin_after(self) -> None:
        """Take the newest turn of the chat for known."""
        turn = await self._conversations.stores.turns.latest(self.chat_id)
        if turn is not None:
            self._known.append(turn.reply_id)

    def will_tell(self, call: HeldCall) -> bool:
        """Whether the reader is about to get what became of a call that was answered."""
        coming = [each.reply_id for each in self._coming if isinstance(each, LoggedReply)]
        is_asked = any(call.approval_id in held for held in self._held.values())
        return call.delivered_in is None or call.delivered_in in coming or is_asked

    @property
    def has_open_turn(self) -> bool:
        """Whether more of a turn comes to the reader: it runs, or waits for an answer."""
        return bool(self._asking or self._coming or any(self._held.values()))

    @property
    def _coming(self) -> list[Reply]:
        return [each for each in (self._reply, *self._ready) if each is not None]

    # What comes next

    async def watch(self) -> None:
        """Hear of turns that begin elsewhere, until cancelled."""
        # A live run goes on while someone has its chat open.
        with self._conversations.lives.present(self.chat_id):
            while True:
                topic = turns_topic(self.chat_id)
                await self._conversations.stores.wake.wait(topic, self._look_seconds)
                self._notify()

    async def next(self) -> Reply:
        """Return the next reply to read, waiting until there is one."""
        self._reply = self._message = self._reason = None
        while self._reply is None:
            changed = self._changed
            if not self._asking:
                self._reply = await self._begun_elsewhere()
            if self._reply is None and self._ready:
                self._reply = self._ready.popleft()
            if self._reply is None:
                await changed.wait()
        return self._reply

    async def _begun_elsewhere(self) -> Reply | None:
        try:
            return await self._continuation() or await self._newest()
        except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
            ids = {"chat": self.chat_id}
            logger.error("chat not watched: %s", trace_of(error), extra=ids)  # noqa: TRY400
            return None

    async def _continuation(self) -> Reply | None:
        """Return the reply that goes on with a message of which the reader has the beginning."""
        waiting = {ApprovalId(each) for held in self._held.values() for each in held}
        if not waiting:
            return None
        stores = self._conversations.stores
        for call in await stores.calls.of_chat(self.chat_id):
            found = call.delivered_in
            if call.approval_id in waiting and found is not None and found not in self._known:
                self._known.append(found)
                return self._logged(found, own_only=True)
        return None

    async def _newest(self) -> Reply | None:
        stores = self._conversations.stores
        turn = await stores.turns.latest(self.chat_id)
        if turn is None or turn.owner != self._user or turn.reply_id in self._known:
            return None
        self._known.append(turn.reply_id)
        # It may go on with what the reader has: its calls are noted as delivered a moment later.
        begun = frozenset(message for message, waiting in self._held.items() if waiting)
        return self._logged(turn.reply_id, begun=begun)

    def _logged(
        self, reply_id: ReplyId, *, own_only: bool = False, begun: frozenset[str] = frozenset()
    ) -> LoggedReply:
        return LoggedReply(
            self.chat_id,
            self._conversations.stores.log,
            reply_id,
            own_only=own_only,
            begun=begun,
            readers=self._conversations.turns.readers,
        )

    # What the reader has

    def note(self, entries: Iterable[Entry]) -> None:
        """Note what the reader gets of the reply."""
        for entry in entries:
            match entry:
                case StartChunk(message_id):
                    self._message = message_id
                case FinishChunk(reason):
                    self._reason = reason
                case CallHeld():
                    self._waiting.add(entry.approval_id)
                case Resumed(CallHeld(approval_id), progress="recorded" | "released"):
                    self._waiting.add(approval_id)
                case CallAnswered() if isinstance(self._reply, LoggedReply | WaitingReply):
                    # One that is only told of may owe more: an output, or another's decision.
                    self._waiting.discard(entry.approval_id)
                case _:
                    pass

    @property
    def _waiting(self) -> set[str]:
        return self._held.setdefault(self._message or "", set())

    def ends_turn(self) -> bool:
        """Whether the turn is over with the reply that was read: no call of it waits."""
        if self._message is None:
            return False
        told = not isinstance(self._reply, LoggedReply | WaitingReply)
        if self._reason == "tool-calls" if told else self._waiting:
            return False
        self._held.pop(self._message, None)
        return True

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def _is_same(reply: LoggedReply | WaitingReply, other: Reply) -> bool:
    return isinstance(other, LoggedReply | WaitingReply) and other.reply_id == reply.reply_id
