"""A call that was asked for live on one server is answered on the other, and the other way round.

The run that asked must end: what it knows of the session is outdated, and the tool runs once.
"""

from __future__ import annotations

import anyio
import pytest

from support.cluster import Cluster, Instance
from support.cluster_plays import Conductor, called, new_name, play
from support.cluster_tabs import Tab
from support.live import LiveChat, live_chat
from support.stage import Answered

pytestmark = pytest.mark.anyio

HOW = ("live", "sse", "rest")


def paying(name: str) -> str:
    return play(name, ["Paying. ", called("pay", name)], ["Told."])


async def answer(tab: Tab, place: Instance, asked: Answered, chat: str, how: str) -> None:
    """Approve on a server, in one of the ways there are."""
    body = asked.approving(chat, True)
    match how:
        case "live":
            async with live_chat(place.url, chat) as socket:
                reply = await socket.answer(body)
        case "sse":
            reply = await tab.post(body)
        case _:
            assert (await tab.decide(asked.approvals[0], True)).status_code == 200
            return
    assert reply.text == "Told."
    assert reply.message_id == asked.message_id


async def told(tab: Tab, chat: str) -> list[str]:
    """Return the states of the last message's tool calls, once the chat has told its end."""
    with anyio.fail_after(20):
        while (last := (await tab.history(chat))[-1])["parts"][-1].get("text") != "Told.":
            await tab.resume(chat)
    return [part["state"] for part in last["parts"] if "toolCallId" in part]


async def until_run_ended(cluster: Cluster, tab: Tab, chat: str, place: Instance) -> None:
    """Return when the chat has no live connection on a server that had one."""
    with anyio.fail_after(20):
        while (runs := cluster.connections(chat, place))[0] != runs[1]:
            await tab.http.get("/healthz")
    assert runs[0] > 0


async def ask(socket: LiveChat, chat: str) -> Answered:
    asked = await socket.say(paying(chat))
    assert len(asked.approvals) == 1
    return asked


@pytest.mark.parametrize("how", HOW)
async def test_what_a_asked_live_is_approved_on_b_while_a_waits(
    cluster: Cluster, tab_a: Tab, tab_b: Tab, how: str
) -> None:
    chat = new_name()
    async with live_chat(cluster.a.url, chat) as socket:
        asked = await ask(socket, chat)
        assert cluster.connections(chat, cluster.a) == (1, 0)
        await answer(tab_b, cluster.b, asked, chat, how)
        assert await told(tab_b, chat) == ["output-available"]
        await until_run_ended(cluster, tab_a, chat, cluster.a)
        # Whoever asked sees it, too.
        assert (await socket.resume()).text == "Paying. Told."
    assert cluster.effects()[chat] == 1
    assert (await tab_a.approval(asked.approvals[0]))["status"] == "done"


async def test_what_a_asked_live_is_denied_on_b(cluster: Cluster, tab_a: Tab, tab_b: Tab) -> None:
    chat = new_name()
    async with live_chat(cluster.a.url, chat) as socket:
        asked = await ask(socket, chat)
        assert (await tab_b.decide(asked.approvals[0], False)).json()["status"] == "denied"
        assert await told(tab_a, chat) == ["output-denied"]
    assert cluster.effects()[chat] == 0


@pytest.mark.parametrize("how", HOW)
async def test_what_a_asked_live_is_approved_on_a_after_its_run_has_ended(
    cluster: Cluster, tab_a: Tab, how: str
) -> None:
    chat = new_name()
    async with live_chat(cluster.a.url, chat) as socket:
        asked = await ask(socket, chat)
    await until_run_ended(cluster, tab_a, chat, cluster.a)
    await answer(tab_a, cluster.a, asked, chat, how)
    assert await told(tab_a, chat) == ["output-available"]
    assert cluster.effects()[chat] == 1


async def test_what_a_asked_over_sse_is_approved_live_on_b(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, paying(chat))
    await answer(tab_b, cluster.b, asked, chat, "live")
    assert await told(tab_a, chat) == ["output-available"]
    assert cluster.effects()[chat] == 1
    assert cluster.effect_places(chat) == [cluster.b.process.pid]
    await until_run_ended(cluster, tab_b, chat, cluster.b)


async def test_the_same_answer_on_both_at_once_pays_once(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chats = [new_name() for _ in range(4)]
    for chat in chats:
        async with live_chat(cluster.a.url, chat) as one, live_chat(cluster.b.url, chat) as two:
            asked = await ask(one, chat)
            body = asked.approving(chat, True)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.answer, body)
                tasks.start_soon(two.answer, body)
                tasks.start_soon(tab_b.decide, asked.approvals[0], True)
        assert await told(tab_a, chat) == ["output-available"]
    assert [cluster.effects()[chat] for chat in chats] == [1] * len(chats)


async def test_contrary_answers_on_both_at_once_count_for_one(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    for approved_here in (True, False):
        chat = new_name()
        async with live_chat(cluster.a.url, chat) as socket:
            asked = await ask(socket, chat)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(socket.answer, asked.approving(chat, approved_here))
                tasks.start_soon(tab_b.decide, asked.approvals[0], not approved_here)
        (state,) = await told(tab_a, chat)
        assert cluster.effects()[chat] == (state == "output-available")
        status = (await tab_b.approval(asked.approvals[0]))["status"]
        assert (status, state) in {("done", "output-available"), ("denied", "output-denied")}


async def test_a_tool_that_a_live_run_on_a_runs_is_not_run_by_a_late_approval_on_b(
    cluster: Cluster, conductor: Conductor, tab_b: Tab
) -> None:
    chat = new_name()
    async with live_chat(cluster.a.url, chat) as socket:
        asked = await socket.say(play(chat, [called("pay_slowly", chat)], ["Told."]))
        request = await socket.begin_answer(asked.approving(chat, True))
        await conductor.arrived(chat)
        late = await tab_b.decide(asked.approvals[0], True)
        assert (late.status_code, late.json()["status"]) == (200, "running")
        conductor.release(chat)
        assert (await socket.all(request)).text == "Told."
    assert cluster.effects()[chat] == 1
    assert conductor.arrivals(chat) == 1


async def test_a_chat_moves_between_live_runs_on_both_and_knows_everything(
    cluster: Cluster, tab_a: Tab
) -> None:
    chat = new_name()
    async with live_chat(cluster.a.url, chat) as here, live_chat(cluster.b.url, chat) as there:
        assert (await here.say(play(chat, ["One."]))).text == "One."
        assert (await there.say(play(chat, ["Two."]))).text == "Two."
        await until_run_ended(cluster, tab_a, chat, cluster.a)
        assert (await here.say(play(chat, ["Three."]))).text == "Three."
    texts = [message["parts"][-1]["text"] for message in await tab_a.history(chat)]
    assert texts[1::2] == ["One.", "Two.", "Three."]


async def test_what_a_server_asked_live_that_was_killed_is_approved_on_b(
    cluster: Cluster, tab_b: Tab
) -> None:
    (victim,) = cluster.start("killed-while-live-calls-wait")
    chats = {how: new_name() for how in HOW}
    asked: dict[str, Answered] = {}
    for how, chat in chats.items():
        async with live_chat(victim.url, chat) as socket:
            asked[how] = await ask(socket, chat)
    victim.process.kill()
    await victim.ended()
    for how, chat in chats.items():
        await answer(tab_b, cluster.b, asked[how], chat, how)
        assert await told(tab_b, chat) == ["output-available"]
        assert cluster.effects()[chat] == 1
        assert (await tab_b.approval(asked[how].approvals[0]))["status"] == "done"
