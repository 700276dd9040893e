"""A uvicorn server that tells when it is up and leaves the process to its caller."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from typing_extensions import override

from adk_stream_protocol.errors import BadRequest

__all__ = ["LOOPBACK", "Server", "address_of", "listen"]

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Server(uvicorn.Server):
    """Calls `up` once, when requests can be made."""

    def __init__(self, app: ASGIApp, *, drain_seconds: int, up: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                # Else an open stream keeps the server from ever exiting.
                timeout_graceful_shutdown=drain_seconds,
            )
        )
        self._up = up

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._up()

    async def serve_until_told(self, listener: socket.socket) -> None:
        """Serve until SIGINT or SIGTERM; returns after either, so that the caller can clean up."""
        with _ignoring_signals():
            await self.serve(sockets=[listener])


@contextmanager
def _ignoring_signals() -> Iterator[None]:
    # uvicorn handles them while it serves, then raises them again: SIGTERM would end the process
    # before the database is closed.
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
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"Port {port} of {host} is taken. Choose another with --port."
        else:
            # Python adds the address, which is said already.
            why = (error.strerror or "no such address").partition(" (while")[0]
            message = f"Cannot listen on {host}:{port}: {why}. Check --host and --port."
        raise BadRequest(message, code="bad_address") from None


def address_of(listener: socket.socket, host: str) -> str:
    """Return the URL at which a browser finds the listener."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared, not bound
    name = f"[{shown}]" if ":" in shown else shown
    return f"http://{name}:{listener.getsockname()[1]}"
