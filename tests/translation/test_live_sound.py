"""What of a live event is for the ear, and what is for the chat."""

from __future__ import annotations

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.live_turns import sound_of, without_sound


def test_only_sound_is_kept_from_the_chat() -> None:
    sound = types.Part(inline_data=types.Blob(data=b"..", mime_type="audio/pcm;rate=24000"))
    image = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    event = Event(author="agent", content=types.Content(role="model", parts=[sound, image]))
    assert sound_of(event) == [b".."]
    kept = without_sound(event).content
    assert kept is not None
    assert kept.parts == [image]


def test_an_event_without_sound_stays_as_it_is() -> None:
    event = Event(author="agent", content=types.Content(parts=[types.Part(text="Hello.")]))
    assert without_sound(event.model_copy(deep=True)) == event
