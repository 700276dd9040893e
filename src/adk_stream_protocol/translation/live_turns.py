"""Where one turn of a live run ends: the model says `turn complete` more often than that.

Pure: fed the run's events in order, it tells after which the assistant's message is complete, or
can go no further before a person has answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.held import held_request, is_inner, is_request

__all__ = ["LiveTurnEnd", "begins_turn", "is_sound", "sound_of", "without_sound"]

_SOUND = "audio/pcm"


@dataclass(slots=True)
class LiveTurnEnd:
    """Follows one turn to its end."""

    _open: set[str] = field(default_factory=set)
    """The calls without a result."""
    _asked: set[str] = field(default_factory=set)
    """Those of them that a person was asked for."""
    _owes_words: bool = False
    """A result was the last thing: the model is about to say something to it."""
    _is_late: bool = False
    """It would have ended already, but for a tool that ran beside."""
    _expected: int = 0
    """How many answers are awaited beside the first: to what the user said in between."""
    is_doubtful: bool = False
    """An answer has ended while more are awaited, and nothing has come since."""

    @property
    def awaited(self) -> int:
        """How many answers the model owes beside the one that it gives."""
        return self._expected + self.is_doubtful

    def expect_answer(self) -> None:
        """Note that the model was told something: it answers that, too, before the turn ends."""
        self._expected += 1

    def feed(self, event: Event, *, blocks: bool, runs: bool = False) -> bool:
        """Note an event; True if the turn ends with it.

        Args:
            event: the next event.
            blocks: whether the run cannot go on before those asked have answered.
            runs: whether some tool runs. A turn that ends then would not know how it ended.
        """
        for call in event.get_function_calls() if not event.partial else ():
            self._note_call(call, event)
        for response in event.get_function_responses() if not event.partial else ():
            self._note_response(response, event)
        if event.interrupted or _speaks(event):
            self._owes_words = False
        if self._asked and self._open <= self._asked and blocks:
            return True
        is_late = self._is_late and not self._owes_words
        ended = is_late or (bool(event.turn_complete) and self._is_complete(event))
        self._is_late = ended and runs
        self.is_doubtful = self.is_doubtful and not _speaks(event)
        if not ended or runs or not self._expected:
            return ended and not runs
        self._expected -= 1
        self._owes_words = False
        self.is_doubtful = True
        return False

    def _is_complete(self, event: Event) -> bool:
        if event.interrupted:
            return True
        going_on = event.interaction_status is types.InteractionStatus.IN_PROGRESS
        return not going_on and not self._owes_words and self._open <= self._asked

    def _note_call(self, call: types.FunctionCall, event: Event) -> None:
        long_running = call.id in (event.long_running_tool_ids or ())
        if is_request(call.name) and long_running:
            held = held_request(call, invocation_id=event.invocation_id)
            if is_inner(event):
                self._asked |= self._open
            if held is not None:
                self._open.add(held.call_id)
                self._asked.add(held.call_id)
        elif not long_running:
            self._open.add(call.id or "")
        self._owes_words = False

    def _note_response(self, response: types.FunctionResponse, event: Event) -> None:
        call_id = response.id or ""
        if call_id in (event.actions.requested_tool_confirmations or {}):
            return
        self._open.discard(call_id)
        self._asked.discard(call_id)
        self._owes_words = response.scheduling is not types.FunctionResponseScheduling.SILENT


def begins_turn(event: Event) -> bool:
    """Whether an event that nobody asked for begins a turn: someone spoke."""
    heard = event.input_transcription
    return bool(heard is not None and heard.text) or _speaks(event)


def sound_of(event: Event) -> list[bytes]:
    """Return what the model says aloud, as samples."""
    parts = (event.content.parts if event.content else None) or []
    blobs = [part.inline_data for part in parts if part.inline_data is not None]
    return [blob.data for blob in blobs if blob.data and is_sound(blob)]


def is_sound(blob: types.Blob) -> bool:
    """Whether a blob is raw sound, for the ear and not for the chat."""
    return (blob.mime_type or "").startswith(_SOUND)


def without_sound(event: Event) -> Event:
    """Return an event without what is for the ear; such events are stored nowhere."""
    content = event.content
    if content is not None and sound_of(event):
        parts = [
            part
            for part in content.parts or []
            if part.inline_data is None or not is_sound(part.inline_data)
        ]
        event.content = types.Content(role=content.role, parts=parts)
    return event


def _speaks(event: Event) -> bool:
    """Whether the model says something."""
    if event.author == "user":
        return False
    said = event.output_transcription
    parts = (event.content.parts if event.content else None) or []
    return bool(said is not None and said.text) or any(
        part.text or part.inline_data is not None or part.function_call is not None
        for part in parts
    )
