"""What an ADK event says beside its content: usage, why it ended, what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.plain_text import url_context
from adk_stream_protocol.wire.chunks import (
    Chunk,
    FinishReason,
    SourceDocumentChunk,
    SourceUrlChunk,
)
from adk_stream_protocol.wire.data_parts import GroundingData, data_chunk
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, jsonable

__all__ = [
    "ABORTED",
    "Sources",
    "Usage",
    "created_metadata",
    "finish_reason_of",
    "is_failure",
]

ABORTED: Final = "INVOCATION_ABORTED"

_REASONS: Final[dict[str, FinishReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content-filter",
    "RECITATION": "content-filter",
    "BLOCKLIST": "content-filter",
    "PROHIBITED_CONTENT": "content-filter",
    "SPII": "content-filter",
    "MALFORMED_FUNCTION_CALL": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
}


def created_metadata(created_at: int | None) -> JsonObject | None:
    """Return the metadata of a message that began then, under the AI SDK's own name for it.

    Milliseconds since the epoch, as in the AI SDK's documentation: its schema is a number.
    """
    return None if created_at is None else {"createdAt": created_at}


def _is_reason(code: str) -> bool:
    """Whether an error code only says why the model stopped."""
    return code in _REASONS or code.startswith("IMAGE_")


def _reason(code: str) -> FinishReason:
    if code.startswith("IMAGE_"):
        return "content-filter"
    return _REASONS.get(code, "other")


def finish_reason_of(event: Event) -> FinishReason | None:
    """Return why the model stopped, or None if the event does not say."""
    if event.error_code and _is_reason(event.error_code):
        return _reason(event.error_code)
    if event.finish_reason is None:
        return None
    return _reason(event.finish_reason.name)


def is_failure(event: Event) -> bool:
    """Whether the event reports that the run broke, and not just a filter or a stop."""
    code = event.error_code
    if not code or event.partial or code == ABORTED:
        return False
    return not _is_reason(code)


@dataclass(slots=True)
class Usage:
    """Tokens of all model calls of one message, summed."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_input_tokens: int = 0
    known: bool = False
    """False until some event told its usage."""

    def add(self, told: types.GenerateContentResponseUsageMetadata) -> None:
        """Count one model call."""
        self.known = True
        self.input_tokens += told.prompt_token_count or 0
        self.output_tokens += told.candidates_token_count or 0
        self.total_tokens += told.total_token_count or 0
        self.reasoning_tokens += told.thoughts_token_count or 0
        self.cached_input_tokens += told.cached_content_token_count or 0

    def to_json(self) -> dict[str, JsonValue]:
        """Return the counts under the AI SDK's names; zero details are left out."""
        counts: dict[str, JsonValue] = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "totalTokens": self.total_tokens,
        }
        if self.reasoning_tokens:
            counts["reasoningTokens"] = self.reasoning_tokens
        if self.cached_input_tokens:
            counts["cachedInputTokens"] = self.cached_input_tokens
        return counts


class Sources:
    """The sources of one message, each told once: ADK repeats them in partial and final events."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def of(self, event: Event) -> Iterator[Chunk]:
        """Return the sources the event is the first to name."""
        context = url_context(event)
        told = (event.grounding_metadata, event.citation_metadata, context)
        # Hardly any event names some.
        return iter(()) if told == (None, None, None) else self._of(event, context)

    def _of(self, event: Event, context: object) -> Iterator[Chunk]:
        grounding = event.grounding_metadata
        for chunk in (grounding.grounding_chunks if grounding else None) or []:
            yield from self._chunk(chunk)
        if event.citation_metadata is not None:
            for citation in event.citation_metadata.citations or []:
                yield from self._url(citation.uri, citation.title)
        if isinstance(context, types.UrlContextMetadata):
            for read in context.url_metadata or []:
                yield from self._url(read.retrieved_url, None)
        if grounding is not None and not event.partial:
            # Last: a partial event may have brought the sources before.
            yield from _details(grounding)

    def _chunk(self, chunk: types.GroundingChunk) -> Iterator[Chunk]:
        if chunk.web is not None:
            yield from self._url(chunk.web.uri, chunk.web.title)
        if chunk.maps is not None:
            yield from self._url(chunk.maps.uri, chunk.maps.title)
        if chunk.retrieved_context is not None:
            yield from self._document(chunk.retrieved_context)

    def _url(self, url: str | None, title: str | None) -> Iterator[Chunk]:
        if url and url not in self._seen:
            self._seen.add(url)
            yield SourceUrlChunk(f"source-{len(self._seen)}", url, title)

    def _document(self, found: types.GroundingChunkRetrievedContext) -> Iterator[Chunk]:
        uri = found.uri or ""
        if uri.startswith(("http://", "https://")):
            yield from self._url(uri, found.title)
            return
        name = found.document_name or uri or found.title or ""
        if name and name not in self._seen:
            self._seen.add(name)
            yield SourceDocumentChunk(
                f"source-{len(self._seen)}", "text/plain", found.title or name
            )


def _details(grounding: types.GroundingMetadata) -> Iterator[Chunk]:
    """Yield which words rest on which source, and what was searched for."""
    if grounding.grounding_supports or grounding.search_entry_point:
        dumped = grounding.model_dump(
            mode="json",
            by_alias=True,
            exclude_none=True,
            include={"grounding_supports", "search_entry_point", "web_search_queries"},
        )
        details = as_object(jsonable(dumped))
        # Gemini's own types say what the fields are.
        part = GroundingData(
            cast("Sequence[JsonObject] | None", details.get("groundingSupports")),
            cast("JsonObject | None", details.get("searchEntryPoint")),
            cast("Sequence[str] | None", details.get("webSearchQueries")),
        )
        yield data_chunk(part)
