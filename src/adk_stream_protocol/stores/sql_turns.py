"""Turns in a table: a chat is taken by one statement, and kept by a lease."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, RowMapping, and_, delete, func, not_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import Attached, Began, Busy, TurnRecord
from adk_stream_protocol.stores.rulings import FAILED_KEY
from adk_stream_protocol.stores.sql_calls import database_now, insert_into
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_log import SqlLog
from adk_stream_protocol.stores.sql_schema import REQUESTS, TURNS
from adk_stream_protocol.wire.values import digest

__all__ = ["SqlTurns"]


class SqlTurns:
    """The newest turn of each chat, of all processes."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        log: SqlLog,
        lease: float = 30.0,
    ) -> None:
        self._engine = engine
        # A turn and its reply end in one transaction: a reader elsewhere that finds no turn running
        # and no end would take the reply for lost.
        self._log = log
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

    async def begin(
        self,
        turn: TurnRecord,
        *,
        repeatable: bool,
        over: ReplyId | None = None,
        rewinds: bool = False,
    ) -> Began | Attached | Busy:
        taken = {
            "owner": turn.owner,
            "reply_id": turn.reply_id,
            "key": turn.key,
            "origin": turn.origin,
            "recoveries": turn.recoveries,
            "running": True,
            "stopping": False,
            "holder": self._holder,
            "lease_until": self._now + self._lease,
        }
        insert = insert_into(self._engine, TURNS).values(chat_id=turn.chat_id, fence=1, **taken)
        take = insert.on_conflict_do_update(
            index_elements=[TURNS.c.chat_id],
            set_={
                **taken,
                "fence": TURNS.c.fence + 1,
                "stopping": False if over is None else TURNS.c.stopping,
            },
            where=self._free(turn, repeatable=repeatable, over=over),
        ).returning(TURNS.c.reply_id)
        async with writing(self._engine) as connection:
            # SQLite's transaction begins with what is written: before that nothing grows stale.
            previous = await self._row(connection, turn.chat_id)
            once = not repeatable and over is None and not rewinds
            earlier = await self._asked_before(connection, turn, previous) if once else None
            if over is not None and previous is None:
                # The chat was deleted meanwhile: there is nothing to take over.
                return Busy(replace(turn, running=False))
            if earlier is not None:
                return Attached(earlier)
            if (await connection.execute(take)).scalar_one_or_none() is not None:
                await self._note_request(connection, turn, over)
                if rewinds:
                    await self._forget_others(connection, turn)
                return Began(turn, previous)
            current = await self._row(connection, turn.chat_id)
        assert current is not None, "the row that was in the way"
        return Attached(current) if current.key == turn.key else Busy(current)

    def _free(
        self, turn: TurnRecord, *, repeatable: bool, over: ReplyId | None
    ) -> ColumnElement[bool]:
        """The rows that a turn may take: those that have ended, or the very one that lapsed."""
        if over is not None:
            return and_(TURNS.c.reply_id == over, TURNS.c.running, not_(self._alive))
        ended = and_(not_(TURNS.c.running), TURNS.c.owner == turn.owner)
        return ended if repeatable else and_(ended, TURNS.c.key != turn.key)

    async def _asked_before(
        self, connection: AsyncConnection, turn: TurnRecord, latest: TurnRecord | None
    ) -> TurnRecord | None:
        """Return the turn that answered the same request, unless it is the chat's newest."""
        same = and_(REQUESTS.c.chat_id == turn.chat_id, REQUESTS.c.key == digest(turn.key))
        found = (await connection.execute(select(REQUESTS.c.reply_id).where(same))).scalar()
        if found is None or latest is None or found == latest.reply_id:
            return None
        return replace(turn, reply_id=ReplyId(found), running=False)

    async def _note_request(
        self, connection: AsyncConnection, turn: TurnRecord, over: ReplyId | None
    ) -> None:
        if over is not None:
            # Whoever asks again finds the reply that stands in for the lost one.
            again = update(REQUESTS).where(REQUESTS.c.reply_id == over)
            await connection.execute(again.values(reply_id=turn.reply_id))
            return
        insert = insert_into(self._engine, REQUESTS).values(
            chat_id=turn.chat_id,
            key=digest(turn.key),
            reply_id=turn.reply_id,
            created_at=self._now,
        )
        await connection.execute(
            insert.on_conflict_do_update(
                index_elements=[REQUESTS.c.chat_id, REQUESTS.c.key],
                set_={"reply_id": turn.reply_id, "created_at": self._now},
            )
        )

    async def end(self, chat_id: ChatId, reply_id: ReplyId, *, failed: bool = False) -> None:
        own = and_(TURNS.c.chat_id == chat_id, TURNS.c.reply_id == reply_id)
        ended: dict[str, object] = {"running": False}
        if failed:
            ended["key"] = FAILED_KEY
        written = 0
        async with writing(self._engine) as connection:
            held = await connection.execute(update(TURNS).where(own).values(**ended))
            if held.rowcount:
                written = await self._log.write_end(connection, reply_id)
            if failed:
                await self._forget_request(connection, reply_id)
        self._log.note_end(reply_id, written)

    async def release(self, chat_id: ChatId, reply_id: ReplyId) -> None:
        own = and_(TURNS.c.chat_id == chat_id, TURNS.c.reply_id == reply_id, TURNS.c.running)
        async with writing(self._engine) as connection:
            await connection.execute(update(TURNS).where(own).values(lease_until=0.0))

    async def lapsed(self) -> Sequence[TurnRecord]:
        query = self._query.where(TURNS.c.running, TURNS.c.lease_until <= self._now)
        async with reading(self._engine) as connection:
            return [_turn(row) for row in (await connection.execute(query)).mappings()]

    async def restore(self, turn: TurnRecord, previous: TurnRecord | None) -> None:
        own = and_(TURNS.c.chat_id == turn.chat_id, TURNS.c.reply_id == turn.reply_id)
        async with writing(self._engine) as connection:
            await self._log.write_end(connection, turn.reply_id)
            if previous is None:
                await connection.execute(delete(TURNS).where(own))
                await self._forget_request(connection, turn.reply_id)
                return
            before = {
                "owner": previous.owner,
                "reply_id": previous.reply_id,
                "key": previous.key,
                "origin": previous.origin,
                "recoveries": previous.recoveries,
                "stopping": previous.stopping,
                # A turn that had lapsed still has.
                "running": previous.lapsed,
                "lease_until": 0.0,
            }
            await connection.execute(update(TURNS).where(own).values(**before))
            if turn.origin is None:
                await self._forget_request(connection, turn.reply_id)
            else:
                back = update(REQUESTS).where(REQUESTS.c.reply_id == turn.reply_id)
                await connection.execute(back.values(reply_id=previous.reply_id))

    async def _forget_others(self, connection: AsyncConnection, turn: TurnRecord) -> None:
        others = and_(REQUESTS.c.chat_id == turn.chat_id, REQUESTS.c.reply_id != turn.reply_id)
        await connection.execute(delete(REQUESTS).where(others))

    async def _forget_request(self, connection: AsyncConnection, reply_id: ReplyId) -> None:
        await connection.execute(delete(REQUESTS).where(REQUESTS.c.reply_id == reply_id))

    async def ask_to_stop(self, chat_id: ChatId) -> TurnRecord | None:
        running = and_(TURNS.c.chat_id == chat_id, self._alive)
        async with writing(self._engine) as connection:
            asked = await connection.execute(update(TURNS).where(running).values(stopping=True))
            return await self._row(connection, chat_id) if asked.rowcount else None

    async def renew(self, replies: Collection[ReplyId]) -> Sequence[TurnRecord]:
        if not replies:
            return []
        own = and_(TURNS.c.reply_id.in_(replies), TURNS.c.holder == self._holder, self._alive)
        kept = (
            update(TURNS)
            .where(own)
            .values(lease_until=self._now + self._lease)
            .returning(*TURNS.c, self._alive.label("alive"))
        )
        async with writing(self._engine) as connection:
            return [_turn(row) for row in (await connection.execute(kept)).mappings()]

    async def running_of(self, owner: UserId) -> int:
        running = select(func.count()).where(TURNS.c.owner == owner, self._alive)
        async with reading(self._engine) as connection:
            return int((await connection.execute(running)).scalar_one())

    async def forget(self, chat_id: ChatId) -> None:
        async with writing(self._engine) as connection:
            await connection.execute(delete(TURNS).where(TURNS.c.chat_id == chat_id))
            await connection.execute(delete(REQUESTS).where(REQUESTS.c.chat_id == chat_id))

    async def lapse_all(self) -> None:
        """Let every turn lapse: for the one process of an embedded database, whose last died."""
        async with writing(self._engine) as connection:
            await connection.execute(update(TURNS).values(lease_until=0.0))

    async def purge(self, keep: float) -> None:
        """Forget the requests whose replies are not kept any more, but for each chat's newest."""
        newest = select(TURNS.c.reply_id)
        old = and_(REQUESTS.c.created_at < self._now - keep, REQUESTS.c.reply_id.not_in(newest))
        async with writing(self._engine) as connection:
            await connection.execute(delete(REQUESTS).where(old))

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
        lapsed=bool(row["running"]) and not row["alive"],
        origin=row["origin"],
        recoveries=row["recoveries"],
    )
