"""What a request must be before anyone looks at what it says: ours, JSON, and of a sane size."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from adk_stream_protocol.errors import BadRequest, Forbidden, TooLarge, UnsupportedMedia
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.wire.values import JsonValue, parse_json

__all__ = ["LOOPBACK", "check_origin", "read_json"]

logger = logging.getLogger(__name__)

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""The names of the machine itself; a page under one of them is the machine's own."""

_LONGEST_SHOWN: Final = 200


def check_origin(request: HTTPConnection, settings: Settings) -> None:
    """Refuse a request that a page of another site made a browser send.

    A page is ours if its origin has the request's `Host`. Behind a proxy that changes the `Host`
    it is also ours if the browser says that it sent the request to the page's own origin, and the
    origin has one of our names. WebSockets of Chromium say nothing of the kind.

    Raises:
        Forbidden: the Origin is not ours and not allowed, or the Host is not one of ours.
    """
    host = request.headers.get("host", "")
    name = _host_name(host)
    if settings.allowed_hosts and name not in settings.allowed_hosts:
        logger.warning("host not allowed", extra={"host": _cut(host)})
        raise Forbidden(
            f"This server does not answer to the host {_cut(name)!r}. Add it to allowed_hosts "
            "(ADK_STREAM_ALLOWED_HOSTS); or, if a proxy sends it, let the proxy pass on the "
            "browser's Host.",
            code="bad_host",
        )
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    if origin is None:
        # Not a browser, or a same-origin GET; a browser tells a cross-site one below.
        if site == "cross-site":
            raise _foreign("another site", host)
        return
    if origin in settings.allowed_origins or origin.partition("://")[2] == host:
        return
    # No page can send this header itself, or make the browser say it of another origin than the
    # page's own. The name is checked, too: one that was rebound to our address is not ours.
    if site == "same-origin" and _origin_name(origin) in (settings.allowed_hosts or LOOPBACK):
        return
    raise _foreign(repr(_cut(origin)), host)


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _origin_name(origin: str) -> str:
    scheme, _, host = origin.partition("://")
    return _host_name(host) if scheme in {"http", "https"} else ""


def _foreign(origin: str, host: str) -> Forbidden:
    # A page does not see why its socket was refused: the log says it, too.
    logger.warning("origin not allowed", extra={"origin": origin, "host": _cut(host)})
    return Forbidden(
        f"Requests of pages from {origin} are not allowed here; this one came in with the Host "
        f"{_cut(host)!r}. If a proxy has put that there, let it pass on the browser's Host (Vite: "
        "changeOrigin: false; nginx: proxy_set_header Host $http_host). Otherwise add the page's "
        "origin to allowed_origins (ADK_STREAM_ALLOWED_ORIGINS).",
        code="bad_origin",
    )


def _cut(header: str) -> str:
    """Return as much of a header as anyone wants to read."""
    return header[:_LONGEST_SHOWN]


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
