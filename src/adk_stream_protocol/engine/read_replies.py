"""Which replies were read to their end: the same request again then asks for another.

A client whose response was lost sends its request again, and so does one whose user wants another
answer, where its requests do not say so. Only one of them has read the reply. See ADR-0016.
"""

from __future__ import annotations

import logging
from typing import Final

import anyio

from adk_stream_protocol.errors import trace_of
from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.ports import TurnRecord, Turns

__all__ = ["ReadReplies"]

logger = logging.getLogger(__name__)

_PAUSE: Final = 0.25
"""Seconds for which replies are gathered, to be stored with one transaction."""

_PATIENCE: Final = 2.0
"""Seconds until it is tried again, if that has failed."""

_MOST: Final = 1000
"""How many replies wait at most to be stored; of more, while the store is down, the oldest go."""


class ReadReplies:
    """Remembers them at once, and stores them soon after."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        # Those that are not stored yet, oldest first.
        self._unstored: dict[ReplyId, TurnRecord] = {}
        # Set while there are any.
        self._some = anyio.Event()

    def note(self, turn: TurnRecord) -> None:
        """Note that the reply of a turn was read to its end."""
        self._unstored[turn.reply_id] = turn
        if len(self._unstored) > _MOST:
            del self._unstored[next(iter(self._unstored))]
        self._some.set()

    def __contains__(self, turn: TurnRecord) -> bool:
        """Whether it is known here; what is stored already, the store knows."""
        return turn.reply_id in self._unstored

    async def keep(self) -> None:
        """Store what is noted, until cancelled."""
        while True:
            await self._some.wait()
            await anyio.sleep(_PAUSE)
            try:
                await self.store()
            except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
                logger.error("read replies not stored: %s", trace_of(error))  # noqa: TRY400
                await anyio.sleep(_PATIENCE)

    async def store(self) -> None:
        """Store what is noted now."""
        storing = dict(self._unstored)
        if storing:
            await self._turns.note_read(storing.values())
        for reply_id in storing:
            self._unstored.pop(reply_id, None)
        if not self._unstored:
            self._some = anyio.Event()
