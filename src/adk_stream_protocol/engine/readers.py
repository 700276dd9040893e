"""Which replies are read in this process: one that nobody reads may be stopped after a while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from adk_stream_protocol.identifiers import ReplyId

__all__ = ["Readers"]


@dataclass(slots=True)
class Readers:
    """The replies that somebody reads."""

    _waiting: Counter[ReplyId] = field(default_factory=Counter)
    """How many readers wait for more of each."""
    _recent: set[ReplyId] = field(default_factory=set)
    """Those that a reader got something of since they were last asked for."""

    @contextmanager
    def reading(self, reply_id: ReplyId) -> Iterator[None]:
        """Count a reader that waits for more of a reply until the block ends."""
        self._waiting[reply_id] += 1
        try:
            yield
        finally:
            self._recent.add(reply_id)
            self._waiting[reply_id] -= 1
            if not self._waiting[reply_id]:
                del self._waiting[reply_id]

    def take(self) -> set[ReplyId]:
        """Return the replies that were read since the last time."""
        recent, self._recent = self._recent, set()
        return recent | set(self._waiting)
