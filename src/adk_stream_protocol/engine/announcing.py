"""Turns that are announced: whoever has a chat open can hear that a turn began in it."""

from __future__ import annotations

from typing_extensions import override

from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.engine.preparation import Draft
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.ports import Attached, Began, Busy

__all__ = ["AnnouncedTurns", "turns_topic"]


def turns_topic(chat_id: ChatId) -> str:
    """Return the topic of hints that a turn began in a chat."""
    return f"turns:{chat_id}"


class AnnouncedTurns(ChatTurns):
    """Hints at each turn that begins, whoever asked for it: a client, a decision, a recovery."""

    __slots__ = ()

    @override
    async def try_begin(self, draft: Draft) -> Began | Attached | Busy:
        began = await super().try_begin(draft)
        if isinstance(began, Began):
            self.stores.wake.hint(turns_topic(draft.chat_id))
        return began
