"""A chat whose reply runs on one server is busy on the other, too."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from support.cluster import Cluster
from support.cluster_busy import Rows, answers, asking, rows_of, said, until_said
from support.cluster_plays import Conductor, called, new_name, play
from support.cluster_tabs import Tab, saying
from support.socket import chunks_of, opened
from support.stage import Answered

pytestmark = pytest.mark.anyio

ROUNDS = 50
SAME = 10
"""Rounds of the same request to both."""


@pytest.fixture
async def rows(cluster: Cluster) -> AsyncIterator[Rows]:
    async with rows_of(cluster) as rows:
        yield rows


async def post_at_once(
    *requests: tuple[Tab, dict[str, object]],
) -> list[Answered]:
    """Post requests at the same moment; return what each was answered."""
    came: dict[int, Answered] = {}

    async def post(number: int, tab: Tab, body: dict[str, object]) -> None:
        came[number] = await tab.post(body)

    with anyio.fail_after(180):
        async with anyio.create_task_group() as tasks:
            for number, (tab, body) in enumerate(requests):
                tasks.start_soon(post, number, tab, body)
    return [came[number] for number in range(len(requests))]


async def test_a_message_on_b_interrupts_the_reply_on_a(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    async with tab_a.posting(asking(chat, name=chat)) as stream:
        await stream.until("Half ")
        await conductor.arrived(chat)
        second = await tab_b.post(asking(chat, "Now."))
        whole = await stream.all()
    assert b'"type":"abort"' in whole
    assert (second.status, second.text, second.types[-1]) == (200, "Now.", "finish")
    history = await tab_a.history(chat)
    assert [message["role"] for message in history] == ["user", "assistant", "user", "assistant"]
    assert answers(history) == ["Half ", "Now."]
    assert cluster.model_runs()[chat] == 1
    await rows.check_at_rest(chat)


async def test_a_tool_that_runs_on_a_is_let_finish_before_what_b_was_asked_is_answered(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, [called("pay_slowly", chat)], ["Never said."]))
    async with tab_a.posting(asked.approving(chat, True)) as first:
        await conductor.arrived(chat)
        thanks = asking(chat, "Now.")
        async with tab_b.posting(thanks) as second:
            assert second.status == 200
            await until_said(tab_a, chat, thanks)
            conductor.release(chat)
            assert b'"Now."' in await second.all()
        whole = (await first.all()).decode()
    assert whole.index('"tool-output-available"') < whole.index('"type":"abort"')
    assert cluster.effects()[chat] == 1
    assert (await tab_b.approval(asked.approvals[0]))["status"] == "done"
    assert answers(await tab_b.history(chat))[-1] == "Now."
    await rows.check_at_rest(chat)


async def test_messages_queued_on_both_servers_are_answered_in_order(
    conductor: Conductor, rows: Rows, tab_a: Tab, tab_b: Tab
) -> None:
    chat, texts = new_name(), ["One.", "Two.", "Three.", "Four."]
    async with tab_a.posting(asking(chat, name=chat)) as stream:
        await stream.until("Half ")
        bodies = [asking(chat, text, busy="queue") for text in texts]
        for tab, body in zip((tab_b, tab_a, tab_b, tab_a), bodies, strict=True):
            # The tab is closed: accepted means answered.
            async with tab.posting(body) as queued:
                assert queued.status == 200
        await until_said(tab_b, chat, *bodies)
        conductor.release(chat)
        assert b'whole."' in await stream.all()
    with anyio.fail_after(180):
        while await rows.waiting(chat):
            await tab_a.resume(chat)
    history = await tab_b.history(chat)
    assert answers(history) == ["Half whole.", *texts]
    assert [message["id"] for message in history if message["role"] == "user"][1:] == [
        body["messages"][0]["id"] for body in bodies
    ]
    await rows.check_at_rest(chat)


async def test_a_message_on_b_steers_the_reply_on_a_or_is_answered_next(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_a: Tab, tab_b: Tab
) -> None:
    steered, chats = 0, [new_name() for _ in range(SAME)]
    for chat in chats:
        asked = await tab_a.say(chat, play(chat, [called("pay_slowly", chat)], ["Told."]))
        async with tab_a.posting(asked.approving(chat, True)) as first:
            await conductor.arrived(chat)
            more = asking(chat, "Heard.", busy="steer", name=f"{chat}-more")
            async with tab_b.posting(more) as second:
                assert second.status == 200
                await until_said(tab_a, chat, more)
                conductor.release(chat)
                await first.all()
                assert b'"Heard."' in await second.all()
        history = await tab_b.history(chat)
        assert len(said(history)) == 2
        assert "".join(answers(history)).count("Heard.") == 1
        assert cluster.model_runs()[f"{chat}-more"] == 1
        assert cluster.effects()[chat] == 1
        steered += len(answers(history)) == 1
    # Where it runs is told by a hint: that is there long before a tool has ended.
    assert steered
    await rows.check_at_rest(*chats)


async def test_the_stop_route_of_b_stops_what_runs_on_a_and_what_waits(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_a: Tab, tab_b: Tab
) -> None:
    chat, later = new_name(), new_name()
    async with tab_a.posting(asking(chat, name=chat)) as first:
        await first.until("Half ")
        await conductor.arrived(chat)
        async with tab_b.posting(asking(chat, "Never.", busy="queue", name=later)) as second:
            assert second.status == 200
            assert await tab_b.stop(chat)
            assert b'"type":"abort"' in await second.all()
        assert b'"type":"abort"' in await first.all()
    history = await tab_a.history(chat)
    assert [message["role"] for message in history] == ["user", "assistant", "user"]
    assert cluster.model_runs()[later] == 0
    assert (await tab_a.post(asking(chat, "Goes on."))).text == "Goes on."
    await rows.check_at_rest(chat)


async def test_a_request_that_waits_on_b_is_stopped_alone_while_the_reply_runs_on_a(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_a: Tab, tab_b: Tab
) -> None:
    chat, later = new_name(), new_name()
    async with tab_a.posting(asking(chat, name=chat)) as first:
        await first.until("Half ")
        queued = asking(chat, "Never.", busy="queue", name=later)
        async with opened(cluster.b.url) as socket:
            await socket.ask("r1", queued)
            assert (await socket.next("r1"))["type"] == "start"
            await socket.abort("r1")
            # Whatever comes after it on the same socket is answered later.
            await socket.ask("r2", asking(chat, "Then.", busy="queue"))
            assert (await socket.next("r2"))["type"] == "start"
            with anyio.fail_after(180):
                while await rows.waiting(chat) < 2:
                    pass
            conductor.release(chat)
            frames = await socket.all("r2")
        assert b'whole."' in await first.all()
    assert chunks_of(frames[:-1])[-1]["type"] == "finish"
    history = await tab_b.history(chat)
    assert answers(history) == ["Half whole.", "Then."]
    assert [message["role"] for message in history].count("user") == 3
    assert cluster.model_runs()[later] == 0
    await rows.check_at_rest(chat)


async def test_of_two_messages_at_the_same_moment_each_is_answered_or_interrupted(
    cluster: Cluster, rows: Rows, tab_a: Tab, tab_b: Tab
) -> None:
    chats = [new_name() for _ in range(ROUNDS // 5)]
    for number in range(ROUNDS):
        chat = chats[number % len(chats)]
        names = [f"{chat}-{number}-a", f"{chat}-{number}-b"]
        bodies = [asking(chat, f"Told {name}.", name=name) for name in names]
        came = await post_at_once((tab_a, bodies[0]), (tab_b, bodies[1]))
        assert [answer.status for answer in came] == [200, 200]
        assert {answer.types[-1] for answer in came} <= {"finish", "abort"}
        history = await tab_a.history(chat)
        ids = [message["id"] for message in history]
        assert all(ids.count(body["messages"][0]["id"]) == 1 for body in bodies)
        # The last one said is answered, and none was answered twice.
        last = names[said(history)[-1] == bodies[1]["messages"][0]["parts"][0]["text"]]
        assert answers(history)[-1] == f"Told {last}."
        assert max(cluster.model_runs()[name] for name in names) == 1
    for chat in chats:
        assert len(said(await tab_b.history(chat))) == 2 * ROUNDS // len(chats)
    await rows.check_at_rest(*chats)


@pytest.mark.parametrize("busy", ["interrupt", "queue", "steer"])
async def test_the_same_request_to_both_servers_waits_once(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_a: Tab, tab_b: Tab, busy: str
) -> None:
    chat = new_name()
    for number in range(SAME):
        first, second = f"{chat}-{number}", f"{chat}-{number}-again"
        async with tab_a.posting(asking(chat, name=first)) as stream:
            await stream.until("Half ")
            body = asking(chat, "Told.", name=second, busy=busy)
            async with tab_a.posting(body) as one, tab_b.posting(body) as two:
                assert (one.status, two.status) == (200, 200)
                conductor.release(first)
                assert await one.all() == await two.all()
            assert b'"Told."' in one.got
            await stream.all()
        # Once more, when it was answered.
        assert (await tab_b.post(body)).text == "Told."
        assert cluster.model_runs()[second] == 1
        history = await tab_b.history(chat)
        assert len(said(history)) == 2 * (number + 1)
    await rows.check_at_rest(chat)


async def test_a_message_that_is_to_be_rejected_is_refused_on_b_while_a_reply_runs_on_a(
    conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    async with tab_a.posting(asking(chat, name=chat)) as stream:
        await stream.until("Half ")
        refused = await tab_b.post({**saying(chat, play(new_name(), ["No."])), "busy": "reject"})
        assert (refused.status, refused.error["code"]) == (409, "chat_busy")
        conductor.release(chat)
        assert b"whole." in await stream.all()
    # The end has been seen: now the chat is free on the other server, too.
    assert (await tab_b.say(chat, play(new_name(), ["Now."]))).text == "Now."
