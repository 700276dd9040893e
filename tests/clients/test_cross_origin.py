"""A page of another origin, whose user has a token."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from support.browser import Faults
from support.clients import FrontEnd, Open, PageServer, new_id

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("line", ["ai7", "ai6"])
async def test_a_page_of_another_origin_talks_with_a_token(
    open_page: Open, server: PageServer, line: str
) -> None:
    query = f"&server={server.url}&token={new_id()}"
    client = await open_page(FrontEnd("cross-origin", line, query=query), url=server.other_origin)
    await client.send("pay late")
    await client.button("Approve").click()
    await client.sees_states("pay", "output-available")
    await client.reload()
    server.stage.more.set()
    await client.sees("Late told.")
    await client.is_done()
    assert server.stage.payments == [5]


async def test_a_page_of_another_origin_is_refused_without_a_token(
    open_page: Open, server: PageServer, faults: Faults
) -> None:
    faults.allow(r"403 \(Forbidden\)")
    page = FrontEnd("cross-origin", "ai7", query=f"&server={server.url}&token=")
    client = await open_page(page, url=server.other_origin)
    await client.send("hi")
    error = client.page.get_by_role("alert")
    await expect(error).to_contain_text("Sign in first")
    await expect(error).not_to_contain_text("{")
