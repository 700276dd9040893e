"""Two tabs of one chat, on two servers, at the same moment."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio
import pytest

from support.cluster import Cluster
from support.cluster_plays import called, new_name, play
from support.cluster_tabs import Tab
from support.stage import Answered

pytestmark = pytest.mark.anyio

ROUNDS = 20

T = TypeVar("T")
U = TypeVar("U")


async def both(first: Awaitable[T], second: Awaitable[U]) -> tuple[T, U]:
    """Do two things at the same moment; return what came of each."""
    came: list[T] = []

    async def do_first() -> None:
        came.append(await first)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(do_first)
        other = await second
    return came[0], other


async def ask(tab: Tab, chat: str) -> Answered:
    return await tab.say(chat, play(chat, [called("pay", chat)], ["Told."]))


async def test_both_approve_in_the_chat_and_it_is_paid_once(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    for _ in range(ROUNDS):
        chat = new_name()
        approving = (await ask(tab_a, chat)).approving(chat, True)
        for reply in await both(tab_a.post(approving), tab_b.post(approving)):
            assert reply.only("tool-output-available")[0]["output"] == {"paid": chat}
            assert reply.text == "Told."
        assert cluster.effects()[chat] == 1
        # Once to ask, once to tell.
        assert cluster.model_runs()[chat] == 2


async def test_one_approves_and_one_denies_in_the_chat_and_both_see_the_same(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    for number in range(ROUNDS):
        chat = new_name()
        asked = await ask(tab_a if number % 2 else tab_b, chat)
        yes, no = asked.approving(chat, True), asked.approving(chat, False)
        replies = await both(tab_a.post(yes), tab_b.post(no))
        status = (await tab_b.approval(asked.approvals[0]))["status"]
        # Who approved cannot be shown as one who denied: ai 6 is not told of others' verdicts.
        denials = ("tool-output-error", "tool-output-denied")
        results = ("tool-output-available",) * 2
        ends = {"done": results, "denied": denials}[status]
        for reply, end in zip(replies, ends, strict=True):
            assert [kind for kind in reply.types if kind.startswith("tool-output-")] == [end]
            assert reply.text == "Told."
        assert cluster.effects()[chat] == (1 if status == "done" else 0)
        assert cluster.model_runs()[chat] == 2


async def test_one_approves_and_one_denies_elsewhere_and_one_is_told_the_real_state(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    for number in range(ROUNDS):
        chat = new_name()
        approval = (await ask(tab_a if number % 2 else tab_b, chat)).approvals[0]
        yes, no = await both(tab_a.decide(approval, True), tab_b.decide(approval, False))
        approved = yes.status_code == 200
        assert (yes.status_code, no.status_code) == ((200, 409) if approved else (409, 200))
        if approved:
            assert no.json()["status"] in {"approved", "running", "done"}
        else:
            assert yes.json()["status"] == "denied"
        with anyio.fail_after(20):
            while not (await tab_a.resume(chat)).text.endswith("Told."):
                pass
        assert cluster.effects()[chat] == (1 if approved else 0)
        assert (await tab_a.approval(approval))["status"] == ("done" if approved else "denied")


async def test_one_approves_in_the_chat_and_one_elsewhere_and_it_is_paid_once(
    cluster: Cluster, tab_a: Tab, tab_b: Tab
) -> None:
    for _ in range(ROUNDS):
        chat = new_name()
        asked = await ask(tab_a, chat)
        reply, decided = await both(
            tab_a.post(asked.approving(chat, True)), tab_b.decide(asked.approvals[0], True)
        )
        assert decided.status_code == 200
        assert reply.only("tool-output-available")[0]["output"] == {"paid": chat}
        assert reply.text == "Told."
        assert cluster.effects()[chat] == 1
