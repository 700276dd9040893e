"""The page without a mouse."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from browser.conftest import Visit
from support.browser import Route
from support.browser_chat import ChatPage

pytestmark = pytest.mark.anyio


async def tab_to(chat: ChatPage, wanted: Locator, *, key: str = "Tab") -> None:
    """Press Tab until this has the focus."""
    for _ in range(40):
        if await wanted.evaluate("node => node === document.activeElement"):
            return
        await chat.page.keyboard.press(key)
    raise AssertionError(f"{wanted} cannot be reached by {key}")


async def test_one_payment_is_denied_and_one_approved_by_keys(
    visit: Visit, either_route: Route
) -> None:
    chat = await visit(either_route)
    # The mouse that chose the route is forgotten, the route is not.
    await chat.page.reload()
    keys = chat.page.keyboard
    await expect(chat.composer).to_be_focused()
    await keys.type("Send 50 dollars to Hanako")
    await keys.press("Enter")
    # The safe answer comes first.
    await expect(chat.button("Deny")).to_be_focused()
    await keys.press("Enter")
    await chat.sees("The payment of 50 USD to Hanako was not made")
    await chat.is_done()
    # The button is gone, the place is not.
    await expect(chat.messages).to_be_focused()
    await tab_to(chat, chat.composer)
    await keys.type("Send 5 dollars to Taro")
    await keys.press("Enter")
    await expect(chat.button("Deny")).to_be_focused()
    await keys.press("Tab")
    await expect(chat.button("Approve")).to_be_focused()
    await keys.press("Space")
    await chat.transaction("Taro")
    await chat.is_done()


async def test_a_draft_keeps_the_focus_when_a_question_comes(visit: Visit) -> None:
    chat = await visit()
    await chat.say("Send 50 dollars to Hanako")
    await chat.composer.fill("and another thing")
    await expect(chat.button("Approve")).to_be_visible()
    await expect(chat.composer).to_be_focused()


async def test_escape_closes_the_dialogs_and_the_focus_goes_back(visit: Visit) -> None:
    chat = await visit()
    await chat.asks("Send 50 dollars to Hanako")
    delete = chat.button("Delete “Send 50 dollars to Hanako”")
    await tab_to(chat, delete, key="Shift+Tab")
    await chat.page.keyboard.press("Enter")
    dialog = chat.page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await chat.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(delete).to_be_focused()
    inbox = chat.page.get_by_role("button", name="Approvals")
    await inbox.focus()
    await chat.page.keyboard.press("Enter")
    await expect(dialog.get_by_role("heading", name="Approvals")).to_be_visible()
    await chat.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(inbox).to_be_focused()
    await tab_to(chat, chat.button("Settings"))
    await chat.page.keyboard.press("Enter")
    await expect(chat.page.get_by_role("menu")).to_be_visible()
    await chat.page.keyboard.press("Escape")
    await expect(chat.page.get_by_role("menu")).to_have_count(0)
    await expect(chat.button("Settings")).to_be_focused()
