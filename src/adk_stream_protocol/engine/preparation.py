"""What must be done before a turn can run: read the session, rewind it, retell the message.

Preparing a draft touches the session, so that happens only once the chat is taken.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.genai import types

from adk_stream_protocol.engine.draft import ANSWERS, BARE, REGENERATE, Draft
from adk_stream_protocol.engine.modes import Modes
from adk_stream_protocol.engine.repeated_answers import still_awaited
from adk_stream_protocol.engine.reply import Shown
from adk_stream_protocol.engine.sessions import Sessions
from adk_stream_protocol.engine.turn import Turn, TurnLimits
from adk_stream_protocol.engine.turn_names import TurnNames, now
from adk_stream_protocol.errors import NotFound
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.run_scope import RunScope
from adk_stream_protocol.identifiers import (
    ApprovalId,
    ChatId,
    InvocationId,
    MessageId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.ports import AgentRun, Log, RunMode, Turns
from adk_stream_protocol.translation.branches import Branch, regenerated, said_at
from adk_stream_protocol.translation.cards import call_answered, call_held, input_released
from adk_stream_protocol.translation.contents import (
    ContentLimits,
    answers_content,
    said_text,
    user_content,
)
from adk_stream_protocol.translation.events import EventTranslator, TranslationOptions
from adk_stream_protocol.translation.history import (
    PastTurn,
    past_turns,
    reply_of,
    retell,
    stamp,
    steering_in,
    unanswered,
)
from adk_stream_protocol.translation.instructions import Regenerate, Say
from adk_stream_protocol.translation.rewinds import RewindNote
from adk_stream_protocol.wire.chunks import AbortChunk, FinishChunk, StartChunk
from adk_stream_protocol.wire.entries import AnswersStep, CallHeld, Entry, OwnBegins
from adk_stream_protocol.wire.values import JsonObject, JsonValue, digest, jsonable

__all__ = ["Preparation", "by_lane", "due_calls"]


@dataclass(frozen=True, slots=True)
class Preparation:
    """Makes drafts, and turns out of drafts."""

    sessions: Sessions
    ledger: Ledger
    log: Log
    turns: Turns
    modes: Modes
    limits: TurnLimits = field(default_factory=TurnLimits)
    content_limits: ContentLimits = field(default_factory=ContentLimits)
    options: TranslationOptions = field(default_factory=TranslationOptions)

    # Drafts

    async def say(
        self,
        said: Say,
        chat_id: ChatId,
        owner: UserId,
        mode: RunMode | None = None,
        *,
        is_new: bool = False,
        request: JsonObject | None = None,
    ) -> Draft:
        """Draft the answer to a user's message.

        Args:
            said: the message.
            chat_id: the chat.
            owner: whose it is.
            mode: how the agent runs.
            is_new: whether the chat had no session a moment ago.
            request: the request itself, if it may wait for its chat.

        Raises:
            ClientFault: the message is empty, too large, or holds a file that is not allowed.
        """
        content = user_content(said.message, self.content_limits)
        # A client that gives its messages no id repeats a request by sending the same content.
        key = f"{said.message.id or uuid.uuid4().hex}:{_hash(content)}"
        key = f"{BARE}{key}" if said.is_bare else f"say:{key}"
        # The same message means something else if the request says where it stands.
        place: list[JsonValue] = [said.edits, said.replaces, said.parent_id]
        has_place = any(named not in {None, False} for named in place)
        if has_place:
            key = f"{key}:{digest(place)}"
        return Draft(
            chat_id,
            owner,
            key=key,
            prepare=partial(self._prepare_say, said, content, is_new),
            rewinds=said.edits,
            has_place=has_place,
            mode=mode,
            request=request,
        )

    async def regenerate(
        self,
        asked: Regenerate,
        chat_id: ChatId,
        owner: UserId,
        mode: RunMode | None = None,
        *,
        request: JsonObject | None = None,
    ) -> Draft:
        """Draft another answer to a message; `request` may wait for its chat."""
        named: list[JsonValue] = [asked.message_id, asked.parent_id]
        if asked.message is not None:
            named += [asked.message.id, said_text(asked.message)]
        return Draft(
            chat_id,
            owner,
            key=f"{REGENERATE}{digest(named)}",
            prepare=partial(self._prepare_regenerate, asked),
            repeatable=await self._may_repeat(asked, chat_id, owner),
            rewinds=True,
            mode=mode,
            request=request,
        )

    async def _may_repeat(self, asked: Regenerate, chat_id: ChatId, owner: UserId) -> bool:
        """Whether a request for another answer can be meant again, once it was given one."""
        if asked.message_id is None:
            return True
        # An answer that was replaced is gone: who names it asks for what was asked before.
        turns = past_turns(await self.sessions.events(chat_id, owner))
        return any(asked.message_id in {turn.message_id, turn.user_message_id} for turn in turns)

    async def continuation(
        self,
        chat_id: ChatId,
        owner: UserId,
        invocation: InvocationId,
        calls: Sequence[HeldCall],
        mode: RunMode | None = None,
    ) -> Draft:
        """Draft what follows the answers to the held calls of one invocation."""
        ids = tuple(sorted(call.approval_id for call in calls))
        return Draft(
            chat_id,
            owner,
            key=f"{ANSWERS}{':'.join(ids)}",
            prepare=partial(self._prepare_continuation, invocation, calls),
            settle=self.settle,
            delivers=ids,
            mode=mode,
        )

    async def note(
        self, chat_id: ChatId, owner: UserId, invocation: InvocationId, calls: Sequence[HeldCall]
    ) -> Draft:
        """Draft a reply that only tells what became of held calls."""
        told = tuple(call for call in calls if call.invocation_id == invocation)
        ids = tuple(sorted(call.approval_id for call in told))
        return Draft(
            chat_id,
            owner,
            key=f"note:{':'.join(ids)}",
            prepare=partial(self._prepare_note, invocation, told),
            delivers=ids,
        )

    # Replies that need no turn

    async def outcome(self, call: HeldCall, owner: UserId) -> list[Entry]:
        """Return what followed a call that was settled before, from the stored session."""
        turn = await self._past(call.chat_id, owner, call.invocation_id)
        translator, told = retell(turn, await self._calls(call.chat_id), self.options)
        told += translator.finish()
        asked = [
            index
            for index, entry in enumerate(told)
            if isinstance(entry, CallHeld) and entry.approval_id == call.approval_id
        ]
        since = asked[-1] + 1 if asked else len(told) - 1
        return [StartChunk(turn.message_id), *told[since:]]

    async def standing(
        self,
        call: HeldCall,
        owner: UserId,
        verdicts: Mapping[ApprovalId, bool],
        *,
        again: Sequence[HeldCall] = (),
    ) -> list[Entry]:
        """Return how a call stands whose continuation waits for more answers.

        Args:
            call: the call.
            owner: whose it is.
            verdicts: what the reader just decided: it has not been told to run these calls.
            again: the calls to ask for again, because their answer did not end the wait.
        """
        turn = await self._past(call.chat_id, owner, call.invocation_id)
        siblings = await self._siblings(call)
        answered = Shown(verdicts=verdicts).seen(
            dataclasses.replace(call_answered(row), waits=True)
            for row in siblings
            # What an earlier reply went on with has its result.
            if row.decided_at is not None and row.delivered_in is None
        )
        # After the answers, in the step of the call: in another, it would be another part.
        released = [
            input_released(row)
            for row in siblings
            if row.approval_id in verdicts and row.awaits_browser
        ]
        told: list[Entry] = [*answered, *map(call_held, again)]
        if not any(row.state is CallState.PENDING for row in siblings):
            # Only outputs are awaited.
            told = [AnswersStep(begins=True), *told, AnswersStep(begins=False)]
        return [StartChunk(turn.message_id), *told, *released, FinishChunk("tool-calls")]

    async def refusal(self, call: HeldCall, owner: UserId) -> list[Entry]:
        """Return what a client gets that answers the same again and again: what is awaited."""
        turn = await self._past(call.chat_id, owner, call.invocation_id)
        return [StartChunk(turn.message_id), still_awaited(await self._siblings(call))]

    async def _siblings(self, call: HeldCall) -> list[HeldCall]:
        """Return the calls that are answered together with one, itself included."""
        calls = await self.ledger.calls.of_chat(call.chat_id)
        return [row for row in calls if row.invocation_id == call.invocation_id]

    # Turns

    async def _prepare_say(
        self, said: Say, content: types.Content, is_new: bool, draft: Draft
    ) -> Turn:
        # A live run may store something while this is read.
        is_live = self.modes.lives.of(draft.chat_id) is not None
        session: Session | None = None
        # No turn made it a session since, if this is the first.
        if not is_new or draft.previous is not None:
            session = await self.sessions.get(draft.chat_id, draft.owner)
        turns = [] if session is None else past_turns(session.events)
        branch = said_at(said, content, turns, has_failed=self._has_failed)
        return await self._prepare_branch(branch, session, draft, is_live=is_live)

    def _has_failed(self, turn: PastTurn) -> bool:
        """Whether a turn ended with an error, or before it said anything."""
        translator, told = retell(turn, {}, self.options)
        return translator.failed or len(told) == 1

    async def _prepare_regenerate(self, asked: Regenerate, draft: Draft) -> Turn:
        is_live = self.modes.lives.of(draft.chat_id) is not None
        session = await self.sessions.get(draft.chat_id, draft.owner)
        turns = [] if session is None else past_turns(session.events)
        if draft.stopped:
            # The answer that there is stays.
            return self._stopped(draft)
        read = partial(user_content, limits=self.content_limits)
        branch = regenerated(asked, turns, read=read)
        return await self._prepare_branch(branch, session, draft, is_live=is_live)

    async def _prepare_branch(
        self, branch: Branch, session: Session | None, draft: Draft, *, is_live: bool
    ) -> Turn:
        """Return a turn that answers a message, with what is in its place taken back."""
        if branch.taken_back:
            await self._rewind_for(branch, draft)
            session = None
        elif session is None:
            session = await self.sessions.make(draft.chat_id, draft.owner, said=branch.content)
        # ADK takes it as it was read: a long chat's events are not read twice.
        read = None if is_live else session
        return await self.fresh(draft, branch.content, branch.user_message, session=read)

    async def _prepare_continuation(
        self, invocation: InvocationId, calls: Sequence[HeldCall], draft: Draft
    ) -> Turn:
        turn = await self._past(draft.chat_id, draft.owner, invocation)
        translator, opening = await self._resumed(turn, calls)
        # ADK reads the answers of one agent at a time: the last user event, in its own branch.
        known = _requests(turn.events)
        if not self.modes.lives.wait_for(draft.chat_id, [call.request_id for call in calls]):
            # Those of a live run that has ended can be told of, but not acted on.
            calls = [call for call in calls if call.request_id in known]
        answers = [answers_content(own) for own in by_lane(calls)]
        scope, runs = await self.modes.runs(draft, turn, answers)
        scope.due = due_calls(calls)
        return self.turn(draft, translator, opening, scope=scope, runs=runs)

    async def settle(self, draft: Draft, turn: Turn) -> None:
        """Look at answers that ADK was to get: those it has not got can be delivered again."""
        events = await self.sessions.events(draft.chat_id, draft.owner)
        stored, asked = _responses(events), _requests(events)
        lost: list[ApprovalId] = []
        for call in await self.ledger.calls.of_chat(draft.chat_id):
            if call.delivered_in != draft.reply_id or call.automatic:
                # What a policy decided was never ADK's to get.
                continue
            over = turn.stopped or call.request_id in stored or call.request_id not in asked
            if call.state is CallState.APPROVED and over:
                # Stopped; or ADK has the answer and will not ask again; or the request was made
                # inside a live run that has ended. The tool never started.
                await self.ledger.calls.abort(call.approval_id)
            elif not over:
                lost.append(call.approval_id)
        if lost:
            await self.ledger.calls.undeliver(lost)
            # The same answers will be delivered by another turn: this one's key must be free.
            turn.failed = True

    async def _prepare_note(
        self, invocation: InvocationId, calls: Sequence[HeldCall], draft: Draft
    ) -> Turn:
        turn = await self._past(draft.chat_id, draft.owner, invocation)
        translator, opening = await self._resumed(turn, calls)
        scope, _ = await self.modes.runs(draft, turn, ())
        return self.turn(draft, translator, opening, scope=scope)

    async def _resumed(
        self, turn: PastTurn, answered: Sequence[HeldCall]
    ) -> tuple[EventTranslator, list[Entry]]:
        """Retell the message up to its requests, then begin the reply with their answers."""
        calls = await self._calls(answered[0].chat_id)
        asked = {
            call.request_id: dataclasses.replace(call, state=CallState.PENDING, decided_at=None)
            for call in answered
        }
        translator, told = retell(turn, {**calls, **asked}, self.options)
        known = _requests(turn.events)
        for call in asked.values():
            if call.request_id not in known:
                # Asked for inside a live run: the session does not tell of it.
                told += translator.hold(call_held(call), inner=True)
        told += translator.close()
        told.append(OwnBegins())
        told += translator.begin()
        for call in answered:
            told += translator.answer(call_answered(call))
        return translator, told

    async def fresh(
        self,
        draft: Draft,
        content: types.Content,
        user_message: MessageId,
        message: MessageId | None = None,
        *,
        live: bool = False,
        session: Session | None = None,
    ) -> Turn:
        """Return a turn that answers what the user said.

        Args:
            draft: the turn that was asked for.
            content: what the user said.
            user_message: the id of that.
            message: the id of the answer; None: a new one.
            live: whether it is a live turn, if no route picked.
            session: the chat's session as it is, if it was read for this turn.
        """
        message = message or MessageId(f"msg-{uuid.uuid4()}")
        past = PastTurn(InvocationId(""), message, user_message, live=live, created_at=now())
        translator = EventTranslator(message, self.options, created_at=past.created_at)
        scope, runs = await self.modes.runs(draft, past, [content], session=session)
        opening = [OwnBegins(), *translator.begin()]
        turn = self.turn(draft, translator, opening, scope=scope, runs=runs)
        mode = "" if scope.live is None else "live"
        marks = stamp(user_message=user_message, message=message, reply=draft.carries, mode=mode)
        turn.keep_message = partial(self._keep_message, draft, content, marks)
        return turn

    async def _keep_message(
        self, draft: Draft, content: types.Content, marks: dict[str, object]
    ) -> None:
        """Store what the user said in a turn that ADK never came to run."""
        events = await self.sessions.events(draft.chat_id, draft.owner)
        if any(reply_of(event) == draft.carries for event in events):
            return
        said = Event(
            author="user",
            invocation_id=f"e-{uuid.uuid4()}",
            content=content,
            custom_metadata=marks,
        )
        await self.sessions.append(draft.chat_id, draft.owner, said)

    def _stopped(self, draft: Draft) -> Turn:
        """Return a turn that was stopped before it could change anything."""
        translator = EventTranslator(MessageId(""), self.options)
        scope = RunScope(draft.owner, draft.chat_id, holder=draft.reply_id)
        turn = self.turn(draft, translator, [OwnBegins(), AbortChunk()], scope=scope)
        turn.told = True
        return turn

    async def prepare_spoken(self, names: TurnNames, draft: Draft) -> Turn:
        """Return a turn in which someone speaks already."""
        translator = EventTranslator(names.message_id, self.options, created_at=names.created_at)
        scope, runs = self.modes.lives.spoken(draft.chat_id, names)
        opening = [OwnBegins(), *translator.begin()]
        return self.turn(draft, translator, opening, scope=scope, runs=runs)

    def turn(
        self,
        draft: Draft,
        translator: EventTranslator,
        opening: Sequence[Entry],
        *,
        scope: RunScope,
        runs: Sequence[AgentRun] = (),
    ) -> Turn:
        """Return a turn that begins with the opening and follows the runs."""

        async def keep_text(like: Event, text: str) -> None:
            # What a live run knows of the session is outdated from here on.
            await self.modes.lives.end(draft.chat_id)
            await self.sessions.keep_text(
                draft.chat_id,
                draft.owner,
                like=like,
                text=text,
                stamp=dict(like.custom_metadata or {}),
            )

        async def steering_stored() -> Collection[str]:
            events = await self.sessions.events(draft.chat_id, draft.owner)
            # Not what was taken back.
            return steering_in(event for past in past_turns(events) for event in past.events)

        return Turn(
            reply_id=draft.reply_id,
            translator=translator,
            scope=scope,
            log=self.log,
            ledger=self.ledger,
            limits=self.limits,
            runs=runs,
            opening=opening,
            keep_text=keep_text,
            steering_stored=steering_stored,
        )

    async def _rewind_for(self, branch: Branch, draft: Draft) -> None:
        note = RewindNote(
            draft.origin or draft.reply_id,
            branch.user_message,
            branch.content if branch.is_new else None,
            keeps=branch.keeps is not None,
            live=draft.mode == "live",
        )
        # Who sends one of their messages again must not be given an answer that is gone. Not for a
        # turn that was cut off, and takes back what is its own.
        await self.turns.forget_others(draft.chat_id, draft.reply_id)
        await self.rewind(draft, branch.taken_back, note)
        if branch.keeps is not None:
            await self.store_again(draft, branch.keeps)

    async def rewind(self, draft: Draft, turns: Sequence[PastTurn], note: RewindNote) -> None:
        """Take back the last turns of a chat, and the calls that wait in them.

        Args:
            draft: the turn that is to stand in their place.
            turns: the turns, oldest first.
            note: what that turn answers, for whoever goes on if this process dies before it does.
        """
        await self.modes.lives.end(draft.chat_id)
        taken_back = [turn.invocation_id for turn in turns]
        await self.ledger.calls.cancel(draft.chat_id, taken_back)
        await self.sessions.rewind(
            draft.chat_id, draft.owner, turns[0].invocation_id, metadata=note.metadata()
        )

    async def store_again(self, draft: Draft, turn: PastTurn) -> None:
        """Store what the user said in a turn that was taken back, without its answer."""
        ids = stamp(user_message=turn.user_message_id, message=MessageId(f"msg-{uuid.uuid4()}"))
        event = Event(
            author="user",
            invocation_id=f"e-{uuid.uuid4()}",
            content=turn.said,
            custom_metadata=ids,
        )
        await self.sessions.append(draft.chat_id, draft.owner, event)

    async def _past(self, chat_id: ChatId, owner: UserId, invocation: InvocationId) -> PastTurn:
        for turn in past_turns(await self.sessions.events(chat_id, owner)):
            if turn.invocation_id == invocation:
                return turn
        raise NotFound("The message of this call was taken back.", code="unknown_message")

    async def open_missing(
        self, chat_id: ChatId, owner: UserId, turns: Iterable[PastTurn]
    ) -> Sequence[HeldCall]:
        """Give ADK's requests in some turns the rows they lack; return all of the chat."""
        rows = await self.ledger.calls.of_chat(chat_id)
        # With the invocation: a workflow asks under the same ids in every turn.
        known = {(call.invocation_id, call.request_id) for call in rows}
        for past in turns:
            _, told = retell(past, {}, self.options)
            for held in unanswered(told):
                if (past.invocation_id, held.request_id) not in known:
                    await self.ledger.open(
                        held,
                        owner=owner,
                        chat_id=chat_id,
                        invocation_id=past.invocation_id,
                        lane=past.lane_of(held.request_id),
                    )
        return await self.ledger.calls.of_chat(chat_id)

    async def _calls(self, chat_id: ChatId) -> dict[str, HeldCall]:
        return {call.request_id: call for call in await self.ledger.calls.of_chat(chat_id)}


def _responses(events: Iterable[Event]) -> set[str]:
    """Return the requests that the session holds the user's answers to."""
    return {
        response.id or ""
        for event in events
        if event.author == "user"
        for response in event.get_function_responses()
    }


def _requests(events: Iterable[Event]) -> set[str]:
    """Return the requests that the session holds."""
    return {call.id or "" for event in events for call in event.get_function_calls()}


def by_lane(calls: Sequence[HeldCall]) -> list[list[HeldCall]]:
    """Return the calls of each agent: ADK takes the answers of one at a time."""
    lanes: dict[str, list[HeldCall]] = {}
    for call in calls:
        lanes.setdefault(call.lane, []).append(call)
    return list(lanes.values())


def due_calls(calls: Iterable[HeldCall]) -> set[str]:
    """Return the calls that run on the server once ADK has their approvals."""
    return {
        call.call_id
        for call in calls
        if call.state is CallState.APPROVED and call.kind is CallKind.TOOL
    }


def _hash(content: types.Content) -> str:
    return digest(jsonable(content.model_dump(mode="json", exclude_none=True)))
