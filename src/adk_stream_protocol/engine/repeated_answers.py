"""Ends the loop of a client that sends the same answers again and again.

An answer that is not the last of its step gets a short reply that leaves the client's part as it
is. A `sendAutomaticallyWhen` that only looks at that part sends again at once, for ever. A client
does not send by itself after an `error` chunk, so that ends it; the next click is sent as usual.

Each process counts for itself: behind a balancer a loop takes that many more requests to end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio

from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.translation.instructions import Answer
from adk_stream_protocol.wire.chunks import ErrorChunk
from adk_stream_protocol.wire.values import digest, jsonable

__all__ = ["RepeatedAnswers", "still_awaited"]

_TOO_MANY: Final = 3
"""Which repetition is refused. A lost connection, or a second tab, makes one."""

_SOON: Final = 10.0
"""Within how many seconds of the last one a repetition counts. A loop takes less for each."""

_MOST_NAMED: Final = 5
"""How many calls are named."""


@dataclass(frozen=True, slots=True)
class _Repeated:
    """The answers that a chat got last and that changed nothing."""

    answers: str
    """A digest of them."""
    times: int
    at: float
    """When they came last."""


@dataclass(slots=True)
class RepeatedAnswers:
    """Counts, for each chat, how often the same answers came that changed nothing."""

    clock: Callable[[], float] = anyio.current_time
    _last: dict[ChatId, _Repeated] = field(default_factory=dict)
    """The one that repeated itself last is at the end."""

    def are_too_many(self, chat_id: ChatId, answers: Sequence[Answer]) -> bool:
        """Note answers that changed nothing; return whether they came too often of late."""
        now = self.clock()
        self._forget_before(now - _SOON)
        name = digest(jsonable(answers))
        last = self._last.pop(chat_id, None)
        times = last.times + 1 if last is not None and last.answers == name else 1
        self._last[chat_id] = _Repeated(name, times, now)
        return times >= _TOO_MANY

    def _forget_before(self, limit: float) -> None:
        while self._last and next(iter(self._last.values())).at < limit:
            del self._last[next(iter(self._last))]


def still_awaited(calls: Sequence[HeldCall]) -> ErrorChunk:
    """Return the end of a reply to answers that came too often: what is awaited, of these calls."""
    awaited = [_awaited(call) for call in calls if call.is_open]
    named = awaited[:_MOST_NAMED]
    if len(awaited) > len(named):
        named.append(f"{len(awaited) - len(named)} more")
    return ErrorChunk(
        "This answer is recorded; sending it again changes nothing. The reply goes on when the "
        f"rest is answered, too: {', '.join(named)}."
    )


def _awaited(call: HeldCall) -> str:
    is_asked = call.state is CallState.PENDING
    return f"{call.tool_name} ({'a decision' if is_asked else 'its output'})"
