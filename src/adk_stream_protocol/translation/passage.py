"""The way of an answer's pieces through ADK: whether they come out, and whether all did."""

from __future__ import annotations

from google.adk.events.event import Event
from google.genai import types

__all__ = ["Passage"]


class Passage:
    """What of one answer ADK was given, and has not handed on yet.

    ADK hands on in order, or not at all: an agent that is asked behind the scenes is heard by
    whoever asked it.
    """

    __slots__ = ("_newest", "is_clear")

    def __init__(self) -> None:
        self.is_clear = False
        """Whether ADK has handed on all it was given, and that was something."""
        # None: ADK was given nothing whose coming out could be seen.
        self._newest: types.Content | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether something is on its way that can be seen to come out."""
        return self._newest is not None

    def give(self, content: types.Content | None) -> None:
        """Note that ADK is given something."""
        self.is_clear = False
        self._newest = content

    def take(self, event: Event) -> None:
        """Note that ADK has handed on an event."""
        # The very object: another piece may say the same.
        if self._newest is not None and event.content is self._newest:
            self.is_clear = True
            self._newest = None
