"""One turn: a run of the agent, translated into the log until it ends.

Whoever reads the log does not matter here: a turn never waits for a reader, and a reader that
leaves does not end it. Every reply ends, whatever happens; one whose database goes away is left to
whoever recovers it.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import anyio
from google.adk.events.event import Event

from adk_stream_protocol.engine.steering import Steering
from adk_stream_protocol.engine.told_cards import ToldCards
from adk_stream_protocol.errors import AdkStreamError, StoreLost, trace_of
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.identifiers import InvocationId, ReplyId
from adk_stream_protocol.ports import AgentRun, Log
from adk_stream_protocol.translation.cards import call_answered, card
from adk_stream_protocol.translation.events import EventTranslator
from adk_stream_protocol.translation.history import lane_of, steering_of
from adk_stream_protocol.translation.input_holdback import InputHoldback
from adk_stream_protocol.translation.text_blocks import BlockKind
from adk_stream_protocol.wire.entries import CallHeld, Entry, OwnBegins

__all__ = ["Turn", "TurnLimits"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How long a turn, and one tool within it, may take, in seconds."""

    turn: float = 600.0
    tool: float = 120.0
    grace: float = 2.0
    """How long a run that was asked to end may take to."""


@dataclass(slots=True)
class Turn:
    """Produces one reply."""

    reply_id: ReplyId
    translator: EventTranslator
    scope: RunScope
    log: Log
    ledger: Ledger
    limits: TurnLimits
    runs: Sequence[AgentRun] = ()
    """One after another; none: the opening says it all."""
    opening: Sequence[Entry] = ()
    """What the reply begins with, the start chunk included."""
    keep_text: Callable[[Event, str], Awaitable[None]] | None = None
    """Stores text that a stop cut off; None: it is not stored."""
    steering_stored: Callable[[], Awaitable[Collection[str]]] | None = None
    """Reads which messages steered the chat's turns, as its session has them; None: none did."""
    keep_message: Callable[[], Awaitable[None]] | None = None
    """Stores the user's message, if a stop came before ADK could; None: there is none."""
    told: bool = False
    """The opening ends the reply: there is nothing to conclude."""
    failed: bool = False
    """The reply ended with an error."""
    cut_off: bool = False
    """The database went away: what is left to do is another turn's."""
    _last: Event | None = None
    """The newest event; None before the first."""
    _run: AgentRun | None = None
    """The run that is followed; None before the first."""
    _following: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Ends the following of runs that do not end by themselves."""
    _stop_asked: bool = False
    _gently: bool = False
    """It stops only when the tools have begun that a person approved before."""
    _is_stored: bool = False
    """ADK has stored what the turn was given."""
    _holdback: InputHoldback = field(default_factory=InputHoldback)
    """The calls that are not shown as complete yet."""
    _writing: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    """Tools start while events are written: what both show keeps its order."""
    _broken: Exception | None = None
    """Why a piece that came past ADK could not be written; None: all could."""
    _cards: ToldCards = field(init=False)

    def __post_init__(self) -> None:
        self._cards = ToldCards(self.ledger.calls)

    def stop(self, *, gently: bool = False) -> None:
        """Ask the turn to end soon. A tool that is running is let finish.

        Args:
            gently: whether tools that the turn was begun for, because a person approved them, are
                let begin and finish first.
        """
        self._gently = gently and (self._gently or not self._stop_asked)
        self._stop_asked = True
        self.scope.notify()

    async def steer(self, steering: Steering) -> None:
        """Let messages that wait go in front of the next question to the model."""
        self.scope.may_be_steered = True
        run = self._run
        if run is None or self.scope.live is None or self.scope.stopping:
            return
        # A live model hears them now.
        taken = await steering.take(self.scope)
        unheard = [message for message in taken if not run.hear(message)]
        await steering.put_back(self.scope, unheard)

    @property
    def stopped(self) -> bool:
        """Whether someone asked it to end."""
        return self._stop_asked

    async def produce(self) -> None:
        """Write the reply to the log, to its very end. Never raises but for cancellation."""
        # A reader takes the first chunk for a promise: what was said must be stored by then.
        self.scope.stored = self._stored
        self.scope.steered = self._show_steering
        try:
            async with anyio.create_task_group() as watch:
                watch.start_soon(self._watch)
                watch.start_soon(self._show_running)
                with self._following:
                    await self._follow()
                self._look_back()
                await self._keep_unheard()
                await self._open()
                if not self.told:
                    await self._conclude()
                watch.cancel_scope.cancel()
        except BaseException as error:  # the edge: a reply must end, whatever broke
            if not _is_failure(error):
                # The turn is handed over as it stands, its running calls included.
                raise
            if self.scope.live is None and _is_loss(error):
                logger.error(  # noqa: TRY400
                    "turn cut off: %s", trace_of(error), extra=self._ids()
                )
                self.cut_off = True
                return
            await self._fail(error)
        with anyio.move_on_after(5, shield=True):
            await self._leave_no_call_running()

    async def _follow(self) -> None:
        run_scope.set(self.scope)
        if self.scope.live is None:
            self.scope.tell = self._tell
        try:
            for run in self.runs:
                if self.scope.stopping:
                    return
                self._run = run
                async with aclosing(run.events()) as events:
                    async for event in events:
                        await self._take(event)
        except BaseException as error:
            # ADK raises whatever the model, a callback or a tool did; after a stop it does not
            # matter any more.
            if not _is_failure(error) or not self.scope.stopping:
                raise
            logger.info("run ended by stop", extra=self._ids())
        finally:
            self.scope.tell = None

    async def _take(self, event: Event) -> None:
        self._look_back()
        self._last = event
        if self.scope.due and not event.get_function_responses():
            # The model goes on: what is not running by now will not.
            self.scope.due.clear()
            self.scope.notify()
        if self.scope.decided:
            self._note_decided()
        await self._write(self.translator.feed(event))
        if self.scope.telling:
            self.scope.told(event)
        for passage in self.scope.passages:
            passage.take(event)

    async def _tell(self, like: Event, kind: BlockKind, text: str) -> bool:
        """Write a piece that goes on with text which is open; False if it does not.

        What is being written meanwhile is another agent's: it may come before or after.
        """
        more = self.translator.more(like, kind, text)
        if more is None:
            return False
        self._last = like
        try:
            await self.log.append(self.reply_id, (more,))
        except Exception as error:  # noqa: BLE001  # ADK would take it for the model's
            self._broken = error
            self.scope.tell = None
            self._following.cancel()
        return True

    def _look_back(self) -> None:
        """Raise what kept a piece that came past ADK from being written."""
        if self._broken is not None:
            raise self._broken

    def _note_decided(self) -> None:
        """Let the translator know what a policy decided since the last event."""
        for call in self.scope.decided:
            self.translator.decided(call_answered(call))
        self.scope.decided.clear()

    async def _stored(self) -> None:
        self._is_stored = True
        await self._open()

    async def _show_steering(self, event: Event) -> None:
        message = steering_of(event)
        if message is not None:
            await self._write(self.translator.steer(message))

    async def _keep_unheard(self) -> None:
        """Store the message of a turn that was stopped before ADK took it: it was said."""
        if self.scope.stopping and not self._is_stored and self.keep_message is not None:
            await self.keep_message()
            # A message without parts is none: its reader gets no beginning of one.
            self.opening = [OwnBegins()] if self.opening else ()

    async def _conclude(self) -> None:
        self._note_decided()
        text = self.translator.unfinished_text
        if self.scope.stopping or self.translator.aborted:
            # Before the reply says how they ended.
            await self._leave_no_call_running()
            if self._stop_asked:
                await self._cards.give_up()
            await self._write(self.translator.stop())
            await self._keep(text)
        elif self.translator.failed:
            self.failed = True
            error_id = self._error_id()
            # ADK's text of it may quote the prompt.
            logger.error("model reported a failure", extra={**self._ids(), "error": error_id})
            await self._write(self.translator.fail(_public_text(error_id)))
        else:
            if self.translator.interrupted:
                # Before the reply ends: who loads the chat then finds it.
                await self._keep(text)
            await self._write(self.translator.finish())

    async def _keep(self, text: str) -> None:
        """Store text that was shown and that ADK will not store."""
        if text and self._last is not None and self.keep_text is not None:
            # The newest event may be one that says only that the connection was lost.
            model = self._last.model_version or self.translator.model
            await self.keep_text(self._last.model_copy(update={"model_version": model}), text)

    async def _fail(self, error: BaseException) -> None:
        self.failed = True
        self._note_decided()
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        error_id = self._error_id()
        logger.error("turn failed: %s", trace_of(error), extra={**self._ids(), "error": error_id})
        public = error.public_message if isinstance(error, AdkStreamError) else None
        with anyio.move_on_after(5, shield=True):
            await self._write(self.translator.fail(public or _public_text(error_id)))

    async def _open(self) -> None:
        """Write what the reply begins with, once."""
        opening, self.opening = self.opening, ()
        if opening:
            self._cards.note(opening)
            await self.log.append(self.reply_id, opening)

    async def _write(self, entries: Iterable[Entry]) -> None:
        async with self._writing:
            if self.opening:
                await self._open()
            ready = [
                await self._opened(entry) if type(entry) is CallHeld else entry
                for entry in self._holdback.add(tuple(entries), running=self.scope.running)
            ]
            if ready:
                await self.log.append(self.reply_id, await self._cards.renewed(ready))

    async def _show_running(self) -> None:
        """Show calls as complete when they run: no client has to answer them."""
        while True:
            changed = self.scope.changed
            # What is taken out must be written: its result follows.
            with anyio.CancelScope(shield=True):
                async with self._writing:
                    ready = self._holdback.runs(self.scope.running)
                    if ready:
                        await self.log.append(self.reply_id, ready)
            await changed.wait()

    async def _opened(self, held: CallHeld) -> CallHeld:
        """Store the held call before anyone can see it, and so answer it."""
        invocation = self._last.invocation_id if self._last is not None else ""
        agent = self._last.author if self._last is not None else ""
        call = await self.ledger.open(
            held,
            owner=self.scope.owner,
            chat_id=self.scope.chat_id,
            invocation_id=InvocationId(invocation),
            lane=lane_of(self._last) if self._last is not None else "",
            schema=self.scope.schemas.get((agent, held.tool_name)),
            rule=self.scope.rule_for(held),
            patience=self.scope.patience_for(held),
        )
        return dataclasses.replace(
            held,
            card=card(call),
            hint=call.hint or held.hint,
            # The rule says so, not the request.
            approval=call.approval,
            kind=call.kind.value,
        )

    async def _watch(self) -> None:
        """Stop the runs when asked to or when overdue; abandon what hangs."""
        end = anyio.current_time() + self.limits.turn
        while not self._stop_asked and await self._wait_until(min(end, self._tool_due())):
            pass
        while self._gently and self.scope.due and await self._wait_until(end):
            pass
        self.scope.stopping = True
        if self._run is not None:
            self._run.stop()
        while self.scope.running and await self._wait_until(self._tool_due()):
            pass
        told = anyio.current_time() + self.limits.grace
        while self.scope.telling and await self._wait_until(told):
            pass
        if self._run is not None:
            self._run.abandon()
        # ADK's own abort ends a plain agent at once, but a composite one only at its next event.
        await anyio.sleep(self.limits.grace)
        self._following.cancel()

    def _tool_due(self) -> float:
        return min(self.scope.since.values(), default=math.inf) + self.limits.tool

    async def _wait_until(self, due: float) -> bool:
        """Wait for something new to see; False once it is due."""
        with anyio.CancelScope(deadline=due) as waiting:
            await self.scope.changed.wait()
        return not waiting.cancelled_caught

    async def _leave_no_call_running(self) -> None:
        for claimed in self.scope.running.values():
            if claimed is not None:
                await self.ledger.calls.lapse(claimed.approval_id, claimed.fence)

    def _ids(self) -> dict[str, object]:
        return {"chat": self.scope.chat_id, "reply": self.reply_id}

    def _error_id(self) -> str:
        return uuid.uuid4().hex[:12]


def _is_failure(error: BaseException) -> bool:
    """Whether something broke, and not the process being told to end."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_failure, error.exceptions))
    ending = (anyio.get_cancelled_exc_class(), KeyboardInterrupt, SystemExit, GeneratorExit)
    return not isinstance(error, ending)


def _is_loss(error: BaseException) -> bool:
    """Whether a store was lost, whatever ADK made of it."""
    return any(isinstance(known, StoreLost) for known in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised for."""
    yield error
    for inner in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
        yield from _causes(inner)
    if error.__cause__ is not None:
        yield from _causes(error.__cause__)


def _public_text(error_id: str) -> str:
    return f"The agent could not finish this reply (error {error_id}). Please try again."
