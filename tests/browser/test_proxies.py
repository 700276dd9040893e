"""The page behind proxies that change the `Host`, and pages that are not ours, in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser

from browser.conftest import Visit
from support.command import Served
from support.proxies import PROXIES, Proxy, proxied

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("kind", PROXIES)
async def test_a_payment_is_approved_through_a_proxy_that_changes_the_host(
    visit: Visit, server: Served, tmp_path: Path, kind: Proxy
) -> None:
    async with proxied(kind, server.url, tmp_path) as url:
        chat = await visit(url=url)
        await chat.asks("Send 50 dollars to Hanako")
        await chat.button("Approve").click()
        await chat.transaction("Hanako")
        await chat.is_done()
        # Before its proxy is gone.
        await chat.page.close()


_POST = "url => fetch(url, { method: 'POST', mode: 'no-cors' }).then(({ type }) => type)"
_SOCKET = """url => new Promise(settled => {
  const socket = new WebSocket(url);
  socket.onopen = () => settled('open');
  socket.onerror = () => settled('refused');
})"""


async def test_another_page_of_the_machine_may_not_call_the_server(
    browser: Browser, server: Served, tmp_path: Path
) -> None:
    """A page on another port of the same name, as of another program that runs there."""
    async with proxied("node", server.url, tmp_path) as elsewhere:
        page = await browser.new_page()
        # A document without a policy of its own on what it may call.
        await page.goto(f"{elsewhere}/healthz")
        before = server.log.read_text().count("origin not allowed")
        assert await page.evaluate(_POST, f"{server.url}/api/chat/x/stop") == "opaque"
        socket = server.url.replace("http", "ws") + "/api/chat/ws"
        assert await page.evaluate(_SOCKET, socket) == "refused"
        # The way through a proxy that changes the Host looks the same: Chromium vouches for none.
        assert server.log.read_text().count("origin not allowed") == before + 2
        assert f"origin='{elsewhere}' host={server.url.removeprefix('http://')}" in (
            server.log.read_text()
        )
        await page.close()
