"""Stores that live in one process and die with it: for tests and throw-away demos.

No method awaits between looking and storing, so each is one compare-and-set.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from adk_stream_protocol.bell import Bell
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
    LOST,
    Batch,
    ChatChange,
    ChatLabel,
    Ruling,
    Stores,
    Verdict,
)
from adk_stream_protocol.stores.memory_turns import MemoryTurns
from adk_stream_protocol.stores.rulings import (
    MOST_RUNS,
    WITHDRAWN,
    decision_event,
    decision_note,
    is_about,
    output_ruling,
    verdict_ruling,
)
from adk_stream_protocol.wire.entries import Entry
from adk_stream_protocol.wire.values import JsonObject, JsonValue

__all__ = [
    "MemoryCalls",
    "MemoryChatLabels",
    "MemoryLog",
    "MemoryTurns",
    "MemoryWake",
    "memory_stores",
]

Clock = Callable[[], float]


class MemoryCalls:
    """Held calls in a dictionary."""

    def __init__(
        self, clock: Clock = time.time, is_running: Callable[[str], bool] = lambda _reply: True
    ) -> None:
        self._clock = clock
        # Whether a reply's turn still holds its chat.
        self._is_running = is_running
        self._rows: dict[ApprovalId, HeldCall] = {}
        # The ids of each chat's and each user's calls, oldest first.
        self._by_chat: dict[ChatId, dict[ApprovalId, None]] = {}
        self._by_owner: dict[UserId, dict[ApprovalId, None]] = {}

    async def now(self) -> float:
        return self._clock()

    async def open(self, call: HeldCall) -> HeldCall:
        if call.approval_id not in self._rows:
            self._rows[call.approval_id] = call
            self._by_chat.setdefault(call.chat_id, {})[call.approval_id] = None
            self._by_owner.setdefault(call.owner, {})[call.approval_id] = None
        return self._rows[call.approval_id]

    async def get(self, approval_id: ApprovalId) -> HeldCall | None:
        return self._rows.get(approval_id)

    async def of_chat(self, chat_id: ChatId) -> Sequence[HeldCall]:
        return [self._rows[name] for name in self._by_chat.get(chat_id, ())]

    async def of_owner(self, owner: UserId, state: CallState | None = None) -> Sequence[HeldCall]:
        calls = [self._rows[name] for name in self._by_owner.get(owner, ())]
        return [call for call in calls if state is None or call.state is state]

    async def latest(
        self, chat_id: ChatId, invocation_id: InvocationId, call_id: CallId
    ) -> HeldCall | None:
        named = (invocation_id, call_id)
        rows = await self.of_chat(chat_id)
        calls = [call for call in rows if (call.invocation_id, call.call_id) == named]
        return calls[-1] if calls else None

    async def decide(self, approval_id: ApprovalId, verdict: Verdict) -> tuple[Ruling, HeldCall]:
        call = self._rows[approval_id]
        if call.state is not CallState.PENDING or not call.approval:
            return verdict_ruling(call, verdict), call
        if call.expires_at <= self._clock():
            return "conflict", self._settle(call, CallEvent.EXPIRE)
        if call.step != verdict.step or not is_about(call, verdict):
            return verdict_ruling(call, verdict), call
        event = decision_event(verdict)
        if verdict.edited is not None:
            call = dataclasses.replace(call, edited=verdict.edited, edited_hash=verdict.edited_hash)
        note = decision_note(event, verdict)
        if event is CallEvent.STEP:
            return "accepted", self._change(call, event, note, step=call.step + 1)
        return "accepted", self._change(
            call,
            event,
            note,
            decided_at=self._clock(),
            decided_by=verdict.by,
            decided_via=verdict.via or None,
            decision_id=verdict.decision_id,
            reason=verdict.reason,
            remember=verdict.remember,
            automatic=verdict.automatic,
        )

    async def give(
        self, approval_id: ApprovalId, *, output: JsonValue, error: str | None
    ) -> tuple[Ruling, HeldCall]:
        call = self._rows[approval_id]
        if call.state is CallState.APPROVED and call.kind is not CallKind.TOOL:
            event = CallEvent.OUTPUT if error is None else CallEvent.OUTPUT_ERROR
            given = self._change(call, event, result=output, error=error, done_at=self._clock())
            return "accepted", given
        return output_ruling(call, output, error), call

    async def claim(self, approval_id: ApprovalId, holder: ReplyId) -> HeldCall | None:
        call = self._rows[approval_id]
        if call.state is not CallState.APPROVED or call.kind is not CallKind.TOOL:
            return None
        if not self._is_running(holder):
            return None
        note = {"event": CallEvent.CLAIM.value, "by": holder}
        return self._change(call, CallEvent.CLAIM, note, fence=call.fence + 1, holder=holder)

    async def finish(
        self, approval_id: ApprovalId, fence: int, *, result: JsonValue, error: str | None
    ) -> bool:
        event = CallEvent.FINISH if error is None else CallEvent.FAIL
        ended = {"result": result, "error": error, "done_at": self._clock()}
        return self._end(approval_id, fence, event, **ended)

    async def lapse(self, approval_id: ApprovalId, fence: int) -> bool:
        return self._end(approval_id, fence, CallEvent.LAPSE)

    async def lapse_orphans(self, chat_id: ChatId | None = None) -> Sequence[HeldCall]:
        orphans = [
            call
            for call in self._rows.values()
            if call.state is CallState.RUNNING
            and chat_id in {None, call.chat_id}
            and not self._is_running(call.holder or "")
        ]
        return [self._change(call, _after_orphan(call), holder=None) for call in orphans]

    async def unknown(self, within: float, chat_id: ChatId | None = None) -> Sequence[HeldCall]:
        limit = self._clock() - within
        return [
            call
            for call in self._rows.values()
            if call.state is CallState.UNKNOWN
            and chat_id in {None, call.chat_id}
            and (call.decided_at or call.created_at) >= limit
        ]

    async def resolve(
        self, approval_id: ApprovalId, verdict: Verdict, *, result: JsonValue, error: str | None
    ) -> tuple[Ruling, HeldCall]:
        call = self._rows[approval_id]
        if call.state is not CallState.UNKNOWN:
            return output_ruling(call, result, error), call
        event = CallEvent.RESOLVE_DONE if error is None else CallEvent.RESOLVE_FAILED
        known = {"result": result, "error": error, "done_at": self._clock()}
        return "accepted", self._change(call, event, decision_note(event, verdict), **known)

    async def pending(self, limit: int) -> Sequence[HeldCall]:
        waiting = (call for call in self._rows.values() if call.state is CallState.PENDING)
        return list(itertools.islice((call for call in waiting if call.approval), limit))

    async def page(
        self, after: HeldCall | None, limit: int, *, owner: UserId | None = None
    ) -> Sequence[HeldCall]:
        def place(call: HeldCall) -> tuple[float, str]:
            return call.created_at, call.approval_id

        among = [
            call
            for call in self._rows.values()
            if (owner is None or call.owner == owner or call.steps)
            and (after is None or place(call) > place(after))
        ]
        return sorted(among, key=place)[:limit]

    async def count_pending(self, owner: UserId | None = None) -> int:
        return sum(
            call.state is CallState.PENDING and call.approval and owner in {None, call.owner}
            for call in self._rows.values()
        )

    async def undelivered(self) -> Sequence[tuple[ChatId, UserId]]:
        chats = {
            call.chat_id: call.owner
            for call in self._rows.values()
            if call.is_deliverable and call.state is not CallState.CANCELLED
        }
        return list(chats.items())

    async def purge(self, keep: float) -> int:
        limit = self._clock() - keep
        old = [
            call
            for call in self._rows.values()
            if call.is_settled and (call.done_at or call.decided_at or call.created_at) < limit
        ]
        for call in old:
            del self._rows[call.approval_id]
            del self._by_chat[call.chat_id][call.approval_id]
            del self._by_owner[call.owner][call.approval_id]
        return len(old)

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
                cancelled.append(self._give_up(call))
            elif call.is_deliverable and call.state is not CallState.CANCELLED:
                self._rows[call.approval_id] = dataclasses.replace(call, delivered_in=WITHDRAWN)
        return cancelled

    async def unremember(self, chat_id: ChatId) -> None:
        for call in await self.of_chat(chat_id):
            self._rows[call.approval_id] = dataclasses.replace(call, remember=False)

    async def abort(self, approval_id: ApprovalId) -> None:
        call = self._rows[approval_id]
        if call.state is CallState.APPROVED:
            self._give_up(call)

    async def undeliver(self, approval_ids: Iterable[ApprovalId]) -> None:
        for approval_id in approval_ids:
            call = self._rows[approval_id]
            self._rows[approval_id] = dataclasses.replace(call, delivered_in=None)

    async def expire(self) -> Sequence[HeldCall]:
        now = self._clock()
        due = [call for call in self._rows.values() if call.is_open and call.expires_at <= now]
        return [self._settle(call, CallEvent.EXPIRE) for call in due]

    async def next_expiry(self) -> float | None:
        return min((call.expires_at for call in self._rows.values() if call.is_open), default=None)

    async def deliver(self, approval_ids: Iterable[ApprovalId], reply_id: ReplyId) -> None:
        for approval_id in approval_ids:
            call = self._rows[approval_id]
            self._rows[approval_id] = dataclasses.replace(call, delivered_in=reply_id)

    def _end(self, approval_id: ApprovalId, fence: int, event: CallEvent, **more: Any) -> bool:
        call = self._rows[approval_id]
        if call.state is not CallState.RUNNING or call.fence != fence:
            return False
        self._change(call, event, holder=None, **more)
        return True

    def _give_up(self, call: HeldCall) -> HeldCall:
        if call.fence:
            # It ran, at least in part, before it was released to run again.
            return self._change(call, CallEvent.LAPSE)
        return self._settle(call, CallEvent.CANCEL)

    def _settle(self, call: HeldCall, event: CallEvent) -> HeldCall:
        return self._change(call, event, decided_at=self._clock())

    def _change(
        self, call: HeldCall, event: CallEvent, note: JsonObject | None = None, **more: Any
    ) -> HeldCall:
        """Store the call as an event leaves it, the trail included."""
        line = {"at": self._clock(), **(note or {"event": event.value})}
        changed = dataclasses.replace(call.after(event), trail=(*call.trail, line), **more)
        self._rows[call.approval_id] = changed
        return changed


def _after_orphan(call: HeldCall) -> CallEvent:
    again = call.idempotent and call.fence < MOST_RUNS
    return CallEvent.RELEASE if again else CallEvent.LAPSE


@dataclass(slots=True)
class _Reply:
    entries: list[Entry] = field(default_factory=list)
    ended_at: float | None = None
    """None while the reply is being written."""
    changed: Bell = field(default_factory=Bell)


class MemoryLog:
    """Replies in lists; ended ones are kept for a while."""

    def __init__(self, clock: Clock = time.time, *, keep: float = 3600.0) -> None:
        self._clock = clock
        self._keep = keep
        self._replies: dict[ReplyId, _Reply] = {}
        # Those that have ended, the first first.
        self._ended: deque[ReplyId] = deque()

    async def open(self, reply_id: ReplyId) -> None:
        self._forget_old()
        self._replies.setdefault(reply_id, _Reply())

    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        reply = self._replies[reply_id]
        assert reply.ended_at is None, "nothing follows the end marker"
        reply.entries.extend(entries)
        reply.changed.ring()

    async def end(self, reply_id: ReplyId) -> None:
        reply = self._replies[reply_id]
        reply.ended_at = self._clock()
        self._ended.append(reply_id)
        reply.changed.ring()

    async def leave(self, reply_id: ReplyId) -> None:
        await self.append(reply_id, [LOST])
        await self.end(reply_id)

    async def written(self, reply_id: ReplyId) -> Sequence[Entry]:
        reply = self._replies.get(reply_id)
        return () if reply is None else tuple(reply.entries)

    async def read(self, reply_id: ReplyId, after: int) -> Batch | None:
        reply = self._replies.get(reply_id)
        if reply is None:
            return None
        while len(reply.entries) <= after and reply.ended_at is None:
            await reply.changed.wait()
        return Batch(tuple(reply.entries[after:]), ended=reply.ended_at is not None)

    def _forget_old(self) -> None:
        limit = self._clock() - self._keep
        while self._ended:
            reply = self._replies.get(self._ended[0])
            if reply is not None and (reply.ended_at or limit) >= limit:
                return
            self._replies.pop(self._ended.popleft(), None)


class MemoryWake:
    """Hints within the process."""

    def __init__(self) -> None:
        # The topics that someone waits for, and nothing else: there may be one for every chat.
        self._topics: dict[str, Bell] = {}

    def hint(self, topic: str) -> None:
        waiting = self._topics.get(topic)
        if waiting is not None:
            waiting.ring()

    async def wait(self, topic: str, timeout: float | None) -> None:  # noqa: ASYNC109  # see the port
        hinted = self._topics.setdefault(topic, Bell())
        try:
            with anyio.move_on_after(timeout):
                await hinted.wait()
        finally:
            if not hinted.is_awaited and self._topics.get(topic) is hinted:
                del self._topics[topic]


class MemoryChatLabels:
    """The labels of each user's chats."""

    def __init__(self) -> None:
        self._labels: dict[UserId, dict[ChatId, ChatLabel]] = {}

    async def get(self, chat_id: ChatId, owner: UserId) -> ChatLabel:
        return self._labels.get(owner, {}).get(chat_id, ChatLabel())

    async def of_owner(self, owner: UserId) -> Mapping[ChatId, ChatLabel]:
        return dict(self._labels.get(owner, {}))

    async def change(self, chat_id: ChatId, owner: UserId, change: ChatChange) -> ChatLabel:
        labels = self._labels.setdefault(owner, {})
        was = labels.get(chat_id, ChatLabel())
        labels[chat_id] = ChatLabel(
            title=was.title if change.title is None else change.title,
            archived=was.archived if change.archived is None else change.archived,
        )
        return labels[chat_id]

    async def forget(self, chat_id: ChatId, owner: UserId) -> None:
        self._labels.get(owner, {}).pop(chat_id, None)


def memory_stores(clock: Clock = time.time, *, keep_replies: float = 3600.0) -> Stores:
    """Return fresh stores that share one clock."""
    turns = MemoryTurns(clock)
    return Stores(
        calls=MemoryCalls(clock, turns.is_running),
        turns=turns,
        waiting=turns.waiting,
        log=MemoryLog(clock, keep=keep_replies),
        wake=MemoryWake(),
        labels=MemoryChatLabels(),
    )
