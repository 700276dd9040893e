"""The page at `/`: files built ahead and shipped inside the package."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

__all__ = ["page_routes"]


def page_routes() -> APIRouter:
    """Return the route of the page."""
    router = APIRouter()
    html = files("adk_stream_protocol.server").joinpath("static/index.html").read_text("utf-8")

    @router.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(
            html,
            headers={
                "content-security-policy": (
                    "default-src 'self'; script-src 'self' 'unsafe-inline'; "
                    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
                    "frame-ancestors 'none'; base-uri 'none'"
                ),
                "x-content-type-options": "nosniff",
                "referrer-policy": "no-referrer",
            },
        )

    return router
