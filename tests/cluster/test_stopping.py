"""A reply that runs on one server is stopped on the other."""

from __future__ import annotations

import anyio
import pytest

from support.cluster import Cluster
from support.cluster_plays import Conductor, called, new_name, play, wait
from support.cluster_tabs import Tab, saying

pytestmark = pytest.mark.anyio


async def test_a_reply_on_a_is_stopped_on_b_and_its_text_is_kept(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    told = play(chat, ["So far ", "so good.", wait(chat), " Never said."])
    async with tab_a.posting(saying(chat, told)) as stream:
        await stream.until("so good.")
        await conductor.arrived(chat)
        assert await tab_b.stop(chat)
        whole = await stream.all()
    assert b'"type":"abort"' in whole
    assert b"Never said" not in whole
    assert (await tab_b.resume(chat)).raw.encode() == whole
    last = (await tab_b.history(chat))[-1]
    assert [part["text"] for part in last["parts"] if part["type"] == "text"] == ["So far so good."]
    assert cluster.model_runs()[chat] == 1


async def test_after_a_stop_on_b_the_chat_goes_on_at_once_on_either(
    conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    for tab, other in ((tab_a, tab_b), (tab_b, tab_a)):
        place = new_name()
        async with tab.posting(saying(chat, play(place, ["Half ", wait(place)]))) as stream:
            await stream.until("Half ")
            await conductor.arrived(place)
            assert await other.stop(chat)
            await stream.all()
        assert (await other.say(chat, play(new_name(), ["Whole."]))).text == "Whole."


async def test_a_tool_that_runs_on_a_is_let_finish_when_b_stops(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, [called("pay_slowly", chat)], ["Never said."]))
    async with tab_a.posting(asked.approving(chat, True)) as stream:
        await conductor.arrived(chat)
        assert await tab_b.stop(chat)
        conductor.release(chat)
        whole = (await stream.all()).decode()
    assert whole.index('"tool-output-available"') < whole.index('"type":"abort"')
    assert "Never said." not in whole
    assert cluster.effects()[chat] == 1
    assert (await tab_b.approval(asked.approvals[0]))["status"] == "done"


async def test_a_call_that_a_holds_is_given_up_on_b(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, [called("pay", chat)], ["Told."]))
    assert await tab_b.stop(chat)
    late = await tab_a.decide(asked.approvals[0], True)
    assert (late.status_code, late.json()["status"]) == (409, "cancelled")
    assert cluster.effects()[chat] == 0


async def test_of_two_stops_on_two_servers_neither_fails(
    conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    async with tab_a.posting(saying(chat, play(chat, ["Half ", wait(chat)]))) as stream:
        await stream.until("Half ")
        await conductor.arrived(chat)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(tab_a.stop, chat)
            tasks.start_soon(tab_b.stop, chat)
        assert (await stream.all()).count(b'"type":"abort"') == 1
