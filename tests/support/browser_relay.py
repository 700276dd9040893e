"""A line to a server that a test can cut, as a cable or a lost network does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketAttribute, SocketStream

__all__ = ["Relay", "relayed"]

_BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@dataclass
class Relay:
    """What is between a browser and a server."""

    url: str
    is_cut: bool = False
    scopes: set[anyio.CancelScope] = field(default_factory=set)
    """One for each connection that is open."""

    def cut(self) -> None:
        """Break every connection, and take no new one."""
        self.is_cut = True
        for scope in self.scopes:
            scope.cancel()

    def mend(self) -> None:
        """Let connections through again."""
        self.is_cut = False


@asynccontextmanager
async def relayed(server_url: str) -> AsyncIterator[Relay]:
    """Relay a free port to a server."""
    port = urlsplit(server_url).port
    assert port is not None
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    own_port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # not Django's
    relay = Relay(f"http://127.0.0.1:{own_port}")

    async def serve(near: SocketStream) -> None:
        async with near:
            if relay.is_cut:
                return
            with anyio.CancelScope() as scope:
                relay.scopes.add(scope)
                try:
                    async with await anyio.connect_tcp("127.0.0.1", port) as far:
                        await _exchange(near, far)
                finally:
                    relay.scopes.discard(scope)

    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        try:
            yield relay
        finally:
            tasks.cancel_scope.cancel()


async def _exchange(near: SocketStream, far: SocketStream) -> None:
    async with anyio.create_task_group() as ways:

        async def pump(source: ByteReceiveStream, target: ByteSendStream) -> None:
            with suppress(*_BROKEN):
                async for piece in source:
                    await target.send(piece)
            ways.cancel_scope.cancel()

        ways.start_soon(pump, near, far)
        ways.start_soon(pump, far, near)
