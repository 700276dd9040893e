"""Front ends with habits of their own: they are understood, and they never send for ever."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import expect

from support.clients import ClientPage, FrontEnd, Open, PageServer

pytestmark = pytest.mark.anyio

MOST_POSTS = 5
"""The message, the answer, and the same answer again, at the third of which the server says no."""


@pytest.fixture(params=["ai7", "ai6"])
def line(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


async def opened(open_page: Open, line: str, habits: str) -> ClientPage:
    return await open_page(FrontEnd("habits", line, query=f"&habits={habits}"))


async def test_a_page_that_sends_whenever_anything_is_approved_does_not_send_for_ever(
    open_page: Open, server: PageServer, line: str
) -> None:
    client = await opened(open_page, line, "template")
    await client.send("pay both")
    await client.sees_states("pay", "approval-requested", "approval-requested")
    await client.button("Approve").first.click()
    await expect(client.page.get_by_role("alert")).to_contain_text("pay")
    assert len(client.posts) <= MOST_POSTS
    assert server.stage.payments == []
    posts = len(client.posts)
    await client.button("Approve").click()
    await client.sees("Both told.")
    await client.is_done()
    assert sorted(server.stage.payments) == [1, 2]
    assert len(client.posts) == posts + 1


async def test_the_seeds_page_does_not_send_for_ever_when_one_of_two_is_confirmed(
    open_page: Open, server: PageServer, line: str
) -> None:
    client = await opened(open_page, line, "seeds")
    await client.send("pay both")
    await client.button("Approve").first.click()
    await expect(client.page.get_by_role("alert")).to_contain_text("pay")
    assert len(client.posts) <= MOST_POSTS
    assert server.stage.payments == []
    posts = len(client.posts)
    await client.button("Approve").click()
    await client.sees("Both told.")
    await client.is_done()
    assert sorted(server.stage.payments) == [1, 2]
    assert len(client.posts) == posts + 1


async def test_the_seeds_page_does_not_send_for_ever_for_a_tool_that_the_browser_owes(
    open_page: Open, line: str
) -> None:
    client = await opened(open_page, line, "seeds")
    await client.send("where am I")
    await client.button("Approve").click()
    await expect(client.page.get_by_role("alert")).to_be_visible()
    posts = len(client.posts)
    assert posts <= MOST_POSTS
    await client.send("hi")
    await client.sees("Hello.")
    assert len(client.posts) == posts + 1


async def test_the_templates_page_asks_again_and_otherwise_without_saying_so(
    open_page: Open, server: PageServer, line: str
) -> None:
    client = await opened(open_page, line, "template")
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_done()
    assert "message" in json.loads(client.posts[0])
    server.stage.model.script = {"hi": [["Good day."]], "hello": [["Hello again."]]}
    await client.button("Regenerate").click()
    await client.sees("Good day.")
    await client.is_done()
    await client.edit("hi", "hello")
    await client.sees("Hello again.")
    await client.is_done()
    await expect(client.message("user")).to_have_count(1)
    await expect(client.message("assistant")).to_have_count(1)
    assert "hi" not in [
        part.text for content in server.stage.model.prompts[-1] for part in content.parts
    ]


async def test_the_templates_page_sends_a_denial_with_the_next_message(
    open_page: Open, server: PageServer, line: str
) -> None:
    client = await opened(open_page, line, "template")
    await client.send("pay")
    await client.button("Deny").click()
    await client.sees_states("pay", "approval-responded")
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_done()
    assert server.stage.payments == []
    assert "User denied execution" in str(server.stage.model.prompts)
