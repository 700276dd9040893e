"""Held calls in a table. Every change is one statement that checks and sets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Float,
    RowMapping,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    func,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import (
    TRANSITIONS,
    ApprovalStep,
    CallEvent,
    CallKind,
    CallState,
    HeldCall,
    next_state,
)
from adk_stream_protocol.ports import Ruling, Verdict
from adk_stream_protocol.stores.rulings import (
    MOST_RUNS,
    WITHDRAWN,
    decision_event,
    decision_note,
    output_ruling,
    verdict_ruling,
)
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_schema import CALLS, TURNS
from adk_stream_protocol.wire.values import JsonObject, JsonValue, dumps

__all__ = ["SqlCalls", "database_now", "insert_into"]

_ANSWERED: Final = [
    state.value for state in CallState if state not in {CallState.PENDING, CallState.CANCELLED}
]
_SETTLED: Final = [state.value for state, events in TRANSITIONS.items() if not events]
_JSON: Final = frozenset({"arguments", "payload", "ui", "result", "schema", "edited"})


def database_now(engine: AsyncEngine) -> ColumnElement[float]:
    """Return the expression for the database's own time, in seconds since the epoch."""
    if engine.dialect.name == "postgresql":
        # Not `clock_timestamp()`: what changes within a statement cannot be looked up in an index.
        return func.extract("epoch", func.statement_timestamp()).cast(Float)
    return (func.julianday("now", type_=Float) - 2440587.5) * 86400.0


def insert_into(engine: AsyncEngine, table: Any) -> Any:
    """Return the dialect's insert, which knows ON CONFLICT."""
    known = postgresql if engine.dialect.name == "postgresql" else sqlite
    return known.insert(table)


class SqlCalls:
    """Held calls by the database's clock."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._now = database_now(engine)
        # Asked for at the end of each turn, and so made once.
        self._of_chat = _chosen(CALLS.c.chat_id == bindparam("chat"))

    async def now(self) -> float:
        async with reading(self._engine) as connection:
            return float((await connection.execute(select(self._now))).scalar_one())

    async def open(self, call: HeldCall) -> HeldCall:
        insert = insert_into(self._engine, CALLS).values(**_columns(call))
        async with writing(self._engine) as connection:
            await connection.execute(insert.on_conflict_do_nothing())
            return await self._row(connection, call.approval_id)

    async def get(self, approval_id: ApprovalId) -> HeldCall | None:
        found = await self._select(CALLS.c.approval_id == approval_id)
        return found[0] if found else None

    async def of_chat(self, chat_id: ChatId) -> Sequence[HeldCall]:
        async with reading(self._engine) as connection:
            found = await connection.execute(self._of_chat, {"chat": chat_id})
            return [_call(row) for row in found.mappings()]

    async def of_owner(self, owner: UserId, state: CallState | None = None) -> Sequence[HeldCall]:
        if state is None:
            return await self._select(CALLS.c.owner == owner)
        return await self._select(and_(CALLS.c.owner == owner, CALLS.c.state == state.value))

    async def latest(
        self, chat_id: ChatId, invocation_id: InvocationId, call_id: CallId
    ) -> HeldCall | None:
        found = await self._select(
            and_(
                CALLS.c.chat_id == chat_id,
                CALLS.c.invocation_id == invocation_id,
                CALLS.c.call_id == call_id,
            )
        )
        return found[-1] if found else None

    async def decide(self, approval_id: ApprovalId, verdict: Verdict) -> tuple[Ruling, HeldCall]:
        event = decision_event(verdict)
        waiting = and_(
            CALLS.c.approval_id == approval_id,
            CALLS.c.state == CallState.PENDING.value,
            CALLS.c.approval,
        )
        free = and_(waiting, CALLS.c.step == verdict.step, CALLS.c.expires_at > self._now)
        if verdict.approved:
            free = and_(free, _is_about(verdict))
        decision: dict[str, Any] = {
            "state": next_state(CallState.PENDING, event).value,
            "trail": self._noted(decision_note(event, verdict)),
        }
        if event is CallEvent.STEP:
            decision["step"] = CALLS.c.step + 1
        else:
            decision |= self._verdict_columns(verdict)
        if verdict.edited is not None:
            decision |= {"edited": _json(verdict.edited), "edited_hash": verdict.edited_hash}
        async with writing(self._engine) as connection:
            if await self._set(connection, free, decision):
                return "accepted", await self._row(connection, approval_id)
            due = and_(waiting, CALLS.c.expires_at <= self._now)
            await self._set(connection, due, self._ended(CallEvent.EXPIRE, CallState.PENDING))
            call = await self._row(connection, approval_id)
            return verdict_ruling(call, verdict), call

    def _verdict_columns(self, verdict: Verdict) -> dict[str, Any]:
        return {
            "decided_at": self._now,
            "decided_by": verdict.by,
            "decided_via": verdict.via or None,
            "decision_id": verdict.decision_id,
            "reason": verdict.reason,
            "remember": verdict.remember,
            "automatic": verdict.automatic,
        }

    async def give(
        self, approval_id: ApprovalId, *, output: JsonValue, error: str | None
    ) -> tuple[Ruling, HeldCall]:
        event = CallEvent.OUTPUT if error is None else CallEvent.OUTPUT_ERROR
        awaited = and_(
            CALLS.c.approval_id == approval_id,
            CALLS.c.state == CallState.APPROVED.value,
            CALLS.c.kind != CallKind.TOOL.value,
        )
        given = {
            "state": next_state(CallState.APPROVED, event).value,
            "result": _json(output),
            "error": error,
            "done_at": self._now,
            "trail": self._noted({"event": event.value}),
        }
        async with writing(self._engine) as connection:
            accepted = await self._set(connection, awaited, given)
            call = await self._row(connection, approval_id)
        return ("accepted" if accepted else output_ruling(call, output, error)), call

    async def claim(self, approval_id: ApprovalId, holder: ReplyId) -> HeldCall | None:
        approved = and_(
            CALLS.c.approval_id == approval_id,
            CALLS.c.state == CallState.APPROVED.value,
            CALLS.c.kind == CallKind.TOOL.value,
            # A process that lost its chat must not start a tool any more.
            self._living(TURNS.c.reply_id == holder).exists(),
        )
        claimed = {
            "state": next_state(CallState.APPROVED, CallEvent.CLAIM).value,
            "fence": CALLS.c.fence + 1,
            "holder": holder,
            "trail": self._noted({"event": CallEvent.CLAIM.value, "by": holder}),
        }
        async with writing(self._engine) as connection:
            if not await self._set(connection, approved, claimed):
                return None
            return await self._row(connection, approval_id)

    async def finish(
        self, approval_id: ApprovalId, fence: int, *, result: JsonValue, error: str | None
    ) -> bool:
        event = CallEvent.FINISH if error is None else CallEvent.FAIL
        ended = {"result": _json(result), "error": error, "done_at": self._now}
        return await self._end(approval_id, fence, event, ended)

    async def lapse(self, approval_id: ApprovalId, fence: int) -> bool:
        return await self._end(approval_id, fence, CallEvent.LAPSE, {})

    async def cancel(
        self, chat_id: ChatId, invocations: Iterable[InvocationId] | None = None
    ) -> Sequence[HeldCall]:
        of_these = CALLS.c.chat_id == chat_id
        if invocations is not None:
            of_these = and_(of_these, CALLS.c.invocation_id.in_(list(invocations)))
        free = CALLS.c.state.in_([CallState.PENDING.value, CallState.APPROVED.value])
        settled = and_(CALLS.c.state.in_(_ANSWERED), ~free)
        undelivered = and_(of_these, settled, CALLS.c.delivered_in.is_(None))
        # First: what is given up now is still to be told.
        async with writing(self._engine) as connection:
            await self._set(connection, undelivered, {"delivered_in": WITHDRAWN})
        return await self._give_up(and_(of_these, free))

    async def unremember(self, chat_id: ChatId) -> None:
        async with writing(self._engine) as connection:
            remembered = and_(CALLS.c.chat_id == chat_id, CALLS.c.remember)
            await self._set(connection, remembered, {"remember": False})

    async def abort(self, approval_id: ApprovalId) -> None:
        approved = CALLS.c.state == CallState.APPROVED.value
        await self._give_up(and_(CALLS.c.approval_id == approval_id, approved))

    async def _give_up(self, where: ColumnElement[bool]) -> Sequence[HeldCall]:
        """Cancel calls that wait; those that ran before they were released end as unknown."""
        cancelled = await self._settle(and_(where, CALLS.c.fence == 0), CallEvent.CANCEL)
        async with writing(self._engine) as connection:
            began = await self._orphaned(
                connection, and_(where, CALLS.c.fence > 0), CallEvent.LAPSE
            )
        return sorted([*cancelled, *began], key=lambda call: call.created_at)

    async def undeliver(self, approval_ids: Iterable[ApprovalId]) -> None:
        ids = list(approval_ids)
        if ids:
            async with writing(self._engine) as connection:
                await self._set(connection, CALLS.c.approval_id.in_(ids), {"delivered_in": None})

    async def expire(self) -> Sequence[HeldCall]:
        states = CALLS.c.state.in_([CallState.PENDING.value, CallState.APPROVED.value])
        due = and_(states, CALLS.c.expires_at <= self._now, _is_open())
        return await self._settle(due, CallEvent.EXPIRE)

    async def next_expiry(self) -> float | None:
        # Each by the index: the first one of a state is found without looking at the others.
        first = [
            select(func.min(CALLS.c.expires_at)).where(state)
            for state in (_is_pending(), _is_awaited())
        ]
        async with reading(self._engine) as connection:
            found = [(await connection.execute(query)).scalar_one() for query in first]
        return min((float(moment) for moment in found if moment is not None), default=None)

    async def deliver(self, approval_ids: Iterable[ApprovalId], reply_id: ReplyId) -> None:
        ids = list(approval_ids)
        if not ids:
            return
        async with writing(self._engine) as connection:
            await self._set(connection, CALLS.c.approval_id.in_(ids), {"delivered_in": reply_id})

    async def lapse_orphans(self, chat_id: ChatId | None = None) -> Sequence[HeldCall]:
        alive = self._living(TURNS.c.reply_id == CALLS.c.holder).correlate(CALLS)
        orphans = and_(CALLS.c.state == CallState.RUNNING.value, ~alive.exists(), _in_chat(chat_id))
        again = and_(CALLS.c.idempotent, CALLS.c.fence < MOST_RUNS)
        async with writing(self._engine) as connection:
            # Each says which it means: a lease may lapse between the two statements.
            released = await self._orphaned(connection, and_(orphans, again), CallEvent.RELEASE)
            return released + await self._orphaned(
                connection, and_(orphans, ~again), CallEvent.LAPSE
            )

    async def unknown(self, within: float, chat_id: ChatId | None = None) -> Sequence[HeldCall]:
        decided = func.coalesce(CALLS.c.decided_at, CALLS.c.created_at)
        young = and_(CALLS.c.state == CallState.UNKNOWN.value, decided >= self._now - within)
        return await self._select(and_(young, _in_chat(chat_id)))

    async def _orphaned(
        self, connection: AsyncConnection, where: ColumnElement[bool], event: CallEvent
    ) -> list[HeldCall]:
        marked = (
            update(CALLS)
            .where(where)
            .values(
                state=next_state(CallState.RUNNING, event).value,
                holder=None,
                trail=self._noted({"event": event.value}),
            )
            .returning(*CALLS.c)
        )
        return [_call(row) for row in (await connection.execute(marked)).mappings()]

    async def resolve(
        self, approval_id: ApprovalId, verdict: Verdict, *, result: JsonValue, error: str | None
    ) -> tuple[Ruling, HeldCall]:
        event = CallEvent.RESOLVE_DONE if error is None else CallEvent.RESOLVE_FAILED
        unknown = and_(CALLS.c.approval_id == approval_id, CALLS.c.state == CallState.UNKNOWN.value)
        known = {
            "state": next_state(CallState.UNKNOWN, event).value,
            "result": _json(result),
            "error": error,
            "done_at": self._now,
            "trail": self._noted(decision_note(event, verdict)),
        }
        async with writing(self._engine) as connection:
            accepted = await self._set(connection, unknown, known)
            call = await self._row(connection, approval_id)
        return ("accepted" if accepted else output_ruling(call, result, error)), call

    async def pending(self, limit: int) -> Sequence[HeldCall]:
        return await self._select(and_(_is_pending(), CALLS.c.approval), limit)

    async def page(
        self, after: HeldCall | None, limit: int, *, owner: UserId | None = None
    ) -> Sequence[HeldCall]:
        among: ColumnElement[bool] = true()
        if owner is not None:
            among = or_(CALLS.c.owner == owner, CALLS.c.steps != "[]")
        if after is not None:
            same_time = and_(
                CALLS.c.created_at == after.created_at, CALLS.c.approval_id > after.approval_id
            )
            among = and_(among, or_(CALLS.c.created_at > after.created_at, same_time))
        return await self._select(among, limit)

    async def count_pending(self, owner: UserId | None = None) -> int:
        count = select(func.count()).where(_is_pending(), CALLS.c.approval)
        if owner is not None:
            count = count.where(CALLS.c.owner == owner)
        async with reading(self._engine) as connection:
            return int((await connection.execute(count)).scalar_one())

    async def undelivered(self) -> Sequence[tuple[ChatId, UserId]]:
        settled = and_(CALLS.c.state.in_(_ANSWERED), ~_is_open())
        chats = (
            select(CALLS.c.chat_id, CALLS.c.owner)
            .where(settled, CALLS.c.delivered_in.is_(None))
            .distinct()
        )
        async with reading(self._engine) as connection:
            rows = (await connection.execute(chats)).all()
        return [(ChatId(chat_id), UserId(owner)) for chat_id, owner in rows]

    async def purge(self, keep: float) -> int:
        last = func.coalesce(CALLS.c.done_at, CALLS.c.decided_at, CALLS.c.created_at)
        old = and_(CALLS.c.state.in_(_SETTLED), last < self._now - keep)
        async with writing(self._engine) as connection:
            return (await connection.execute(delete(CALLS).where(old))).rowcount

    async def _end(
        self, approval_id: ApprovalId, fence: int, event: CallEvent, more: dict[str, Any]
    ) -> bool:
        held = and_(
            CALLS.c.approval_id == approval_id,
            CALLS.c.state == CallState.RUNNING.value,
            CALLS.c.fence == fence,
        )
        ended = {
            "state": next_state(CallState.RUNNING, event).value,
            "holder": None,
            "trail": self._noted({"event": event.value}),
            **more,
        }
        async with writing(self._engine) as connection:
            return await self._set(connection, held, ended)

    async def _settle(self, where: ColumnElement[bool], event: CallEvent) -> Sequence[HeldCall]:
        ended = self._ended(event, CallState.PENDING)
        settled = update(CALLS).where(where).values(**ended).returning(*CALLS.c)
        async with writing(self._engine) as connection:
            rows = (await connection.execute(settled)).mappings().all()
        return sorted((_call(row) for row in rows), key=lambda call: call.created_at)

    def _ended(self, event: CallEvent, since: CallState) -> dict[str, Any]:
        """Return the columns of a call that ended undecided."""
        return {
            "state": next_state(since, event).value,
            "decided_at": self._now,
            "trail": self._noted({"event": event.value}),
        }

    def _noted(self, note: JsonObject) -> ColumnElement[str]:
        """Return the trail with one line more, at the database's time."""
        # Added by the same statement that makes the change: the trail cannot miss one.
        moment = literal('{"at":') + cast(self._now, Text)
        return CALLS.c.trail + moment + literal(f",{dumps(note)[1:]}\n")

    def _living(self, which: ColumnElement[bool]) -> Select[Any]:
        return select(TURNS.c.chat_id).where(
            which, TURNS.c.running, TURNS.c.lease_until > self._now
        )

    async def _set(
        self, connection: AsyncConnection, where: ColumnElement[bool], values: dict[str, Any]
    ) -> bool:
        """Change the rows that still are as `where` says; whether there was one."""
        changed = await connection.execute(update(CALLS).where(where).values(**values))
        return changed.rowcount > 0

    async def _row(self, connection: AsyncConnection, approval_id: ApprovalId) -> HeldCall:
        query = select(CALLS).where(CALLS.c.approval_id == approval_id)
        return _call((await connection.execute(query)).mappings().one())

    async def _select(self, where: ColumnElement[bool], limit: int | None = None) -> list[HeldCall]:
        query = _chosen(where).limit(limit)
        async with reading(self._engine) as connection:
            return [_call(row) for row in (await connection.execute(query)).mappings()]


def _chosen(where: ColumnElement[bool]) -> Select[Any]:
    """Return the query for some calls, oldest first."""
    return select(CALLS).where(where).order_by(CALLS.c.created_at, CALLS.c.approval_id)


def _is_open() -> ColumnElement[bool]:
    """The rows for which `HeldCall.is_open` holds."""
    return or_(_is_pending(), _is_awaited())


def _is_awaited() -> ColumnElement[bool]:
    """The rows whose output the client still owes."""
    return and_(CALLS.c.state == CallState.APPROVED.value, CALLS.c.kind != CallKind.TOOL.value)


def _is_pending() -> ColumnElement[bool]:
    return CALLS.c.state == CallState.PENDING.value


def _in_chat(chat_id: ChatId | None) -> ColumnElement[bool]:
    return true() if chat_id is None else CALLS.c.chat_id == chat_id


def _is_about(verdict: Verdict) -> ColumnElement[bool]:
    """The rows for which `rulings.is_about` holds, if the verdict is an approval."""
    if verdict.shown_hash is None:
        return CALLS.c.edited_hash.is_(None)
    return func.coalesce(CALLS.c.edited_hash, CALLS.c.arguments_hash) == verdict.shown_hash


def _json(value: JsonValue) -> str | None:
    return None if value is None else dumps(value)


def _columns(call: HeldCall) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for field in dataclasses.fields(call):
        value = getattr(call, field.name)
        columns[field.name] = _json(value) if field.name in _JSON else value
    columns["steps"] = dumps([dataclasses.asdict(step) for step in call.steps])
    columns["trail"] = "".join(f"{dumps(entry)}\n" for entry in call.trail)
    return columns


def _call(row: RowMapping) -> HeldCall:
    fields = dict(row)
    for name in _JSON:
        fields[name] = None if fields[name] is None else json.loads(fields[name])
    fields["kind"] = CallKind(fields["kind"])
    fields["state"] = CallState(fields["state"])
    fields["steps"] = tuple(
        ApprovalStep(step["name"], tuple(step["by"]), step["four_eyes"])
        for step in json.loads(fields["steps"])
    )
    # Not splitlines: it also splits at characters that JSON leaves as they are.
    fields["trail"] = tuple(json.loads(line) for line in fields["trail"].split("\n") if line)
    return HeldCall(**fields)
