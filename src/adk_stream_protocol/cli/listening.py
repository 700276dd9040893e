"""A uvicorn server that tells when it is up and leaves the process to its caller."""

from __future__ import annotations

import asyncio
import errno
import math
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, Protocol

import anyio
import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from adk_stream_protocol.engine.drain import Drain
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.settings import Settings

__all__ = ["Server", "Turns", "address_of", "listen"]

_FRAME: Final = 16 * 1024 * 1024

_GRACE: Final = 2.0
"""Seconds that requests have to end once their connections are cut off."""


class Turns(Protocol):
    """What has to end before a server can."""

    @property
    def drain(self) -> Drain:
        """The deadline for it."""
        ...

    async def drained(self) -> bool:
        """Begin no more; return when all has ended, or the time is over: then False."""
        ...


class Server(uvicorn.Server):
    """Calls `up` once, when requests can be made; lets running turns end when it is told to end.

    A signal begins the drain: the server still answers, takes no new turns, and closes when those
    that run have ended or the time is over. A second Ctrl+C ends the time.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        turns: Turns,
        up: Callable[[], None],
        settings: Settings | None = None,
    ) -> None:
        settings = settings or Settings()
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                # Compression costs memory for each socket, and chunks are small.
                ws_per_message_deflate=False,
                ws_ping_interval=settings.ping_seconds,
                ws_ping_timeout=settings.ping_seconds,
                # A frame that is too large is answered, if it is not absurd: uvicorn would close
                # the socket, and with it every chat on it.
                ws_max_size=max(_FRAME, settings.frame_bytes),
                # The last resort, after `_cut_off`: else what hangs keeps the server for ever.
                timeout_graceful_shutdown=math.ceil(turns.drain.seconds + 2 * _GRACE),
            )
        )
        self._turns = turns
        self._up = up
        self.has_cut_off = False
        """Whether the time was over before all turns had ended."""
        self._loop: asyncio.AbstractEventLoop | None = None  # None until it serves

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._up()

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # Not noted for uvicorn to raise again: the caller has a database to close.
        if self.should_exit and sig == signal.SIGINT and self._loop is not None:
            # A signal comes between any two instructions: the loop does it, between two tasks.
            self._loop.call_soon_threadsafe(self._turns.drain.hurry)
        self.should_exit = True

    @override
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # The door stays open meanwhile: probes hear that we drain, readers of a running reply
        # come back, a person can still decide.
        self.has_cut_off = not await self._turns.drained()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cut_off)
            await super().shutdown(sockets)
            tasks.cancel_scope.cancel()

    async def _cut_off(self) -> None:
        """End the connections that are open when the time is over."""
        with self._turns.drain.bound():
            await anyio.sleep_forever()
        for connection in list(self.server_state.connections):
            # To the app it is as if the client had left, which a stream expects.
            if connection.transport is not None:
                connection.transport.abort()
        await anyio.sleep(_GRACE)
        for task in list(self.server_state.tasks):
            task.cancel()

    async def serve_until_told(self, listener: socket.socket) -> None:
        """Serve until SIGINT or SIGTERM; returns after either, so that the caller can clean up."""
        with _ignoring_signals():
            await self.serve(sockets=[listener])


@contextmanager
def _ignoring_signals() -> Iterator[None]:
    # uvicorn handles them only while it serves; a late one must not end the process before the
    # database is closed.
    handlers = {
        number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is a free one.

    Raises:
        BadRequest: the address is taken or not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"Port {port} of {host} is taken. Choose another with --port."
        else:
            # Python adds the address, which is said already.
            why = (error.strerror or "no such address").partition(" (while")[0]
            message = f"Cannot listen on {host}:{port}: {why}. Check --host and --port."
        raise BadRequest(message, code="bad_address") from None
    # What it accepts has it, too. asyncio sets it only on sockets that were made for TCP by name,
    # and without it a small piece waits 40 ms until the one before has been acknowledged.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket, host: str) -> str:
    """Return the URL at which a browser finds the listener."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared, not bound
    name = f"[{shown}]" if ":" in shown else shown
    return f"http://{name}:{listener.getsockname()[1]}"
