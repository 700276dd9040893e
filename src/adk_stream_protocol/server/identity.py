"""Who calls. Replace `identify` with your own: a cookie, a token, a header of your proxy."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from starlette.requests import HTTPConnection

from adk_stream_protocol.errors import Forbidden
from adk_stream_protocol.identifiers import UserId

__all__ = ["LOCAL_USER", "Identify", "anyone", "user_of"]

Identify: TypeAlias = Callable[[HTTPConnection], "str | Awaitable[str | None] | None"]
"""Names the user of a request, or returns None to refuse it."""

LOCAL_USER: Final = UserId("local")


def anyone(_request: HTTPConnection) -> str:
    """Take every caller for the same local user: for one person on one machine."""
    return LOCAL_USER


async def user_of(request: HTTPConnection, identify: Identify) -> UserId:
    """Return who calls.

    Raises:
        Forbidden: `identify` does not know the caller.
    """
    named = identify(request)
    user = await named if inspect.isawaitable(named) else named
    if not user:
        raise Forbidden("Sign in first: this server does not know who you are.", code="no_user")
    return UserId(user)
