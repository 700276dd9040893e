"""Tools that the page runs, by the stock callback of each front end."""

from __future__ import annotations

import pytest

from support.clients import FrontEnd, Open, PageServer

pytestmark = pytest.mark.anyio


async def test_a_tool_of_the_browser_runs_once_and_never_again_after_a_reload(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("play jazz")
    await client.sees("Music told.")
    await client.sees_states("change_bgm", "output-available")
    assert await client.tools_run() == ["change_bgm"]
    await client.is_the_same_after_a_reload()
    assert len(client.posts) == 2
    assert "'playing': 'jazz'" in str(server.stage.model.prompts[-1])


async def test_a_tool_of_the_browser_that_needs_approval_runs_after_it(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("where am I")
    await client.sees_states("get_location", "approval-requested")
    await client.is_done()
    assert await client.tools_run() == []
    await client.button("Approve").click()
    await client.sees("Place told.")
    await client.sees_states("get_location", "output-available")
    assert await client.tools_run() == ["get_location"]
    await client.is_the_same_after_a_reload()
    assert len(client.posts) == 3
    assert "'latitude': 35.5" in str(server.stage.model.prompts[-1])


async def test_a_tool_of_the_browser_that_is_denied_never_runs(
    open_page: Open, front_end: FrontEnd
) -> None:
    client = await open_page(front_end)
    await client.send("where am I")
    await client.button("Deny").click()
    await client.sees("Place told.")
    await client.sees_states("get_location", "output-denied")
    assert await client.tools_run() == []
    await client.is_the_same_after_a_reload()
    assert len(client.posts) == 2


async def test_a_tool_of_the_browser_waits_for_an_approval_beside_it(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay and play")
    await client.sees_states("change_bgm", "output-available")
    await client.button("Approve").click()
    await client.sees("Mixed told.")
    await client.sees_states("pay", "output-available")
    assert await client.tools_run() == ["change_bgm"]
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [7]
    assert len(client.posts) == 2
