"""The page on a phone."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.async_api import expect

from browser.conftest import Visit

pytestmark = pytest.mark.anyio

PHONE: Final = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


async def test_the_side_bar_opens_and_closes(visit: Visit) -> None:
    chat = await visit(**PHONE)
    await chat.say("Hello")
    await chat.sees("Hello! I am the demo assistant.")
    await chat.is_done()
    link = chat.page.get_by_role("link", name="Hello")
    await expect(link).not_to_be_in_viewport()
    await chat.button("Show the list of chats").tap()
    await expect(link).to_be_in_viewport(ratio=1)
    await chat.page.touchscreen.tap(385, 400)
    await expect(link).not_to_be_in_viewport()
    await chat.button("Show the list of chats").tap()
    await chat.button("New chat").tap()
    await expect(chat.page.get_by_role("heading", name="What can I do")).to_be_visible()
    await expect(link).not_to_be_in_viewport()


async def test_a_payment_is_approved_and_nothing_is_wider_than_the_screen(visit: Visit) -> None:
    chat = await visit(**PHONE)
    await chat.asks("Send 50 dollars to Hanako and 30 to Taro")
    assert await chat.page.evaluate("document.documentElement.scrollWidth") <= 390
    for name in ("Hanako", "Taro"):
        approve = chat.approval(about=name).get_by_role("button", name="Approve", exact=True)
        await approve.tap()
    await chat.transaction("Hanako")
    await chat.is_done()


async def test_the_inbox_opens_from_the_side_bar(visit: Visit) -> None:
    chat = await visit(**PHONE)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.button("Show the list of chats").tap()
    await chat.page.get_by_role("button", name="Approvals").tap()
    inbox = chat.page.get_by_role("dialog", name="Approvals")
    await inbox.get_by_role("button", name="Deny", exact=True).tap()
    await expect(inbox.get_by_text("Nothing waits for a decision.")).to_be_visible()
    await inbox.get_by_role("button", name="Close").tap()
    await chat.sees("The payment of 50 USD to Hanako was not made")
