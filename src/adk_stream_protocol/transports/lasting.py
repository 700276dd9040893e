"""Connections that last: they let go of what brought them to their route.

A stream or a socket is silent most of its life. What a framework has on the stack around a route
takes more memory than the connection itself, so the route returns, and what it leaves is served
further out. A route in an app without that middleware serves where it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Lasting", "serve_last"]

_Serve: TypeAlias = Callable[[Receive, Send], Awaitable[None]]

_LEFT: Final = "adk_stream.left"
"""Where in a scope a route leaves what is to be served."""


_ROUTED: Final = ("route", "endpoint", "path_params")


class Lasting:
    """Middleware that serves what a route has left, when nothing of the route is there any more.

    It is around all that only sees how an answer begins, such as CORS, and inside what sees it end.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or one socket."""
        left: list[_Serve] = []
        before = dict(scope)
        scope[_LEFT] = left
        await self._app(scope, receive, send)
        if left:
            # The server keeps it, and with it all that was noted in it on the way. Middleware
            # further out may look at what was routed.
            before |= {name: scope[name] for name in _ROUTED if name in scope}
            scope.clear()
            scope.update(before)
            del before
            await left.pop()(receive, send)


async def serve_last(scope: Scope, receive: Receive, send: Send, *, serve: _Serve) -> None:
    """Serve what follows the beginning of an answer, outside the route if `Lasting` is around it.

    It is the last that a route does: nothing may follow, and nothing may be open around it.
    """
    left: list[_Serve] | None = scope.get(_LEFT)
    if left is None:
        await serve(receive, send)
    else:
        left.append(serve)
