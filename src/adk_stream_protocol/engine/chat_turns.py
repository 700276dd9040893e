"""The running turns: one per chat, owned by the server and not by the request that asked."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from adk_stream_protocol.engine.preparation import Draft
from adk_stream_protocol.engine.reply import LoggedReply
from adk_stream_protocol.engine.turn import Turn
from adk_stream_protocol.errors import ChatBusy, NotRunning, TooMany, trace_of
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import Attached, Began, Busy, Stores, TurnRecord
from adk_stream_protocol.wire.chunks import ErrorChunk

__all__ = ["ChatTurns"]

logger = logging.getLogger(__name__)

_TURNS = "turns"
"""The topic of hints that a turn was asked to stop."""

_PREPARE = 60.0
"""How long a turn may take to be prepared: reading the session, rewinding it."""

_LEAVE = 10.0
"""How long giving a chat back may take."""

_PAUSES = (0.1, 0.5, 2.0)
"""How long to wait between tries of what must be done."""

_KEEP = 2.0
"""How long at most until leases are renewed and stops are seen: hints may be lost."""


@dataclass(slots=True)
class ChatTurns:
    """Takes chats, produces their turns, gives them back."""

    stores: Stores
    max_turns: int = 4
    """How many turns of one user may run at a time."""
    _tasks: TaskGroup | None = None
    """Owns the running turns; None while the server is not running."""
    _after: Callable[[ChatId, UserId], Awaitable[None]] | None = None
    """Called when a turn has ended and its chat is free; None while the server is not running."""
    _running: dict[ChatId, Turn] = field(default_factory=dict)
    """The turns that run in this process."""

    @asynccontextmanager
    async def serving(
        self, after: Callable[[ChatId, UserId], Awaitable[None]]
    ) -> AsyncIterator[TaskGroup]:
        """Run turns until the block ends; then those still running are cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks, self._after = tasks, after
            tasks.start_soon(self._keep)
            try:
                yield tasks
            finally:
                self._tasks = self._after = None
                tasks.cancel_scope.cancel()

    @property
    def is_serving(self) -> bool:
        """Whether turns can be started."""
        return self._tasks is not None

    async def begin(self, draft: Draft) -> LoggedReply:
        """Start a turn that a client asked for, or attach to the one it asked for before.

        Raises:
            ChatBusy: another turn runs in the chat.
            TooMany: too many turns of this user run.
        """
        current = await self.stores.turns.latest(draft.chat_id)
        is_running = current is not None and current.running
        if not is_running and await self.stores.turns.running_of(draft.owner) >= self.max_turns:
            raise TooMany(
                f"{self.max_turns} replies of yours are running already. Wait for one to end, or "
                "stop it."
            )
        began = await self.try_begin(draft)
        if isinstance(began, Busy):
            raise ChatBusy(
                "A reply is running in this chat. Wait for its end or stop it, then send again."
            )
        return self.reading(began.turn)

    async def begin_when_free(self, draft: Draft) -> None:
        """Start a turn as soon as the chat is free."""
        while isinstance(began := await self.try_begin(draft), Busy):
            await self.until_ended(began.turn)

    async def try_begin(self, draft: Draft) -> Began | Attached | Busy:
        """Take the chat and start the turn, if it is free.

        Raises:
            ClientFault: the turn cannot be prepared; the chat is free again.
        """
        tasks = self._tasks
        if tasks is None:
            raise NotRunning(
                "The lifespan has not started; mount the router in an app whose lifespan runs.",
                public_message="The server is starting or stopping. Try again in a moment.",
            )
        began = await self.stores.turns.begin(draft.record(), repeatable=draft.repeatable)
        if isinstance(began, Began):
            await self.stores.log.open(draft.reply_id)
            await tasks.start(self._produce, draft, began.previous)
        return began

    @asynccontextmanager
    async def taken(self, chat_id: ChatId, owner: UserId) -> AsyncIterator[None]:
        """Take a chat to end it: its turn is stopped, none can begin, then the chat is free."""
        record = TurnRecord(chat_id, owner, ReplyId(f"end-{uuid.uuid4()}"), key="end")
        while not isinstance(
            began := await self.stores.turns.begin(record, repeatable=True), Began
        ):
            await self.stop(chat_id)
            await self.until_ended(began.turn)
        # Whoever waits for the chat waits for the end of this.
        await self.stores.log.open(record.reply_id)
        try:
            yield
        except BaseException:
            with anyio.move_on_after(_LEAVE, shield=True):
                await self._surely(self.stores.turns.restore, record, began.previous)
            raise
        else:
            await self.stores.turns.forget(chat_id)
        finally:
            with anyio.move_on_after(_LEAVE, shield=True):
                await self._surely(self.stores.log.end, record.reply_id)

    async def stop(self, chat_id: ChatId) -> TurnRecord | None:
        """Ask the chat's turn to end soon; return it, or None if none runs."""
        record = await self.stores.turns.ask_to_stop(chat_id)
        if record is not None:
            # The turn may run in another process; its keeper hears this, or looks soon.
            self.stores.wake.hint(_TURNS)
        return record

    def reading(self, turn: TurnRecord, *, known: frozenset[str] = frozenset()) -> LoggedReply:
        """Return a turn's reply for a reader that has the message so far."""
        return LoggedReply(turn.chat_id, self.stores.log, turn.reply_id, own_only=True, known=known)

    async def until_ended(self, turn: TurnRecord) -> None:
        """Return when the turn's reply has ended; its chat is free by then."""
        reply = LoggedReply(turn.chat_id, self.stores.log, turn.reply_id)
        while not (await reply.next()).ended:
            pass

    async def _keep(self) -> None:
        """Renew the leases of the running turns, and stop those that were asked to."""
        while True:
            try:
                for chat_id in await self.stores.turns.renew():
                    if chat_id in self._running:
                        self._running[chat_id].stop()
            except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
                logger.error("leases not renewed: %s", trace_of(error))  # noqa: TRY400
            await self.stores.wake.wait(_TURNS, _KEEP)

    async def _produce(
        self,
        draft: Draft,
        previous: TurnRecord | None,
        *,
        task_status: TaskStatus[None],
    ) -> None:
        """Prepare and produce a turn; what fails before it is prepared is the caller's to see."""
        logger.info("turn started", extra=draft.ids())
        try:
            with anyio.fail_after(_PREPARE):
                turn = await draft.prepare(draft)
                await self.stores.calls.deliver(draft.delivers, draft.reply_id)
        except BaseException:
            await self._take_back(draft, previous)
            raise
        self._running[draft.chat_id] = turn
        task_status.started()
        try:
            current = await self.stores.turns.latest(draft.chat_id)
            if current is not None and current.stopping:
                turn.stop()
            await turn.produce()
            await draft.settle(draft)
        except Exception as error:  # noqa: BLE001  # the edge: other chats must not suffer
            turn.failed = True
            logger.error("turn not settled: %s", trace_of(error), extra=draft.ids())  # noqa: TRY400
        finally:
            with anyio.move_on_after(_LEAVE, shield=True):
                await self._give_back(draft, failed=turn.failed)
        if self._after is not None and not turn.failed:
            await self._after(draft.chat_id, draft.owner)

    async def _take_back(self, draft: Draft, previous: TurnRecord | None) -> None:
        """Undo the taking of a chat for a turn that could not be prepared."""
        with anyio.move_on_after(_LEAVE, shield=True):
            # Whoever attached meanwhile is told, and the chat's newest turn is what it was.
            told = [ErrorChunk("This request could not be carried out. Please send it again.")]
            await self._surely(self.stores.log.append, draft.reply_id, told)
            await self._surely(self.stores.turns.restore, draft.record(), previous)
            await self._surely(self.stores.log.end, draft.reply_id)

    async def _give_back(self, draft: Draft, *, failed: bool) -> None:
        self._running.pop(draft.chat_id, None)
        # The chat is free before a reader sees the end: its next request must not be busy.
        end = partial(self.stores.turns.end, failed=failed)
        await self._surely(end, draft.chat_id, draft.reply_id)
        await self._surely(self.stores.log.end, draft.reply_id)
        logger.info("turn ended", extra=draft.ids())

    async def _surely(self, do: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Do something that must be done, though a store may be down for a moment."""
        for pause in _PAUSES:
            try:
                await do(*arguments)
            except Exception as error:  # noqa: BLE001  # the edge: whatever a store raises
                logger.error("store failed, trying again: %s", trace_of(error))  # noqa: TRY400
                await anyio.sleep(pause)
            else:
                return
