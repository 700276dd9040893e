"""Text and thoughts of a reply: which block is open, and what was sent of a model response.

ADK streams deltas and then repeats the whole response in one complete event. This module sends
each character once: the complete event only brings the tail that no delta carried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from adk_stream_protocol.wire.chunks import (
    Chunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
)

__all__ = ["BlockKind", "Lane", "TextBlocks"]

BlockKind: TypeAlias = Literal["text", "reasoning"]

_DELTAS: Final[Mapping[BlockKind, Callable[[str, str], Chunk]]] = {
    "text": TextDeltaChunk,
    "reasoning": ReasoningDeltaChunk,
}

Lane: TypeAlias = tuple[str, str]
"""One voice of a reply: (author, branch). Parallel agents interleave, each in its own lane."""


@dataclass(slots=True)
class _LaneState:
    open_kind: BlockKind | None = None
    """None: no block is open."""
    open_id: str = ""
    sent: dict[BlockKind, list[str]] = field(default_factory=dict)
    """What was sent of the current model response, per kind."""
    seen: dict[BlockKind, int] = field(default_factory=dict)
    """How much of `sent` the complete event has repeated so far."""
    last_id: dict[BlockKind, str] = field(default_factory=dict)


class TextBlocks:
    """The text blocks of one message; ids count up over the whole message."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, _LaneState] = {}
        self._count = 0

    def is_open(self, *, besides: Lane | None = None) -> bool:
        """Whether any block is open, one lane aside."""
        return any(
            state.open_kind is not None for lane, state in self._lanes.items() if lane != besides
        )

    def unfinished_text(self) -> str:
        """Return the text sent since the last complete event: what ADK has not persisted."""
        return "".join("".join(state.sent.get("text", ())) for state in self._lanes.values())

    def delta(self, lane: Lane, kind: BlockKind, text: str) -> Iterator[Chunk]:
        """Yield the chunks for more text of a kind; a block of another kind in the lane ends."""
        if not text:
            return
        state = self._lanes.setdefault(lane, _LaneState())
        if state.open_kind != kind:
            yield from self._close(state)
            yield self._open(state, kind)
        state.sent.setdefault(kind, []).append(text)
        yield _DELTAS[kind](state.open_id, text)

    def more(self, lane: Lane, kind: BlockKind, text: str) -> Chunk | None:
        """Return the chunk for more text of the open block, or None if it is not that simple."""
        state = self._lanes.get(lane)
        if state is None or state.open_kind != kind:
            return None
        state.sent[kind].append(text)
        return _DELTAS[kind](state.open_id, text)

    def complete(self, lane: Lane, kind: BlockKind, text: str) -> Iterator[Chunk]:
        """Yield what of a complete event's text part was not sent yet."""
        state = self._lanes.setdefault(lane, _LaneState())
        sent = "".join(state.sent.get(kind, ()))
        rest = sent[state.seen.get(kind, 0) :]
        if rest.startswith(text):
            state.seen[kind] = state.seen.get(kind, 0) + len(text)
            return
        if text.startswith(rest):
            yield from self.delta(lane, kind, text[len(rest) :])
        else:
            yield from self._replace(lane, state, kind, text)
        state.seen[kind] = len("".join(state.sent[kind]))

    def pause(self, lane: Lane) -> Iterator[Chunk]:
        """Yield the end of a lane's open block: something else comes between."""
        state = self._lanes.get(lane)
        if state is not None:
            yield from self._close(state)

    def end_response(self, lane: Lane) -> Iterator[Chunk]:
        """Yield the ends for a lane whose model response is complete."""
        state = self._lanes.get(lane)
        if state is None:
            return
        sent, seen = "".join(state.sent.get("text", ())), state.seen.get("text", 0)
        if seen < len(sent):
            # A callback cut off what was already streamed. Thoughts may go missing: some models'
            # complete events leave them out.
            yield from self._replace(lane, state, "text", sent[:seen])
        yield from self._close(state)
        del self._lanes[lane]

    def close_all(self) -> Iterator[Chunk]:
        """Yield the ends of every open block."""
        for state in self._lanes.values():
            yield from self._close(state)

    def forget(self) -> None:
        """Drop what was sent: the response will never be completed."""
        self._lanes.clear()

    def _replace(
        self, lane: Lane, state: _LaneState, kind: BlockKind, text: str
    ) -> Iterator[Chunk]:
        # A callback rewrote what was already streamed. v6 cannot retract a block, so the new one
        # says which it replaces.
        replaced = state.last_id.get(kind, "")
        yield from self._close(state)
        yield self._open(state, kind, replaces=replaced)
        yield from self.delta(lane, kind, text)

    def _open(self, state: _LaneState, kind: BlockKind, replaces: str = "") -> Chunk:
        self._count += 1
        state.open_kind, state.open_id = kind, str(self._count)
        state.last_id[kind] = state.open_id
        metadata = {"adk": {"replaces": replaces}} if replaces else None
        if kind == "text":
            return TextStartChunk(state.open_id, metadata)
        return ReasoningStartChunk(state.open_id, metadata)

    def _close(self, state: _LaneState) -> Iterator[Chunk]:
        if state.open_kind == "text":
            yield TextEndChunk(state.open_id)
        elif state.open_kind == "reasoning":
            yield ReasoningEndChunk(state.open_id)
        state.open_kind = None
