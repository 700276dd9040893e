"""A connection that breaks while the agent answers, and a server that is not there."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Faults, Route
from support.browser_relay import Relay

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def loses_connections(faults: Faults) -> None:
    faults.allow_lost_server()


async def test_a_reply_that_was_cut_off_is_whole_when_the_connection_is_back(
    slow_line: Relay, visit: Visit, route: Route
) -> None:
    chat = await visit(route, url=slow_line.url)
    await chat.say("Tell me a story")
    await chat.sees("Once upon a time")
    slow_line.cut()
    await expect(chat.notice).to_contain_text("this page")
    slow_line.mend()
    await chat.sees("the second line is only worth reading because of the first.")
    await chat.is_done()
    await expect(chat.notice).to_have_count(0)
    await expect(chat.replies).to_have_count(1)
    await expect(chat.text("Once upon a time")).to_have_count(1)


async def test_a_message_that_did_not_arrive_comes_back_to_the_composer(
    line: Relay, visit: Visit, route: Route
) -> None:
    chat = await visit(route, url=line.url)
    await chat.say("Hello")
    await chat.sees("Hello! I am the demo assistant.")
    await chat.is_done()
    line.cut()
    await chat.say("Send 50 dollars to Hanako")
    await expect(chat.notice).to_contain_text("The server does not answer.")
    line.mend()
    await expect(chat.composer).to_have_value("Send 50 dollars to Hanako")
    await expect(chat.page.get_by_text("It is back in the field below.")).to_be_visible()
    await expect(chat.page.get_by_role("article", name="You")).to_have_count(1)
    # The page may still look whether a reply runs: then there is no Send.
    await chat.button("Send").click()
    await expect(chat.button("Approve")).to_be_visible()


async def test_a_chat_that_is_opened_without_a_server_appears_when_it_is_back(
    line: Relay, visit: Visit
) -> None:
    chat = await visit(url=line.url)
    await chat.say("Hello")
    await chat.sees("Hello! I am the demo assistant.")
    await chat.is_done()
    await chat.button("New chat").click()
    await expect(chat.page.get_by_role("heading", name="What can I do")).to_be_visible()
    link = chat.page.get_by_role("link", name="Hello")
    await expect(link).to_be_visible()
    line.cut()
    await link.click()
    await expect(chat.notice).to_contain_text("The server does not answer.")
    line.mend()
    await chat.sees("Hello! I am the demo assistant.")
    await expect(chat.notice).to_have_count(0)
