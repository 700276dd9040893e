from __future__ import annotations

import pytest
from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.metadata import (
    Sources,
    Usage,
    finish_reason_of,
    is_failure,
)
from adk_stream_protocol.wire.chunks import to_json
from adk_stream_protocol.wire.values import JsonObject
from translation.builders import event


def sent(sources: Sources, told: Event) -> list[JsonObject]:
    return [to_json(chunk) for chunk in sources.of(told)]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content-filter"),
        ("RECITATION", "content-filter"),
        ("BLOCKLIST", "content-filter"),
        ("PROHIBITED_CONTENT", "content-filter"),
        ("SPII", "content-filter"),
        ("IMAGE_SAFETY", "content-filter"),
        ("IMAGE_OTHER", "content-filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("TOO_MANY_TOOL_CALLS", "error"),
        ("LANGUAGE", "other"),
    ],
)
def test_reason_of_the_model_has_a_name_in_the_ai_sdk(reason: str, told: str) -> None:
    assert finish_reason_of(event(finish_reason=types.FinishReason[reason])) == told


def test_event_need_not_say_why_the_model_stopped() -> None:
    assert finish_reason_of(event()) is None


@pytest.mark.parametrize(
    ("code", "told"),
    [("SAFETY", "content-filter"), ("MAX_TOKENS", "length"), ("IMAGE_SAFETY", "content-filter")],
)
def test_reason_may_come_as_an_error_code_and_is_no_failure(code: str, told: str) -> None:
    stopped = event(error_code=code, finish_reason=types.FinishReason.STOP)
    assert finish_reason_of(stopped) == told
    assert not is_failure(stopped)


def test_error_code_of_a_failure_is_no_reason() -> None:
    assert finish_reason_of(event(error_code="ValueError")) is None
    assert is_failure(event(error_code="ValueError"))


def test_partial_stopped_and_healthy_events_are_no_failures() -> None:
    assert not is_failure(event(error_code="ValueError", partial=True))
    assert not is_failure(event(error_code="INVOCATION_ABORTED"))
    assert not is_failure(event())


def test_usage_is_summed_and_details_of_zero_are_left_out() -> None:
    usage = Usage()
    assert not usage.known
    usage.add(types.GenerateContentResponseUsageMetadata(prompt_token_count=1))
    assert usage.to_json() == {"inputTokens": 1, "outputTokens": 0, "totalTokens": 0}
    usage.add(
        types.GenerateContentResponseUsageMetadata(
            prompt_token_count=2,
            candidates_token_count=3,
            total_token_count=5,
            thoughts_token_count=4,
            cached_content_token_count=6,
        )
    )
    assert usage.known
    assert usage.to_json() == {
        "inputTokens": 3,
        "outputTokens": 3,
        "totalTokens": 5,
        "reasoningTokens": 4,
        "cachedInputTokens": 6,
    }


def grounded(*chunks: types.GroundingChunk, **more: object) -> types.GroundingMetadata:
    return types.GroundingMetadata.model_validate({"grounding_chunks": list(chunks), **more})


def test_pages_and_places_are_sources_told_once() -> None:
    web = types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://a", title="A"))
    place = types.GroundingChunk(maps=types.GroundingChunkMaps(uri="https://b", title="B"))
    sources = Sources()
    assert sent(sources, event(grounding_metadata=grounded(web, place), partial=True)) == [
        {"type": "source-url", "sourceId": "source-1", "url": "https://a", "title": "A"},
        {"type": "source-url", "sourceId": "source-2", "url": "https://b", "title": "B"},
    ]
    assert sent(sources, event(grounding_metadata=grounded(web, place))) == []


def context(**fields: str) -> types.GroundingMetadata:
    found = types.GroundingChunkRetrievedContext.model_validate(fields)
    return grounded(types.GroundingChunk(retrieved_context=found))


def test_document_on_the_web_is_a_page() -> None:
    told = sent(Sources(), event(grounding_metadata=context(uri="https://a", title="A")))
    assert told == [
        {"type": "source-url", "sourceId": "source-1", "url": "https://a", "title": "A"}
    ]


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"uri": "gs://x/a.pdf", "title": "A"}, "A"),
        ({"document_name": "docs/a"}, "docs/a"),
        ({"title": "A"}, "A"),
    ],
)
def test_document_elsewhere_is_told_by_its_title_once(fields: dict[str, str], title: str) -> None:
    sources = Sources()
    assert sent(sources, event(grounding_metadata=context(**fields))) == [
        {
            "type": "source-document",
            "sourceId": "source-1",
            "mediaType": "text/plain",
            "title": title,
        }
    ]
    assert sent(sources, event(grounding_metadata=context(**fields))) == []


def test_document_without_a_name_is_no_source() -> None:
    assert sent(Sources(), event(grounding_metadata=context(text="some text"))) == []


def test_details_of_grounding_are_data_of_the_complete_event_after_the_sources() -> None:
    cited = types.CitationMetadata(citations=[types.Citation(uri="https://c"), types.Citation()])
    found = grounded(
        types.GroundingChunk(web=types.GroundingChunkWeb(uri="https://a")),
        grounding_supports=[types.GroundingSupport(grounding_chunk_indices=[0])],
        web_search_queries=["q"],
    )
    sources = Sources()
    early = sent(sources, event(grounding_metadata=found, partial=True))
    assert [chunk["type"] for chunk in early] == ["source-url"]
    late = sent(sources, event(grounding_metadata=found, citation_metadata=cited))
    assert late == [
        {"type": "source-url", "sourceId": "source-2", "url": "https://c"},
        {
            "type": "data-adk-grounding",
            "data": {
                "groundingSupports": [{"groundingChunkIndices": [0]}],
                "webSearchQueries": ["q"],
            },
        },
    ]


def test_search_entry_point_alone_is_worth_telling() -> None:
    found = grounded(search_entry_point=types.SearchEntryPoint(rendered_content="<a>"))
    told = sent(Sources(), event(grounding_metadata=found))
    assert told[0]["data"] == {"searchEntryPoint": {"renderedContent": "<a>"}}


def test_grounding_without_details_is_no_data() -> None:
    assert sent(Sources(), event(grounding_metadata=grounded(web_search_queries=["q"]))) == []


def test_citations_may_be_absent() -> None:
    assert sent(Sources(), event(citation_metadata=types.CitationMetadata())) == []


def test_pages_that_the_model_read_are_sources() -> None:
    class ReadingEvent(Event):
        url_context_metadata: types.UrlContextMetadata | None = None

    read = types.UrlContextMetadata(url_metadata=[types.UrlMetadata(retrieved_url="https://a")])
    told = sent(Sources(), ReadingEvent(author="root", url_context_metadata=read))
    assert told == [{"type": "source-url", "sourceId": "source-1", "url": "https://a"}]
    nothing = ReadingEvent(author="root", url_context_metadata=types.UrlContextMetadata())
    assert sent(Sources(), nothing) == []
