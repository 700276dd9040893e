"""The events there are most of: another piece of text, and nothing else."""

from __future__ import annotations

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.text_blocks import BlockKind

__all__ = ["plain_text", "url_context"]


def url_context(event: Event) -> object:
    """Return which pages the model read, as far as events of this ADK say so."""
    # Pydantic takes long to say that there is no such attribute.
    return vars(event).get("url_context_metadata")


def plain_text(event: Event) -> tuple[BlockKind, str] | None:
    """Return the piece of text that an event brings, or None if it may say anything besides."""
    # Pydantic takes three times as long to give an attribute.
    fields = vars(event)
    if (
        not fields["partial"]
        or fields["author"] == "user"
        or fields["finish_reason"] is not None
        or fields["error_code"]
        or fields["interrupted"]
        or fields["grounding_metadata"] is not None
        or fields["citation_metadata"] is not None
        or fields.get("url_context_metadata") is not None
    ):
        return None
    said: types.Transcription | None = fields["output_transcription"]
    content: types.Content | None = fields["content"]
    if content is None:
        return None if said is None or not said.text else ("text", said.text)
    parts: list[types.Part] | None = vars(content)["parts"]
    if said is not None or parts is None or len(parts) != 1:
        return None
    part = vars(parts[0])
    text: str | None = part["text"]
    if not text or part["function_call"] is not None or part["function_response"] is not None:
        return None
    return ("reasoning" if part["thought"] else "text"), text
