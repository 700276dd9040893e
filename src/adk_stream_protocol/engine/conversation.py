"""Conversations: what clients ask for, turned into turns; answers, turned into continuations.

One chat has one ADK session and at most one running turn. Turns belong to this object, not to the
request that started them: they go on when a tab closes, and a decision made anywhere continues
its chat by itself.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

import anyio
from google.genai import types

from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.engine.draft import Draft
from adk_stream_protocol.engine.live_run import LiveRun
from adk_stream_protocol.engine.live_runs import LiveRuns
from adk_stream_protocol.engine.preparation import Preparation
from adk_stream_protocol.engine.recovery import Recovery
from adk_stream_protocol.engine.repeated_answers import RepeatedAnswers
from adk_stream_protocol.engine.reply import LoggedReply, Reply, Shown, ToldReply, WaitingReply
from adk_stream_protocol.engine.request_queue import RequestQueue
from adk_stream_protocol.engine.sessions import ChatInfo, Sessions
from adk_stream_protocol.errors import Conflict, NotFound, NotYours, trace_of
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.policy import Reconciled
from adk_stream_protocol.identifiers import (
    ApprovalId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.ports import (
    Attached,
    Began,
    Busy,
    ChatChange,
    ChatLabel,
    Ruling,
    RunMode,
    Stores,
    TurnRecord,
)
from adk_stream_protocol.translation.history import (
    messages_of,
    past_turns,
    with_message_so_far,
)
from adk_stream_protocol.translation.instructions import (
    Answer,
    Answers,
    Decision,
    Regenerate,
    Say,
    interpret,
    may_answer,
)
from adk_stream_protocol.translation.resuming import Resumption
from adk_stream_protocol.wire.messages import UIMessage
from adk_stream_protocol.wire.profiles import Audience
from adk_stream_protocol.wire.requests import BusyPolicy, ChatRequest

__all__ = ["Conversations", "LoadedChat"]

logger = logging.getLogger(__name__)

_CALLS = "calls"
"""The topic of hints that held calls changed."""

_VOICE = types.Content(role="user", parts=[types.Part(text="Voice chat")])
"""What a chat is titled after that begins with speech."""

_SWEEP = 5.0
"""How long the sweeper sleeps at most: hints may be lost, and processes die without one."""

_MOST_RECOVERIES = 50
"""Until how many running turns the sweeper recovers lapsed ones; the others wait."""

_PATIENCE = 300.0
"""How long a chat that cannot be continued is left alone at most, between tries."""


@dataclass(frozen=True, slots=True)
class _Try:
    """When a chat is tried next, by the event loop's clock, and the pause before that."""

    at: float
    pause: float


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a chat before anything is done in it."""

    held: Sequence[HeldCall]
    """Its calls, if they are needed."""
    is_new: bool = False
    """Whether it has neither turns nor a session."""


@dataclass(frozen=True, slots=True)
class LoadedChat:
    """A chat as a page loads it."""

    info: ChatInfo
    messages: Sequence[UIMessage]
    active_stream_id: ChatId | None
    """What to resume with while a reply runs; None: none does."""


@dataclass(slots=True)
class Conversations:
    """All chats of one server."""

    stores: Stores
    ledger: Ledger
    sessions: Sessions
    preparation: Preparation
    turns: ChatTurns
    recovery: Recovery
    queue: RequestQueue
    lives: LiveRuns
    busy: BusyPolicy = "interrupt"
    """What a request does to a reply that runs in its chat, if it does not say."""
    _tries: dict[ChatId, _Try] = field(default_factory=dict)
    """The chats that were found to be continued, and could not be yet."""
    _repeated: RepeatedAnswers = field(default_factory=RepeatedAnswers)
    """Answers that clients send again and again."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Run turns until the block ends; then those still running are handed over."""
        async with (
            self.lives.serving(),
            self.turns.serving(self._go_on, self._recover) as tasks,
        ):
            self.lives.is_ours = self.turns.holds
            self.turns.is_open = self.lives.is_present

            def spoke(live: LiveRun) -> None:
                tasks.start_soon(self._begin_spoken, live)

            self.lives.spoke = spoke
            tasks.start_soon(self._watch_calls)
            yield

    @property
    def is_serving(self) -> bool:
        """Whether turns can be started."""
        return self.turns.is_serving

    # What a client asks for

    async def submit(
        self, request: ChatRequest, user: UserId, *, via: str = "chat", mode: RunMode = "unary"
    ) -> Reply:
        """Do what a chat request asks for and return its reply.

        Args:
            request: what the client sent.
            user: who sent it.
            via: from where, for the audit trail.
            mode: how the agent runs.

        Raises:
            ClientFault: the request cannot be done; the message says why and what to do.
        """
        chat_id = request.chat_id or await self._unnamed(request, user)
        busy = request.busy or self.busy
        known = await self._known(chat_id, user, calls=may_answer(request))
        instruction = interpret(request, known.held)
        match instruction:
            case Say():
                if await self._answer_first(instruction, chat_id, user, via=via, mode=mode):
                    # What the answers led to is not interrupted by what came with them.
                    busy = "queue"
                draft = await self.preparation.say(
                    instruction,
                    chat_id,
                    user,
                    mode,
                    is_new=known.is_new,
                    request=request.to_json(),
                )
                shown = [one.id for one in request.messages if one.role == "assistant"]
                return await self._begin(draft, busy, has=frozenset(shown))
            case Regenerate():
                draft = await self.preparation.regenerate(
                    instruction, chat_id, user, mode, request=request.to_json()
                )
                return await self._begin(draft, busy)
            case Answers(answers):
                return await self._answered(answers, chat_id, user, via=via, mode=mode)
            case _:
                assert_never(instruction)

    async def _begin(
        self, draft: Draft, busy: BusyPolicy, *, has: frozenset[str] = frozenset()
    ) -> Reply:
        reply = await self.turns.begin(draft, busy)
        if isinstance(reply, WaitingReply):
            reply.has = has
            # The turn that it waits for may have ended before it was stored.
            await self.queue.go_on(draft.chat_id)
        return reply

    async def resume(self, chat_id: ChatId, user: UserId) -> Reply | None:
        """Return the newest reply of the chat from its beginning, or None if there is none.

        While a reply runs that nobody stopped, that is the one, whatever waits behind it.
        """
        await self.check_owner(chat_id, user)
        turn = await self._latest(chat_id)
        if turn is None:
            return None
        if not turn.running or turn.stopping:
            waiting = await self.stores.waiting.of_chat(chat_id)
            if waiting:
                return self.turns.waiting(waiting[-1])
        reply = LoggedReply(
            chat_id,
            self.stores.log,
            turn.reply_id,
            resumption=Resumption.of(await self.stores.calls.of_chat(chat_id)),
            on_delivered=self.turns.noting_read(turn),
            readers=self.turns.readers,
        )
        retained = turn.running or await self.stores.log.read(turn.reply_id, 0) is not None
        return reply if retained else None

    async def stop(self, chat_id: ChatId, user: UserId) -> bool:
        """Stop the running turn, or give up what waits; True if there was something to stop."""
        await self.check_owner(chat_id, user)
        turn = await self.stores.turns.latest(chat_id)
        if turn is not None and turn.lapsed:
            await self._give_up(turn)
        waiting = await self.stores.waiting.stop(chat_id)
        if await self.turns.stop(chat_id) is not None:
            return True
        if waiting:
            await self.queue.go_on(chat_id)
            return True
        cancelled = await self.stores.calls.cancel(chat_id)
        for invocation in dict.fromkeys(call.invocation_id for call in cancelled):
            draft = await self.preparation.note(chat_id, user, invocation, cancelled)
            await self.turns.begin_when_free(draft)
        return bool(cancelled)

    async def _give_up(self, lapsed: TurnRecord) -> None:
        """See to it that a turn which was cut off is not taken up again."""
        if await self.stores.waiting.carried(lapsed.origin or lapsed.reply_id):
            # The session may not have what it was to answer: that is stored, and then stopped.
            await self._recover(lapsed)
            return
        await self.stores.turns.end(lapsed.chat_id, lapsed.reply_id)
        await self.ledger.settle_orphans(lapsed.chat_id)

    async def stop_reply(self, reply: Reply, user: UserId) -> None:
        """Stop a reply, whether it runs or waits for its chat; does nothing once it has ended."""
        if not isinstance(reply, LoggedReply | WaitingReply):
            return
        await self.check_owner(reply.chat_id, user)
        if await self.stores.waiting.stop(reply.chat_id, reply_id=reply.reply_id):
            await self.queue.go_on(reply.chat_id)
        else:
            await self.turns.stop(reply.chat_id, reply_id=reply.reply_id)

    async def decide(
        self, decision: Decision, user: UserId, *, via: str, decision_id: str | None = None
    ) -> tuple[Ruling, HeldCall]:
        """Decide a held call away from its chat; the chat continues by itself.

        Raises:
            NotFound: there is no such call, or it is none of this user's.
            NotYours: others decide it.
        """
        await self.approval(decision.approval_id, user)
        ruling, call = await self.ledger.answer(
            decision, user=user, via=via, decision_id=decision_id
        )
        # For whoever waits for this very call, in any process.
        self.stores.wake.hint(call.approval_id)
        # The decision counts from here on, whether or not the chat can go on right now.
        await self._continue_quietly(call.chat_id, call.owner)
        return ruling, call

    async def approvals(self, user: UserId, state: CallState | None = None) -> Sequence[HeldCall]:
        """Return the user's held calls that need a decision, and others' that wait for them."""
        own = await self.stores.calls.of_owner(user, state)
        waits = state in {None, CallState.PENDING}
        others = await self.ledger.waiting_for(user) if waits else ()
        found = [call for call in (*own, *others) if call.approval]
        return sorted(found, key=lambda call: call.created_at)

    async def approval(self, approval_id: ApprovalId, user: UserId) -> HeldCall:
        """Return one held call that the user may see.

        Raises:
            NotFound: there is no such call, or it is none of this user's.
        """
        call = await self.ledger.visible(approval_id, user)
        if not call.approval:
            # A question or a sign-in is answered in its chat, and may hold what no client sees.
            raise NotFound("No such approval.", code="unknown_call")
        return call

    async def resolve(
        self,
        approval_id: ApprovalId,
        user: UserId,
        known: Reconciled,
        *,
        reason: str | None,
        via: str,
    ) -> tuple[Ruling, HeldCall]:
        """Record how a call ended of which nobody knew; `conflict`: it is known already.

        Raises:
            NotFound: there is no such call, or it is none of this user's.
            NotYours: others decide it.
        """
        await self.approval(approval_id, user)
        return await self.ledger.resolve(approval_id, user, known, reason=reason, via=via)

    async def audit(self, user: UserId) -> AsyncGenerator[HeldCall, None]:
        """Yield every approval that the user may see, whatever became of it, oldest first."""
        async with aclosing(self.ledger.seen_by(user)) as calls:
            async for call in calls:
                if call.approval:
                    yield call

    # Chats

    async def chats(self, user: UserId) -> Sequence[ChatInfo]:
        """Return the user's chats, newest first."""
        labels = await self.stores.labels.of_owner(user)
        found = await self.sessions.all_of(user)
        return [info.labelled(labels.get(info.id, ChatLabel())) for info in found]

    async def change(self, chat_id: ChatId, user: UserId, change: ChatChange) -> ChatInfo:
        """Rename or archive a chat, also while a reply runs in it; return it.

        Raises:
            NotFound: there is no such chat, or it is not this user's.
        """
        await self.check_owner(chat_id, user)
        await self.sessions.info(chat_id, user)
        label = await self.stores.labels.change(chat_id, user, change)
        try:
            info = await self.sessions.info(chat_id, user)
        except NotFound:
            # It was deleted meanwhile. A new chat may get the same id, and begins without a label.
            await self.stores.labels.forget(chat_id, user)
            raise
        return info.labelled(label)

    async def messages(self, chat_id: ChatId, user: UserId, audience: Audience) -> LoadedChat:
        """Return a chat and its messages, ready for `useChat({messages})`.

        Of a reply that runs, its message holds what was said so far.

        Raises:
            NotFound: there is no such chat, or it is not this user's.
        """
        await self.check_owner(chat_id, user)
        # First: what ends after this is resumed, and so not missed.
        turn = await self.stores.turns.latest(chat_id)
        info, events = await self.sessions.describe(chat_id, user)
        info = info.labelled(await self.stores.labels.get(chat_id, user))
        calls = (await self._known(chat_id, user)).held
        is_active = turn is not None and (turn.running or turn.lapsed)
        if is_active:
            # Whoever sees a request answers it: also if its turn died before it stored the row.
            calls = await self.preparation.open_missing(chat_id, user, past_turns(events)[-1:])
        elif turn is not None and (noting := self.turns.noting_read(turn)) is not None:
            # Whoever has the history has the newest answer.
            noting()
        messages = messages_of(events, calls, audience, self.preparation.options)
        if turn is not None and turn.running:
            said = await self.stores.log.written(turn.reply_id)
            messages = with_message_so_far(messages, said, calls, audience)
        waiting = await self.queue.messages(chat_id)
        is_active = is_active or bool(waiting)
        return LoadedChat(info, [*messages, *waiting], chat_id if is_active else None)

    async def artifact(
        self, chat_id: ChatId, user: UserId, *, filename: str, version: int | None
    ) -> tuple[bytes, str]:
        """Return the bytes and type of a file that the agent saved in the chat.

        Raises:
            NotFound: there is no such file, or the chat is not this user's.
        """
        await self.check_owner(chat_id, user)
        part = await self.sessions.artifact(chat_id, user, filename=filename, version=version)
        if part is not None and part.inline_data is not None and part.inline_data.data is not None:
            kind = part.inline_data.mime_type or "application/octet-stream"
            return part.inline_data.data, kind
        if part is not None and part.text is not None:
            return part.text.encode("utf-8", "replace"), "text/plain; charset=utf-8"
        raise NotFound("No such file in this chat.", code="unknown_artifact")

    async def delete(self, chat_id: ChatId, user: UserId) -> None:
        """Delete a chat: stop what runs, give up what waits, forget the rest.

        Raises:
            NotFound: there is no such chat, or it is not this user's.
        """
        await self.check_owner(chat_id, user)
        await self.sessions.describe(chat_id, user)
        await self.stores.waiting.stop(chat_id)
        async with self.turns.taken(chat_id, user):
            await self.lives.end(chat_id)
            await self.stores.calls.cancel(chat_id)
            # A new chat may get the same id.
            await self.stores.calls.unremember(chat_id)
            await self.sessions.delete(chat_id, user)
            await self.stores.labels.forget(chat_id, user)

    # Answers

    async def _answered(
        self,
        answers: Iterable[Answer],
        chat_id: ChatId,
        user: UserId,
        *,
        via: str,
        mode: RunMode,
    ) -> Reply:
        answers = tuple(answers)
        calls, shown, changed = await self._record(answers, user, via)
        ready = await self._ready(chat_id)
        for call in calls:
            if call.invocation_id in ready:
                return await self._begin_when_free(call, user, shown, mode)
        waiting = [call for call in calls if call.state is CallState.PENDING]
        # Another server may have delivered the answer since it was recorded.
        settled = await self.ledger.owned((waiting or calls)[-1].approval_id, user)
        if (
            settled.delivered_in is None
            and not changed
            and self._repeated.are_too_many(chat_id, answers)
        ):
            return ToldReply(chat_id, await self.preparation.refusal(settled, user))
        # What still waits is asked for again: the client shows it as answered.
        again = waiting if settled.state is CallState.PENDING else ()
        return await self._outcome(settled, user, shown, again=again)

    async def _record(
        self, answers: Iterable[Answer], user: UserId, via: str
    ) -> tuple[list[HeldCall], Shown, bool]:
        """Record answers; return the calls, what the caller shows, and whether one was new."""
        calls: list[HeldCall] = []
        brought: set[str] = set()
        verdicts: dict[ApprovalId, bool] = {}
        changed = False
        for answer in answers:
            try:
                ruling, call = await self.ledger.answer(answer, user=user, via=via)
            except NotYours:
                # The reply shows who is asked.
                ruling, call = "conflict", await self.ledger.owned(answer.approval_id, user)
            # For whoever waits for this very call, in any process.
            self.stores.wake.hint(call.approval_id)
            calls.append(call)
            changed = changed or ruling == "accepted"
            if isinstance(answer, Decision):
                verdicts[call.approval_id] = answer.approved
            elif answer.is_shown and ruling != "conflict":
                brought.add(call.call_id)
        return calls, Shown(frozenset(brought), verdicts), changed

    async def _outcome(
        self,
        call: HeldCall,
        user: UserId,
        shown: Shown,
        *,
        again: Sequence[HeldCall] = (),
    ) -> Reply:
        """Return how things stand: the continuation's reply, or a note that more is awaited."""
        turn = await self._latest(call.chat_id)
        if call.delivered_in is not None:
            call = await self.ledger.owned(call.approval_id, user)
            if turn is not None and call.delivered_in in {turn.reply_id, turn.origin}:
                return self.turns.reading(turn, shown)
            told = await self.preparation.outcome(call, user)
            return ToldReply(call.chat_id, Shown(verdicts=shown.verdicts).seen(told))
        standing = await self.preparation.standing(call, user, shown.verdicts, again=again)
        return ToldReply(call.chat_id, standing)

    async def _answer_first(
        self, said: Say, chat_id: ChatId, user: UserId, *, via: str, mode: RunMode
    ) -> bool:
        """Record answers that travelled with a message; True if they continue the chat by now.

        They come before the message: at the latest the end of the turn that runs delivers them.
        """
        if not said.answers:
            return False
        await self._record(said.answers, user, via)
        for invocation, calls in (await self._ready(chat_id)).items():
            draft = await self.preparation.continuation(chat_id, user, invocation, calls, mode)
            if isinstance(await self.turns.try_begin(draft), Began):
                return True
        return False

    async def _ready(self, chat_id: ChatId) -> dict[InvocationId, list[HeldCall]]:
        """Return the invocations whose answers are complete and not yet given to ADK."""
        by_invocation: dict[InvocationId, list[HeldCall]] = {}
        for call in await self.stores.calls.of_chat(chat_id):
            by_invocation.setdefault(call.invocation_id, []).append(call)
        return {
            invocation: [call for call in calls if call.is_deliverable]
            for invocation, calls in by_invocation.items()
            if not any(call.is_open for call in calls)
            and any(call.is_deliverable and call.state is not CallState.CANCELLED for call in calls)
        }

    async def _continue(self, chat_id: ChatId, user: UserId) -> None:
        """Start the next continuation that is ready, unless a turn runs: its end looks again."""
        if self.turns.drain.has_begun:
            # Others do it, or the next start: the answer is stored.
            return
        for invocation, calls in (await self._ready(chat_id)).items():
            draft = await self.preparation.continuation(chat_id, user, invocation, calls)
            if not isinstance(await self.turns.try_begin(draft), Attached):
                return

    async def _begin_when_free(
        self, call: HeldCall, user: UserId, shown: Shown, mode: RunMode
    ) -> Reply:
        """Start a call's continuation; if another turn runs, wait for its end first."""
        while True:
            calls = (await self._ready(call.chat_id)).get(call.invocation_id)
            if calls is None:
                # A decision elsewhere was faster, or the message was taken back.
                settled = await self.ledger.owned(call.approval_id, user)
                return await self._outcome(settled, user, shown)
            draft = await self.preparation.continuation(
                call.chat_id, user, call.invocation_id, calls, mode
            )
            began = await self.turns.try_begin(draft)
            if not isinstance(began, Busy):
                return self.turns.reading(began.turn, shown)
            await self.turns.until_ended(began.turn)

    async def _go_on(self, ended: Draft, failed: bool) -> None:
        """Let a chat go on whose turn has ended: with answers first, then with what waits."""
        if not failed:
            await self._continue_quietly(ended.chat_id, ended.owner)
        await self.queue.go_on(ended.chat_id)

    async def _continue_quietly(self, chat_id: ChatId, user: UserId) -> None:
        """Continue a chat that nobody waits for; a failure is logged, the next answer retries."""
        try:
            await self._continue(chat_id, user)
        except Exception as error:  # noqa: BLE001  # the edge: other chats must not suffer
            trace = trace_of(error)
            logger.error("chat not continued: %s", trace, extra={"chat": chat_id})  # noqa: TRY400

    async def _begin_spoken(self, live: LiveRun) -> None:
        """Begin a turn for what is said in a live run that nobody asked for."""
        try:
            while live.wants_turn:
                began = await self.turns.try_begin(self._spoken(live))
                if isinstance(began, Began):
                    return
                reply_id = began.turn.reply_id
                if reply_id != live.last_reply and not self.turns.holds(reply_id):
                    # Another process has the chat: what this run knows of it is outdated.
                    live.end()
                    return
                # The last turn is about to give the chat back, or someone typed something.
                await self.turns.until_ended(began.turn)
        except Exception as error:  # noqa: BLE001  # the edge: other chats must not suffer
            trace, ids = trace_of(error), {"chat": live.chat_id}
            logger.error("turn not begun: %s", trace, extra=ids)  # noqa: TRY400
            live.end()

    def _spoken(self, live: LiveRun) -> Draft:
        scope, names = live.scope, live.names
        if live.asks.waits:
            # The model goes on with its message, while a call waits beside it.
            names = replace(names, reply_id=ReplyId(f"reply-{uuid.uuid4()}"))
        return Draft(
            scope.chat_id,
            scope.owner,
            key=f"spoken:{names.reply_id}",
            prepare=partial(self.preparation.prepare_spoken, names),
            mode="live",
            reply_id=names.reply_id,
        )

    async def hear(self, chat_id: ChatId, user: UserId) -> LiveRun | None:
        """Return the live run of a chat for someone who speaks; None: nobody would hear them.

        Another reply runs in the chat, or the server ends.

        Raises:
            NotFound: the chat is not this user's.
        """
        live = self.lives.of(chat_id)
        if live is None and self.turns.drain.has_begun:
            return None
        if live is None or live.scope.owner != user:
            await self.check_owner(chat_id, user)
            if await self.sessions.get(chat_id, user) is None:
                await self.sessions.make(chat_id, user, said=_VOICE)
        return await self.lives.aloud(user, chat_id)

    async def _latest(self, chat_id: ChatId) -> TurnRecord | None:
        """Return the newest turn of the chat; one that lapsed is recovered first."""
        turn = await self.stores.turns.latest(chat_id)
        if turn is None or not turn.lapsed:
            return turn
        await self._recover(turn)
        return await self.stores.turns.latest(chat_id)

    async def _recover(self, lapsed: TurnRecord) -> None:
        """Go on where a turn was cut off, unless another process does already."""
        began = await self.turns.try_begin(self.recovery.draft(lapsed))
        if isinstance(began, Began):
            logger.info("turn recovered", extra={"chat": lapsed.chat_id, "reply": lapsed.reply_id})

    async def _recover_quietly(self, lapsed: TurnRecord) -> None:
        try:
            await self._recover(lapsed)
        except Exception as error:  # noqa: BLE001  # the edge: other chats must not suffer
            trace = trace_of(error)
            logger.error("turn not recovered: %s", trace, extra={"chat": lapsed.chat_id})  # noqa: TRY400

    async def _watch_calls(self) -> None:
        while True:
            wait = _SWEEP
            try:
                wait = await self._sweep()
            except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
                logger.error("calls not swept: %s", trace_of(error))  # noqa: TRY400
            await self.stores.wake.wait(_CALLS, wait)

    async def _sweep(self) -> float:
        """Do what is due and what others left undone; return when to look again."""
        calls = self.stores.calls
        now = anyio.current_time()
        tries = self._tries.items()
        self._tries = {name: known for name, known in tries if now < known.at + _PATIENCE}
        for turn in await self.stores.turns.lapsed():
            # A start after a crash may find thousands: the model must not get them all at once.
            if self.turns.running < _MOST_RECOVERIES and self._is_due(turn.chat_id):
                await self._recover_quietly(turn)
        for call in (*await calls.expire(), *await self.ledger.settle_orphans()):
            ids = {"chat": call.chat_id, "call": call.call_id, "state": call.state.value}
            logger.info("call settled by itself", extra=ids)
            await self._continue_quietly(call.chat_id, call.owner)
        for chat_id, owner in await calls.undelivered():
            if self._is_due(chat_id):
                await self._continue_quietly(chat_id, owner)
        for chat_id in await self.stores.waiting.chats():
            if self.turns.running < _MOST_RECOVERIES and self._is_due(chat_id):
                await self.queue.go_on(chat_id)
        longest = min(_SWEEP, self.stores.lease)
        due = await calls.next_expiry()
        return longest if due is None else max(0.0, min(longest, due - await calls.now()))

    def _is_due(self, chat_id: ChatId) -> bool:
        """Whether a chat is tried now: one that fails again and again is tried ever more rarely."""
        if self.turns.drain.has_begun:
            return False
        now = anyio.current_time()
        known = self._tries.get(chat_id)
        if known is not None and now < known.at:
            return False
        pause = 1.0 if known is None else min(known.pause * 2, _PATIENCE)
        self._tries[chat_id] = _Try(now + pause, pause)
        return True

    # Whose is it

    async def check_owner(self, chat_id: ChatId, user: UserId) -> None:
        """Check that a chat is this user's, or nobody's yet.

        Raises:
            NotFound: it is another's; a caller cannot tell from one that does not exist.
        """
        owner = await self.stores.turns.owner_of(chat_id)
        # Rows that were read from a session tell whose it is before its first turn does.
        calls = await self.stores.calls.of_chat(chat_id) if owner is None else ()
        self._check_owner(chat_id, user, owner, calls)

    def _check_owner(
        self, chat_id: ChatId, user: UserId, owner: UserId | None, calls: Iterable[HeldCall]
    ) -> None:
        if owner is None and (live := self.lives.of(chat_id)) is not None:
            # Someone has begun to speak in it.
            owner = live.scope.owner
        if owner is None:
            owners = {call.owner for call in calls}
            owner = user if not owners or user in owners else owners.pop()
        if owner != user:
            raise NotFound("No such chat.", code="unknown_chat")

    async def _unnamed(self, request: ChatRequest, user: UserId) -> ChatId:
        """Return the chat of a client that names none: the answered call's, or a new one."""
        named = set(_named_calls(request))
        calls = await self.stores.calls.of_owner(user) if named else ()
        for call in calls:
            if call.approval_id in named:
                return call.chat_id
        # A model may give its calls the same ids in every chat: only one that waits can be meant.
        chats = {call.chat_id for call in calls if call.call_id in named and call.is_open}
        if len(chats) > 1:
            raise Conflict(
                "Calls of this id wait in several chats. Name the chat in `id`, or the approval.",
                code="ambiguous_call",
            )
        return chats.pop() if chats else ChatId(f"chat-{uuid.uuid4()}")

    async def _known(self, chat_id: ChatId, user: UserId, *, calls: bool = True) -> _Known:
        """Return what is known of a chat; a session older than the ledger gets its rows now.

        Args:
            chat_id: the chat.
            user: who asks.
            calls: whether its calls are needed.

        Raises:
            NotFound: the chat is another's.
        """
        owner = await self.stores.turns.owner_of(chat_id)
        held = await self.stores.calls.of_chat(chat_id) if calls or owner is None else ()
        self._check_owner(chat_id, user, owner, held)
        if held or owner is not None:
            return _Known(held)
        session = await self.sessions.get(chat_id, user)
        turns = [] if session is None else past_turns(session.events)
        if turns:
            held = await self.preparation.open_missing(chat_id, user, turns)
        return _Known(held, is_new=session is None)


def _named_calls(request: ChatRequest) -> Iterable[str]:
    for last in request.messages[-1:]:
        for item in (*last.content, *last.parts):
            name = item.get("toolCallId")
            if isinstance(name, str):
                yield name
