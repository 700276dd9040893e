"""Reloads while something runs, and connections that are lost."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from support.browser import Faults
from support.browser_relay import relayed
from support.clients import FrontEnd, Open, PageServer

pytestmark = pytest.mark.anyio


async def test_a_reply_goes_on_after_a_reload(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("long")
    await client.sees("One.")
    await client.reload()
    await client.sees("One.")
    await expect(client.page.get_by_role("main")).to_have_attribute("aria-busy", "true")
    server.stage.more.set()
    await client.sees("One. Two.")
    await expect(client.message("assistant")).to_have_count(1)
    await client.is_the_same_after_a_reload()
    assert len(client.posts) == 1


async def test_a_decided_call_stays_decided_while_its_reply_is_read_again(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay late")
    await client.button("Approve").click()
    await client.sees_states("pay", "output-available")
    await client.reload()
    await client.sees_states("pay", "output-available")
    await expect(client.button("Approve")).to_have_count(0)
    server.stage.more.set()
    await client.sees("Late told.")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [5]
    assert len(client.posts) == 2


async def test_a_reply_whose_connection_broke_is_read_on_and_not_asked_for_again(
    open_page: Open, front_end: FrontEnd, server: PageServer, faults: Faults
) -> None:
    faults.allow_lost_server()
    async with relayed(server.url) as line:
        client = await open_page(front_end, url=line.url)
        await client.send("long")
        await client.sees("One.")
        line.cut()
        await expect(client.page.get_by_role("alert")).to_be_visible()
        line.mend()
        await client.button("Retry").click()
        server.stage.more.set()
        await client.sees("Two.")
        await expect(client.message("assistant").get_by_role("paragraph")).to_have_text("One. Two.")
        await client.is_the_same_after_a_reload()
        assert len(client.posts) == 1
        await client.page.close()
