"""One turn of a live run: follows the run from what begins it to the end of its message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import anyio
from google.adk.events.event import Event

from adk_stream_protocol.engine.live_run import LiveRun, run_has_ended
from adk_stream_protocol.engine.turn_names import TurnNames
from adk_stream_protocol.ports import SteeringMessage
from adk_stream_protocol.translation.live_turns import without_sound

__all__ = ["LiveTurn"]

_ANSWER: Final = 10.0
"""How long a model may take to answer what it was told in the middle of its answer."""


@dataclass(slots=True)
class LiveTurn:
    """One turn of a live run."""

    live: LiveRun
    names: TurnNames
    start: Callable[[LiveRun], Awaitable[None]]
    """Says what the turn is about, once it follows the run."""

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the turn's events in order; ends soon after `stop`."""
        live = self.live
        live.begin(self.names)
        begun = over = False
        try:
            await self.start(live)
            while not over:
                got = None
                with anyio.move_on_after(_ANSWER if live.may_be_over else None) as waiting:
                    got = await live.next()
                if waiting.cancelled_caught:
                    # The model has answered all it was given in one go.
                    live.conclude()
                    over = True
                    return
                if got is None:
                    if not begun and not live.scope.stopping:
                        raise run_has_ended()
                    return
                begun = True
                event, over = got
                yield without_sound(event)
                if live.scope.stopping and not live.scope.is_busy:
                    live.end()
        finally:
            if over and not live.scope.unstored:
                live.rest()
            else:
                # Cut off: nobody can follow it from here. Or a message lies in its queue that gets
                # a turn of its own: the model must not hear it twice.
                live.end()

    def hear(self, message: SteeringMessage) -> bool:
        """Give the model a message while it works; False: the turn is over."""
        return self.live.hear(message)

    def stop(self) -> None:
        """Ask the turn to end. A tool that is running is let finish: its result is told."""
        self.live.scope.stopping = True
        if not self.live.scope.is_busy:
            self.live.end()

    def abandon(self) -> None:
        """End the turn though a tool still runs: it took too long, and nobody waits any more."""
        self.live.scope.stopping = True
        if self.live.scope.is_busy:
            self.live.end()
        # Else it is ending.
