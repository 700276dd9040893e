"""Requests that wait for their chats, in a table. `SqlTurns` adds and takes them as turns begin."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    Update,
    and_,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import RunMode, WaitingRequest
from adk_stream_protocol.stores.sql_calls import database_now, insert_into
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_schema import REQUESTS, TURNS, WAITING
from adk_stream_protocol.wire.requests import BusyPolicy
from adk_stream_protocol.wire.values import digest

__all__ = ["SqlWaiting", "locking", "noting", "steers"]

_WAITS = WAITING.c.taken_in.is_(None)
_STEERS = and_(_WAITS, WAITING.c.policy == "steer", WAITING.c.stopping.is_(False))
# Two requests that came at the very same moment may have the same position.
_IN_ORDER = (WAITING.c.position, WAITING.c.created_at, WAITING.c.reply_id)


class SqlWaiting:
    """The requests that wait, of all processes."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._now = database_now(engine)
        self._notes = noting(engine)

    async def get(self, reply_id: ReplyId) -> WaitingRequest | None:
        found = await self._read(select(WAITING).where(WAITING.c.reply_id == reply_id))
        return found[0] if found else None

    async def of_chat(self, chat_id: ChatId) -> Sequence[WaitingRequest]:
        return await self._read(select(WAITING).where(WAITING.c.chat_id == chat_id, _WAITS))

    async def chats(self) -> Sequence[ChatId]:
        busy = select(TURNS.c.chat_id).where(TURNS.c.chat_id == WAITING.c.chat_id, TURNS.c.running)
        query = select(WAITING.c.chat_id).where(_WAITS, ~busy.exists()).distinct()
        async with reading(self._engine) as connection:
            return [ChatId(name) for name in (await connection.execute(query)).scalars()]

    async def steer(
        self, chat_id: ChatId, reply_id: ReplyId, *, carries: ReplyId
    ) -> Sequence[WaitingRequest]:
        own = and_(TURNS.c.chat_id == chat_id, TURNS.c.reply_id == reply_id)
        alive = and_(own, TURNS.c.running, TURNS.c.lease_until > self._now)
        steering = and_(WAITING.c.chat_id == chat_id, _STEERS)
        taking = update(WAITING).where(steering).values(taken_in=carries).returning(*WAITING.c)
        async with writing(self._engine) as connection:
            # The turn cannot end meanwhile: nobody would look at what it takes after its end.
            if not (await connection.execute(_locking(alive))).rowcount:
                return []
            rows = (await connection.execute(taking)).mappings().all()
            for row in rows:
                noted = {"chat_id": chat_id, "key": digest(row["key"]), "reply_id": reply_id}
                await connection.execute(self._notes, noted)
        return [_request(row) for row in sorted(rows, key=_place)]

    async def carried(self, reply_id: ReplyId) -> Sequence[WaitingRequest]:
        return await self._read(select(WAITING).where(WAITING.c.taken_in == reply_id))

    async def put_back(self, reply_id: ReplyId, requests: Collection[ReplyId]) -> None:
        taken = and_(WAITING.c.taken_in == reply_id, WAITING.c.reply_id.in_(requests))
        async with writing(self._engine) as connection:
            await self._put_back(connection, taken)

    async def stop(self, chat_id: ChatId, *, reply_id: ReplyId | None = None) -> int:
        meant = and_(WAITING.c.chat_id == chat_id, _WAITS, WAITING.c.stopping.is_(False))
        if reply_id is not None:
            meant = and_(meant, WAITING.c.reply_id == reply_id)
        async with writing(self._engine) as connection:
            stopped = await connection.execute(update(WAITING).where(meant).values(stopping=True))
            return stopped.rowcount

    # In the transactions of turns

    async def add(self, connection: AsyncConnection, request: WaitingRequest) -> None:
        """Let a request wait behind all others; those that it interrupts are stopped."""
        of_chat = WAITING.c.chat_id == request.chat_id
        if request.policy == "interrupt":
            others = and_(of_chat, _WAITS, WAITING.c.policy == "interrupt")
            await connection.execute(update(WAITING).where(others).values(stopping=True))
        last = select(func.coalesce(func.max(WAITING.c.position), 0)).where(of_chat)
        values = {
            "reply_id": request.reply_id,
            "chat_id": request.chat_id,
            "owner": request.owner,
            "key": request.key,
            "request": json.dumps(request.request, ensure_ascii=False),
            "mode": request.mode,
            "policy": request.policy,
            "stopping": False,
            "position": last.scalar_subquery() + literal(1),
            "created_at": self._now,
        }
        await connection.execute(insert(WAITING).values(**values))

    async def that_wait(
        self, connection: AsyncConnection, chat_id: ChatId
    ) -> Sequence[WaitingRequest]:
        """Return the requests that wait for a chat, in order."""
        query = select(WAITING).where(WAITING.c.chat_id == chat_id, _WAITS).order_by(*_IN_ORDER)
        return [_request(row) for row in (await connection.execute(query)).mappings()]

    async def take(self, connection: AsyncConnection, reply_id: ReplyId) -> bool | None:
        """Take a request for its own reply; return whether it was stopped, None if none waits."""
        waits = and_(WAITING.c.reply_id == reply_id, _WAITS)
        taking = update(WAITING).where(waits).values(taken_in=reply_id)
        taken = (await connection.execute(taking.returning(WAITING.c.stopping))).one_or_none()
        return None if taken is None else bool(taken.stopping)

    async def forget(
        self, connection: AsyncConnection, carried: ReplyId, heard: Collection[ReplyId] = ()
    ) -> None:
        """Forget what a reply has taken: its own request and those named; the rest waits again."""
        taken = WAITING.c.taken_in == carried
        over = and_(taken, WAITING.c.reply_id.in_([carried, *heard]))
        await connection.execute(delete(WAITING).where(over))
        await self._put_back(connection, taken)

    async def _put_back(self, connection: AsyncConnection, taken: ColumnElement[bool]) -> None:
        back = update(WAITING).where(taken).values(taken_in=None)
        back = back.returning(WAITING.c.chat_id, WAITING.c.key)
        for row in (await connection.execute(back)).all():
            # No reply answers it any more.
            same = and_(REQUESTS.c.chat_id == row.chat_id, REQUESTS.c.key == digest(row.key))
            await connection.execute(delete(REQUESTS).where(same))

    async def forget_chat(self, connection: AsyncConnection, chat_id: ChatId) -> None:
        """Forget what waits for a chat, or was taken there."""
        await connection.execute(delete(WAITING).where(WAITING.c.chat_id == chat_id))

    async def _read(self, query: Select[tuple[object, ...]]) -> Sequence[WaitingRequest]:
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query.order_by(*_IN_ORDER))).mappings()
            return [_request(row) for row in rows]


def locking(chat_id: ChatId) -> Update:
    """Return the statement that keeps others from a chat's turn, and from what waits for it."""
    return _locking(TURNS.c.chat_id == chat_id)


def _locking(which: ColumnElement[bool]) -> Update:
    # Both engines lock what they change, also if it stays as it is.
    return update(TURNS).where(which).values(fence=TURNS.c.fence)


def steers(chat_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the expression for whether requests wait to steer a chat's turn."""
    # Not with EXISTS: what SQLite returns of an UPDATE, SQLAlchemy writes without names of tables.
    return chat_id.in_(select(WAITING.c.chat_id).where(_STEERS)).label("steered")


def noting(engine: AsyncEngine) -> Any:
    """Return the statement that notes which reply answers a request."""
    adding = insert_into(engine, REQUESTS).values(created_at=database_now(engine))
    return adding.on_conflict_do_update(
        index_elements=[REQUESTS.c.chat_id, REQUESTS.c.key],
        set_={
            "reply_id": adding.excluded.reply_id,
            "created_at": adding.excluded.created_at,
        },
    )


def _place(row: RowMapping) -> tuple[object, ...]:
    return tuple(row[column.name] for column in _IN_ORDER)


def _request(row: RowMapping) -> WaitingRequest:
    return WaitingRequest(
        chat_id=ChatId(row["chat_id"]),
        owner=UserId(row["owner"]),
        reply_id=ReplyId(row["reply_id"]),
        key=row["key"],
        request=json.loads(row["request"]),
        mode=cast("RunMode", row["mode"]),
        policy=cast("BusyPolicy", row["policy"]),
        stopping=bool(row["stopping"]),
        taken_in=row["taken_in"],
    )
