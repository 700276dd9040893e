"""Pictures of the page's main states: `python -m browser.screenshots OUT_DIR`.

Each on a desktop and on a phone, light and dark, as `approval-desktop-dark.png`.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal

import anyio
from playwright.async_api import Browser, expect

from support.browser import PATIENCE_MS, Route, chromium, forget_chats
from support.browser_chat import ChatPage
from support.browser_voice import Microphone, with_microphone, write_voice
from support.command import served

__all__ = ["take"]

Scheme = Literal["light", "dark"]
Scene = Callable[[ChatPage], Awaitable[None]]

SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
SCREENS: Final[dict[str, dict[str, Any]]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}
SERVER: Final = ("--database", "memory:", "--delay", "0")
# Half a minute more than whole hours: so the countdown shows the same each time.
LONG_APPROVALS: Final = {"ADK_STREAM_APPROVAL_SECONDS": str(12 * 3600 + 30)}


async def welcome(chat: ChatPage) -> None:
    await expect(chat.page.get_by_role("heading", name="What can I do")).to_be_visible()


async def is_listed(chat: ChatPage, title: str) -> None:
    """Wait until the side bar knows a chat, also where it is closed."""
    await expect(chat.page.get_by_title(title)).to_be_attached()


async def tools(chat: ChatPage) -> None:
    await chat.say("What is the weather in Tokyo and Paris?")
    await chat.sees("The weather in Tokyo:")
    await chat.is_done()
    await chat.say("Play some jazz")
    await chat.sees("The music is now: jazz.")
    await chat.is_done()
    await chat.messages.get_by_text("get_weather", exact=True).first.click()


async def approval(chat: ChatPage) -> None:
    await chat.asks("Send 50 dollars to Hanako")
    await is_listed(chat, "Send 50 dollars to Hanako")


async def two_approvals(chat: ChatPage) -> None:
    await chat.asks("Send 50 dollars to Hanako and 30 to Taro")
    await expect(chat.approval()).to_have_count(2)
    await expect(chat.page.get_by_label("2 approvals wait")).to_be_attached()


async def approved(chat: ChatPage) -> None:
    await chat.asks("Send 50 dollars to Hanako")
    await chat.button("Approve").click()
    await chat.transaction("Hanako")
    await chat.is_done()
    await chat.messages.get_by_text("process_payment", exact=True).click()


async def edit(chat: ChatPage) -> None:
    await approval(chat)
    await chat.button("Change the arguments").click()
    await expect(chat.button("Approve the changed call")).to_be_visible()


async def side_bar(chat: ChatPage) -> None:
    """Open the side bar, where it is not always open."""
    toggle = chat.button("Show the list of chats")
    if await toggle.is_visible():
        await toggle.click()


async def chats(chat: ChatPage) -> None:
    await tools(chat)
    await side_bar(chat)
    await chat.button("New chat").click()
    await approval(chat)
    await side_bar(chat)


async def inbox(chat: ChatPage) -> None:
    await two_approvals(chat)
    await side_bar(chat)
    await chat.page.get_by_role("button", name="Approvals").click()
    await expect(chat.page.get_by_role("dialog").get_by_text("Open the chat").first).to_be_visible()


async def inspector(chat: ChatPage) -> None:
    await approved(chat)
    await chat.button("Inspector").click()


async def settings(chat: ChatPage) -> None:
    await side_bar(chat)
    await chat.button("Settings").click()
    await expect(chat.page.get_by_role("menu")).to_be_visible()


async def japanese(chat: ChatPage) -> None:
    await settings(chat)
    await chat.page.get_by_role("menuitemradio", name="日本語").click()
    await chat.page.reload()
    field = chat.page.get_by_role("textbox", name="メッセージ")
    await field.fill("東京の天気は")
    await field.press("Enter")
    await expect(chat.text("東京の天気は晴れ時々くもり")).to_be_visible()
    await field.fill("花子さんに50ドル送金してください")
    await field.press("Enter")
    await expect(chat.page.get_by_role("button", name="承認", exact=True)).to_be_visible()


async def voice(chat: ChatPage) -> None:
    await chat.choose(Route("Live", "ai-sdk"))
    microphone = Microphone(chat)
    await microphone.hold()
    await microphone.release()
    await chat.sees("The weather in Tokyo:")
    await is_listed(chat, "Voice chat")
    await microphone.hold()


SCENES: Final[dict[str, Scene]] = {
    "welcome": welcome,
    "tools": tools,
    "approval": approval,
    "two-approvals": two_approvals,
    "edit": edit,
    "approved": approved,
    "chats": chats,
    "inbox": inbox,
    "inspector": inspector,
    "settings": settings,
    "japanese": japanese,
    "voice": voice,
}


async def take(folder: Path) -> None:
    """Take all pictures into a folder, which is made if it is not there."""
    await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=PATIENCE_MS)
    with tempfile.TemporaryDirectory() as place:
        sound = Path(place) / "voice.wav"
        write_voice(sound)
        async with (
            chromium(*with_microphone(sound)) as browser,
            served(*SERVER, cwd=Path(place), environment=LONG_APPROVALS) as server,
        ):
            for (name, scene), screen in itertools.product(SCENES.items(), SCREENS):
                await _take(browser, server.url, scene, folder / f"{name}-{screen}", screen)
                await forget_chats(server.url)


async def _take(browser: Browser, url: str, scene: Scene, file: Path, screen: str) -> None:
    async with await browser.new_context(
        **SCREENS[screen], locale="en-US", reduced_motion="reduce"
    ) as context:
        context.set_default_timeout(PATIENCE_MS)
        chat = ChatPage(await context.new_page())
        await chat.page.goto(url)
        await scene(chat)
        for scheme in SCHEMES:
            await chat.page.emulate_media(color_scheme=scheme)
            await chat.page.screenshot(
                path=file.with_name(f"{file.name}-{scheme}.png"), animations="disabled"
            )


def main() -> int:
    """Take the pictures into the folder that the command line names."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m browser.screenshots OUT_DIR\n")
        return 2
    anyio.run(take, Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
