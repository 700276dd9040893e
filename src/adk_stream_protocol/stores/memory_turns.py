"""Turns that live in one process and die with it.

No method awaits between looking and storing, so each is one compare-and-set.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence

from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import (
    Attached,
    Began,
    Busy,
    Queued,
    TurnRecord,
    WaitingRequest,
)
from adk_stream_protocol.stores.memory_waiting import MemoryWaiting
from adk_stream_protocol.stores.rulings import (
    FAILED_KEY,
    READ_KEY,
    check_most,
    check_waiting,
    is_same_request,
    is_same_waiting,
)

__all__ = ["MemoryTurns"]


class MemoryTurns:
    """The newest turn of each chat, and the requests that were made."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._turns: dict[ChatId, TurnRecord] = {}
        # When somebody was last seen to read what runs in each chat.
        self._read_at: dict[ChatId, float] = {}
        # The chats of those that run: few, however many chats there are.
        self._running: set[ChatId] = set()
        self._requests: dict[tuple[ChatId, str], ReplyId] = {}
        self.waiting = MemoryWaiting(self._is_busy, self.is_running, self._note_request)
        """What waits for the chats."""

    async def owner_of(self, chat_id: ChatId) -> UserId | None:
        turn = self._turns.get(chat_id)
        return None if turn is None else turn.owner

    async def latest(self, chat_id: ChatId) -> TurnRecord | None:
        return self._turns.get(chat_id)

    async def begin(
        self,
        turn: TurnRecord,
        *,
        repeatable: bool,
        over: ReplyId | None = None,
        rewinds: bool = False,
        most: int | None = None,
        request: WaitingRequest | None = None,
        most_waiting: int | None = None,
        waited: bool = False,
    ) -> Began | Attached | Busy | Queued:
        current = self._turns.get(turn.chat_id)
        others = sum(other.owner == turn.owner and not other.stopping for other in self._that_run())
        check_most(most, others, current)
        if over is not None:
            return self._take_over(turn, current, over)
        if waited:
            return self._take_waiting(turn, current, rewinds=rewinds)
        if current is not None:
            once = not repeatable and not rewinds
            same = self._same(turn, current, once=once, repeatable=repeatable)
            if same is not None:
                return same
            if request is not None and not current.lapsed and self._must_wait(current):
                return self._queue(request, current, most_waiting, once=once)
            if self._is_busy(turn.chat_id) or current.owner != turn.owner:
                return Busy(current)
        return self._begin(turn, current, None, rewinds=rewinds)

    def _same(
        self, turn: TurnRecord, current: TurnRecord, *, once: bool, repeatable: bool
    ) -> Attached | None:
        """Return the turn that answers the same request, or None."""
        earlier = self._requests.get((turn.chat_id, turn.key))
        if once and earlier is not None and earlier != current.reply_id:
            return Attached(dataclasses.replace(turn, reply_id=earlier, running=False))
        if once and earlier is not None and current.key != turn.key:
            # It steered that.
            return Attached(current)
        same = is_same_request(current, turn, repeatable=repeatable)
        return Attached(current) if same else None

    def _is_busy(self, chat_id: ChatId) -> bool:
        turn = self._turns.get(chat_id)
        return turn is not None and (turn.running or turn.lapsed)

    def _note_request(self, request: WaitingRequest, reply_id: ReplyId | None) -> None:
        if reply_id is None:
            self._requests.pop((request.chat_id, request.key), None)
        else:
            self._requests[request.chat_id, request.key] = reply_id

    def _must_wait(self, current: TurnRecord) -> bool:
        return current.running or bool(self.waiting.that_wait(current.chat_id))

    def _queue(
        self, request: WaitingRequest, current: TurnRecord, most: int | None, *, once: bool
    ) -> Queued:
        waiting = self.waiting.that_wait(request.chat_id)
        for other in waiting:
            if is_same_waiting(other, request, once=once):
                return Queued(other, current)
        check_waiting(most, len(waiting))
        if request.policy == "interrupt" and current.running:
            gently = current.gently or not current.stopping
            current = dataclasses.replace(current, stopping=True, gently=gently)
            self._put(current)
        self.waiting.add(request)
        return Queued(request, current)

    def _take_waiting(
        self, turn: TurnRecord, current: TurnRecord | None, *, rewinds: bool
    ) -> Began | Busy:
        if self._is_busy(turn.chat_id):
            assert current is not None, "who keeps it busy"
            return Busy(current)
        request = self.waiting.take(turn.reply_id)
        if request is None:
            return Busy(dataclasses.replace(turn, running=False))
        turn = dataclasses.replace(turn, stopping=request.stopping)
        return self._begin(turn, current, None, rewinds=rewinds)

    def _take_over(
        self, turn: TurnRecord, current: TurnRecord | None, over: ReplyId
    ) -> Began | Attached | Busy:
        if current is None:
            return Busy(dataclasses.replace(turn, running=False))
        if _may_take(current, over):
            return self._begin(turn, current, over)
        return Attached(current) if current.key == turn.key else Busy(current)

    async def forget_others(self, chat_id: ChatId, reply_id: ReplyId) -> None:
        self._forget_others(chat_id, reply_id)

    async def note_read(self, turns: Collection[TurnRecord]) -> None:
        for turn in turns:
            current = self._turns.get(turn.chat_id)
            is_newest = current is not None and current.reply_id == turn.reply_id
            if current is not None and is_newest and (current.running or current.lapsed):
                continue
            self._forget_request(turn.reply_id)
            if current is not None and is_newest:
                self._put(dataclasses.replace(current, key=READ_KEY))

    def _forget_others(self, chat_id: ChatId, reply_id: ReplyId) -> None:
        of_chat = [request for request in self._requests if request[0] == chat_id]
        for request in of_chat:
            if self._requests[request] != reply_id:
                del self._requests[request]

    def _begin(
        self,
        turn: TurnRecord,
        current: TurnRecord | None,
        over: ReplyId | None,
        *,
        rewinds: bool = False,
    ) -> Began:
        if over is not None and current is not None:
            turn = dataclasses.replace(turn, stopping=current.stopping, gently=current.gently)
        self._put(turn)
        if over is None:
            self._requests[turn.chat_id, turn.key] = turn.reply_id
        else:
            self._repoint(over, turn.reply_id)
        if rewinds:
            self._forget_others(turn.chat_id, turn.reply_id)
        return Began(turn, current)

    async def restore(self, turn: TurnRecord, previous: TurnRecord | None) -> None:
        if self._turns.get(turn.chat_id, turn).reply_id != turn.reply_id:
            return
        if turn.origin is not None and previous is not None:
            self._repoint(turn.reply_id, previous.reply_id)
        self._forget_request(turn.reply_id)
        self.waiting.forget(turn.reply_id)
        if previous is None:
            self._drop(turn.chat_id)
        else:
            self._put(dataclasses.replace(previous, running=False))

    async def end(
        self,
        chat_id: ChatId,
        reply_id: ReplyId,
        *,
        failed: bool = False,
        carried: ReplyId | None = None,
        heard: Collection[ReplyId] = (),
    ) -> None:
        turn = self._turns.get(chat_id)
        if failed:
            self._forget_request(reply_id)
        if turn is not None and turn.reply_id == reply_id:
            key = FAILED_KEY if failed else turn.key
            self._put(dataclasses.replace(turn, running=False, lapsed=False, key=key))
            if carried is not None:
                self.waiting.forget(carried, heard)

    async def answered_in(self, chat_id: ChatId, key: str) -> ReplyId | None:
        return self._requests.get((chat_id, key))

    async def release(self, chat_id: ChatId, reply_id: ReplyId) -> None:
        turn = self._turns.get(chat_id)
        if turn is not None and turn.reply_id == reply_id and turn.running:
            self._put(dataclasses.replace(turn, running=False, lapsed=True))

    async def lapsed(self) -> Sequence[TurnRecord]:
        return [turn for turn in self._turns.values() if turn.lapsed]

    async def ask_to_stop(
        self, chat_id: ChatId, *, reply_id: ReplyId | None = None
    ) -> TurnRecord | None:
        turn = self._turns.get(chat_id)
        if turn is None or not turn.running or reply_id not in {None, turn.reply_id}:
            return None
        self._put(dataclasses.replace(turn, stopping=True, gently=False))
        return self._turns[chat_id]

    async def renew(self, replies: Collection[ReplyId]) -> Sequence[TurnRecord]:
        kept = [turn for turn in self._that_run() if turn.reply_id in replies]
        return [
            dataclasses.replace(turn, steered=self.waiting.steers(turn.chat_id)) for turn in kept
        ]

    def is_running(self, reply_id: str) -> bool:
        """Whether the reply's turn still holds its chat."""
        return any(turn.reply_id == reply_id for turn in self._that_run())

    async def note_readers(self, replies: Collection[ReplyId]) -> None:
        for chat_id in self._running:
            if self._turns[chat_id].reply_id in replies:
                self._read_at[chat_id] = self._clock()

    async def unread(self, seconds: float) -> Sequence[TurnRecord]:
        limit = self._clock() - seconds
        return [turn for turn in self._that_run() if self._read_at[turn.chat_id] < limit]

    async def forget(self, chat_id: ChatId) -> None:
        self._drop(chat_id)
        self.waiting.forget_chat(chat_id)
        for request in [request for request in self._requests if request[0] == chat_id]:
            del self._requests[request]

    def _that_run(self) -> list[TurnRecord]:
        return [self._turns[chat_id] for chat_id in self._running]

    def _put(self, turn: TurnRecord) -> None:
        self._turns[turn.chat_id] = turn
        if turn.running:
            self._running.add(turn.chat_id)
            self._read_at.setdefault(turn.chat_id, self._clock())
        else:
            self._running.discard(turn.chat_id)
            self._read_at.pop(turn.chat_id, None)

    def _drop(self, chat_id: ChatId) -> None:
        self._turns.pop(chat_id, None)
        self._running.discard(chat_id)
        self._read_at.pop(chat_id, None)

    def _repoint(self, reply_id: ReplyId, to: ReplyId) -> None:
        for request, answered_in in self._requests.items():
            if answered_in == reply_id:
                self._requests[request] = to

    def _forget_request(self, reply_id: ReplyId) -> None:
        asked = [request for request, reply in self._requests.items() if reply == reply_id]
        for request in asked:
            del self._requests[request]


def _may_take(current: TurnRecord, over: ReplyId) -> bool:
    return current.reply_id == over and current.lapsed
