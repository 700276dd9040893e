"""A call that one server asked for is answered on the other."""

from __future__ import annotations

import anyio
import pytest

from support.cluster import Cluster
from support.cluster_plays import Conductor, called, new_name, play, wait
from support.cluster_tabs import Tab

pytestmark = pytest.mark.anyio


def paying(name: str) -> str:
    return play(name, ["Paying. ", called("pay", name)], ["Told."])


async def told(tab: Tab, chat: str) -> list[str]:
    """Return the states of the last message's tool calls, once the chat has told its end."""
    with anyio.fail_after(20):
        while (last := (await tab.history(chat))[-1])["parts"][-1].get("text") != "Told.":
            await tab.resume(chat)
    return [part["state"] for part in last["parts"] if "toolCallId" in part]


async def test_what_a_asked_is_approved_in_the_chat_on_b(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, paying(chat))
    reply = await tab_b.post(asked.approving(chat, True))
    assert [chunk["output"] for chunk in reply.only("tool-output-available")] == [{"paid": chat}]
    assert reply.text == "Told."
    assert reply.message_id == asked.message_id
    assert cluster.effects()[chat] == 1


async def test_what_a_asked_is_denied_in_the_chat_on_b(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, paying(chat))
    reply = await tab_b.post(asked.approving(chat, False, reason="too much"))
    assert reply.types.count("tool-output-denied") == 1
    assert reply.text == "Told."
    assert cluster.effects()[chat] == 0
    shown = await tab_a.approval(asked.approvals[0])
    assert (shown["status"], shown["reason"]) == ("denied", "too much")


async def test_what_a_asked_is_approved_away_from_the_chat_on_b(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, paying(chat))
    decided = await tab_b.decide(asked.approvals[0], True)
    assert decided.status_code == 200
    assert await told(tab_a, chat) == ["output-available"]
    assert cluster.effects()[chat] == 1
    assert (await tab_a.approval(asked.approvals[0]))["status"] == "done"


async def test_what_a_asked_is_denied_away_from_the_chat_on_b(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, paying(chat))
    decided = await tab_b.decide(asked.approvals[0], False)
    assert decided.json()["status"] == "denied"
    assert await told(tab_a, chat) == ["output-denied"]
    assert cluster.effects()[chat] == 0


async def test_a_decision_on_b_is_listed_on_a(tab_a: Tab, tab_b: Tab) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, paying(chat))
    pending = (await tab_b.http.get("/api/approvals", params={"status": "pending"})).json()
    assert asked.approvals[0] in [shown["id"] for shown in pending["approvals"]]
    await tab_b.decide(asked.approvals[0], False)
    pending = (await tab_a.http.get("/api/approvals", params={"status": "pending"})).json()
    assert asked.approvals[0] not in [shown["id"] for shown in pending["approvals"]]


async def test_a_tool_that_runs_on_b_is_not_run_by_a_late_approval_on_a(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, [called("pay_slowly", chat)], ["Told."]))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tab_b.post, asked.approving(chat, True))
        await conductor.arrived(chat)
        late = await tab_a.decide(asked.approvals[0], True)
        assert (late.status_code, late.json()["status"]) == (200, "running")
        contrary = await tab_a.decide(asked.approvals[0], False)
        assert (contrary.status_code, contrary.json()["status"]) == (409, "running")
        conductor.release(chat)
    assert cluster.effects()[chat] == 1
    assert conductor.arrivals(chat) == 1


async def test_two_calls_of_one_step_are_answered_one_on_each_server(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    calls = [called("pay", f"{chat}-1"), called("pay", f"{chat}-2")]
    asked = await tab_a.say(chat, play(chat, [*calls], ["Told."]))
    one, two = asked.approvals
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tab_a.decide, one, True)
        tasks.start_soon(tab_b.decide, two, False)
    assert await told(tab_b, chat) == ["output-available", "output-denied"]
    assert cluster.effects()[f"{chat}-1"] == 1
    assert cluster.effects()[f"{chat}-2"] == 0


async def test_a_continuation_on_b_goes_on_when_the_tab_that_approved_closes(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, [called("pay", chat)], ["So ", wait(chat), "paid."]))
    async with tab_b.posting(asked.approving(chat, True)) as stream:
        await stream.until("So ")
    conductor.release(chat)
    resumed = await tab_a.resume(chat)
    assert resumed.text == "So paid."
    assert cluster.effects()[chat] == 1
