"""What a request must be before anyone looks at what it says: ours, JSON, and of a sane size."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from adk_stream_protocol.errors import BadRequest, Forbidden, TooLarge, UnsupportedMedia
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.wire.values import JsonValue, parse_json

__all__ = ["check_origin", "read_json"]


def check_origin(request: HTTPConnection, settings: Settings) -> None:
    """Refuse a request that a page of another site made a browser send.

    Raises:
        Forbidden: the Origin is not ours and not allowed, or the Host is not one of ours.
    """
    host = request.headers.get("host", "")
    name = _host_name(host)
    if settings.allowed_hosts and name not in settings.allowed_hosts:
        raise Forbidden(
            f"This server does not answer to the host {name!r}. Add it to allowed_hosts.",
            code="bad_host",
        )
    origin = request.headers.get("origin")
    if origin is None:
        # Not a browser, or a same-origin GET; a browser tells a cross-site one below.
        if request.headers.get("sec-fetch-site") == "cross-site":
            raise _foreign("another site")
        return
    if origin not in settings.allowed_origins and origin.partition("://")[2] != host:
        raise _foreign(repr(origin))


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _foreign(who: str) -> Forbidden:
    return Forbidden(
        f"Requests from {who} are not allowed. Add the page's origin to allowed_origins.",
        code="bad_origin",
    )


async def read_json(request: Request, settings: Settings) -> JsonValue:
    """Return the request's body.

    Raises:
        UnsupportedMedia: it is not declared as JSON.
        TooLarge: it is too large.
        BadRequest: it is not JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise UnsupportedMedia("Send the body as application/json.")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > settings.body_with_files_bytes:
            raise _too_large(settings.body_with_files_bytes)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("The body is not UTF-8.", code="not_json") from None
    value = parse_json(text, max_depth=settings.json_depth)
    if len(body) > settings.body_bytes and not _has_files(value):
        raise _too_large(settings.body_bytes)
    return value


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The body is larger than {limit} bytes. The server keeps the history: send only the last "
        "message (prepareSendMessagesRequest)."
    )


def _has_files(value: JsonValue) -> bool:
    if isinstance(value, Mapping):
        return value.get("type") == "file" or any(map(_has_files, value.values()))
    return isinstance(value, list) and any(map(_has_files, value))
