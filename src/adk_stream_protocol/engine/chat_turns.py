"""The running turns: one per chat, owned by the server and not by the request that asked."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
from anyio.abc import TaskGroup, TaskStatus

from adk_stream_protocol.engine.draft import BARE, Draft
from adk_stream_protocol.engine.drain import Drain
from adk_stream_protocol.engine.read_replies import ReadReplies
from adk_stream_protocol.engine.readers import Readers
from adk_stream_protocol.engine.reply import LoggedReply, Reply, Shown, WaitingReply
from adk_stream_protocol.engine.steering import Steering
from adk_stream_protocol.engine.turn import Turn
from adk_stream_protocol.errors import (
    ChatBusy,
    ClientFault,
    Conflict,
    Draining,
    NotRunning,
    trace_of,
)
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import (
    Attached,
    Began,
    Busy,
    Queued,
    Stores,
    TurnRecord,
    WaitingRequest,
    turns_topic,
)
from adk_stream_protocol.telemetry import Meters, Span, span
from adk_stream_protocol.wire.chunks import ErrorChunk
from adk_stream_protocol.wire.requests import BusyPolicy

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


@dataclass(frozen=True, slots=True)
class _Running:
    """A turn of this process, and what ends it at once."""

    turn: Turn
    scope: anyio.CancelScope


@dataclass(slots=True)
class ChatTurns:
    """Takes chats, produces their turns, gives them back."""

    stores: Stores
    max_turns: int = 4
    """How many turns of one user may run at a time."""
    max_waiting: int = 20
    """How many requests may wait for one chat."""
    leave: float = math.inf
    """After how many seconds without a reader a reply is stopped."""
    readers: Readers | None = field(init=False)
    """Who reads; None: replies run on without readers."""
    is_open: Callable[[ChatId], bool] = lambda _chat: False
    """Whether somebody has a chat open, as who listens to a voice does without reading."""
    steering: Steering | None = None
    """Takes messages that steer running turns; None: they wait for their end."""
    drain: Drain = field(default_factory=Drain)
    """Once it has begun, running turns go on and no other begins."""
    meters: Meters = field(default_factory=Meters)
    read: ReadReplies = field(init=False)
    """Which replies were read to their end."""
    _tasks: TaskGroup | None = None
    """Owns the running turns; None while the server is not running."""
    _after: Callable[[Draft, bool], Awaitable[None]] | None = None
    """Called when a turn has ended, failed or not, and its chat is free; None while the server is
    not running."""
    _recover: Callable[[TurnRecord], Awaitable[None]] | None = None
    """Called for a turn that lapsed and is in the way; None while the server is not running."""
    _running: dict[ChatId, _Running] = field(default_factory=dict)
    """The turns that run in this process."""
    _held: dict[ReplyId, TurnRecord | None] = field(default_factory=dict)
    """The replies for which this process has taken chats: from before until after.

    With the turn, if it was asked to stop before it ran.
    """
    _busy: int = 0
    """How many turns are begun, prepared or produced right now; a drain waits for them."""
    _less_busy: anyio.Event = field(default_factory=anyio.Event)
    """Set and replaced whenever one of them is over."""

    def __post_init__(self) -> None:
        self.read = ReadReplies(self.stores.turns)
        self.readers = None if math.isinf(self.leave) else Readers()

    @asynccontextmanager
    async def serving(
        self,
        after: Callable[[Draft, bool], Awaitable[None]],
        recover: Callable[[TurnRecord], Awaitable[None]],
    ) -> AsyncIterator[TaskGroup]:
        """Run turns until the block ends; then let them finish, or hand them over."""
        async with anyio.create_task_group() as tasks:
            self.drain.reset()
            self._tasks, self._after, self._recover = tasks, after, recover
            tasks.start_soon(self._keep)
            tasks.start_soon(self.read.keep)
            try:
                yield tasks
                await self.drained()
                await self._surely(self.read.store)
            finally:
                self._tasks = self._after = self._recover = None
                tasks.cancel_scope.cancel()

    @property
    def running(self) -> int:
        """How many turns run in this process."""
        return len(self._running)

    def holds(self, reply_id: ReplyId) -> bool:
        """Whether this process has a chat for a reply."""
        return reply_id in self._held

    @property
    def is_serving(self) -> bool:
        """Whether turns run here; new ones can be started unless the server drains."""
        return self._tasks is not None

    async def drained(self) -> bool:
        """Begin no more turns; return when the running ones have ended or the time is over.

        True: they have ended.
        """
        self.drain.begin()
        with self.drain.bound():
            while self._busy:
                await self._less_busy.wait()
        return not self._busy

    async def begin(self, draft: Draft, busy: BusyPolicy = "reject") -> Reply:
        """Start a turn that a client asked for, or attach to the one it asked for before.

        If another turn runs in the chat, the request waits for it, unless it is to be rejected:
        then the reply is a `WaitingReply`, and the caller sees to it that what waits is begun.

        Raises:
            ChatBusy: another turn runs in the chat.
            TooMany: too many turns of this user run, or too many requests wait for the chat.
        """
        request, most = draft.waiting(busy), self.max_turns
        began = await self.try_begin(draft, most=most, request=request)
        if isinstance(began, Attached) and self._is_over(began.turn):
            # Whoever asks again knows the answer, and wants another.
            await self.stores.turns.note_read([began.turn])
            began = await self.try_begin(draft, most=most, request=request)
        while isinstance(began, Busy):
            if began.turn.origin is None:
                raise ChatBusy(
                    "A reply is running in this chat. Wait for its end or stop it, then send again."
                )
            # Nobody asked for it: it makes up for a reply that was lost.
            await self.until_ended(began.turn)
            began = await self.try_begin(draft, most=most, request=request)
        if isinstance(began, Queued):
            return self._queued(began)
        if isinstance(began, Attached) and began.turn.key != draft.key:
            steered = draft.waiting("steer")
            assert steered is not None, "only what may wait can steer another turn"
            return self.waiting(steered)
        if isinstance(began, Attached) and not await self._is_kept(began.turn):
            raise Conflict(
                "This message was sent and answered before. Load the chat to see the answer. To "
                'have another one, send it with "trigger": "regenerate-message". Give a new '
                "message a new id.",
                code="message_exists",
            )
        return self.reading(began.turn)

    def _is_over(self, turn: TurnRecord) -> bool:
        """Whether the reply to a message was read to its end, or stopped; see ADR-0016."""
        if turn.running or turn.lapsed or not turn.key.startswith(BARE):
            return False
        return turn.stopping or turn in self.read

    def _queued(self, queued: Queued) -> WaitingReply:
        """Return the reply to a request that waits; stop what it interrupts."""
        if queued.turn.stopping:
            self._stop(queued.turn)
        # The turn may run in another process; its keeper hears this, or looks soon.
        self.stores.wake.hint(_TURNS)
        request = queued.request
        ids = {"chat": request.chat_id, "reply": request.reply_id, "policy": request.policy}
        logger.info("request queued", extra=ids)
        return self.waiting(request)

    def waiting(self, request: WaitingRequest) -> WaitingReply:
        """Return the reply to a request that waits for its chat."""
        record = TurnRecord(request.chat_id, request.owner, request.reply_id, request.key)
        return WaitingReply(
            request,
            self.stores,
            is_leaving=lambda: self.drain.has_begun,
            readers=self.readers,
            on_delivered=self.noting_read(record),
        )

    async def _is_kept(self, turn: TurnRecord) -> bool:
        """Whether a turn's reply can still be read."""
        return turn.running or await self.stores.log.read(turn.reply_id, 0) is not None

    async def begin_when_free(self, draft: Draft) -> None:
        """Start a turn as soon as the chat is free."""
        while isinstance(began := await self.try_begin(draft), Busy):
            await self.until_ended(began.turn)

    async def try_begin(
        self, draft: Draft, *, most: int | None = None, request: WaitingRequest | None = None
    ) -> Began | Attached | Busy | Queued:
        """Take the chat and start the turn, if it is free.

        Args:
            draft: the turn.
            most: how many turns of its owner may run; None: any number.
            request: what waits for the chat if it is busy; None: nothing does.

        Raises:
            TooMany: so many run already, or too many requests wait.
            ClientFault: the turn cannot be prepared; the chat is free again.
        """
        tasks = self._tasks
        if tasks is None:
            raise NotRunning(
                "The lifespan has not started; mount the router in an app whose lifespan runs.",
                public_message="The server is starting or stopping. Try again in a moment.",
            )
        if self.drain.has_begun:
            raise Draining
        with self._being_busy():
            return await self._try_begin(draft, tasks, most, request)

    async def _try_begin(
        self, draft: Draft, tasks: TaskGroup, most: int | None, request: WaitingRequest | None
    ) -> Began | Attached | Busy | Queued:
        while True:
            with self._holding(draft.reply_id) as held:
                began = await self.stores.turns.begin(
                    draft.record(),
                    repeatable=draft.repeatable,
                    over=draft.over,
                    rewinds=draft.rewinds,
                    most=most,
                    request=request,
                    most_waiting=self.max_waiting,
                    waited=draft.waited,
                )
                if isinstance(began, Began):
                    if began.turn.stopping:
                        # Someone may have asked since the chat was taken.
                        self._held[draft.reply_id] = self._held[draft.reply_id] or began.turn
                    await self.stores.log.open(draft.reply_id)
                    begun = replace(draft, stopped=began.turn.stopping)
                    await tasks.start(self._produce, begun, began.previous)
                    held.pop_all()
                    # Whoever has the chat open can hear of it, whoever asked for it.
                    self.stores.wake.hint(turns_topic(draft.chat_id))
                    return began
            if not began.turn.lapsed or draft.over is not None or self._recover is None:
                return began
            await self._recover(began.turn)

    @contextmanager
    def _holding(self, reply_id: ReplyId) -> Iterator[ExitStack]:
        """Keep a chat while it is being taken, and on if the stack is emptied."""
        with ExitStack() as held:
            self._held[reply_id] = None
            held.callback(self._held.pop, reply_id, None)
            yield held

    @asynccontextmanager
    async def taken(self, chat_id: ChatId, owner: UserId) -> AsyncIterator[None]:
        """Take a chat to end it: its turn is stopped, none can begin, then the chat is free."""
        record = TurnRecord(chat_id, owner, ReplyId(f"end-{uuid.uuid4()}"), key="end")
        over: ReplyId | None = None
        while not isinstance(
            began := await self.stores.turns.begin(record, repeatable=True, over=over), Began
        ):
            over = began.turn.reply_id if began.turn.lapsed else None
            if over is None:
                await self.stop(chat_id)
                await self.until_ended(began.turn)
        # Whoever waits for the chat waits for the end of this.
        await self.stores.log.open(record.reply_id)
        self._held[record.reply_id] = None
        try:
            yield
        except BaseException:
            with anyio.move_on_after(_LEAVE, shield=True):
                await self._surely(self.stores.turns.restore, record, began.previous)
            raise
        else:
            await self.stores.turns.forget(chat_id)
        finally:
            self._held.pop(record.reply_id, None)
            with anyio.move_on_after(_LEAVE, shield=True):
                await self._surely(self.stores.log.end, record.reply_id)

    async def stop(self, chat_id: ChatId, *, reply_id: ReplyId | None = None) -> TurnRecord | None:
        """Ask the chat's turn to end soon; return it, or None if none runs.

        Args:
            chat_id: the chat.
            reply_id: only if this is its reply; None: whichever runs.
        """
        record = await self.stores.turns.ask_to_stop(chat_id, reply_id=reply_id)
        if record is not None:
            self._stop(record)
            # The turn may run in another process; its keeper hears this, or looks soon.
            self.stores.wake.hint(_TURNS)
        return record

    def _stop(self, record: TurnRecord) -> None:
        """Stop a turn that was asked to, if it is this process's: now, or as soon as it runs."""
        running = self._running.get(record.chat_id)
        if running is not None and running.turn.reply_id == record.reply_id:
            running.turn.stop(gently=record.gently)
        elif record.reply_id in self._held:
            self._held[record.reply_id] = record

    def reading(self, turn: TurnRecord, shown: Shown | None = None) -> LoggedReply:
        """Return a turn's reply for a reader that has the message so far."""
        return LoggedReply(
            turn.chat_id,
            self.stores.log,
            turn.reply_id,
            own_only=True,
            shown=shown or Shown(),
            on_delivered=self.noting_read(turn),
            readers=self.readers,
        )

    def noting_read(self, turn: TurnRecord) -> Callable[[], None] | None:
        """Return what notes that a turn's reply was read to its end; None: it does not matter."""
        return partial(self.read.note, turn) if turn.key.startswith(BARE) else None

    async def until_ended(self, turn: TurnRecord) -> None:
        """Return when the turn's reply has ended; its chat is free by then."""
        reply = LoggedReply(turn.chat_id, self.stores.log, turn.reply_id)
        while not (await reply.next()).ended:
            pass

    async def _keep(self) -> None:
        """Renew the leases of the running turns, and stop those that were asked to."""
        while True:
            try:
                await self._renew()
            except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
                logger.error("leases not renewed: %s", trace_of(error))  # noqa: TRY400
            await self.stores.wake.wait(_TURNS, min(_KEEP, self.stores.lease / 3))

    async def _renew(self) -> None:
        # Not in the loop: its variables would keep turns that have ended, until the next round.
        held = dict(self._running)
        if self.readers is not None:
            await self._stop_unread(self.readers, held)
        kept = {
            turn.reply_id: turn for turn in await self.stores.turns.renew(frozenset(self._held))
        }
        for turn in kept.values():
            if turn.stopping:
                self._stop(turn)
        for running in held.values():
            reply_id = running.turn.reply_id
            if self.steering is not None and reply_id in kept and kept[reply_id].steered:
                await running.turn.steer(self.steering)
            if reply_id not in kept and reply_id in self._held:
                # Another process has the chat, or may have it any moment.
                logger.warning("turn lost", extra={"reply": reply_id})
                running.scope.cancel()

    async def _stop_unread(self, readers: Readers, held: Mapping[ChatId, _Running]) -> None:
        """Note what is read in this process; stop the turns here that nobody reads anywhere."""
        heard = {turn.turn.reply_id for chat, turn in held.items() if self.is_open(chat)}
        await self.stores.turns.note_readers(readers.take() | heard)
        for turn in await self.stores.turns.unread(self.leave):
            if turn.reply_id in self._held and not turn.stopping:
                logger.info("turn left", extra={"chat": turn.chat_id, "reply": turn.reply_id})
                await self.stop(turn.chat_id, reply_id=turn.reply_id)

    async def _produce(
        self,
        draft: Draft,
        previous: TurnRecord | None,
        *,
        task_status: TaskStatus[None],
    ) -> None:
        """Prepare and produce a turn; what fails before it is prepared is the caller's to see."""
        with self._being_busy():
            with span("adk_stream.turn", chat=draft.chat_id, reply=draft.reply_id) as turning:
                failed = await self._produce_it(draft, previous, turning, task_status=task_status)
            if failed is not None and self._after is not None:
                await self._after(draft, failed)

    async def _produce_it(
        self,
        draft: Draft,
        previous: TurnRecord | None,
        turning: Span,
        *,
        task_status: TaskStatus[None],
    ) -> bool | None:
        """Prepare and produce a turn; return whether it failed, or None if it was handed over."""
        logger.info("turn started", extra=draft.ids())
        try:
            with anyio.fail_after(_PREPARE):
                last = None if previous is None else previous.reply_id
                turn = await draft.prepare(replace(draft, previous=last))
                await self.stores.calls.deliver(draft.delivers, draft.reply_id)
        except BaseException as error:
            self._note(turning, "not_prepared")
            if draft.waited and not isinstance(error, ClientFault):
                # It was accepted: another turn, maybe another process, carries it out.
                with anyio.move_on_after(_LEAVE, shield=True):
                    await self._hand_over(draft)
            else:
                await self._take_back(draft, previous, error)
            raise
        scope = anyio.CancelScope()
        self._running[draft.chat_id] = _Running(turn, scope)
        if (asked := self._held.get(draft.reply_id)) is not None:
            turn.stop(gently=asked.gently)
        task_status.started()
        over = False
        try:
            with scope:
                await self._run(draft, turn)
                over = not turn.cut_off
        finally:
            turn.scope.left()
            self._note(turning, _outcome(turn) if over else "handed_over")
            with anyio.move_on_after(_LEAVE, shield=True):
                if over:
                    await self._give_back(draft, turn)
                else:
                    await self._hand_over(draft)
        return turn.failed if over else None

    async def _run(self, draft: Draft, turn: Turn) -> None:
        try:
            await turn.produce()
            if not turn.cut_off:
                await draft.settle(draft, turn)
        except Exception as error:  # noqa: BLE001  # the edge: other chats must not suffer
            turn.failed = True
            logger.error("turn not settled: %s", trace_of(error), extra=draft.ids())  # noqa: TRY400

    async def _hand_over(self, draft: Draft) -> None:
        """Leave a turn that was cut off to whoever recovers it."""
        self._forget(draft)
        await self._surely(self.stores.turns.release, draft.chat_id, draft.reply_id)
        await self.stores.log.leave(draft.reply_id)
        logger.info("turn handed over", extra=draft.ids())

    def _note(self, turning: Span, outcome: str) -> None:
        turning.note(outcome=outcome)
        self.meters.count("turns", outcome)

    async def _take_back(
        self, draft: Draft, previous: TurnRecord | None, error: BaseException
    ) -> None:
        """Undo the taking of a chat for a turn that could not be prepared."""
        self._forget(draft)
        with anyio.move_on_after(_LEAVE, shield=True):
            # Whoever attached meanwhile is told, and the chat's newest turn is what it was.
            why = "This request could not be carried out. Please send it again."
            if draft.waited and isinstance(error, ClientFault):
                why = error.public_message
            await self._surely(self.stores.log.append, draft.reply_id, [ErrorChunk(why)])
            await self._surely(self._undeliver, draft)
            await self._surely(self.stores.turns.restore, draft.record(), previous)
            await self._surely(self.stores.log.end, draft.reply_id)

    async def _undeliver(self, draft: Draft) -> None:
        """Note that ADK did not get the answers that the turn was to carry, whoever noted it."""
        calls = await self.stores.calls.of_chat(draft.chat_id)
        await self.stores.calls.undeliver(
            [call.approval_id for call in calls if call.delivered_in == draft.reply_id]
        )

    async def _give_back(self, draft: Draft, turn: Turn) -> None:
        self._forget(draft)
        # The chat is free before a reader sees the end: its next request must not be busy.
        try:
            await self._surely(self._end, draft, turn)
        finally:
            # Also when there is no time left: it is noted at once, and written with a later batch.
            await self._surely(self.stores.log.end, draft.reply_id)
        logger.info("turn ended", extra=draft.ids())

    async def _end(self, draft: Draft, turn: Turn) -> None:
        """Give the chat back, and forget what waited and was carried out."""
        # Most turns have taken nothing that waited, and need no statement to forget it.
        may_be_steered = draft.over is not None or turn.scope.is_steered
        heard: Sequence[ReplyId] = ()
        if may_be_steered and self.steering is not None and turn.steering_stored is not None:
            heard = await self.steering.heard(draft.carries, turn.steering_stored)
        await self.stores.turns.end(
            draft.chat_id,
            draft.reply_id,
            failed=turn.failed,
            carried=draft.carries if draft.waited or may_be_steered else None,
            heard=heard,
        )

    def _forget(self, draft: Draft) -> None:
        """Hold the chat no longer: if the store does not hear of it, the turn lapses."""
        self._running.pop(draft.chat_id, None)
        self._held.pop(draft.reply_id, None)

    @contextmanager
    def _being_busy(self) -> Iterator[None]:
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            over, self._less_busy = self._less_busy, anyio.Event()
            over.set()

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


def _outcome(turn: Turn) -> str:
    if turn.failed:
        return "failed"
    return "stopped" if turn.scope.stopping else "done"
