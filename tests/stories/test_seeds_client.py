"""A front end with the habits of the seeds' clients, unchanged, on `/stream` and `/live`.

Three stands of their public history, written anew in `tests/seeds_client`: the real chat of ai 6,
their frames, the helpers with which their chats send by themselves, and their order.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import httpx
import pytest

from adk_stream_protocol import Settings, create_app
from adk_stream_protocol.demo.agent import build_agent
from support.seeds_page import PageState, SeedsPage, SeedsRoute, Stand, seeds_page
from support.serving import serving
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

STANDS: list[Stand] = ["wrapped", "flat", "native"]
ROUTES: list[SeedsRoute] = ["stream", "live"]
every_page = pytest.mark.parametrize(
    ("stand", "route"), [(stand, route) for stand in STANDS for route in ROUTES]
)


@asynccontextmanager
async def paged(
    stand: Stand, route: SeedsRoute, *, draft: bool = False
) -> AsyncIterator[tuple[Stage, SeedsPage]]:
    async with staged() as stage, seeds_page(stage.url, stand, route, draft=draft) as page:
        yield stage, page


def check_fine(shown: PageState) -> None:
    """Check that nothing broke, nothing was refused, and nothing was sent again and again."""
    assert (shown.status, shown.error) == ("ready", None)
    assert shown.besides == []
    assert len(shown.messages) == 2
    assert shown.posts <= 4


@every_page
async def test_a_payment_is_approved(stand: Stand, route: SeedsRoute) -> None:
    async with paged(stand, route) as (stage, page):
        await page.say("pay")
        await page.asked()
        await page.click(True)
        shown = await page.settled()
    check_fine(shown)
    assert (shown.text, shown.tools) == ("Told.", [("pay", "output-available")])
    assert stage.payments == [5]


@every_page
async def test_a_payment_is_denied(stand: Stand, route: SeedsRoute) -> None:
    async with paged(stand, route) as (stage, page):
        await page.say("pay")
        await page.asked()
        await page.click(False)
        shown = await page.settled()
    check_fine(shown)
    denied = "output-denied" if stand == "native" else "output-error"
    assert (shown.text, shown.tools) == ("Told.", [("pay", denied)])
    assert stage.payments == []


@every_page
async def test_a_double_click_pays_once_and_shows_it(stand: Stand, route: SeedsRoute) -> None:
    async with paged(stand, route) as (stage, page):
        await page.say("pay")
        await page.asked()
        await page.click(True, times=2)
        shown = await page.settled()
    check_fine(shown)
    assert (shown.text, shown.tools) == ("Told.", [("pay", "output-available")])
    assert stage.payments == [5]


@every_page
@pytest.mark.parametrize("verdicts", [(True, True), (False, True)])
async def test_two_payments_are_asked_in_order_and_answered_together(
    stand: Stand, route: SeedsRoute, verdicts: tuple[bool, bool]
) -> None:
    async with paged(stand, route) as (stage, page):
        await page.say("pay both")
        asked = await page.asked(2)
        inputs = [part["input"] for part in asked.messages[-1]["parts"] if "input" in part]
        amounts = [given["amount"] for given in inputs if "amount" in given]
        assert amounts == [1, 2]
        await page.click(*verdicts)
        shown = await page.settled()
    check_fine(shown)
    denied = "output-denied" if stand == "native" else "output-error"
    states = {True: "output-available", False: denied}
    assert shown.tools == [("pay", states[verdict]) for verdict in verdicts]
    assert shown.text == "Both told."
    assert sorted(stage.payments) == [n for n, yes in enumerate(verdicts, start=1) if yes]


@every_page
async def test_music_is_answered_in_the_same_tick(stand: Stand, route: SeedsRoute) -> None:
    async with paged(stand, route) as (stage, page):
        await page.say("play jazz")
        shown = await page.settled()
    check_fine(shown)
    assert (shown.text, shown.tools) == ("Music told.", [("change_bgm", "output-available")])
    assert shown.runs == ["change_bgm"]
    assert "success" in str(stage.model.prompts[-1])


@every_page
@pytest.mark.parametrize("confirmed", [True, False])
async def test_where_the_user_is_is_told_once_it_is_approved(
    stand: Stand, route: SeedsRoute, confirmed: bool
) -> None:
    async with paged(stand, route) as (stage, page):
        await page.say("where am I")
        await page.asked()
        await page.click(confirmed)
        shown = await page.settled()
    check_fine(shown)
    denied = "output-denied" if stand == "native" else "output-error"
    state = "output-available" if confirmed else denied
    assert (shown.text, shown.tools) == ("Place told.", [("get_location", state)])
    assert ("35.6" in str(stage.model.prompts[-1])) is confirmed


async def test_the_drafts_way_of_answering_works_too() -> None:
    async with paged("wrapped", "live", draft=True) as (stage, page):
        await page.say("pay")
        await page.asked()
        await page.click(True, times=2)
        shown = await page.settled()
        assert shown.sent[-1]["data"]["result"] == {"confirmed": True}
    check_fine(shown)
    assert stage.payments == [5]


@pytest.mark.parametrize("stand", STANDS)
async def test_turns_follow_each_other_on_one_socket(stand: Stand) -> None:
    async with paged(stand, "live") as (_, page):
        for text, told in (("add", "It is 3."), ("hi", "Hello."), ("play jazz", "Music told.")):
            await page.say(text)
            shown = await page.settled()
            assert (shown.status, shown.text, shown.besides) == ("ready", told, [])


@pytest.mark.parametrize("stand", STANDS)
async def test_the_latency_is_shown(stand: Stand) -> None:
    async with paged(stand, "live") as (_, page):
        shown = await page.ping()
    assert len(shown.latencies) == 1


@pytest.mark.parametrize("stand", STANDS)
async def test_push_to_talk_is_heard_and_breaks_nothing(stand: Stand) -> None:
    voice = base64.b64encode(b"\x00\x20" * 3_200).decode()
    app = create_app(build_agent(), settings=Settings())
    async with (
        serving(app) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
        seeds_page(url, stand, "live") as page,
    ):
        await page.say("Hello")
        await page.settled()
        await page.talk(voice)
        (chat,) = (await http.get("/api/chats")).json()["chats"]
        with anyio.fail_after(60):
            while "Tokyo" not in (await http.get(f"/api/chats/{chat['id']}")).text:
                await anyio.lowlevel.checkpoint()
        shown = await page.ping()
    assert (shown.status, shown.error, shown.besides) == ("ready", None, [])
