"""The list of chats: renamed, archived, and longer than a page."""

from __future__ import annotations

import httpx
import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser_chat import ChatPage
from support.command import Served

pytestmark = pytest.mark.anyio


async def changing(chat: ChatPage, title: str) -> None:
    """Open the dialog in which a chat is renamed or archived."""
    await chat.button(f"Rename or archive “{title}”").click()


async def test_a_chat_is_renamed_and_gets_its_own_title_back(visit: Visit) -> None:
    chat = await visit()
    await chat.say("Hello there")
    await chat.is_done()
    links = chat.page.get_by_role("link")
    await changing(chat, "Hello there")
    await chat.page.get_by_role("textbox", name="Title").fill("Greetings")
    await chat.button("Save").click()
    await expect(links.filter(has_text="Greetings")).to_be_visible()
    await expect(chat.page).to_have_title("Greetings · adk-stream")
    await chat.page.reload()
    await expect(links.filter(has_text="Greetings")).to_be_visible()
    await changing(chat, "Greetings")
    await chat.page.get_by_role("textbox", name="Title").fill("")
    await chat.button("Save").click()
    await expect(links.filter(has_text="Hello there")).to_be_visible()


async def test_a_chat_goes_to_the_archive_and_comes_back(visit: Visit) -> None:
    chat = await visit()
    await chat.say("Hello there")
    await chat.is_done()
    link = chat.page.get_by_role("link", name="Hello there")
    await changing(chat, "Hello there")
    await chat.button("Move to the archive").click()
    await expect(link).to_have_count(0)
    # It stays open, and can be gone on with.
    await expect(chat.page).to_have_title("Hello there · adk-stream")
    await chat.page.get_by_text("Archive", exact=True).click()
    await expect(link).to_be_visible()
    await changing(chat, "Hello there")
    await chat.button("Take out of the archive").click()
    await expect(chat.page.get_by_text("Nothing is archived.")).to_be_visible()
    await expect(link).to_be_visible()


async def test_older_chats_are_shown_when_they_are_wanted(visit: Visit, server: Served) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        asked = {"id": "oldest", "prompt": "Send 5 dollars to Taro"}
        (await http.post("/api/chat", json=asked)).raise_for_status()
        for number in range(50):
            prompt = {"id": f"chat-{number}", "prompt": f"Hello {number}"}
            (await http.post("/api/chat", json=prompt)).raise_for_status()
    chat = await visit()
    older = chat.button("Show older chats")
    oldest = chat.page.get_by_role("navigation").get_by_role("link", name="Send 5 dollars to Taro")
    await expect(older).to_be_visible()
    await expect(oldest).to_have_count(0)
    # What waits in one that is not listed is in the inbox all the same, with the way to it.
    await chat.page.get_by_role("button", name="Approvals").click()
    dialog = chat.page.get_by_role("dialog", name="Approvals")
    await expect(dialog.get_by_role("link", name="Send 5 dollars to Taro")).to_be_visible()
    await chat.page.keyboard.press("Escape")
    await older.click()
    await expect(oldest).to_be_visible()
    await expect(older).to_have_count(0)
    await oldest.click()
    await expect(chat.button("Approve")).to_be_visible()
