"""Tools that fail: the person is told, and the chat goes on."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Route
from support.command import Served, served

pytestmark = pytest.mark.anyio

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
async def clumsy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    async with served(
        "support.browser_agent:agent",
        "--database",
        "memory:",
        cwd=tmp_path_factory.mktemp("clumsy"),
        environment={"PYTHONPATH": path},
    ) as server:
        yield server


async def test_an_approved_tool_that_raises_has_failed(
    visit: Visit, route: Route, clumsy: Served
) -> None:
    chat = await visit(route, url=clumsy.url)
    await chat.asks("Raise it")
    await chat.button("Approve").click()
    await expect(chat.tool("raise_it", "failed")).to_be_visible()
    await chat.is_done()
    # What a tool raises is for the log, not for the page.
    await expect(chat.page.get_by_text("The cup broke.")).to_have_count(0)
    await chat.say("Are you there?")
    await chat.sees("Yes, I am.")


async def test_an_error_that_a_tool_returns_is_shown(
    visit: Visit, either_route: Route, clumsy: Served
) -> None:
    chat = await visit(either_route, url=clumsy.url)
    await chat.say("Return it")
    await chat.sees("The cup was broken before.")
    card = chat.tool("return_it", "failed")
    await expect(card).to_contain_text("The cup is broken.")
    await chat.is_done()
