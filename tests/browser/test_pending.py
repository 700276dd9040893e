"""What can happen while a call waits for its decision."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import ROUTES, Route

pytestmark = pytest.mark.anyio

# Each asks, and each answers what another one asked.
SWITCHES = [*zip(ROUTES, (*ROUTES[2:], *ROUTES[:2]), strict=True)]


async def test_of_two_payments_in_one_step_each_has_its_own_decision(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako and 30 to Taro")
    await expect(chat.approval()).to_have_count(2)
    hanako, taro = chat.approval(about="Hanako"), chat.approval(about="Taro")
    await hanako.get_by_role("button", name="Approve", exact=True).click()
    await taro.get_by_role("button", name="Deny", exact=True).click()
    await chat.transaction("Hanako")
    await chat.sees("The payment of 30 USD to Taro was not made")
    await chat.is_done()


async def test_a_question_is_still_there_after_a_reload(visit: Visit, route: Route) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.page.reload()
    await expect(chat.approval().get_by_role("row", name="recipient")).to_contain_text("Hanako")
    await chat.button("Approve").click()
    await chat.transaction("Hanako")
    await chat.is_done()


@pytest.mark.parametrize(("asked", "answered"), SWITCHES, ids=str)
async def test_what_one_mode_asked_another_one_answers(
    visit: Visit, asked: Route, answered: Route
) -> None:
    chat = await visit(asked)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.choose(answered)
    await expect(chat.approval().get_by_role("row", name="recipient")).to_contain_text("Hanako")
    await chat.button("Approve").click()
    await chat.transaction("Hanako")
    await chat.is_done()
    # The next message takes the new way.
    await chat.say("What is the weather in Osaka?")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")


@pytest.mark.parametrize("mode", ["SSE", "Live"])
@pytest.mark.parametrize(("asked", "answered"), [("ai-sdk", "adk"), ("adk", "ai-sdk")])
async def test_what_one_profile_asked_the_other_one_answers(
    visit: Visit, mode: str, asked: str, answered: str
) -> None:
    chat = await visit(Route(mode, asked))
    await chat.asks("Send 50 dollars to Hanako")
    await chat.choose_in("Profile", answered)
    await chat.button("Deny").click()
    await chat.sees("The payment of 50 USD to Hanako was not made")
    await chat.is_done()
