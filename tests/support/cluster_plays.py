"""What a test has the servers' models say, and the conductor whom models and tools wait for.

A test names the places where they wait. The conductor learns who has arrived and lets them go on,
so that a reply runs, or a tool, for exactly as long as a test needs it to.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from support.cluster import Cluster

__all__ = ["Beat", "Conductor", "called", "conducting", "new_name", "play", "wait"]

_PATIENCE_SECONDS = 180

Beat = str | dict[str, object]


class Conductor:
    """Knows who waits where, and lets them go on."""

    def __init__(self) -> None:
        self._arrivals: Counter[str] = Counter()
        # Set and replaced at each arrival.
        self._news = anyio.Event()
        self._open: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    async def arrived(self, *places: str, times: int = 1) -> None:
        """Return when each place has been arrived at this many times."""
        with anyio.fail_after(_PATIENCE_SECONDS):
            while any(self._arrivals[place] < times for place in places):
                await self._news.wait()

    def arrivals(self, place: str) -> int:
        """Return how often the place has been arrived at."""
        return self._arrivals[place]

    def release(self, *places: str) -> None:
        """Let go on whoever waits there, now or later."""
        for place in places:
            self._open[place].set()

    async def meet(self, stream: SocketStream) -> None:
        """Hold one who arrives until the place is open."""
        async with stream:
            try:
                line = await BufferedByteReceiveStream(stream).receive_until(b"\n", 1000)
                place = line.decode()
                self._arrivals[place] += 1
                news, self._news = self._news, anyio.Event()
                news.set()
                await self._open[place].wait()
                await stream.send(b".")
            except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.EndOfStream):
                return  # it was stopped, or its process was


@asynccontextmanager
async def conducting(cluster: Cluster) -> AsyncIterator[Conductor]:
    """Conduct until the block ends; then whoever still waits goes on."""
    path = cluster.folder / "conductor"
    path.unlink(missing_ok=True)
    conductor = Conductor()
    listener = await anyio.create_unix_listener(path)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, conductor.meet)
        try:
            yield conductor
        finally:
            tasks.cancel_scope.cancel()


def play(name: str, *responses: list[Beat]) -> str:
    """Return the message that makes the model give these responses."""
    return json.dumps({"name": name, "responses": responses})


def wait(place: str) -> Beat:
    """Return the beat at which the model waits for the conductor."""
    return {"wait": place}


def called(tool: str, name: str) -> Beat:
    """Return the beat at which the model calls a tool."""
    return {"call": tool, "args": {"name": name}}


def new_name() -> str:
    """Return a name for a chat, its play, its payment, and what else belongs to it."""
    return f"chat-{uuid.uuid4().hex}"
