"""Push to talk, with a microphone that Chromium plays a file into."""

from __future__ import annotations

import math
import struct
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser, Page, WebSocket, expect

from browser.conftest import Visit
from support.browser import Route, chromium
from support.browser_chat import ChatPage
from support.command import Served

pytestmark = pytest.mark.anyio

LIVE: Final = [Route("Live", "ai-sdk"), Route("Live", "adk")]
RATE: Final = 48_000


def write_voice(file: Path) -> None:
    """Write a second of a tone that wavers: Chromium takes a steady one for noise."""
    samples = (
        round(12_000 * math.sin(2 * math.pi * 220 * at / RATE + 8 * math.sin(60 * at / RATE)))
        for at in range(RATE)
    )
    with wave.open(str(file), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(RATE)
        sound.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))


@pytest.fixture(scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    file = tmp_path_factory.mktemp("voice") / "voice.wav"
    write_voice(file)
    async with chromium(
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={file}",
    ) as browser:
        yield browser


class Microphone:
    """The button that is held, and what goes out while it is."""

    def __init__(self, chat: ChatPage) -> None:
        self._page: Page = chat.page
        self._button = chat.button("Hold to talk")
        self._socket: WebSocket | None = None  # the one for sound; None until the first word
        self._page.on("websocket", self._on_socket)

    def _on_socket(self, socket: WebSocket) -> None:
        if socket.url.endswith("/audio"):
            self._socket = socket

    async def hold(self) -> None:
        """Press the button, and speak for half a second."""
        await self._button.hover()
        await self._page.mouse.down()
        await expect(self._page.get_by_text("Listening…")).to_be_visible()
        assert self._socket is not None
        for _ in range(5):
            await self._socket.wait_for_event("framesent")

    async def release(self) -> None:
        await self._page.mouse.up()


@pytest.mark.parametrize("live", LIVE, ids=str)
async def test_what_is_said_and_what_is_answered_aloud_appear_as_text(
    visit: Visit, live: Route
) -> None:
    chat = await visit(live)
    microphone = Microphone(chat)
    await microphone.hold()
    await microphone.release()
    said = chat.page.get_by_role("article", name="You")
    await expect(said).to_contain_text("What is the weather in Tokyo?")
    await chat.sees("The weather in Tokyo: partly cloudy, 18 °C.")
    await expect(chat.page.get_by_text("Speaking")).to_be_visible()
    await chat.is_done()
    await chat.page.reload()
    await expect(said).to_have_count(1)
    await chat.sees("The weather in Tokyo: partly cloudy, 18 °C.")


@pytest.mark.parametrize("live", LIVE, ids=str)
async def test_a_spoken_payment_is_approved_by_hand(visit: Visit, live: Route) -> None:
    chat = await visit(live)
    microphone = Microphone(chat)
    for answer in ("The weather in Tokyo", "Needs your approval"):
        await microphone.hold()
        await microphone.release()
        await chat.sees(answer)
    await chat.button("Approve").click()
    await chat.transaction("Hanako")


@pytest.mark.parametrize("live", LIVE, ids=str)
async def test_speaking_interrupts_a_story_that_is_told_aloud(
    visit: Visit, live: Route, slow_server: Served
) -> None:
    chat = await visit(live, url=slow_server.url)
    microphone = Microphone(chat)
    await microphone.hold()
    await microphone.release()
    await chat.sees("The weather in Tokyo: partly cloudy, 18 °C.")
    await chat.is_done()
    await chat.say("Tell me a story")
    await chat.sees("Once upon a time")
    await expect(chat.page.get_by_text("Speaking")).to_be_visible()
    await microphone.hold()
    await microphone.release()
    await expect(chat.button("Approve")).to_be_visible()
    said = chat.page.get_by_role("article", name="You")
    await expect(said).to_contain_text(
        ["What is the weather in Tokyo?", "Tell me a story", "Send 50 dollars to Hanako"]
    )
    await expect(chat.text("because of the first.")).to_have_count(0)


async def test_the_microphone_is_only_offered_where_it_works(visit: Visit) -> None:
    chat = await visit()
    await expect(chat.button("Hold to talk")).to_have_count(0)
    await chat.choose(LIVE[0])
    await expect(chat.button("Hold to talk")).to_be_visible()
