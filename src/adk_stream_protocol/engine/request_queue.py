"""Requests that were accepted while their chats were busy, and how each gets its turn.

They wait in the stores, so that any process can carry them out: the one whose turn has just ended
in the chat, or the one that finds a chat which is free though something waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakValueDictionary

import anyio

from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.engine.draft import Draft
from adk_stream_protocol.engine.preparation import Preparation
from adk_stream_protocol.engine.turn import Turn
from adk_stream_protocol.errors import BadRequest, ClientFault, trace_of
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.ports import Stores, WaitingRequest
from adk_stream_protocol.translation.contents import user_content
from adk_stream_protocol.translation.history import user_message
from adk_stream_protocol.translation.instructions import (
    Instruction,
    Regenerate,
    Say,
    interpret,
)
from adk_stream_protocol.wire.messages import UIMessage
from adk_stream_protocol.wire.requests import ChatRequest, parse_request

__all__ = ["RequestQueue"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestQueue:
    """Carries out the requests that wait for their chats, in the order in which they came."""

    stores: Stores
    turns: ChatTurns
    preparation: Preparation
    _locks: WeakValueDictionary[ChatId, anyio.Lock] = field(default_factory=WeakValueDictionary)
    """Of the chats that requests are being begun in."""

    async def go_on(self, chat_id: ChatId) -> None:
        """Begin the first request that waits for a chat, if the chat is free.

        Never raises but for cancellation. If the chat is not free, the end of the turn that runs
        there calls this again; so does the sweeper, should that turn's process die.
        """
        # One at a time: two would begin the same request, under one name.
        alone = self._locks.setdefault(chat_id, anyio.Lock())
        try:
            async with alone:
                while not self.turns.drain.has_begun and await self._begin_first(chat_id):
                    pass
        except Exception as error:  # noqa: BLE001  # the edge: other chats must not suffer
            trace = trace_of(error)
            logger.error("request not begun: %s", trace, extra={"chat": chat_id})  # noqa: TRY400

    async def _begin_first(self, chat_id: ChatId) -> bool:
        """Begin the first request; return whether the next one must be looked at."""
        waiting = await self.stores.waiting.of_chat(chat_id)
        if not waiting:
            return False
        try:
            await self.turns.try_begin(self._draft(waiting[0]))
        except ClientFault:
            # Its reply says why it cannot be carried out.
            return True
        return False

    async def messages(self, chat_id: ChatId) -> Sequence[UIMessage]:
        """Return the user's messages that wait for their answer, in order."""
        messages: list[UIMessage] = []
        for request in await self.stores.waiting.of_chat(chat_id):
            asked = _instruction(request)
            if isinstance(asked, Say):
                content = user_content(asked.message, self.preparation.content_limits)
                messages.append(user_message(asked.message.id, content))
        return messages

    def _draft(self, request: WaitingRequest) -> Draft:
        return Draft(
            request.chat_id,
            request.owner,
            key=request.key,
            prepare=partial(self.prepare, request),
            repeatable=True,
            rewinds=_rewinds(request),
            mode=request.mode,
            waited=True,
            reply_id=request.reply_id,
        )

    async def prepare(self, request: WaitingRequest, draft: Draft) -> Turn:
        """Return the turn that carries a request out.

        Raises:
            ClientFault: it cannot be; the message says why.
        """
        asked = _instruction(request)
        match asked:
            case Say():
                made = await self.preparation.say(asked, draft.chat_id, draft.owner, request.mode)
            case Regenerate():
                made = await self.preparation.regenerate(
                    asked, draft.chat_id, draft.owner, request.mode
                )
            case _:
                raise BadRequest("Only messages wait for a chat.", code="bad_request")
        return await made.prepare(draft)


def _rewinds(request: WaitingRequest) -> bool:
    """Whether a request takes back earlier turns."""
    asked = _asked(request)
    if asked is None:
        return False
    names = asked.message_id is not None or asked.parent_id is not None
    return names or asked.trigger == "regenerate-message"


def _instruction(request: WaitingRequest) -> Instruction | None:
    """Return what a request asks for; None: another version stored it, and this one cannot tell."""
    asked = _asked(request)
    try:
        return None if asked is None else interpret(asked, ())
    except ClientFault:
        return None


def _asked(request: WaitingRequest) -> ChatRequest | None:
    try:
        return parse_request(request.request)
    except ClientFault:
        return None
