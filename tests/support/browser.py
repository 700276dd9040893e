"""Debian's Chromium, and what a page must never do in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import httpx
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    WebError,
    async_playwright,
)

__all__ = ["PATIENCE_MS", "ROUTES", "Faults", "Route", "chromium", "forget_chats"]

PATIENCE_MS: Final = 15_000

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    # Containers often have little of it, and Chromium then dies without a word.
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
# Never heard of by a network: a page that needs the world would fail here.
_OWN_HOST = "127.0.0.1"


@dataclass(frozen=True)
class Route:
    """A way for messages to and from the agent, by what the page calls it."""

    mode: str
    profile: str

    def __str__(self) -> str:
        return f"{self.mode.lower()}-{self.profile}"


ROUTES: Final = (
    Route("SSE", "ai-sdk"),
    Route("SSE", "adk"),
    Route("WebSocket", "ai-sdk"),
    Route("Live", "ai-sdk"),
    Route("Live", "adk"),
)


@asynccontextmanager
async def chromium(*more: str) -> AsyncIterator[Browser]:
    """Run a headless browser with these switches besides the usual."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    assert found is not None, "There is no Chromium: apt-get install chromium"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=[*_ARGUMENTS, *more])
        try:
            yield browser
        finally:
            await browser.close()


async def forget_chats(url: str) -> None:
    """Delete all chats of a server, and so what waits in them: everybody is one user there."""
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        # As many as a page has at most: no test makes more.
        chats = await client.get("/api/chats", params={"archived": "all", "limit": 200})
        for chat in chats.json()["chats"]:
            (await client.delete(f"/api/chats/{chat['id']}")).raise_for_status()


@dataclass
class Faults:
    """What went wrong in the pages of a context, and no person would see."""

    found: list[str] = field(default_factory=list)
    allowed: list[re.Pattern[str]] = field(default_factory=list)
    """What a test brings about itself."""

    def watch(self, context: BrowserContext) -> None:
        """Listen to all pages of a context, also to later ones."""
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", lambda request: self._on_address(request.url))
        context.on("page", self._on_page)

    def allow(self, *patterns: str) -> None:
        """Take no notice of these, which the test brings about."""
        self.allowed += map(re.compile, patterns)

    def allow_lost_server(self) -> None:
        """Take no notice of what Chromium says about a server that is not there."""
        self.allow(
            r"net::ERR_(CONNECTION|CONTENT_LENGTH|EMPTY|INCOMPLETE|INTERNET|NETWORK|SOCKET)",
            r"WebSocket connection to .* failed",
        )

    def unexpected(self) -> Sequence[str]:
        """Return what nobody allowed."""
        return [
            fault
            for fault in self.found
            if not any(pattern.search(fault) for pattern in self.allowed)
        ]

    def _on_console(self, message: ConsoleMessage) -> None:
        # A refusal by the Content-Security-Policy is told here, too.
        if message.type == "error":
            self.found.append(f"console: {message.text} ({message.location.get('url')})")

    def _on_error(self, error: WebError) -> None:
        self.found.append(f"page: {error.error}")

    def _on_page(self, page: Page) -> None:
        page.on("websocket", lambda socket: self._on_address(socket.url))

    def _on_address(self, url: str) -> None:
        address = urlsplit(url)
        if address.scheme in {"http", "https", "ws", "wss"} and address.hostname != _OWN_HOST:
            self.found.append(f"request to another host: {url}")
