"""Tools that run in the page, and one that does not, in every mode and profile."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Route

pytestmark = pytest.mark.anyio


async def test_the_location_is_told_when_the_browser_permits_it(visit: Visit, route: Route) -> None:
    tokyo = {"latitude": 35.6, "longitude": 139.7}
    chat = await visit(route, geolocation=tokyo, permissions=["geolocation"])
    await chat.asks("Where am I?")
    await expect(chat.approval("Share where you are")).to_contain_text("low risk")
    await chat.button("Approve").click()
    await chat.sees("You are at latitude 35.6, longitude 139.7")
    await chat.is_done()
    await expect(chat.tool("get_location", "done")).to_be_visible()


async def test_a_location_that_the_browser_refuses_is_a_failed_call(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route, permissions=[])
    await chat.asks("Where am I?")
    await chat.button("Approve").click()
    await chat.sees("I could not learn your location.")
    await chat.is_done()
    await expect(chat.tool("get_location", "failed")).to_be_visible()


async def test_the_music_changes_without_a_question_and_can_be_stopped(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route)
    await chat.say("Play some jazz")
    await chat.sees("The music is now: jazz.")
    await chat.is_done()
    await expect(chat.tool("change_bgm", "done")).to_be_visible()
    await chat.button("Stop the music").click()
    await expect(chat.button("Stop the music")).to_have_count(0)


async def test_two_cities_are_two_calls_and_one_answer(visit: Visit, route: Route) -> None:
    chat = await visit(route)
    await chat.button("What is the weather in Tokyo and Paris?").click()
    await chat.sees("The weather in Tokyo: partly cloudy, 18 °C.")
    await chat.is_done()
    calls = chat.tool("get_weather", "done")
    await expect(calls).to_have_count(2)
    await calls.first.get_by_text("get_weather").click()
    await expect(calls.first.get_by_role("row", name="temperature_c")).to_contain_text("18")


async def test_a_microphone_that_the_browser_refuses_is_told_with_what_to_do(visit: Visit) -> None:
    chat = await visit(Route("Live", "ai-sdk"), permissions=[])
    await chat.button("Hold to talk").click()
    await expect(chat.notice).to_contain_text("The browser did not give the microphone.")
    await chat.button("Dismiss").click()
    await chat.say("Hello")
    await chat.sees("Hello! I am the demo assistant.")
