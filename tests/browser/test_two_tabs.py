"""One approval, seen from two tabs."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Route
from support.browser_chat import ChatPage

pytestmark = pytest.mark.anyio


async def second_tab(chat: ChatPage, address: str) -> ChatPage:
    other = ChatPage(await chat.page.context.new_page())
    await other.page.goto(address)
    return other


async def test_what_one_tab_approved_the_other_shows_settled_untouched(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    other = await second_tab(chat, chat.page.url)
    await expect(other.button("Approve")).to_be_visible()
    await chat.button("Approve").click()
    number = await chat.transaction("Hanako")
    assert await other.transaction("Hanako") == number
    await expect(other.button("Approve")).to_have_count(0)
    await expect(other.tool("process_payment", "done")).to_be_visible()


async def test_what_the_inbox_of_another_tab_approved_goes_on_here(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    other = await second_tab(chat, chat.page.url.partition("#")[0])
    await expect(other.page.get_by_label("1 approval waits")).to_be_visible()
    await other.page.get_by_role("button", name="Approvals").click()
    inbox = other.page.get_by_role("dialog", name="Approvals")
    await expect(inbox.get_by_role("link")).to_have_text("Open the chat: Send 50 dollars to Hanako")
    await inbox.get_by_role("button", name="Approve", exact=True).click()
    await expect(inbox.get_by_text("Nothing waits for a decision.")).to_be_visible()
    await chat.transaction("Hanako")
    await chat.is_done()


async def test_what_is_said_in_one_tab_appears_in_the_other(visit: Visit) -> None:
    chat = await visit()
    await chat.say("Hello")
    await chat.sees("Hello! I am the demo assistant.")
    other = await second_tab(chat, chat.page.url)
    await other.sees("Hello! I am the demo assistant.")
    await chat.say("What is the weather in Osaka?")
    await other.sees("The weather in Osaka: sunny, 20 °C.")
