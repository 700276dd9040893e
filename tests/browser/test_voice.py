"""Push to talk, with a microphone that Chromium plays a file into."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest
from playwright.async_api import Browser, expect

from browser.conftest import Visit
from support.browser import Route, chromium
from support.browser_voice import Microphone, with_microphone, write_voice
from support.command import Served

pytestmark = pytest.mark.anyio

LIVE: Final = [Route("Live", "ai-sdk"), Route("Live", "adk")]


@pytest.fixture(scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    file = tmp_path_factory.mktemp("voice") / "voice.wav"
    write_voice(file)
    async with chromium(*with_microphone(file)) as browser:
        yield browser


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
    for answer in ("The weather in Tokyo:", "Needs your approval"):
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
    await chat.composer.fill("Tell me a story")
    await chat.is_done()
    await chat.composer.press("Enter")
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
