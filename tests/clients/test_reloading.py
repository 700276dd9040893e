"""Reloads, while something runs and after it ended."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

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
