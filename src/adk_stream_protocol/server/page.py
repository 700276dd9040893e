"""The page at `/`: files built ahead and shipped inside the package."""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

__all__ = ["page_routes"]

_KINDS: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".md": "text/markdown; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
_OTHER: Final = "application/octet-stream"
_PACKED: Final = frozenset({".ico", ".png", ".webp", ".woff2"})
"""What is compressed already."""

_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        # AudioWorklets are scripts, too.
        "script-src 'self'",
        "style-src 'self'",
        "font-src 'self'",
        # Covers the WebSockets of the page's own host.
        "connect-src 'self'",
        # What an agent sends as a file is shown from data: URLs, what a person chose from blob:
        # ones; nothing is fetched from elsewhere.
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)

_PERMISSIONS: Final = ", ".join(
    [
        "microphone=(self)",
        "geolocation=(self)",
        *(
            f"{name}=()"
            for name in (
                "accelerometer",
                "camera",
                "display-capture",
                "gyroscope",
                "hid",
                "magnetometer",
                "midi",
                "payment",
                "serial",
                "usb",
            )
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    """Its address, below the page's."""
    kind: str
    body: bytes
    packed: bytes | None
    """The body for whoever takes gzip; None: it would not be smaller."""
    tag: str

    @classmethod
    def read(cls, path: str, source: Traversable) -> _File:
        body = source.read_bytes()
        suffix = PurePosixPath(source.name).suffix
        # Once, at the start; without a time in it, so that equal files are equal everywhere.
        packed = None if suffix in _PACKED else gzip.compress(body, mtime=0)
        return cls(
            path,
            _KINDS.get(suffix, _OTHER),
            body,
            packed if packed is not None and len(packed) < len(body) else None,
            hashlib.sha256(body).hexdigest()[:32],
        )

    def response(self, request: Request) -> Response:
        packed = self.packed if _takes_gzip(request.headers.get("accept-encoding", "")) else None
        tag = f'"{self.tag}"' if packed is None else f'"{self.tag}-gzip"'
        headers = {
            "content-type": self.kind,
            "etag": tag,
            "vary": "accept-encoding",
            "cache-control": self._caching,
            "content-security-policy": _POLICY,
            "permissions-policy": _PERMISSIONS,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
        }
        known = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
        if tag in known or f"W/{tag}" in known:
            return Response(status_code=304, headers=headers)
        if packed is not None:
            return Response(packed, headers=headers | {"content-encoding": "gzip"})
        return Response(self.body, headers=headers)

    @property
    def _caching(self) -> str:
        if self.path.startswith("assets/"):
            # Their names hold a hash of what is in them.
            return "public, max-age=31536000, immutable"
        # Kept, but asked about each time: a new release shows at once.
        return "no-cache"


def page_routes(static: Traversable | None = None) -> APIRouter:
    """Return the routes of the page and of what it loads.

    Args:
        static: where the files are; by default those of this package. They are read once.
    """
    router = APIRouter()
    for file in _shipped() if static is None else tuple(_files(static)):
        _add(router, file)
    return router


@functools.cache
def _shipped() -> tuple[_File, ...]:
    return tuple(_files(files("adk_stream_protocol.server").joinpath("static")))


def _files(folder: Traversable, below: str = "") -> Iterator[_File]:
    for source in folder.iterdir():
        path = f"{below}{source.name}"
        if source.is_dir():
            yield from _files(source, f"{path}/")
        elif not source.name.startswith("."):
            yield _File.read("" if path == "index.html" else path, source)


def _add(router: APIRouter, file: _File) -> None:
    @router.api_route(f"/{file.path}", methods=["GET", "HEAD"], include_in_schema=False)
    async def send(request: Request) -> Response:
        return file.response(request)


def _takes_gzip(accepted: str) -> bool:
    for offer in accepted.lower().split(","):
        name, _, quality = offer.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False
