"""The Stop button, which only hangs up, and what people do next."""

from __future__ import annotations

import anyio.to_thread
import pytest
from playwright.async_api import expect

from support.clients import FRONT_ENDS, ClientPage, FrontEnd, Open, PageServer

pytestmark = pytest.mark.anyio


async def stopped(open_page: Open, front_end: FrontEnd) -> ClientPage:
    """Return a page whose reply was stopped half way."""
    client = await open_page(front_end)
    await client.send("long")
    await client.sees("One.")
    await client.button("Stop").click()
    await client.is_done()
    return client


async def test_after_a_stop_the_next_message_is_answered(
    open_page: Open, front_end: FrontEnd
) -> None:
    client = await stopped(open_page, front_end)
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_the_same_after_a_reload()
    await expect(client.message("assistant").first).to_contain_text("One.")
    await expect(client.message("assistant").first).not_to_contain_text("Two.")


async def test_after_a_stop_the_reply_can_be_had_again(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await stopped(open_page, front_end)
    server.stage.model.script = {"long": [["Short."]]}
    await client.button("Regenerate").last.click()
    await client.sees("Short.")
    await expect(client.message("assistant")).to_have_count(1)
    await client.is_the_same_after_a_reload()


async def test_after_a_stop_the_question_can_be_edited(
    open_page: Open, front_end: FrontEnd
) -> None:
    client = await stopped(open_page, front_end)
    await client.edit("long", "hello")
    await client.sees("Hello again.")
    await expect(client.message("user")).to_have_count(1)
    await expect(client.message("assistant")).to_have_count(1)
    await client.is_the_same_after_a_reload()


async def test_who_stops_while_a_tool_runs_can_go_on_and_the_tool_is_let_finish(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay slowly")
    await client.button("Approve").click()
    assert await anyio.to_thread.run_sync(server.stage.tool_started.wait, 60)
    await client.button("Stop").click()
    await client.is_done()
    await client.send("hi")
    server.stage.tool_may_end.set()
    await client.sees("Hello.")
    await client.is_done()
    assert server.stage.payments == [9]
    await client.reload()
    await client.sees_states("pay_slowly", "output-available")
    await client.is_the_same_after_a_reload()


@pytest.mark.parametrize("front_end", [FRONT_ENDS[0], FRONT_ENDS[1], FRONT_ENDS[-1]], ids=str)
async def test_nobody_is_locked_out_by_stopping_again_and_again(
    open_page: Open, front_end: FrontEnd
) -> None:
    client = await stopped(open_page, front_end)
    for replies in range(2, 6):
        await client.send("long")
        await expect(client.message("assistant")).to_have_count(replies)
        await client.sees("One.")
        await client.button("Stop").click()
        await client.is_done()
    await client.send("hi")
    await client.sees("Hello.")
    await expect(client.message("user")).to_have_count(6)
    await client.is_the_same_after_a_reload()


async def test_a_reply_that_the_server_stops_while_a_tool_runs_ends_quietly(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay slowly")
    await client.button("Approve").click()
    assert await anyio.to_thread.run_sync(server.stage.tool_started.wait, 60)
    path = f"{server.url}/api/chat/{client.chat_id}/stop"
    assert await (await client.page.request.post(path)).json() == {"stopped": True}
    server.stage.tool_may_end.set()
    await client.sees_states("pay_slowly", "output-available")
    await client.is_done()
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [9]
    assert len(client.posts) == 3
