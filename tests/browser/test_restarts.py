"""A server that is killed, and comes back on the same database and port."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Faults, Route
from support.command import Served, served

pytestmark = pytest.mark.anyio

DATABASE = ("--database", "sqlite:///kept.db")


@pytest.fixture(autouse=True)
def loses_connections(faults: Faults) -> None:
    faults.allow_lost_server()


def same_port(server: Served) -> tuple[str, str]:
    return "--port", str(urlsplit(server.url).port)


@pytest.mark.parametrize(
    "asked",
    [Route("SSE", "ai-sdk"), Route("WebSocket", "ai-sdk"), Route("Live", "adk")],
    ids=str,
)
async def test_a_payment_is_approved_after_the_server_was_killed(
    visit: Visit, asked: Route, tmp_path: Path
) -> None:
    fast = (*DATABASE, "--delay", "0")
    async with served(*fast, cwd=tmp_path) as killed:
        chat = await visit(asked, url=killed.url)
        await chat.asks("Send 50 dollars to Hanako")
        await killed.end(signal.SIGKILL)
        await expect(chat.notice).to_contain_text("The server does not answer.")
    async with served(*fast, *same_port(killed), cwd=tmp_path):
        await expect(chat.notice).to_have_count(0)
        await chat.button("Approve").click()
        # The book is in memory: the first payment of the new server is its only one.
        assert await chat.transaction("Hanako") == 1
        await chat.is_done()
        await chat.page.context.close()


async def test_a_decision_that_did_not_arrive_is_asked_for_again_and_counts_then(
    visit: Visit, tmp_path: Path
) -> None:
    fast = (*DATABASE, "--delay", "0")
    async with served(*fast, cwd=tmp_path) as killed:
        chat = await visit(url=killed.url)
        await chat.asks("Send 50 dollars to Hanako")
        await killed.end(signal.SIGKILL)
        await expect(chat.notice).to_contain_text("The server does not answer.")
        await chat.button("Approve").click()
    async with served(*fast, *same_port(killed), cwd=tmp_path):
        await expect(chat.page.get_by_text("please decide again")).to_be_visible()
        await chat.button("Approve").click()
        assert await chat.transaction("Hanako") == 1
        await chat.is_done()
        await chat.page.context.close()


async def test_a_reply_that_the_server_died_in_is_told_whole_when_it_is_back(
    visit: Visit, tmp_path: Path
) -> None:
    async with served(*DATABASE, cwd=tmp_path) as killed:
        chat = await visit(url=killed.url)
        await chat.say("Tell me a story")
        await chat.sees("Once upon a time")
        await killed.end(signal.SIGKILL)
        await expect(chat.notice).to_contain_text("The server does not answer.")
    async with served(*DATABASE, *same_port(killed), cwd=tmp_path):
        await chat.sees("the second line is only worth reading because of the first.")
        await chat.is_done()
        await expect(chat.text("Once upon a time")).to_have_count(1)
        await chat.page.context.close()
