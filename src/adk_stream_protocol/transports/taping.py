"""Where transports tell what is said, for whoever records it."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Final, Protocol

from adk_stream_protocol.identifiers import ChatId, RequestId
from adk_stream_protocol.recording import Said
from adk_stream_protocol.wire.frames import (
    UNNUMBERED,
    ChunkFrame,
    Ended,
    Failed,
    Interrupt,
    Resume,
    Send,
    Started,
    ToolResult,
)

__all__ = ["NumberedTape", "Tape"]

_MOST: Final = 64
"""How many requests wait for a reply at most; some never get one of their own."""


class Tape(Protocol):
    """Takes down what is said on one connection. Returns at once and never fails."""

    def __call__(
        self, said: Said, chat: ChatId | None, request: RequestId | None = UNNUMBERED
    ) -> None:
        """Note what was said.

        Args:
            said: in either direction.
            chat: where; None: none was named.
            request: ties a request and what answers it; None: it belongs to none.
        """
        ...


class NumberedTape:
    """Gives numbers to the requests of a dialect that has none: replies come in their order."""

    def __init__(self, tape: Tape | None) -> None:
        """Note on a tape; None: nobody records."""
        self._tape = tape
        self._numbers = count(1)
        # The requests whose replies have not begun.
        self._waiting: deque[RequestId] = deque(maxlen=_MOST)
        # The request that the reply on its way is noted under; None between replies.
        self._answered: RequestId | None = None

    def asked(self, said: Send | ToolResult | Resume, chat: ChatId | None) -> RequestId | None:
        """Note a request, and return its number; None: nobody records."""
        if self._tape is None:
            return None
        request = self._number()
        self._waiting.append(request)
        self._tape(said, chat, request)
        return request

    def said(self, said: Interrupt | ChunkFrame | Failed, chat: ChatId | None) -> None:
        """Note what belongs to the reply on its way, if there is one."""
        if self._tape is not None:
            self._tape(said, chat, self._answered)

    def refused(self, request: RequestId, failed: Failed, chat: ChatId | None) -> None:
        """Note that a request has no reply."""
        if self._tape is not None:
            self.settled(request)
            self._tape(failed, chat, request)

    def settled(self, request: RequestId | None) -> None:
        """Note that a request gets no reply of its own: its outcome is on its way."""
        if request is not None and request in self._waiting:
            self._waiting.remove(request)

    def begins(self, chat: ChatId | None) -> None:
        """Note that a reply begins: one that was asked for, or one that began elsewhere."""
        if self._tape is not None:
            self._answered = self._waiting.popleft() if self._waiting else self._number()
            self._tape(Started(UNNUMBERED), chat, self._answered)

    def ends(self, chat: ChatId | None, *, complete: bool) -> None:
        """Note that no more of the reply follows."""
        if self._tape is not None:
            if complete:
                self._tape(Ended(UNNUMBERED), chat, self._answered)
            self._answered = None

    def _number(self) -> RequestId:
        return RequestId(str(next(self._numbers)))
