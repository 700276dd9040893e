"""People who do two things at once, or the next thing too soon."""

from __future__ import annotations

import pytest
from playwright.async_api import FilePayload, expect

from browser.conftest import Visit
from support.browser_chat import ChatPage

pytestmark = pytest.mark.anyio

GREETING = "Hello! I am the demo assistant."


def note(name: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": name.encode()}


async def greeted(chat: ChatPage) -> None:
    await chat.say("Hello")
    await chat.sees(GREETING)
    await chat.is_done()


async def test_all_files_that_are_chosen_at_once_are_attached(visit: Visit) -> None:
    chat = await visit()
    names = ["one.txt", "two.txt", "three.txt"]
    await chat.page.locator("input[type=file]").set_input_files([note(name) for name in names])
    for name in names:
        await expect(chat.button(f"Remove {name}")).to_be_visible()
