"""The database is restarted while something runs."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from support.cluster import Cluster
from support.cluster_plays import Conductor, called, new_name, play, wait
from support.cluster_tabs import Tab, saying
from support.stage import Answered

pytestmark = pytest.mark.anyio


async def stop(cluster: Cluster) -> None:
    await anyio.to_thread.run_sync(cluster.postgres.stop)


async def start(cluster: Cluster) -> None:
    await anyio.to_thread.run_sync(cluster.postgres.start)


async def told(tab: Tab, chat: str) -> Answered:
    """Return the reply that tells the end, on whichever server it runs."""
    with anyio.fail_after(180):
        while not (reply := await tab.resume(chat)).text.endswith("Told."):
            assert reply.status in {200, 204, 500, 503}
    return reply


async def test_a_reply_goes_on_when_the_database_is_restarted(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    async with tab_a.posting(saying(chat, play(chat, ["Half ", wait(chat), "whole."]))) as first:
        await first.until("Half ")
        await stop(cluster)
        await start(cluster)
        conductor.release(chat)
        whole = await first.all()
    assert b'whole."' in whole
    assert b'"type":"error"' not in whole
    assert (await tab_b.resume(chat)).raw.encode() == whole
    assert cluster.model_runs()[chat] == 1


async def test_a_reader_on_b_goes_on_when_the_database_is_restarted(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    async with tab_a.posting(saying(chat, play(chat, ["Half ", wait(chat), "whole."]))) as first:
        await first.until("Half ")
        async with tab_b.resuming(chat) as second:
            await second.until("Half ")
            await stop(cluster)
            await start(cluster)
            conductor.release(chat)
            assert await second.all() == await first.all()


async def test_a_tool_that_runs_while_the_database_is_restarted_is_recorded(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, [called("pay_slowly", chat)], ["Told."]))
    await tab_b.decide(asked.approvals[0], True)
    await conductor.arrived(chat)
    await stop(cluster)
    await start(cluster)
    conductor.release(chat)
    await told(tab_a, chat)
    assert cluster.effects()[chat] == 1
    assert (await tab_a.approval(asked.approvals[0]))["status"] == "done"


async def test_a_tool_that_ends_while_the_database_is_away_is_recorded_when_it_is_back(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, [called("pay_slowly", chat)], ["Told."]))
    await tab_b.decide(asked.approvals[0], True)
    await conductor.arrived(chat)
    await stop(cluster)
    conductor.release(chat)
    await conductor.arrived(f"{chat}-paid")
    await start(cluster)
    await told(tab_a, chat)
    assert cluster.effects()[chat] == 1
    assert conductor.arrivals(chat) == 1
    assert (await tab_a.approval(asked.approvals[0]))["status"] == "done"
