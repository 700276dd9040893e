"""One `run_live` of the agent. Only here and in `unary_run` does the mode matter.

The run belongs to the server: it goes on between turns, so that the model keeps its connection and
the user can speak at any time. A call that waits for a person waits inside it for a while; then
the run ends, and the answer is given to another.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

import anyio
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.genai import types
from google.genai.errors import APIError
from websockets.exceptions import ConnectionClosed

from adk_stream_protocol.bell import Bell
from adk_stream_protocol.engine.live_joining import read_ahead
from adk_stream_protocol.engine.live_queue import LiveQueue
from adk_stream_protocol.engine.turn_names import TurnNames, now
from adk_stream_protocol.errors import NotRunning, ServerFault
from adk_stream_protocol.held_calls.asking import Asking
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import SteeringMessage
from adk_stream_protocol.translation.live_turns import LiveTurnEnd, begins_turn, sound_of

__all__ = ["LiveLimits", "LiveRun", "run_has_ended"]

logger = logging.getLogger(__name__)


_EXPIRES_WITHIN: Final = 15.0
"""How long it may take until an expired call is noticed."""

_MOST_RESTARTS: Final = 2
"""How often one turn's connection may break before it answers."""

_TAKEN: Final = 60.0
"""How long a turn may take to begin that the run was taken for."""


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """How long a live run may rest, in seconds, and how much it may hold."""

    hold: float = 25.0
    """How long calls wait inside the run. The model's connection dies if nobody reads it."""
    idle: float = 60.0
    """How long it goes on after a turn, if nobody speaks."""
    leave: float = 5.0
    """How long it goes on when nobody has the chat open any more."""
    requests: int = 256
    """How many requests to the model may wait."""


@dataclass(slots=True)
class _Placed:
    """Events of the gate's that must not come before the calls they are about."""

    events: Sequence[Event]
    after: set[str]


class LiveRun:
    """One `run_live`: its events, in one order, for the turns that follow each other."""

    def __init__(
        self,
        runner: Runner,
        *,
        owner: UserId,
        chat_id: ChatId,
        config: RunConfig,
        limits: LiveLimits,
        spoke: Callable[[LiveRun], None],
        store: Callable[[LiveRun, types.Content], Awaitable[None]],
        listeners: list[Callable[[bytes | None], None]],
        joins: bool = False,
    ) -> None:
        self._runner = runner
        self._config = config
        self._limits = limits
        # Whether what the model says may be joined before ADK works on it.
        self._joins = joins
        # Called when someone speaks whom nobody asked to.
        self._spoke = spoke
        # Stores what the user said.
        self._store = store
        self.asks = Asking(chat_id, self._place)
        self.scope = RunScope(
            owner,
            chat_id,
            holder=ReplyId(""),
            asks=self.asks,
            inner_seconds=limits.hold,
            followed=self._followed,
        )
        self.queue = self._new_queue()
        self.names = TurnNames.new()
        """Of the turn that runs, or of the next one that nobody asks for."""
        self.last_reply: ReplyId | None = None
        """Of the last turn of the chat that it knows of."""
        # Who hears what the model says aloud; None: it was interrupted.
        self._listeners = listeners
        self.speaks = types.Modality.AUDIO in (config.response_modalities or [])
        """Whether the model answers aloud."""
        self.failure: Exception | None = None
        """Why it ended; None: it was asked to, or the model was done."""
        self._ended = anyio.Event()
        # What a turn has not followed yet, and whether a turn ends with it.
        self._ready: deque[tuple[Event, bool]] = deque()
        self._seen: set[str] = set()
        self._placed: list[_Placed] = []
        self._in_turn = False
        # Looks for the end of the turn; None: there is none, or its end has come, though whoever
        # follows it may not have got there.
        self._end: LiveTurnEnd | None = None
        self._is_unasked = False
        """Some of what is ready is of a turn that nobody asked for."""
        self._is_speaking = False
        """The model has begun to answer and not ended."""
        self._speaker = ""
        """The agent that spoke last; empty before the first."""
        self._connects_anew = False
        """ADK is about to connect for another agent."""
        self._can_resume = False
        """The model's server keeps the conversation, if the connection breaks."""
        self._is_restarting = False
        self._restarts = 0
        self._rests_since = math.inf
        self._taken_until = -math.inf
        """A turn is about to follow it; if it does not come, the run may end by itself again."""
        self._present = 0
        self._is_started = False
        self._task: asyncio.Task[object] | None = None
        self._asked_to_end = False
        # There is something to read. Apart from the other: there are many events, and whoever only
        # watches how the run stands need not wake for each.
        self._arrived = Bell()
        self._changed = Bell()
        self._take_names(self.names)

    @property
    def chat_id(self) -> ChatId:
        return self.scope.chat_id

    @property
    def is_over(self) -> bool:
        """Whether no more can be made of it."""
        return self._asked_to_end or self._ended.is_set()

    @property
    def in_turn(self) -> bool:
        """Whether a turn follows it now."""
        return self._in_turn

    @property
    def wants_turn(self) -> bool:
        """Whether someone speaks, and no turn follows it."""
        return self._is_unasked and not self._in_turn and not self.is_over

    @property
    def rests(self) -> bool:
        """Whether it goes on and no turn follows it."""
        return self._is_started and not self._in_turn and not self.is_over

    # The run

    def starts(self) -> None:
        """Note that it is about to be served."""
        self._is_started = True

    async def serve(self) -> None:
        """Run until the model is done, the run is asked to end, or it has rested too long."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._rest)
            if self._joins:
                read_ahead(tasks.start_soon)
            await self._run()
            tasks.cancel_scope.cancel()

    async def _run(self) -> None:
        run_scope.set(self.scope)
        try:
            while not self._asked_to_end:
                self._is_restarting = False
                await self._run_once()
                if not self._is_restarting:
                    break
                self._restarts += 1
                self.queue = self._new_queue()
        finally:
            self._ended.set()
            self.queue.close()
            self._notify()

    def _new_queue(self) -> LiveQueue:
        return LiveQueue(self._limits.requests, self._reconnected, self.scope.names)

    async def _run_once(self) -> None:
        self._task = asyncio.current_task()
        try:
            if self.scope.said is not None:
                # It lay in the queue when the connection broke; so the history gets it.
                await self._store(self, self.scope.said)
            await self._follow()
        except asyncio.CancelledError:
            if not self._asked_to_end and not self._is_restarting:
                raise
            assert self._task is not None
            self._task.uncancel()
        except Exception as error:  # noqa: BLE001  # the edge: the turn that follows raises it
            if self._is_worth_another_try(error):
                self._is_restarting = True
            else:
                self.failure = None if self._asked_to_end else _explained(error)
        finally:
            self._task = None

    def _is_worth_another_try(self, error: Exception) -> bool:
        """Whether only the connection broke, and the model had not begun to answer."""
        broke = isinstance(error, APIError | ConnectionClosed | OSError)
        waits = self._end is not None and not self._is_speaking and not self.scope.running
        return broke and waits and self._restarts < _MOST_RESTARTS

    async def _follow(self) -> None:
        events = self._runner.run_live(
            user_id=self.scope.owner,
            session_id=self.scope.chat_id,
            live_request_queue=self.queue,
            run_config=self._config,
        )
        async with aclosing(events):
            async for event in events:
                self._take(event)

    def end(self) -> None:
        """End it soon; a tool that runs is cut off."""
        if self.is_over:
            return
        self._asked_to_end = True
        if not self._is_started:
            self._ended.set()
        elif self._task is not None:
            # Once, and not as a scope of anyio's would: ADK has to await while it cleans up.
            self._task.cancel()
        self._notify()

    async def ended(self) -> None:
        """Return when it has ended."""
        await self._ended.wait()

    # Events

    def _take(self, event: Event) -> None:
        event.invocation_id = self.names.invocation_id
        sounds = sound_of(event)
        for listener in self._listeners if sounds or event.interrupted else ():
            for sound in sounds:
                listener(sound)
            if event.interrupted:
                listener(None)
        self._note(event)
        self._add(event)
        if calls := event.get_function_calls():
            self._seen.update(call.id or "" for call in calls)
            self._place_what_can_be()
        self._arrived.ring()

    def _add(self, event: Event) -> None:
        """Add an event to what a turn is to follow: this one, or the next."""
        if self._end is None and not self._is_unasked:
            if not begins_turn(event):
                return
            self._is_unasked = True
            began = self.names.created_at or now()
            self._take_names(dataclasses.replace(self.names, created_at=began))
            if not self._in_turn:
                self._spoke(self)
        runs = bool(self.scope.running)
        over = self._end is not None and self._end.feed(event, blocks=self.asks.blocks, runs=runs)
        self._ready.append((event, over))
        if over:
            self._end = None
            if not self.asks.waits:
                # What comes next, if nobody types, is another turn.
                self._take_names(TurnNames.new())

    def _note(self, event: Event) -> None:
        """Remember what a lost connection would cost."""
        if begins_turn(event) and event.author != "user":
            self._is_speaking, self._speaker = True, event.author
        if event.turn_complete or event.get_function_responses():
            self._is_speaking = False
        if event.actions.transfer_to_agent:
            # The other agent has a connection of its own.
            self._connects_anew = True
        update = event.live_session_resumption_update
        if update is not None:
            self._can_resume = bool(update.new_handle)

    def _place(self, events: Sequence[Event], after: frozenset[str]) -> None:
        for event in events:
            event.invocation_id = self.names.invocation_id
        self._placed.append(_Placed(events, set(after)))
        self._place_what_can_be()
        self._notify()

    def _place_what_can_be(self) -> None:
        if not self._placed:
            return
        for placed in [placed for placed in self._placed if placed.after <= self._seen]:
            self._placed.remove(placed)
            for event in placed.events:
                self._add(event)

    def _reconnected(self) -> None:
        """ADK has made another connection: what was said on the old one may be lost."""
        if self._connects_anew:
            self._connects_anew = False
            return
        logger.info("live connection made anew", extra={"chat": self.chat_id})
        if self.scope.running:
            return
        if self._end is not None and self._is_speaking:
            self._take(
                Event(
                    author=self._speaker,
                    interrupted=True,
                    turn_complete=True,
                    # What was said of the answer is stored like this.
                    custom_metadata=dict(self.names.ids().stamp),
                )
            )
        elif self._end is not None or not self._can_resume:
            # The model may never have got what it was given last; the session has it.
            self._restart()

    def _restart(self) -> None:
        """Run anew, from what the session holds."""
        if self._restarts >= _MOST_RESTARTS and self._end is not None:
            self.failure = ConnectionError("The model's connection was lost again and again.")
            self.end()
        elif self._end is None:
            self.end()
        elif self._task is not None and not self._is_restarting:
            self._is_restarting = True
            self._task.cancel()

    async def next(self) -> tuple[Event, bool] | None:
        """Return the next event and whether the turn ends with it, or None if there are no more.

        Raises:
            Exception: the run broke.
        """
        while not self._ready:
            if self.is_over:
                await self._ended.wait()
                if self.failure is not None:
                    raise self.failure
                return None
            await self._arrived.wait()
        return self._ready.popleft()

    # Turns

    def say(self, content: types.Content) -> None:
        """Give the model what the user typed."""
        self.queue.send_content(content)
        self.scope.said = content

    def hear(self, message: SteeringMessage) -> bool:
        """Give the model what the user typed into the turn that runs; False: it is over."""
        if self._end is None or self.is_over:
            return False
        self.scope.unstored.append(message)
        self.queue.send_content(message.content)
        self._end.expect_answer()
        return True

    @property
    def may_be_over(self) -> bool:
        """Whether the turn has ended if the model does not answer what it was told meanwhile."""
        return self._end is not None and self._end.is_doubtful

    def conclude(self) -> None:
        """End the turn that is followed: what comes next is another."""
        self._end = None
        self._take_names(TurnNames.new())

    def take(self) -> None:
        """Keep it from ending by itself while a turn that is to follow it is prepared."""
        self._taken_until = anyio.current_time() + _TAKEN
        self._notify()

    def begin(self, names: TurnNames) -> None:
        """Let a turn follow the run from here.

        Raises:
            NotRunning: it has ended meanwhile.
        """
        if self.is_over:
            raise run_has_ended()
        self._take_names(names)
        self.last_reply = names.reply_id
        self._in_turn = True
        self._is_speaking = False
        self._end, self._is_unasked = LiveTurnEnd(), False
        spoken, self._ready = self._ready, deque()
        for event, _ in spoken:
            self._add(event)
        self._restarts = 0
        self._rests_since = math.inf
        self._notify()

    def rest(self) -> None:
        """Let the run go on without a turn, for a while."""
        self._in_turn = False
        self._rests_since = anyio.current_time()
        self._taken_until = -math.inf
        if self._is_unasked:
            self._spoke(self)
        self._notify()

    async def _followed(self) -> None:
        """Return when a turn follows the run."""
        while not self._in_turn and not self.is_over:
            await self._changed.wait()

    def _take_names(self, names: TurnNames) -> None:
        self.names = names
        self.scope.holder = names.reply_id
        self.scope.origin = names.origin
        self.scope.live = names.ids()

    def enter(self) -> None:
        """Note that someone has the chat open."""
        self._present += 1
        self._notify()

    def leave(self) -> None:
        """Note that someone has the chat open no longer."""
        self._present -= 1
        if not self._in_turn:
            self._rests_since = anyio.current_time()
        self._notify()

    async def _rest(self) -> None:
        """End the run when it has rested too long."""
        while not self.is_over:
            due = self._due()
            with anyio.CancelScope(deadline=due):
                await self._changed.wait()
            if anyio.current_time() >= self._due():
                logger.info("live run ended by itself", extra={"chat": self.chat_id})
                self.end()

    def _due(self) -> float:
        longest = self._limits.idle
        if self.asks.waits_inside:
            # Such calls expire first, and the run goes on.
            longest = self._limits.hold + _EXPIRES_WITHIN
        elif self.asks.waits:
            longest = self._limits.hold
        elif self._listeners:
            longest = math.inf
        if not self._present and not self.asks.waits_inside:
            longest = min(longest, self._limits.leave)
        return max(self._rests_since + longest, self._taken_until)

    def _notify(self) -> None:
        self._changed.ring()
        self._arrived.ring()


def run_has_ended() -> NotRunning:
    """Return why a turn cannot follow its run."""
    return NotRunning(
        "The live run has ended before its turn began.",
        public_message="What was said could not be answered. Please say it again.",
    )


def _explained(error: Exception) -> Exception:
    """Return an error that tells a person what to do, where we know."""
    if not isinstance(error, NotImplementedError):
        return error
    told = "This agent's model cannot run live. Use POST /api/chat, or /api/chat/ws."
    return ServerFault(str(error), public_message=told)
