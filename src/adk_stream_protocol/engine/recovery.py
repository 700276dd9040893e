"""Goes on where a turn was cut off: its process died, or gave it up.

A recovery is a turn like any other, under the chat's lease, with a reply of its own that retells
what is stored and then does what is left. See `translation.aftermath` for what that is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.engine.draft import ANSWERS, REGENERATE, Draft
from adk_stream_protocol.engine.preparation import Preparation, by_lane, due_calls
from adk_stream_protocol.engine.request_queue import RequestQueue
from adk_stream_protocol.engine.steering import message_of
from adk_stream_protocol.engine.turn import Turn
from adk_stream_protocol.errors import ClientFault
from adk_stream_protocol.held_calls.run_scope import RunScope
from adk_stream_protocol.identifiers import MessageId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.ports import SteeringMessage, TurnRecord
from adk_stream_protocol.translation.aftermath import Aftermath, aftermath_of
from adk_stream_protocol.translation.cards import call_answered
from adk_stream_protocol.translation.contents import answers_content
from adk_stream_protocol.translation.events import EventTranslator
from adk_stream_protocol.translation.history import (
    PastTurn,
    past_turns,
    reply_of,
    retell,
    steering_in,
    steering_of,
)
from adk_stream_protocol.translation.rewinds import RewindNote, Rewound, last_rewind
from adk_stream_protocol.wire.chunks import ErrorChunk
from adk_stream_protocol.wire.entries import Entry, OwnBegins

__all__ = ["Recovery"]

_NOTHING_STORED: Final = (
    "The server was interrupted before it could store this request. Please send it again."
)


_GIVEN_UP: Final = (
    "The server was interrupted again and again while this reply ran, so it was given up. Please "
    "send the message again."
)
_MOST_RECOVERIES: Final = 5
"""How often a request is taken up again: what kills each process must not kill them all."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """Drafts the turns that make up for lapsed ones."""

    preparation: Preparation
    queue: RequestQueue

    def draft(self, lapsed: TurnRecord) -> Draft:
        """Draft what follows a turn that lapsed."""
        return Draft(
            lapsed.chat_id,
            lapsed.owner,
            # The same request: whoever makes it again is given this reply.
            key=lapsed.key,
            prepare=partial(self._prepare, lapsed),
            settle=self.preparation.settle,
            over=lapsed.reply_id,
            origin=lapsed.origin or lapsed.reply_id,
            recoveries=lapsed.recoveries + 1,
        )

    async def _prepare(self, lapsed: TurnRecord, draft: Draft) -> Turn:
        prepared = self.preparation
        await prepared.ledger.settle_orphans(draft.chat_id)
        events = await prepared.sessions.events(draft.chat_id, draft.owner)
        turns = past_turns(events)
        past = await self._interrupted(turns, lapsed, draft)
        await self._put_back(past, draft)
        if past is None:
            return await self._unstored(events, lapsed, draft)
        # Asked, but not stored before the end came.
        calls = await prepared.open_missing(draft.chat_id, draft.owner, [past])
        rows = [call for call in calls if call.invocation_id == past.invocation_id]
        if draft.recoveries > _MOST_RECOVERIES:
            return await self._given_up(past, rows, draft)
        left = _left(past, rows, lapsed)
        if left.rerun:
            note = RewindNote(draft.carries, past.user_message_id, live=past.live)
            await prepared.rewind(draft, turns[turns.index(past) :], note)
            # Not before: what waits again must not be in the session.
            await self._put_back(None, draft)
            return await self._anew(past, draft)
        translator, opening = self._retold(past, rows, left.deliver, draft)
        for given in left.respond:
            opening += translator.respond(given)
        lost = {lapsed.reply_id, draft.origin}
        carried = [call for call in rows if call in left.deliver or call.delivered_in in lost]
        await prepared.ledger.calls.deliver([call.approval_id for call in carried], draft.reply_id)
        scope, runs = await prepared.modes.runs(draft, past, _contents(left, live=past.live))
        scope.due = due_calls(left.deliver)
        _steer_again(scope, left.steer, draft, alone=not left.respond)
        turn = prepared.turn(draft, translator, opening, scope=scope, runs=runs)
        if lapsed.stopping:
            turn.stop(gently=lapsed.gently)
        return turn

    async def _put_back(self, past: PastTurn | None, draft: Draft) -> None:
        """Let messages wait again that were to steer the turn, and that its session has not got."""
        waiting = self.queue.stores.waiting
        carried = await waiting.carried(draft.carries)
        stored = steering_in(() if past is None else past.events)
        lost = [
            request.reply_id
            for request in carried
            if request.reply_id != draft.carries and message_of(request) not in stored
        ]
        if lost:
            await waiting.put_back(draft.carries, lost)

    async def _unstored(self, events: Sequence[Event], lapsed: TurnRecord, draft: Draft) -> Turn:
        """Return a turn for a request of which the session has nothing that was said."""
        rewound = last_rewind(events, draft.origin)
        if rewound is not None and rewound.said is not None:
            return await self._after_rewind(rewound, rewound.said, draft)
        taken_back = _taken_back(events, lapsed, draft)
        if taken_back is not None:
            return await self._anew(taken_back, draft)
        request = await self.queue.stores.waiting.get(draft.carries)
        if request is None or draft.recoveries > _MOST_RECOVERIES:
            return self._nothing(draft, _NOTHING_STORED)
        try:
            # It waited for its chat, so it is known.
            return await self.queue.prepare(request, dataclasses.replace(draft, mode=request.mode))
        except ClientFault as fault:
            return self._nothing(draft, fault.public_message)

    async def _after_rewind(self, rewound: Rewound, said: types.Content, draft: Draft) -> Turn:
        """Return a turn that answers what turns were taken back for."""
        note, first = rewound.note, rewound.first
        if note.keeps and not rewound.is_kept:
            await self.preparation.store_again(draft, first)
        # A reader may have the beginning of a message of this request's own.
        own = any(reply_of(event) == draft.origin for event in first.events)
        return await self.preparation.fresh(
            draft, said, note.user_message, first.message_id if own else None, live=note.live
        )

    async def _interrupted(
        self, turns: Sequence[PastTurn], lapsed: TurnRecord, draft: Draft
    ) -> PastTurn | None:
        """Return the stored turn that was cut off, or None if nothing of it was stored."""
        for turn in reversed(turns):
            if any(reply_of(event) == draft.origin for event in turn.events):
                return turn
        # It was to deliver answers, or to tell of calls, and had not begun to.
        replies = {lapsed.reply_id, draft.origin}
        for call in await self.preparation.ledger.calls.of_chat(draft.chat_id):
            # Its key names the calls, also if it had not come to note what it carries.
            named = lapsed.key.startswith(ANSWERS) and call.approval_id in lapsed.key
            named = named and call.is_deliverable
            for turn in turns if named or call.delivered_in in replies else ():
                if turn.invocation_id == call.invocation_id:
                    return turn
        return None

    async def _given_up(self, past: PastTurn, rows: Sequence[HeldCall], draft: Draft) -> Turn:
        """Return a turn that says that it ends here: whatever it does ends its process."""
        for call in rows:
            if call.state is CallState.APPROVED and call.kind is CallKind.TOOL:
                await self.preparation.ledger.calls.abort(call.approval_id)
        translator, opening = self._retold(past, rows, (), draft)
        opening += translator.fail(_GIVEN_UP)
        scope = RunScope(draft.owner, draft.chat_id, holder=draft.reply_id)
        turn = self.preparation.turn(draft, translator, opening, scope=scope)
        turn.told = turn.failed = True
        return turn

    async def _anew(self, past: PastTurn, draft: Draft) -> Turn:
        """Return a turn that answers what was said in one that was taken back."""
        assert past.said is not None, "only what was said is answered anew"
        return await self.preparation.fresh(
            draft, past.said, past.user_message_id, past.message_id, live=past.live
        )

    def _nothing(self, draft: Draft, why: str) -> Turn:
        """Return a turn that says why there is none; as it fails, the request can be made again."""
        translator = EventTranslator(MessageId(""), self.preparation.options)
        scope = RunScope(draft.owner, draft.chat_id, holder=draft.reply_id)
        opening: list[Entry] = [OwnBegins(), ErrorChunk(why)]
        turn = self.preparation.turn(draft, translator, opening, scope=scope)
        turn.told = turn.failed = True
        return turn

    def _retold(
        self,
        past: PastTurn,
        rows: Sequence[HeldCall],
        deliver: Sequence[HeldCall],
        draft: Draft,
    ) -> tuple[EventTranslator, list[Entry]]:
        """Retell the message, then begin with the answers that are delivered (again)."""
        calls = {call.request_id: call for call in rows}
        again = {
            call.request_id: dataclasses.replace(call, state=CallState.PENDING, decided_at=None)
            for call in deliver
        }
        past = _without_answers(past, set(again))
        translator, told = retell(
            past, {**calls, **again}, self.preparation.options, own=draft.origin
        )
        told += translator.close()
        if OwnBegins() not in told:
            told += [OwnBegins(), *translator.begin()]
        for call in deliver:
            told += translator.answer(call_answered(call))
        return translator, told


def _contents(left: Aftermath, *, live: bool) -> list[types.Content]:
    """Return what ADK is given, so that a turn goes on."""
    contents = [answers_content(own) for own in by_lane(left.deliver)]
    parts = [types.Part(function_response=given) for given in left.respond]
    if live:
        # Another model is told when it is asked: ADK takes no words with results there.
        parts += [part for event in left.steer for part in _parts(event)]
    if parts:
        contents.append(types.Content(role="user", parts=parts))
    return contents


def _steer_again(scope: RunScope, steering: Sequence[Event], draft: Draft, *, alone: bool) -> None:
    """Let the model get the messages again that it heard before it was cut off."""
    contents = [event.content for event in steering if event.content is not None]
    if scope.live is None:
        scope.steering_again = contents
    elif alone and contents:
        # What is stored of it is no message that begins a turn.
        names = [message.id for event in steering if (message := steering_of(event)) is not None]
        scope.unstored = [SteeringMessage(draft.carries, MessageId(names[0]), contents[0])]


def _parts(event: Event) -> list[types.Part]:
    return (event.content.parts if event.content else None) or []


def _left(past: PastTurn, rows: Sequence[HeldCall], lapsed: TurnRecord) -> Aftermath:
    """Return what is left to do; what was being stopped is only told."""
    if not lapsed.stopping:
        return aftermath_of(past, rows)
    # What a person approved before a later message came is still done.
    return Aftermath(deliver=aftermath_of(past, rows).deliver if lapsed.gently else ())


def _taken_back(events: Sequence[Event], lapsed: TurnRecord, draft: Draft) -> PastTurn | None:
    """Return the turn that was taken back to be answered anew, if the end came in between.

    For a rewind of an earlier release, which does not say what it was made for.
    """
    last = events[-1].actions.rewind_before_invocation_id if events else None
    for turn in past_turns(events[:-1]) if last else ():
        own = any(reply_of(event) == draft.origin for event in turn.events)
        asked_anew = own or lapsed.key.startswith(REGENERATE)
        if turn.invocation_id == last and turn.said is not None and asked_anew:
            return turn
    return None


def _without_answers(past: PastTurn, requests: set[str]) -> PastTurn:
    """Return the turn as it was before some requests were answered."""
    kept = [
        event
        for event in past.events
        if event.author != "user"
        or not requests.intersection(given.id or "" for given in event.get_function_responses())
    ]
    return dataclasses.replace(past, events=kept)
