"""A microphone that Chromium plays a file into, and the button that is held to talk."""

from __future__ import annotations

import math
import struct
import wave
from pathlib import Path
from typing import Final

from playwright.async_api import Page, WebSocket, expect

from support.browser_chat import ChatPage

__all__ = ["Microphone", "with_microphone", "write_voice"]

_RATE: Final = 48_000


def write_voice(file: Path) -> None:
    """Write a second of a tone that wavers: Chromium takes a steady one for noise."""
    samples = (
        round(12_000 * math.sin(2 * math.pi * 220 * at / _RATE + 8 * math.sin(60 * at / _RATE)))
        for at in range(_RATE)
    )
    with wave.open(str(file), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(_RATE)
        sound.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))


def with_microphone(voice: Path) -> tuple[str, ...]:
    """Return the switches for a Chromium that hears this file, again and again, unasked."""
    return (
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={voice}",
    )


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
