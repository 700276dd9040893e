"""What a rewind says of the request that it was made for.

A process may die after it has taken turns back and before it has stored the message that stands
in their place. So the event that rewinds the session says, in its custom metadata, what is to be
answered: whoever recovers the turn finds it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import InvocationId, MessageId, ReplyId
from adk_stream_protocol.translation.history import PastTurn, past_turns
from adk_stream_protocol.wire.values import JsonValue, as_object, as_text, jsonable

__all__ = ["RewindNote", "Rewound", "last_rewind"]

_NOTE: Final = "adk_stream_rewind"


@dataclass(frozen=True, slots=True)
class RewindNote:
    """What is answered after a rewind."""

    reply_id: ReplyId
    """The first reply of the request."""
    user_message: MessageId
    content: types.Content | None = None
    """What the user said; None: what was said in the first turn that is taken back."""
    keeps: bool = False
    """Whether the user message of that turn stays, without its answer."""
    live: bool = False

    def metadata(self) -> dict[str, object]:
        """Return the custom metadata of the event that rewinds."""
        written: dict[str, object] = {"reply": self.reply_id, "user": self.user_message}
        if self.content is not None:
            # As text: files in it are bytes, which only the content's own model reads back.
            written["said"] = self.content.model_dump_json(exclude_none=True)
        written |= {name: True for name in ("keeps", "live") if getattr(self, name)}
        return {_NOTE: written}


@dataclass(frozen=True, slots=True)
class Rewound:
    """A rewind that was stored, and what it took back."""

    note: RewindNote
    first: PastTurn
    """The first turn that it took back."""
    is_kept: bool
    """Whether the user message of that turn was stored again since."""

    @property
    def said(self) -> types.Content | None:
        """What is to be answered."""
        return self.first.said if self.note.content is None else self.note.content


def last_rewind(events: Sequence[Event], reply_id: ReplyId | None) -> Rewound | None:
    """Return the newest rewind that was made for a request, or None."""
    for index in reversed(range(len(events))):
        note = _note_of(events[index])
        if note is not None and note.reply_id == reply_id:
            first = _turn(events[:index], events[index].actions.rewind_before_invocation_id)
            if first is None:
                return None
            since = past_turns(events[index + 1 :])
            is_kept = any(turn.user_message_id == first.user_message_id for turn in since)
            return Rewound(note, first, is_kept)
    return None


def _turn(events: Sequence[Event], invocation: str | None) -> PastTurn | None:
    for turn in past_turns(events):
        if turn.invocation_id == InvocationId(invocation or ""):
            return turn
    return None


def _note_of(event: Event) -> RewindNote | None:
    if not event.actions.rewind_before_invocation_id:
        return None
    found: JsonValue = jsonable((event.custom_metadata or {}).get(_NOTE))
    note = as_object(found)
    if not note:
        return None
    said = as_text(note.get("said"))
    return RewindNote(
        ReplyId(as_text(note.get("reply"))),
        MessageId(as_text(note.get("user"))),
        types.Content.model_validate_json(said) if said else None,
        keeps=note.get("keeps") is True,
        live=note.get("live") is True,
    )
