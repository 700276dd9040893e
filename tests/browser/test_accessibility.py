"""No serious or critical finding of axe in the main states, light and dark."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from browser.test_phone import PHONE
from support.browser_axe import barriers
from support.browser_chat import ChatPage

pytestmark = pytest.mark.anyio


async def bars_nobody(chat: ChatPage) -> None:
    for scheme in ("light", "dark"):
        await chat.page.emulate_media(
            color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
        )
        assert await barriers(chat.page) == [], scheme


async def test_the_welcome(visit: Visit) -> None:
    chat = await visit()
    await expect(chat.page.get_by_role("heading", name="What can I do")).to_be_visible()
    await bars_nobody(chat)


async def test_a_chat_with_tools(visit: Visit) -> None:
    chat = await visit(permissions=[])
    await chat.say("What is the weather in Tokyo and Paris?")
    await chat.sees("The weather in Tokyo:")
    await chat.is_done()
    await chat.asks("Send 5 dollars to Taro")
    await chat.button("Deny").click()
    await chat.sees("was not made")
    await chat.is_done()
    await chat.asks("Where am I?")
    await chat.button("Approve").click()
    await expect(chat.tool("get_location", "failed")).to_be_visible()
    await chat.is_done()
    for card in await chat.messages.get_by_text("get_weather", exact=True).all():
        await card.click()
    await bars_nobody(chat)


async def test_a_question_that_waits_and_its_form(visit: Visit) -> None:
    chat = await visit()
    await chat.asks("Send 50 dollars to Hanako")
    await bars_nobody(chat)
    await chat.button("Change the arguments").click()
    await expect(chat.button("Approve the changed call")).to_be_visible()
    await bars_nobody(chat)


async def test_the_inbox(visit: Visit) -> None:
    chat = await visit()
    await chat.asks("Send 50 dollars to Hanako and 30 to Taro")
    await chat.page.get_by_role("button", name="Approvals").click()
    await expect(chat.page.get_by_role("dialog").get_by_text("Open the chat").first).to_be_visible()
    await bars_nobody(chat)


async def test_the_inspector(visit: Visit) -> None:
    chat = await visit()
    await chat.button("Inspector").click()
    await chat.say("What is the weather in Tokyo?")
    await chat.sees("The weather in Tokyo:")
    await chat.is_done()
    await chat.page.get_by_role("button", name="finish").last.click()
    await bars_nobody(chat)


async def test_the_settings(visit: Visit) -> None:
    chat = await visit()
    await chat.button("Settings").click()
    await expect(chat.page.get_by_role("menu")).to_be_visible()
    await bars_nobody(chat)


async def test_a_phone_with_the_side_bar(visit: Visit) -> None:
    chat = await visit(**PHONE)
    await chat.asks("Send 50 dollars to Hanako")
    await bars_nobody(chat)
    await chat.button("Show the list of chats").tap()
    await expect(chat.page.get_by_role("link", name="Send 50")).to_be_in_viewport(ratio=1)
    await bars_nobody(chat)
