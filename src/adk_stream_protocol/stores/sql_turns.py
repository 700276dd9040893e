"""Turns in a table: a chat is taken by one statement, and kept by a lease."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import RowMapping, and_, delete, func, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import Attached, Began, Busy, TurnRecord
from adk_stream_protocol.stores.rulings import FAILED_KEY
from adk_stream_protocol.stores.sql_calls import database_now, insert_into
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_schema import TURNS

__all__ = ["SqlTurns"]


class SqlTurns:
    """The newest turn of each chat, of all processes."""

    def __init__(self, engine: AsyncEngine, *, lease: float = 30.0) -> None:
        self._engine = engine
        self._lease = lease
        self._now = database_now(engine)
        self._alive = and_(TURNS.c.running, TURNS.c.lease_until > self._now)
        self._query = select(TURNS, self._alive.label("alive"))
        # Names this process among the holders of leases.
        self._holder = uuid.uuid4().hex

    async def owner_of(self, chat_id: ChatId) -> UserId | None:
        turn = await self.latest(chat_id)
        return None if turn is None else turn.owner

    async def latest(self, chat_id: ChatId) -> TurnRecord | None:
        async with reading(self._engine) as connection:
            return await self._row(connection, chat_id)

    async def begin(self, turn: TurnRecord, *, repeatable: bool) -> Began | Attached | Busy:
        taken = {
            "owner": turn.owner,
            "reply_id": turn.reply_id,
            "key": turn.key,
            "running": True,
            "stopping": False,
            "holder": self._holder,
            "lease_until": self._now + self._lease,
        }
        free = not_(self._alive)
        if not repeatable:
            free = and_(free, TURNS.c.key != turn.key)
        insert = insert_into(self._engine, TURNS).values(chat_id=turn.chat_id, fence=1, **taken)
        take = insert.on_conflict_do_update(
            index_elements=[TURNS.c.chat_id],
            set_={**taken, "fence": TURNS.c.fence + 1},
            where=free,
        ).returning(TURNS.c.reply_id)
        # Read before the writing transaction: SQLite would not let a stale reader write.
        previous = await self.latest(turn.chat_id)
        async with writing(self._engine) as connection:
            if (await connection.execute(take)).scalar_one_or_none() is not None:
                return Began(turn, previous)
            current = await self._row(connection, turn.chat_id)
        assert current is not None, "the row that was in the way"
        return Attached(current) if current.key == turn.key else Busy(current)

    async def end(self, chat_id: ChatId, reply_id: ReplyId, *, failed: bool = False) -> None:
        own = and_(TURNS.c.chat_id == chat_id, TURNS.c.reply_id == reply_id)
        ended: dict[str, object] = {"running": False}
        if failed:
            ended["key"] = FAILED_KEY
        async with writing(self._engine) as connection:
            await connection.execute(update(TURNS).where(own).values(**ended))

    async def restore(self, turn: TurnRecord, previous: TurnRecord | None) -> None:
        own = and_(TURNS.c.chat_id == turn.chat_id, TURNS.c.reply_id == turn.reply_id)
        async with writing(self._engine) as connection:
            if previous is None:
                await connection.execute(delete(TURNS).where(own))
                return
            before = {"owner": previous.owner, "reply_id": previous.reply_id, "key": previous.key}
            await connection.execute(update(TURNS).where(own).values(running=False, **before))

    async def ask_to_stop(self, chat_id: ChatId) -> TurnRecord | None:
        running = and_(TURNS.c.chat_id == chat_id, self._alive)
        async with writing(self._engine) as connection:
            asked = await connection.execute(update(TURNS).where(running).values(stopping=True))
            return await self._row(connection, chat_id) if asked.rowcount else None

    async def renew(self) -> Sequence[ChatId]:
        own = and_(TURNS.c.holder == self._holder, TURNS.c.running)
        kept = (
            update(TURNS)
            .where(own)
            .values(lease_until=self._now + self._lease)
            .returning(TURNS.c.chat_id, TURNS.c.stopping)
        )
        async with writing(self._engine) as connection:
            rows = (await connection.execute(kept)).all()
        return [ChatId(chat_id) for chat_id, stopping in rows if stopping]

    async def running_of(self, owner: UserId) -> int:
        running = select(func.count()).where(TURNS.c.owner == owner, self._alive)
        async with reading(self._engine) as connection:
            return int((await connection.execute(running)).scalar_one())

    async def forget(self, chat_id: ChatId) -> None:
        async with writing(self._engine) as connection:
            await connection.execute(delete(TURNS).where(TURNS.c.chat_id == chat_id))

    async def end_all(self) -> None:
        """End every turn: for the one process of an embedded database, whose last life is over."""
        async with writing(self._engine) as connection:
            await connection.execute(update(TURNS).values(running=False))

    async def is_running(self, reply_id: ReplyId) -> bool:
        """Whether some process still writes the reply."""
        query = select(TURNS.c.chat_id).where(TURNS.c.reply_id == reply_id, self._alive)
        async with reading(self._engine) as connection:
            return (await connection.execute(query)).first() is not None

    async def _row(self, connection: AsyncConnection, chat_id: ChatId) -> TurnRecord | None:
        found = await connection.execute(self._query.where(TURNS.c.chat_id == chat_id))
        row = found.mappings().one_or_none()
        return None if row is None else _turn(row)


def _turn(row: RowMapping) -> TurnRecord:
    return TurnRecord(
        chat_id=ChatId(row["chat_id"]),
        owner=UserId(row["owner"]),
        reply_id=ReplyId(row["reply_id"]),
        key=row["key"],
        running=bool(row["alive"]),
        stopping=bool(row["stopping"]),
    )
