"""Stores that live in one process and die with it: for tests and throw-away demos.

No method awaits between looking and storing, so each is one compare-and-set.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import anyio

from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallEvent, CallKind, CallState, HeldCall
from adk_stream_protocol.ports import (
    Attached,
    Batch,
    Began,
    Busy,
    Ruling,
    Stores,
    TurnRecord,
    Verdict,
)
from adk_stream_protocol.stores.rulings import (
    FAILED_KEY,
    WITHDRAWN,
    output_ruling,
    verdict_ruling,
)
from adk_stream_protocol.wire.entries import Entry
from adk_stream_protocol.wire.values import JsonValue

__all__ = ["MemoryCalls", "MemoryLog", "MemoryTurns", "MemoryWake", "memory_stores"]

Clock = Callable[[], float]


class MemoryCalls:
    """Held calls in a dictionary."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._rows: dict[ApprovalId, HeldCall] = {}

    async def now(self) -> float:
        return self._clock()

    async def open(self, call: HeldCall) -> HeldCall:
        return self._rows.setdefault(call.approval_id, call)

    async def get(self, approval_id: ApprovalId) -> HeldCall | None:
        return self._rows.get(approval_id)

    async def of_chat(self, chat_id: ChatId) -> Sequence[HeldCall]:
        return [call for call in self._rows.values() if call.chat_id == chat_id]

    async def of_owner(self, owner: UserId, state: CallState | None = None) -> Sequence[HeldCall]:
        return [
            call
            for call in self._rows.values()
            if call.owner == owner and (state is None or call.state is state)
        ]

    async def latest(self, chat_id: ChatId, call_id: CallId) -> HeldCall | None:
        for call in reversed(self._rows.values()):
            if call.chat_id == chat_id and call.call_id == call_id:
                return call
        return None

    async def decide(self, approval_id: ApprovalId, verdict: Verdict) -> tuple[Ruling, HeldCall]:
        call = self._rows[approval_id]
        if call.state is not CallState.PENDING or not call.approval:
            return verdict_ruling(call, verdict), call
        if call.expires_at <= self._clock():
            return "conflict", self._expire(call)
        decided = dataclasses.replace(
            call.after(CallEvent.APPROVE if verdict.approved else CallEvent.DENY),
            decided_at=self._clock(),
            decided_by=verdict.by,
            decision_id=verdict.decision_id,
            reason=verdict.reason,
        )
        self._rows[approval_id] = decided
        return "accepted", decided

    async def give(
        self, approval_id: ApprovalId, *, output: JsonValue, error: str | None
    ) -> tuple[Ruling, HeldCall]:
        call = self._rows[approval_id]
        if call.state is CallState.APPROVED and call.kind is not CallKind.TOOL:
            given = dataclasses.replace(
                call.after(CallEvent.OUTPUT if error is None else CallEvent.OUTPUT_ERROR),
                result=output,
                error=error,
                done_at=self._clock(),
            )
            self._rows[approval_id] = given
            return "accepted", given
        return output_ruling(call, output, error), call

    async def claim(self, approval_id: ApprovalId, holder: str) -> HeldCall | None:
        call = self._rows[approval_id]
        if call.state is not CallState.APPROVED or call.kind is not CallKind.TOOL:
            return None
        claimed = dataclasses.replace(
            call.after(CallEvent.CLAIM), fence=call.fence + 1, holder=holder
        )
        self._rows[approval_id] = claimed
        return claimed

    async def finish(
        self, approval_id: ApprovalId, fence: int, *, result: JsonValue, error: str | None
    ) -> bool:
        call = self._rows[approval_id]
        if call.state is not CallState.RUNNING or call.fence != fence:
            return False
        self._rows[approval_id] = dataclasses.replace(
            call.after(CallEvent.FINISH if error is None else CallEvent.FAIL),
            result=result,
            error=error,
            done_at=self._clock(),
            holder=None,
        )
        return True

    async def lapse(self, approval_id: ApprovalId, fence: int) -> bool:
        call = self._rows[approval_id]
        if call.state is not CallState.RUNNING or call.fence != fence:
            return False
        self._rows[approval_id] = dataclasses.replace(call.after(CallEvent.LAPSE), holder=None)
        return True

    async def lapse_orphans(self) -> Sequence[HeldCall]:
        # A process that dies takes these rows along.
        return []

    async def cancel(
        self, chat_id: ChatId, invocations: Iterable[InvocationId] | None = None
    ) -> Sequence[HeldCall]:
        among = None if invocations is None else set(invocations)
        cancelled = []
        for call in await self.of_chat(chat_id):
            free = call.state in {CallState.PENDING, CallState.APPROVED}
            if among is not None and call.invocation_id not in among:
                continue
            if free:
                cancelled.append(self._settle(call, CallEvent.CANCEL))
            elif call.is_deliverable:
                self._rows[call.approval_id] = dataclasses.replace(call, delivered_in=WITHDRAWN)
        return cancelled

    async def abort(self, approval_id: ApprovalId) -> None:
        call = self._rows[approval_id]
        if call.state is CallState.APPROVED:
            self._settle(call, CallEvent.CANCEL)

    async def undeliver(self, approval_ids: Iterable[ApprovalId]) -> None:
        for approval_id in approval_ids:
            call = self._rows[approval_id]
            self._rows[approval_id] = dataclasses.replace(call, delivered_in=None)

    async def expire(self) -> Sequence[HeldCall]:
        now = self._clock()
        due = [call for call in self._rows.values() if call.is_open and call.expires_at <= now]
        return [self._expire(call) for call in due]

    async def next_expiry(self) -> float | None:
        return min((call.expires_at for call in self._rows.values() if call.is_open), default=None)

    async def deliver(self, approval_ids: Iterable[ApprovalId], reply_id: ReplyId) -> None:
        for approval_id in approval_ids:
            call = self._rows[approval_id]
            self._rows[approval_id] = dataclasses.replace(call, delivered_in=reply_id)

    def _expire(self, call: HeldCall) -> HeldCall:
        return self._settle(call, CallEvent.EXPIRE)

    def _settle(self, call: HeldCall, event: CallEvent) -> HeldCall:
        settled = dataclasses.replace(call.after(event), decided_at=self._clock())
        self._rows[call.approval_id] = settled
        return settled


class MemoryTurns:
    """The newest turn of each chat."""

    def __init__(self) -> None:
        self._turns: dict[ChatId, TurnRecord] = {}

    async def owner_of(self, chat_id: ChatId) -> UserId | None:
        turn = self._turns.get(chat_id)
        return None if turn is None else turn.owner

    async def latest(self, chat_id: ChatId) -> TurnRecord | None:
        return self._turns.get(chat_id)

    async def begin(self, turn: TurnRecord, *, repeatable: bool) -> Began | Attached | Busy:
        current = self._turns.get(turn.chat_id)
        if current is not None:
            same = current.key == turn.key
            if same and (current.running or not repeatable):
                return Attached(current)
            if current.running:
                return Busy(current)
        self._turns[turn.chat_id] = turn
        return Began(turn, current)

    async def restore(self, turn: TurnRecord, previous: TurnRecord | None) -> None:
        if self._turns.get(turn.chat_id, turn).reply_id != turn.reply_id:
            return
        if previous is None:
            self._turns.pop(turn.chat_id, None)
        else:
            self._turns[turn.chat_id] = dataclasses.replace(previous, running=False)

    async def end(self, chat_id: ChatId, reply_id: ReplyId, *, failed: bool = False) -> None:
        turn = self._turns.get(chat_id)
        if turn is not None and turn.reply_id == reply_id:
            key = FAILED_KEY if failed else turn.key
            self._turns[chat_id] = dataclasses.replace(turn, running=False, key=key)

    async def ask_to_stop(self, chat_id: ChatId) -> TurnRecord | None:
        turn = self._turns.get(chat_id)
        if turn is None or not turn.running:
            return None
        self._turns[chat_id] = dataclasses.replace(turn, stopping=True)
        return self._turns[chat_id]

    async def renew(self) -> Sequence[ChatId]:
        return [turn.chat_id for turn in self._turns.values() if turn.running and turn.stopping]

    async def running_of(self, owner: UserId) -> int:
        return sum(turn.running and turn.owner == owner for turn in self._turns.values())

    async def forget(self, chat_id: ChatId) -> None:
        self._turns.pop(chat_id, None)


@dataclass(slots=True)
class _Reply:
    entries: list[Entry] = field(default_factory=list)
    ended_at: float | None = None
    """None while the reply is being written."""
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set and replaced at each change."""


class MemoryLog:
    """Replies in lists; ended ones are kept for a while."""

    def __init__(self, clock: Clock = time.time, *, keep: float = 3600.0) -> None:
        self._clock = clock
        self._keep = keep
        self._replies: dict[ReplyId, _Reply] = {}

    async def open(self, reply_id: ReplyId) -> None:
        self._forget_old()
        self._replies.setdefault(reply_id, _Reply())

    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        reply = self._replies[reply_id]
        assert reply.ended_at is None, "nothing follows the end marker"
        reply.entries.extend(entries)
        self._wake(reply)

    async def end(self, reply_id: ReplyId) -> None:
        reply = self._replies[reply_id]
        reply.ended_at = self._clock()
        self._wake(reply)

    async def read(self, reply_id: ReplyId, after: int) -> Batch | None:
        reply = self._replies.get(reply_id)
        if reply is None:
            return None
        while len(reply.entries) <= after and reply.ended_at is None:
            await reply.changed.wait()
        return Batch(tuple(reply.entries[after:]), ended=reply.ended_at is not None)

    def _wake(self, reply: _Reply) -> None:
        changed, reply.changed = reply.changed, anyio.Event()
        changed.set()

    def _forget_old(self) -> None:
        limit = self._clock() - self._keep
        old = [key for key, reply in self._replies.items() if (reply.ended_at or limit) < limit]
        for key in old:
            del self._replies[key]


class MemoryWake:
    """Hints within the process."""

    def __init__(self) -> None:
        self._topics: dict[str, anyio.Event] = {}

    def hint(self, topic: str) -> None:
        waiting = self._topics.pop(topic, None)
        if waiting is not None:
            waiting.set()

    async def wait(self, topic: str, timeout: float | None) -> None:  # noqa: ASYNC109  # see the port
        event = self._topics.setdefault(topic, anyio.Event())
        with anyio.move_on_after(timeout):
            await event.wait()


def memory_stores(clock: Clock = time.time, *, keep_replies: float = 3600.0) -> Stores:
    """Return fresh stores that share one clock."""
    return Stores(
        calls=MemoryCalls(clock),
        turns=MemoryTurns(),
        log=MemoryLog(clock, keep=keep_replies),
        wake=MemoryWake(),
    )
