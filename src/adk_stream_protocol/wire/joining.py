"""Pieces of text that are sent together, as one: a client works through each chunk it gets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from adk_stream_protocol.wire.chunks import Chunk, ReasoningDeltaChunk, TextDeltaChunk

__all__ = ["joined"]

_Piece: TypeAlias = TextDeltaChunk | ReasoningDeltaChunk
_PIECES: Final = (TextDeltaChunk, ReasoningDeltaChunk)


def joined(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """Yield the chunks, with neighbouring pieces of one block made one.

    It takes what is there and waits for nothing. A piece that says more than its text, in
    `provider_metadata`, stays by itself.
    """
    first: _Piece | None = None  # Of the pieces that are one; None: the last chunk was none.
    texts: list[str] = []
    for chunk in chunks:
        piece = chunk if isinstance(chunk, _PIECES) and chunk.provider_metadata is None else None
        if first is not None:
            if piece is not None and type(piece) is type(first) and piece.id == first.id:
                texts.append(piece.delta)
                continue
            yield _one(first, texts)
        first = piece
        if piece is None:
            yield chunk
        else:
            texts = [piece.delta]
    if first is not None:
        yield _one(first, texts)


def _one(first: _Piece, texts: list[str]) -> _Piece:
    return first if len(texts) == 1 else type(first)(first.id, "".join(texts))
