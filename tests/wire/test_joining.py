from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.wire.chunks import (
    Chunk,
    ReasoningDeltaChunk,
    StartStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
)
from adk_stream_protocol.wire.joining import joined


def test_neighbouring_pieces_of_a_block_become_one() -> None:
    pieces = [TextDeltaChunk("1", "a"), TextDeltaChunk("1", "b"), TextDeltaChunk("1", "c")]
    assert list(joined(pieces)) == [TextDeltaChunk("1", "abc")]


def test_what_stands_between_pieces_stays_between_them() -> None:
    chunks: list[Chunk] = [
        TextDeltaChunk("1", "a"),
        TextEndChunk("1"),
        TextStartChunk("1"),
        TextDeltaChunk("1", "b"),
    ]
    assert list(joined(chunks)) == chunks


def test_pieces_of_different_blocks_stay_apart() -> None:
    chunks: list[Chunk] = [
        TextDeltaChunk("1", "a"),
        TextDeltaChunk("2", "b"),
        ReasoningDeltaChunk("2", "c"),
    ]
    assert list(joined(chunks)) == chunks


def test_a_piece_that_says_more_than_its_text_stays_by_itself() -> None:
    chunks: list[Chunk] = [
        TextDeltaChunk("1", "a", {"adk": {"replaces": "0"}}),
        TextDeltaChunk("1", "b"),
    ]
    assert list(joined(chunks)) == chunks


_CHUNKS: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(TextDeltaChunk, st.sampled_from("12"), st.text()),
    st.builds(ReasoningDeltaChunk, st.sampled_from("12"), st.text()),
    st.builds(StartStepChunk),
)


@given(st.lists(_CHUNKS))
def test_no_character_is_lost_or_moved(chunks: list[Chunk]) -> None:
    def letters(among: list[Chunk]) -> list[object]:
        told: list[object] = []
        for chunk in among:
            if isinstance(chunk, TextDeltaChunk | ReasoningDeltaChunk):
                told += [(type(chunk), chunk.id, letter) for letter in chunk.delta]
            else:
                told.append(chunk)
        return told

    assert letters(list(joined(chunks))) == letters(chunks)
