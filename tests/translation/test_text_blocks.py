from __future__ import annotations

from collections.abc import Iterable

import pytest

from adk_stream_protocol.translation.text_blocks import Lane, TextBlocks
from adk_stream_protocol.wire.chunks import Chunk, to_json
from adk_stream_protocol.wire.values import JsonObject

ROOT: Lane = ("root", "")
OTHER: Lane = ("other", "par.other")


@pytest.fixture
def blocks() -> TextBlocks:
    return TextBlocks()


def sent(chunks: Iterable[Chunk]) -> list[JsonObject]:
    return [to_json(chunk) for chunk in chunks]


def said(chunks: Iterable[Chunk]) -> str:
    return "".join(str(chunk.get("delta", "")) for chunk in sent(chunks))


def test_first_delta_opens_a_block_and_later_ones_extend_it(blocks: TextBlocks) -> None:
    assert sent([*blocks.delta(ROOT, "text", "a"), *blocks.delta(ROOT, "text", "b")]) == [
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": "a"},
        {"type": "text-delta", "id": "1", "delta": "b"},
    ]


def test_empty_delta_is_nothing(blocks: TextBlocks) -> None:
    assert sent(blocks.delta(ROOT, "text", "")) == []
    assert not blocks.is_open()


def test_another_kind_ends_the_block(blocks: TextBlocks) -> None:
    chunks = [*blocks.delta(ROOT, "reasoning", "hm"), *blocks.delta(ROOT, "text", "a")]
    assert [chunk["type"] for chunk in sent(chunks)] == [
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta"),
    ]


def test_lanes_have_blocks_of_their_own(blocks: TextBlocks) -> None:
    chunks = [
        *blocks.delta(ROOT, "text", "a"),
        *blocks.delta(OTHER, "text", "b"),
        *blocks.delta(ROOT, "text", "c"),
    ]
    assert [chunk["id"] for chunk in sent(chunks)] == ["1", "1", "2", "2", "1"]


def test_complete_text_that_was_sent_is_not_sent_again(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "Hello"))
    assert sent(blocks.complete(ROOT, "text", "Hello")) == []


def test_complete_text_brings_the_missing_tail(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "Hel"))
    assert sent(blocks.complete(ROOT, "text", "Hello")) == [
        {"type": "text-delta", "id": "1", "delta": "lo"}
    ]


def test_complete_text_in_several_parts_is_matched_part_by_part(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "onetwo"))
    assert sent(blocks.complete(ROOT, "text", "one")) == []
    assert said(blocks.complete(ROOT, "text", "two and more")) == " and more"
    assert said(blocks.complete(ROOT, "text", "three")) == "three"
    assert sent(blocks.end_response(ROOT)) == [{"type": "text-end", "id": "1"}]


def test_rewritten_text_replaces_the_block_it_came_in(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "secret"))
    assert sent(blocks.complete(ROOT, "text", "[redacted]")) == [
        {"type": "text-end", "id": "1"},
        {"type": "text-start", "id": "2", "providerMetadata": {"adk": {"replaces": "1"}}},
        {"type": "text-delta", "id": "2", "delta": "[redacted]"},
    ]


def test_rewritten_thoughts_replace_the_block_they_came_in(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "reasoning", "secret"))
    assert sent(blocks.complete(ROOT, "reasoning", "hm"))[1] == {
        "type": "reasoning-start",
        "id": "2",
        "providerMetadata": {"adk": {"replaces": "1"}},
    }


def test_text_that_was_cut_off_replaces_the_block_it_came_in(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "The key is SECRET"))
    list(blocks.complete(ROOT, "text", "The key is "))
    assert sent(blocks.end_response(ROOT)) == [
        {"type": "text-end", "id": "1"},
        {"type": "text-start", "id": "2", "providerMetadata": {"adk": {"replaces": "1"}}},
        {"type": "text-delta", "id": "2", "delta": "The key is "},
        {"type": "text-end", "id": "2"},
    ]


def test_text_that_was_taken_back_is_replaced_by_nothing(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "SECRET"))
    assert sent(blocks.end_response(ROOT)) == [
        {"type": "text-end", "id": "1"},
        {"type": "text-start", "id": "2", "providerMetadata": {"adk": {"replaces": "1"}}},
        {"type": "text-end", "id": "2"},
    ]


def test_thoughts_that_the_complete_event_leaves_out_stay(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "reasoning", "hm"))
    assert sent(blocks.end_response(ROOT)) == [{"type": "reasoning-end", "id": "1"}]


def test_pause_ends_the_block_and_remembers_what_was_sent(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "Hel"))
    assert sent(blocks.pause(ROOT)) == [{"type": "text-end", "id": "1"}]
    assert sent(blocks.pause(OTHER)) == []
    assert said(blocks.complete(ROOT, "text", "Hello")) == "lo"


def test_end_of_a_lane_that_never_spoke_is_nothing(blocks: TextBlocks) -> None:
    assert sent(blocks.end_response(ROOT)) == []


def test_next_response_starts_from_nothing(blocks: TextBlocks) -> None:
    list(blocks.complete(ROOT, "text", "Hello"))
    list(blocks.end_response(ROOT))
    assert said(blocks.complete(ROOT, "text", "Hello")) == "Hello"


def test_open_lanes_are_known_one_aside(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "a"))
    assert blocks.is_open()
    assert blocks.is_open(besides=OTHER)
    assert not blocks.is_open(besides=ROOT)


def test_closing_all_ends_every_lane(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "a"))
    list(blocks.delta(OTHER, "reasoning", "b"))
    assert [chunk["type"] for chunk in sent(blocks.close_all())] == ["text-end", "reasoning-end"]
    assert not blocks.is_open()


def test_unfinished_text_is_what_no_complete_event_has_repeated(blocks: TextBlocks) -> None:
    list(blocks.delta(ROOT, "text", "a"))
    list(blocks.delta(ROOT, "reasoning", "hm"))
    list(blocks.delta(OTHER, "text", "b"))
    assert blocks.unfinished_text() == "ab"
    blocks.forget()
    assert blocks.unfinished_text() == ""
