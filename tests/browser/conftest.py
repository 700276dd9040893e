from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from playwright.async_api import Browser, BrowserContext, expect

from support.browser import PATIENCE_MS, ROUTES, Faults, Route, chromium, forget_chats
from support.browser_chat import ChatPage
from support.browser_relay import Relay, relayed
from support.command import Served, served

expect.set_options(timeout=PATIENCE_MS)

Visit: TypeAlias = Callable[..., Awaitable[ChatPage]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """The demo with nothing of other tests in it, as fast as it can."""
    folder = tmp_path_factory.mktemp("server")
    async with served("--database", "memory:", "--delay", "0", cwd=folder) as server:
        yield server


@pytest.fixture(scope="module")
async def slow_server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """The demo at a pace at which a person can stop it."""
    folder = tmp_path_factory.mktemp("slow-server")
    async with served("--database", "memory:", cwd=folder) as server:
        yield server


@pytest.fixture
async def line(server: Served) -> AsyncIterator[Relay]:
    """A line to the server that can be cut."""
    async with relayed(server.url) as relay:
        yield relay


@pytest.fixture
async def slow_line(slow_server: Served) -> AsyncIterator[Relay]:
    """A line to the slow server that can be cut."""
    async with relayed(slow_server.url) as relay:
        yield relay


@pytest.fixture(params=ROUTES, ids=str)
def route(request: pytest.FixtureRequest) -> Route:
    found: Route = request.param
    return found


@pytest.fixture(params=[ROUTES[0], ROUTES[-1]], ids=str)
def either_route(request: pytest.FixtureRequest) -> Route:
    """The two that have least in common, for what does not depend on the route."""
    found: Route = request.param
    return found


@pytest.fixture
async def faults() -> AsyncIterator[Faults]:
    """What the pages did wrong; a test that brings some of it about allows it."""
    faults = Faults()
    yield faults
    assert faults.unexpected() == []


@pytest.fixture
async def visit(browser: Browser, server: Served, faults: Faults) -> AsyncIterator[Visit]:
    """Open the page like a person who never saw it: `visit(route, url=..., locale=...)`."""
    contexts: list[BrowserContext] = []

    async def visit(route: Route = ROUTES[0], url: str = server.url, **options: Any) -> ChatPage:
        context = await browser.new_context(
            **{"viewport": {"width": 1280, "height": 800}, "locale": "en-US"} | options
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        faults.watch(context)
        chat = ChatPage(await context.new_page())
        await chat.page.goto(url)
        if route != ROUTES[0]:
            await chat.choose(route)
        return chat

    yield visit
    for context in contexts:
        for page in context.pages:
            # A request that is held would fail in the test after this one.
            await page.unroute_all(behavior="ignoreErrors")
        await context.close()
    await forget_chats(server.url)
