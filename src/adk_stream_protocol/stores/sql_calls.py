"""Held calls in a table. Every change is one statement that checks and sets."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Float, RowMapping, and_, func, or_, select, update
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
from adk_stream_protocol.lifecycle import CallEvent, CallKind, CallState, HeldCall, next_state
from adk_stream_protocol.ports import Ruling, Verdict
from adk_stream_protocol.stores.rulings import WITHDRAWN, output_ruling, verdict_ruling
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_schema import CALLS, TURNS
from adk_stream_protocol.wire.values import JsonValue, dumps

__all__ = ["SqlCalls", "database_now", "insert_into"]

_ANSWERED: Final = [
    state.value for state in CallState if state not in {CallState.PENDING, CallState.CANCELLED}
]
_JSON: Final = frozenset({"arguments", "payload", "ui", "result"})


def database_now(engine: AsyncEngine) -> ColumnElement[float]:
    """Return the expression for the database's own time, in seconds since the epoch."""
    if engine.dialect.name == "postgresql":
        return func.extract("epoch", func.clock_timestamp()).cast(Float)
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
        return await self._select(CALLS.c.chat_id == chat_id)

    async def of_owner(self, owner: UserId, state: CallState | None = None) -> Sequence[HeldCall]:
        if state is None:
            return await self._select(CALLS.c.owner == owner)
        return await self._select(and_(CALLS.c.owner == owner, CALLS.c.state == state.value))

    async def latest(self, chat_id: ChatId, call_id: CallId) -> HeldCall | None:
        found = await self._select(and_(CALLS.c.chat_id == chat_id, CALLS.c.call_id == call_id))
        return found[-1] if found else None

    async def decide(self, approval_id: ApprovalId, verdict: Verdict) -> tuple[Ruling, HeldCall]:
        event = CallEvent.APPROVE if verdict.approved else CallEvent.DENY
        free = and_(
            CALLS.c.approval_id == approval_id,
            CALLS.c.state == CallState.PENDING.value,
            CALLS.c.approval,
        )
        decision = {
            "state": next_state(CallState.PENDING, event).value,
            "decided_at": self._now,
            "decided_by": verdict.by,
            "decision_id": verdict.decision_id,
            "reason": verdict.reason,
        }
        async with writing(self._engine) as connection:
            if await self._set(connection, and_(free, CALLS.c.expires_at > self._now), decision):
                return "accepted", await self._row(connection, approval_id)
            expired = {"state": CallState.EXPIRED.value, "decided_at": self._now}
            await self._set(connection, and_(free, CALLS.c.expires_at <= self._now), expired)
            call = await self._row(connection, approval_id)
            return verdict_ruling(call, verdict), call

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
        }
        async with writing(self._engine) as connection:
            accepted = await self._set(connection, awaited, given)
            call = await self._row(connection, approval_id)
        return ("accepted" if accepted else output_ruling(call, output, error)), call

    async def claim(self, approval_id: ApprovalId, holder: str) -> HeldCall | None:
        approved = and_(
            CALLS.c.approval_id == approval_id,
            CALLS.c.state == CallState.APPROVED.value,
            CALLS.c.kind == CallKind.TOOL.value,
        )
        claimed = {
            "state": next_state(CallState.APPROVED, CallEvent.CLAIM).value,
            "fence": CALLS.c.fence + 1,
            "holder": holder,
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
        free = and_(
            CALLS.c.chat_id == chat_id,
            CALLS.c.state.in_([CallState.PENDING.value, CallState.APPROVED.value]),
        )
        among = [] if invocations is None else list(invocations)
        if invocations is not None:
            free = and_(free, CALLS.c.invocation_id.in_(among))
        cancelled = await self._settle(free, CallState.CANCELLED)
        of_these = CALLS.c.chat_id == chat_id
        if invocations is not None:
            of_these = and_(of_these, CALLS.c.invocation_id.in_(among))
        settled = CALLS.c.state.in_(_ANSWERED)
        undelivered = and_(of_these, settled, CALLS.c.delivered_in.is_(None))
        async with writing(self._engine) as connection:
            await self._set(connection, undelivered, {"delivered_in": WITHDRAWN})
        return cancelled

    async def abort(self, approval_id: ApprovalId) -> None:
        approved = CALLS.c.state == CallState.APPROVED.value
        await self._settle(and_(CALLS.c.approval_id == approval_id, approved), CallState.CANCELLED)

    async def undeliver(self, approval_ids: Iterable[ApprovalId]) -> None:
        ids = list(approval_ids)
        if ids:
            async with writing(self._engine) as connection:
                await self._set(connection, CALLS.c.approval_id.in_(ids), {"delivered_in": None})

    async def expire(self) -> Sequence[HeldCall]:
        return await self._settle(
            and_(_is_open(), CALLS.c.expires_at <= self._now), CallState.EXPIRED
        )

    async def next_expiry(self) -> float | None:
        async with reading(self._engine) as connection:
            first = select(func.min(CALLS.c.expires_at)).where(_is_open())
            found = (await connection.execute(first)).scalar_one()
            return None if found is None else float(found)

    async def deliver(self, approval_ids: Iterable[ApprovalId], reply_id: ReplyId) -> None:
        ids = list(approval_ids)
        if not ids:
            return
        async with writing(self._engine) as connection:
            await self._set(connection, CALLS.c.approval_id.in_(ids), {"delivered_in": reply_id})

    async def lapse_orphans(self) -> Sequence[HeldCall]:
        alive = select(TURNS.c.reply_id).where(TURNS.c.running, TURNS.c.lease_until > self._now)
        orphans = and_(
            CALLS.c.state == CallState.RUNNING.value, CALLS.c.holder.not_in(alive.scalar_subquery())
        )
        lapsed = (
            update(CALLS)
            .where(orphans)
            .values(state=next_state(CallState.RUNNING, CallEvent.LAPSE).value, holder=None)
            .returning(*CALLS.c)
        )
        async with writing(self._engine) as connection:
            return [_call(row) for row in (await connection.execute(lapsed)).mappings()]

    async def _end(
        self, approval_id: ApprovalId, fence: int, event: CallEvent, more: dict[str, Any]
    ) -> bool:
        held = and_(
            CALLS.c.approval_id == approval_id,
            CALLS.c.state == CallState.RUNNING.value,
            CALLS.c.fence == fence,
        )
        ended = {"state": next_state(CallState.RUNNING, event).value, "holder": None, **more}
        async with writing(self._engine) as connection:
            return await self._set(connection, held, ended)

    async def _settle(self, where: ColumnElement[bool], state: CallState) -> Sequence[HeldCall]:
        settled = (
            update(CALLS)
            .where(where)
            .values(state=state.value, decided_at=self._now)
            .returning(*CALLS.c)
        )
        async with writing(self._engine) as connection:
            rows = (await connection.execute(settled)).mappings().all()
        return sorted((_call(row) for row in rows), key=lambda call: call.created_at)

    async def _set(
        self, connection: AsyncConnection, where: ColumnElement[bool], values: dict[str, Any]
    ) -> bool:
        """Change the rows that still are as `where` says; whether there was one."""
        changed = await connection.execute(update(CALLS).where(where).values(**values))
        return changed.rowcount > 0

    async def _row(self, connection: AsyncConnection, approval_id: ApprovalId) -> HeldCall:
        query = select(CALLS).where(CALLS.c.approval_id == approval_id)
        return _call((await connection.execute(query)).mappings().one())

    async def _select(self, where: ColumnElement[bool]) -> list[HeldCall]:
        query = select(CALLS).where(where).order_by(CALLS.c.created_at, CALLS.c.approval_id)
        async with reading(self._engine) as connection:
            return [_call(row) for row in (await connection.execute(query)).mappings()]


def _is_open() -> ColumnElement[bool]:
    """The rows for which `HeldCall.is_open` holds."""
    awaited = and_(CALLS.c.state == CallState.APPROVED.value, CALLS.c.kind != CallKind.TOOL.value)
    return or_(CALLS.c.state == CallState.PENDING.value, awaited)


def _json(value: JsonValue) -> str | None:
    return None if value is None else dumps(value)


def _columns(call: HeldCall) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for field in dataclasses.fields(call):
        value = getattr(call, field.name)
        columns[field.name] = _json(value) if field.name in _JSON else value
    return columns


def _call(row: RowMapping) -> HeldCall:
    fields = dict(row)
    for name in _JSON:
        fields[name] = None if fields[name] is None else json.loads(fields[name])
    fields["kind"] = CallKind(fields["kind"])
    fields["state"] = CallState(fields["state"])
    return HeldCall(**fields)
