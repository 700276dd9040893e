"""The page at `/`: files built ahead and shipped inside the package."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

__all__ = ["page_routes"]

_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}

_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        # What an agent sends as a file is shown from data: URLs; nothing is fetched from elsewhere.
        "img-src 'self' data:",
        "media-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    kind: str
    tag: str

    @classmethod
    def read(cls, name: str, kind: str) -> _File:
        body = files("adk_stream_protocol.server").joinpath("static", name).read_bytes()
        return cls(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')

    def response(self, request: Request) -> Response:
        headers = {
            "content-type": self.kind,
            "etag": self.tag,
            # Kept, but asked about each time: a new release shows at once.
            "cache-control": "no-cache",
            "content-security-policy": _POLICY,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
        }
        known = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
        if self.tag in known or f"W/{self.tag}" in known:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers)


def page_routes() -> APIRouter:
    """Return the routes of the page and of what it loads."""
    router = APIRouter()
    for path, (name, kind) in _FILES.items():
        _add(router, path, _File.read(name, kind))
    return router


def _add(router: APIRouter, path: str, file: _File) -> None:
    @router.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)
    async def send(request: Request) -> Response:
        return file.response(request)
