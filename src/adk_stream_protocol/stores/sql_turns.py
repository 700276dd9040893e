"""Turns in a table: a chat is taken by one statement, and kept by a lease."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, assert_never, get_args

from sqlalchemy import (
    RowMapping,
    Select,
    and_,
    bindparam,
    delete,
    func,
    literal,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import (
    Attached,
    Began,
    Busy,
    Queued,
    TurnRecord,
    WaitingRequest,
)
from adk_stream_protocol.stores.rulings import (
    FAILED_KEY,
    READ_KEY,
    check_most,
    check_waiting,
    is_same_request,
    is_same_waiting,
)
from adk_stream_protocol.stores.sql_calls import database_now, insert_into
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_log import SqlLog
from adk_stream_protocol.stores.sql_schema import REQUESTS, TURNS, WAITING
from adk_stream_protocol.stores.sql_waiting import SqlWaiting, locking, noting, steers
from adk_stream_protocol.wire.values import digest

__all__ = ["SqlTurns"]

_How: TypeAlias = Literal["once", "again", "over"]
"""How a chat is taken: for a new request, also for the same one again, or over a lapsed turn."""


class SqlTurns:
    """The newest turn of each chat, of all processes."""

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        log: SqlLog,
        waiting: SqlWaiting,
        lease: float = 30.0,
    ) -> None:
        self._engine = engine
        self._waiting = waiting
        # A turn and its reply end in one transaction: a reader elsewhere that finds no turn running
        # and no end would take the reply for lost.
        self._log = log
        self._lease = lease
        self._now = database_now(engine)
        self._alive = and_(TURNS.c.running, TURNS.c.lease_until > self._now)
        self._query = select(TURNS, self._alive.label("alive"))
        # Those of every turn are made once: making one takes nearly as long as executing it.
        self._of_chat = self._query.where(TURNS.c.chat_id == bindparam("chat"))
        self._before = self._what_was_before()
        self._takes = {how: self._taking(how) for how in get_args(_How)}
        self._notes = noting(engine)
        own = and_(TURNS.c.chat_id == bindparam("chat"), TURNS.c.reply_id == bindparam("reply"))
        self._ended = update(TURNS).where(own).values(running=False)
        # One that has just lapsed, too: then its recovery is stopped.
        in_chat = and_(TURNS.c.chat_id == bindparam("chat"), TURNS.c.running)
        # A stop that somebody asked for stays one.
        gently = or_(TURNS.c.gently, not_(TURNS.c.stopping))
        self._interrupts = update(TURNS).where(in_chat).values(stopping=True, gently=gently)
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
        most: int | None = None,
        request: WaitingRequest | None = None,
        most_waiting: int | None = None,
        waited: bool = False,
    ) -> Began | Attached | Busy | Queued:
        asked = {"chat": turn.chat_id, "asker": turn.owner, "asked": digest(turn.key)}
        try:
            async with writing(self._engine) as connection:
                # SQLite's transaction begins with what is written: before that nothing grows stale.
                before = (await connection.execute(self._before, asked)).mappings().one()
                previous = None if before["chat_id"] is None else _turn(before)
                check_most(most, before["others"], previous)
                once = not repeatable and over is None and not rewinds
                earlier = _asked_before(turn, previous, before["earlier"]) if once else None
                if over is not None and previous is None:
                    # The chat was deleted meanwhile: there is nothing to take over.
                    return Busy(replace(turn, running=False))
                if earlier is not None:
                    return Attached(earlier)
                taken: TurnRecord | None = None
                if request is None or not await self._must_wait(connection, turn, before):
                    taken = await self._take(connection, turn, repeatable=repeatable, over=over)
                if taken is not None:
                    taken = await self._noted(connection, taken, over, waited=waited)
                    if rewinds:
                        await self._forget_others(connection, turn.chat_id, turn.reply_id)
                    return Began(taken, previous)
                return await self._in_the_way(
                    connection,
                    turn,
                    request,
                    repeatable=repeatable,
                    once=once,
                    most_waiting=most_waiting,
                )
        except _NoLongerWaits:
            return Busy(replace(turn, running=False))

    async def _must_wait(
        self, connection: AsyncConnection, turn: TurnRecord, before: RowMapping
    ) -> bool:
        """Whether others wait already: the chat is not taken then, but kept from others, too."""
        if not before["waiting"]:
            return False
        # False: it was deleted meanwhile.
        return bool((await connection.execute(locking(turn.chat_id))).rowcount)

    async def _noted(
        self,
        connection: AsyncConnection,
        taken: TurnRecord,
        over: ReplyId | None,
        *,
        waited: bool,
    ) -> TurnRecord:
        """Note the request of a turn that took its chat; return the turn as it is then."""
        await self._note_request(connection, taken, over)
        if not waited:
            return taken
        stopping = await self._waiting.take(connection, taken.reply_id)
        if stopping is None:
            # Another process was faster, and its turn has ended since: nothing was taken.
            raise _NoLongerWaits
        if stopping:
            own = TURNS.c.chat_id == taken.chat_id
            await connection.execute(update(TURNS).where(own).values(stopping=True))
        return replace(taken, stopping=stopping)

    async def _in_the_way(
        self,
        connection: AsyncConnection,
        turn: TurnRecord,
        request: WaitingRequest | None,
        *,
        repeatable: bool,
        once: bool,
        most_waiting: int | None,
    ) -> Attached | Busy | Queued:
        """Return what keeps a turn from its chat; let its request wait, if it may."""
        current = await self._row(connection, turn.chat_id)
        assert current is not None, "the row that was in the way"
        if is_same_request(current, turn, repeatable=repeatable):
            return Attached(current)
        if request is None or current.lapsed:
            return Busy(current)
        # The same request may have been made, and taken, since the chat was looked at.
        answered = await self._answered_in(connection, turn.chat_id, turn.key) if once else None
        if (earlier := _asked_before(turn, current, answered)) is not None:
            return Attached(earlier)
        waiting = await self._waiting.that_wait(connection, turn.chat_id)
        for other in waiting:
            if is_same_waiting(other, request, once=once):
                return Queued(other, current)
        check_waiting(most_waiting, len(waiting))
        if request.policy == "interrupt":
            await connection.execute(self._interrupts, {"chat": turn.chat_id})
            current = await self._row(connection, turn.chat_id) or current
        await self._waiting.add(connection, request)
        return Queued(request, current)

    def _what_was_before(self) -> Select[Any]:
        """Return the query for all that a turn must know before it takes its chat.

        That is the chat's newest turn, the reply to the same request, how many turns of the user
        run, and how many requests wait: one row, whatever there is.
        """
        counted = and_(self._alive, not_(TURNS.c.stopping))
        others = select(func.count()).where(TURNS.c.owner == bindparam("asker"), counted)
        waits = and_(WAITING.c.chat_id == bindparam("chat"), WAITING.c.taken_in.is_(None))
        waiting = select(func.count()).select_from(WAITING).where(waits)
        one = select(literal(1).label("one")).subquery()
        same = and_(REQUESTS.c.chat_id == bindparam("chat"), REQUESTS.c.key == bindparam("asked"))
        found = one.outerjoin(TURNS, TURNS.c.chat_id == bindparam("chat")).outerjoin(REQUESTS, same)
        return self._query.add_columns(
            REQUESTS.c.reply_id.label("earlier"),
            others.correlate(None).scalar_subquery().label("others"),
            waiting.correlate(None).scalar_subquery().label("waiting"),
        ).select_from(found)

    async def _take(
        self,
        connection: AsyncConnection,
        turn: TurnRecord,
        *,
        repeatable: bool,
        over: ReplyId | None,
    ) -> TurnRecord | None:
        """Take the chat if it is free; return the turn as it is then, or None."""
        how: _How = "over" if over is not None else "again" if repeatable else "once"
        values: dict[str, object] = {
            "chat_id": turn.chat_id,
            "owner": turn.owner,
            "reply_id": turn.reply_id,
            "key": turn.key,
            "origin": turn.origin,
            "recoveries": turn.recoveries,
            "holder": self._holder,
        }
        if over is not None:
            values["over"] = over
        taken = (await connection.execute(self._takes[how], values)).one_or_none()
        if taken is None:
            return None
        return replace(turn, stopping=bool(taken.stopping), gently=bool(taken.gently))

    def _taking(self, how: _How) -> Any:
        """Return the statement that takes a chat."""
        insert = insert_into(self._engine, TURNS).values(
            running=True,
            stopping=False,
            gently=False,
            fence=1,
            lease_until=self._now + self._lease,
            read_at=self._now,
        )
        new = insert.excluded
        names = (
            "owner",
            "reply_id",
            "key",
            "origin",
            "recoveries",
            "holder",
            "lease_until",
            "read_at",
        )
        ended = and_(not_(TURNS.c.running), TURNS.c.owner == new.owner)
        match how:
            case "once":
                free = and_(ended, TURNS.c.key != new.key)
            case "again":
                free = ended
            case "over":
                # Not any turn, but the very one that lapsed.
                lapsed = and_(TURNS.c.running, not_(self._alive))
                free = and_(TURNS.c.reply_id == bindparam("over"), lapsed)
            case _:
                assert_never(how)
        return insert.on_conflict_do_update(
            index_elements=[TURNS.c.chat_id],
            set_={
                **{name: new[name] for name in names},
                "running": True,
                "stopping": TURNS.c.stopping if how == "over" else False,
                "gently": TURNS.c.gently if how == "over" else False,
                "fence": TURNS.c.fence + 1,
            },
            where=free,
        ).returning(TURNS.c.stopping, TURNS.c.gently)

    async def _note_request(
        self, connection: AsyncConnection, turn: TurnRecord, over: ReplyId | None
    ) -> None:
        if over is not None:
            # Whoever asks again finds the reply that stands in for the lost one.
            again = update(REQUESTS).where(REQUESTS.c.reply_id == over)
            await connection.execute(again.values(reply_id=turn.reply_id))
            return
        noted = {"chat_id": turn.chat_id, "key": digest(turn.key), "reply_id": turn.reply_id}
        await connection.execute(self._notes, noted)

    async def end(
        self,
        chat_id: ChatId,
        reply_id: ReplyId,
        *,
        failed: bool = False,
        carried: ReplyId | None = None,
        heard: Collection[ReplyId] = (),
    ) -> None:
        ended = self._ended.values(key=FAILED_KEY) if failed else self._ended
        written = 0
        async with writing(self._engine) as connection:
            held = await connection.execute(ended, {"chat": chat_id, "reply": reply_id})
            if held.rowcount:
                written = await self._log.write_end(connection, reply_id)
            if failed:
                await self._forget_request(connection, reply_id)
            if held.rowcount and carried is not None:
                await self._waiting.forget(connection, carried, heard)
        self._log.note_end(reply_id, written)

    async def answered_in(self, chat_id: ChatId, key: str) -> ReplyId | None:
        async with reading(self._engine) as connection:
            return await self._answered_in(connection, chat_id, key)

    async def _answered_in(
        self, connection: AsyncConnection, chat_id: ChatId, key: str
    ) -> ReplyId | None:
        same = and_(REQUESTS.c.chat_id == chat_id, REQUESTS.c.key == digest(key))
        found = await connection.execute(select(REQUESTS.c.reply_id).where(same))
        reply_id: str | None = found.scalar_one_or_none()
        return None if reply_id is None else ReplyId(reply_id)

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
                # The chat's first turn has not waited for it.
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
                "gently": previous.gently,
                # A turn that had lapsed still has.
                "running": previous.lapsed,
                "lease_until": 0.0,
            }
            restored = await connection.execute(update(TURNS).where(own).values(**before))
            if restored.rowcount:
                await self._waiting.forget(connection, turn.reply_id)
            if turn.origin is None:
                await self._forget_request(connection, turn.reply_id)
            else:
                back = update(REQUESTS).where(REQUESTS.c.reply_id == turn.reply_id)
                await connection.execute(back.values(reply_id=previous.reply_id))

    async def forget_others(self, chat_id: ChatId, reply_id: ReplyId) -> None:
        async with writing(self._engine) as connection:
            await self._forget_others(connection, chat_id, reply_id)

    async def note_read(self, turns: Collection[TurnRecord]) -> None:
        replies = [turn.reply_id for turn in turns]
        of_chats = TURNS.c.chat_id.in_({turn.chat_id for turn in turns})
        own = and_(of_chats, TURNS.c.reply_id.in_(replies))
        # One that lapsed still runs: its recovery answers the request.
        running = select(TURNS.c.reply_id).where(own, TURNS.c.running)
        read = and_(REQUESTS.c.reply_id.in_(replies), REQUESTS.c.reply_id.not_in(running))
        async with writing(self._engine) as connection:
            await connection.execute(delete(REQUESTS).where(read))
            ended = update(TURNS).where(own, not_(TURNS.c.running))
            await connection.execute(ended.values(key=READ_KEY))

    async def _forget_others(
        self, connection: AsyncConnection, chat_id: ChatId, reply_id: ReplyId
    ) -> None:
        others = and_(REQUESTS.c.chat_id == chat_id, REQUESTS.c.reply_id != reply_id)
        await connection.execute(delete(REQUESTS).where(others))

    async def _forget_request(self, connection: AsyncConnection, reply_id: ReplyId) -> None:
        await connection.execute(delete(REQUESTS).where(REQUESTS.c.reply_id == reply_id))

    async def ask_to_stop(
        self, chat_id: ChatId, *, reply_id: ReplyId | None = None
    ) -> TurnRecord | None:
        running = and_(TURNS.c.chat_id == chat_id, self._alive)
        if reply_id is not None:
            running = and_(running, TURNS.c.reply_id == reply_id)
        stopping = update(TURNS).where(running).values(stopping=True, gently=False)
        async with writing(self._engine) as connection:
            asked = await connection.execute(stopping)
            return await self._row(connection, chat_id) if asked.rowcount else None

    async def renew(self, replies: Collection[ReplyId]) -> Sequence[TurnRecord]:
        if not replies:
            return []
        own = and_(TURNS.c.reply_id.in_(replies), TURNS.c.holder == self._holder, self._alive)
        kept = (
            update(TURNS)
            .where(own)
            .values(lease_until=self._now + self._lease)
            .returning(*TURNS.c, self._alive.label("alive"), steers(TURNS.c.chat_id))
        )
        async with writing(self._engine) as connection:
            return [_turn(row) for row in (await connection.execute(kept)).mappings()]

    async def note_readers(self, replies: Collection[ReplyId]) -> None:
        if replies:
            read = update(TURNS).where(TURNS.c.reply_id.in_(replies), TURNS.c.running)
            async with writing(self._engine) as connection:
                await connection.execute(read.values(read_at=self._now))

    async def unread(self, seconds: float) -> Sequence[TurnRecord]:
        query = self._query.where(self._alive, TURNS.c.read_at < self._now - seconds)
        async with reading(self._engine) as connection:
            return [_turn(row) for row in (await connection.execute(query)).mappings()]

    async def forget(self, chat_id: ChatId) -> None:
        async with writing(self._engine) as connection:
            await connection.execute(delete(TURNS).where(TURNS.c.chat_id == chat_id))
            await connection.execute(delete(REQUESTS).where(REQUESTS.c.chat_id == chat_id))
            await self._waiting.forget_chat(connection, chat_id)

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
        found = await connection.execute(self._of_chat, {"chat": chat_id})
        row = found.mappings().one_or_none()
        return None if row is None else _turn(row)


class _NoLongerWaits(Exception):
    """The request that a turn was to carry out does not wait any more: undo all of it."""


def _asked_before(
    turn: TurnRecord, latest: TurnRecord | None, found: str | None
) -> TurnRecord | None:
    """Return the turn that answers the same request, unless it is the chat's newest one's."""
    if found is None or latest is None:
        return None
    if found == latest.reply_id:
        # It may have steered that.
        return None if latest.key == turn.key else latest
    return replace(turn, reply_id=ReplyId(found), running=False)


def _turn(row: RowMapping) -> TurnRecord:
    return TurnRecord(
        chat_id=ChatId(row["chat_id"]),
        owner=UserId(row["owner"]),
        reply_id=ReplyId(row["reply_id"]),
        key=row["key"],
        running=bool(row["alive"]),
        stopping=bool(row["stopping"]),
        gently=bool(row["gently"]),
        lapsed=bool(row["running"]) and not row["alive"],
        origin=row["origin"],
        recoveries=row["recoveries"],
        steered=bool(row.get("steered")),
    )
