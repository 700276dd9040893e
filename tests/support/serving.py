"""The real server on loopback, in the test's own event loop."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp

from adk_stream_protocol.cli.listening import listen

__all__ = ["serving"]


class _Server(uvicorn.Server):
    """A server that tells when it is up, and leaves signals to the test runner."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an app with uvicorn on a free port; yield its base URL."""
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    server = _Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server._serve, [listener])
        with anyio.fail_after(10):
            await server.up.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
