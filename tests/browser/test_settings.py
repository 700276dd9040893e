"""Language, theme, mode and profile: chosen once, kept in this browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Route
from support.browser_chat import ChatPage

pytestmark = pytest.mark.anyio


async def choose_setting(chat: ChatPage, menu: str, choice: str) -> None:
    await chat.page.get_by_role("button", name=menu, exact=True).click()
    await chat.page.get_by_role("menuitemradio", name=choice, exact=True).click()


async def background(chat: ChatPage) -> str:
    found: str = await chat.page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


async def test_a_conversation_in_japanese(visit: Visit, either_route: Route) -> None:
    chat = await visit(either_route)
    await choose_setting(chat, "Settings", "日本語")
    page = chat.page
    await expect(page.locator("html")).to_have_attribute("lang", "ja")
    await page.get_by_role("textbox", name="メッセージ").fill("花子さんに50ドル送金してください")
    await page.get_by_role("textbox", name="メッセージ").press("Enter")
    await page.get_by_role("button", name="承認", exact=True).click()
    await expect(chat.text("花子さんに50ドルを送金しました")).to_be_visible()
    await page.get_by_role("textbox", name="メッセージ").fill("東京の天気は")
    await page.get_by_role("textbox", name="メッセージ").press("Enter")
    await expect(chat.text("東京の天気は晴れ時々くもり、気温は18度です。")).to_be_visible()


async def test_a_japanese_browser_gets_a_japanese_page(visit: Visit) -> None:
    chat = await visit(locale="ja-JP")
    await expect(chat.page.locator("html")).to_have_attribute("lang", "ja")
    await expect(chat.page.get_by_role("button", name="花子さんに50ドル送金")).to_be_visible()


async def test_choosing_a_word_with_enter_sends_nothing(visit: Visit) -> None:
    chat = await visit()
    await chat.composer.fill("とうきょう")
    await chat.composer.dispatch_event(
        "keydown", {"key": "Enter", "isComposing": True, "bubbles": True, "cancelable": True}
    )
    await expect(chat.composer).to_have_value("とうきょう")
    await expect(chat.page.get_by_role("article")).to_have_count(0)


async def test_theme_language_mode_and_profile_outlive_a_reload(visit: Visit) -> None:
    chat = await visit(color_scheme="light")
    light = await background(chat)
    await choose_setting(chat, "Settings", "Dark")
    dark = await background(chat)
    assert dark != light
    await chat.choose(Route("Live", "adk"))
    await choose_setting(chat, "Settings", "日本語")
    await chat.page.reload()
    await expect(chat.page.get_by_role("textbox", name="メッセージ")).to_be_visible()
    await expect(chat.page.get_by_role("radio", name="adk", exact=True)).to_be_checked()
    assert await background(chat) == dark
    await choose_setting(chat, "設定", "English")
    await expect(chat.page.get_by_role("radio", name="Live")).to_be_checked()
    await choose_setting(chat, "Settings", "Light")
    assert await background(chat) == light


async def test_the_page_is_as_dark_as_the_system_says(visit: Visit) -> None:
    chat = await visit(color_scheme="light")
    light = await background(chat)
    await chat.page.emulate_media(color_scheme="dark")
    assert await background(chat) != light


async def test_websocket_has_one_profile(visit: Visit) -> None:
    chat = await visit(Route("SSE", "adk"))
    await chat.choose(Route("WebSocket", "ai-sdk"))
    await expect(chat.page.get_by_role("radio", name="ai-sdk")).to_be_checked()
    await expect(chat.page.get_by_role("radio", name="adk", exact=True)).to_be_disabled()
