"""The same request, made to both servers at the same moment."""

from __future__ import annotations

import anyio
import pytest

from support.cluster import Cluster
from support.cluster_plays import Conductor, new_name, play, wait
from support.cluster_tabs import Tab, saying

pytestmark = pytest.mark.anyio

ROUNDS = 25


async def post_to_all(tabs: list[Tab], body: dict[str, object]) -> list[tuple[int, str]]:
    """Post the same to all at the same moment; return what each answered."""
    answers: list[tuple[int, str]] = []

    async def post(tab: Tab) -> None:
        answer = await tab.post(body)
        answers.append((answer.status, answer.raw))

    async with anyio.create_task_group() as tasks:
        for tab in tabs:
            tasks.start_soon(post, tab)
    return answers


async def test_the_same_message_to_both_servers_is_one_turn(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    for _ in range(ROUNDS):
        chat = new_name()
        body = saying(chat, play(chat, ["Hello ", "there."]))
        one, two = await post_to_all([tab_a, tab_b], body)
        assert one == two
        assert one[0] == 200
        assert 'there."' in one[1]
        history = await tab_b.history(chat)
        assert [message["role"] for message in history] == ["user", "assistant"]
        assert history[0]["id"] == body["messages"][0]["id"]
        assert cluster.model_runs()[chat] == 1


async def test_the_same_message_in_a_chat_that_has_messages_is_one_turn(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    await tab_a.say(chat, play(new_name(), ["First."]))
    for number in range(ROUNDS):
        name = f"{chat}-{number}"
        one, two = await post_to_all([tab_b, tab_a], saying(chat, play(name, ["Again."])))
        assert one == two
        assert one[0] == 200
        assert cluster.model_runs()[name] == 1
    assert len(await tab_a.history(chat)) == 2 * (ROUNDS + 1)


async def test_impatient_clicks_on_both_servers_are_one_turn(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    body = saying(chat, play(chat, ["Hello."]))
    answers = await post_to_all([tab_a, tab_b] * 10, body)
    assert {status for status, _ in answers} == {200}
    assert len({raw for _, raw in answers}) == 1
    assert cluster.model_runs()[chat] == 1


async def test_the_same_message_on_b_while_its_reply_runs_on_a_attaches_to_it(
    cluster: Cluster, conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    body = saying(chat, play(chat, ["Half ", wait(chat), "whole."]))
    async with tab_a.posting(body) as first:
        await first.until("Half ")
        async with tab_b.posting(body) as second:
            await second.until("Half ")
            conductor.release(chat)
            assert await second.all() == await first.all()
    assert cluster.model_runs()[chat] == 1
