from __future__ import annotations

import pytest
from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.plain_text import plain_text


def piece(**more: object) -> Event:
    """Return an event that brings a piece of text, and more."""
    told: dict[str, object] = {
        "author": "root",
        "partial": True,
        "content": types.Content(role="model", parts=[types.Part(text="Hi")]),
    }
    return Event.model_validate({**told, **more})


def test_a_piece_of_text_and_nothing_else_is_plain() -> None:
    assert plain_text(piece()) == ("text", "Hi")


def test_a_thought_is_plain_too() -> None:
    content = types.Content(role="model", parts=[types.Part(text="Hm", thought=True)])
    assert plain_text(piece(content=content)) == ("reasoning", "Hm")


def test_what_is_said_aloud_is_plain_too() -> None:
    said = types.Transcription(text="Hi")
    assert plain_text(piece(content=None, output_transcription=said)) == ("text", "Hi")


@pytest.mark.parametrize(
    "more",
    [
        {"author": "user"},
        {"partial": False},
        {"interrupted": True},
        {"error_code": "SAFETY"},
        {"finish_reason": types.FinishReason.STOP},
        {"grounding_metadata": types.GroundingMetadata()},
        {"citation_metadata": types.CitationMetadata()},
        {"content": None},
        {"content": types.Content(role="model", parts=[])},
        {"content": types.Content(role="model", parts=[types.Part(text="")])},
        {"content": types.Content(role="model", parts=[types.Part(text="a")] * 2)},
        {"output_transcription": types.Transcription(text="Hi")},
        {
            "content": types.Content(
                role="model", parts=[types.Part(function_call=types.FunctionCall(name="pay"))]
            )
        },
    ],
)
def test_an_event_that_may_say_anything_besides_is_not(more: dict[str, object]) -> None:
    assert plain_text(piece(**more)) is None
