"""What everybody does with a chat: ask, ask again, ask otherwise, and see that it failed."""

from __future__ import annotations

import pytest
from playwright.async_api import Route, expect

from support.browser import Faults
from support.clients import FrontEnd, Open, PageServer

pytestmark = pytest.mark.anyio


async def test_text_comes_and_is_kept(open_page: Open, front_end: FrontEnd) -> None:
    client = await open_page(front_end)
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_done()
    await client.send("add")
    await client.sees("It is 3.")
    await client.sees_states("add", "output-available")
    await client.is_the_same_after_a_reload()
    assert len(client.posts) == 2


async def test_a_regenerated_reply_takes_the_place_of_the_first(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_done()
    server.stage.model.script = {"hi": [["Good day."]]}
    await client.button("Regenerate").last.click()
    await client.sees("Good day.")
    await expect(client.message("assistant")).to_have_count(1)
    await client.is_the_same_after_a_reload()
    assert len(client.posts) == 2


async def test_an_edited_message_takes_the_place_of_all_that_followed_it(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_done()
    await client.send("add")
    await client.sees("It is 3.")
    await client.is_done()
    await client.edit("hi", "hello")
    await client.sees("Hello again.")
    await expect(client.message("user")).to_have_count(1)
    await expect(client.message("assistant")).to_have_count(1)
    await client.is_the_same_after_a_reload()
    assert "Hello." not in str(server.stage.model.prompts[-1])
    assert len(client.posts) == 3


async def test_a_failed_reply_shows_a_sentence_and_succeeds_at_the_second_try(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("break")
    error = client.page.get_by_role("alert")
    await expect(error).to_contain_text("The agent could not finish this reply")
    await expect(error).not_to_contain_text("SECRET")
    server.stage.model.script = {"break": [["Mended."]]}
    await client.button("Retry").click()
    await client.sees("Mended.")
    await expect(client.message("assistant")).to_have_count(1)
    await client.is_the_same_after_a_reload()
    assert len(client.posts) == 2


async def test_a_refused_request_shows_a_sentence(
    open_page: Open, front_end: FrontEnd, faults: Faults
) -> None:
    faults.allow(r"413 \(Request Entity Too Large\)")
    client = await open_page(front_end)
    await client.send("x" * 70_000)
    error = client.page.get_by_role("alert")
    await expect(error).to_contain_text("at most 65536 bytes")
    await expect(error).not_to_contain_text("{")
    assert len(client.posts) == 1


async def test_a_message_that_never_arrived_is_sent_by_a_second_try(
    open_page: Open, front_end: FrontEnd, faults: Faults
) -> None:
    faults.allow_lost_server()
    faults.allow(r"thread list load failed", r"Failed to load message history")
    client = await open_page(front_end)
    await client.page.context.set_offline(True)
    await client.send("hi")
    await expect(client.page.get_by_role("alert")).to_be_visible()
    await client.page.context.set_offline(False)
    await client.button("Retry").click()
    await client.sees("Hello.")
    await expect(client.message("user")).to_have_count(1)
    await client.is_the_same_after_a_reload()


async def test_an_answer_whose_reply_was_lost_is_given_again_and_pays_once(
    open_page: Open, front_end: FrontEnd, server: PageServer, faults: Faults
) -> None:
    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    faults.allow(r"net::ERR_FAILED")
    client = await open_page(front_end)
    await client.send("pay")
    await client.sees_states("pay", "approval-requested")
    await client.is_done()
    await client.page.route("**/api/chat?*", lose)
    await client.page.route("**/api/chat", lose)
    await client.button("Approve").click()
    await expect(client.page.get_by_role("alert")).to_be_visible()
    await client.page.unroute_all()
    await client.button("Retry").click()
    await client.sees("Told.")
    await client.sees_states("pay", "output-available")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [5]
