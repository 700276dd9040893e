from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest
from playwright.async_api import Browser, BrowserContext, Geolocation, expect

from support.browser import Faults, chromium
from support.clients import (
    FRONT_ENDS,
    PATIENCE_MS,
    ClientPage,
    FrontEnd,
    Open,
    PageServer,
    new_id,
    page_server,
)

expect.set_options(timeout=PATIENCE_MS)


PLACE: Final[Geolocation] = {"latitude": 35.5, "longitude": 139.5}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
async def served_pages() -> AsyncIterator[PageServer]:
    async with page_server() as server:
        yield server


@pytest.fixture
async def server(served_pages: PageServer) -> AsyncIterator[PageServer]:
    served_pages.reset()
    yield served_pages
    served_pages.stage.go_on()


@pytest.fixture(params=FRONT_ENDS, ids=str)
def front_end(request: pytest.FixtureRequest) -> FrontEnd:
    found: FrontEnd = request.param
    return found


@pytest.fixture
async def faults() -> AsyncIterator[Faults]:
    """What the pages did wrong; a test that brings some of it about allows it."""
    faults = Faults()
    # A chat that nobody wrote in yet.
    faults.allow(r"404 \(Not Found\).*/api/chats/")
    yield faults
    assert faults.unexpected() == []


@pytest.fixture
async def open_page(browser: Browser, server: PageServer, faults: Faults) -> AsyncIterator[Open]:
    """Open a front end as somebody who was never here: `open_page(front_end)`."""
    contexts: list[BrowserContext] = []

    async def open_page(front_end: FrontEnd, url: str = server.url) -> ClientPage:
        context = await browser.new_context(geolocation=PLACE, permissions=["geolocation"])
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        await context.add_cookies([{"name": "user", "value": new_id(), "url": url}])
        faults.watch(context)
        client = ClientPage(await context.new_page(), front_end)
        client.watch()
        await client.page.goto(url + front_end.path())
        return client

    yield open_page
    for context in contexts:
        await context.close()
