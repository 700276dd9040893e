"""A server that is killed while a call waits, and comes back on the same database."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser.conftest import Visit
from playwright.async_api import expect

from support.browser import Faults, Route
from support.command import served

pytestmark = pytest.mark.anyio


async def test_a_payment_is_approved_after_the_server_was_killed(
    visit: Visit, route: Route, tmp_path: Path, faults: Faults
) -> None:
    faults.allow_lost_server()
    options = ("--database", "sqlite:///kept.db", "--delay", "0")
    async with served(*options, cwd=tmp_path) as killed:
        chat = await visit(route, url=killed.url)
        await chat.asks("Send 50 dollars to Hanako")
        await killed.end(signal.SIGKILL)
        await expect(chat.notice).to_contain_text("The server does not answer.")
    port = str(urlsplit(killed.url).port)
    async with served(*options, "--port", port, cwd=tmp_path):
        await expect(chat.notice).to_have_count(0)
        await chat.button("Approve").click()
        assert await chat.transaction("Hanako") == 1
        await chat.is_done()
        await chat.page.context.close()
