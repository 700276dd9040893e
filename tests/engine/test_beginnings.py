"""Who begins when many turns begin at once, and who gives way."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from adk_stream_protocol.engine import beginnings
from adk_stream_protocol.engine.beginnings import Beginning, Beginnings

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing ends here because it takes too long, unless a test says so."""
    monkeypatch.setattr(beginnings, "_AT_ONCE", 2)
    monkeypatch.setattr(beginnings, "_MANY", 2)
    monkeypatch.setattr(beginnings, "_LONGEST", 3600.0)
    monkeypatch.setattr(beginnings, "_PATIENCE", 3600.0)


async def some(count: int, among: Beginnings) -> list[Beginning]:
    begun = [Beginning(among) for _ in range(count)]
    for each in begun:
        await each.enter()
    return begun


async def test_those_who_stand_in_line_begin_in_their_order() -> None:
    among = Beginnings()
    first, second = await some(2, among)
    came: list[int] = []

    async def begin(number: int) -> None:
        beginning = Beginning(among)
        await beginning.enter()
        came.append(number)
        beginning.over()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for number in range(5):
                tasks.start_soon(begin, number)
            await anyio.wait_all_tasks_blocked()
            assert came == []
            first.over()
            # Once is enough: another's place is not given away.
            first.over()
    assert came == [0, 1, 2, 3, 4]
    assert among.are_many
    second.over()
    assert not among.are_many


async def test_who_leaves_the_line_takes_no_place() -> None:
    among = Beginnings()
    first, _ = await some(2, among)
    waiting = Beginning(among)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(waiting.enter)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        # It never began, so there is nothing to be over.
        waiting.over()
        first.over()
        await some(1, among)


async def test_who_is_given_a_place_and_leaves_gives_it_on() -> None:
    among = Beginnings()
    first, _ = await some(2, among)
    with anyio.fail_after(5):
        # asyncio's own: anyio cancels nobody who can go on.
        waiting = asyncio.create_task(Beginning(among).enter())  # noqa: TID251  # is awaited
        await anyio.wait_all_tasks_blocked()
        first.over()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await some(1, among)


async def test_a_turn_that_takes_long_counts_as_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginnings, "_LONGEST", 0.0)
    with anyio.fail_after(5):
        await some(10, Beginnings())


async def test_replies_give_way_until_none_of_many_begins() -> None:
    among = Beginnings()
    (first,) = await some(1, among)
    with anyio.fail_after(5):
        # One alone is in nobody's way.
        await among.let_by()
        (second,) = await some(1, among)
        went: list[str] = []

        async def go_by() -> None:
            await among.let_by()
            went.append("by")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_by)
            tasks.start_soon(go_by)
            await anyio.wait_all_tasks_blocked()
            second.over()
            await anyio.wait_all_tasks_blocked()
            assert went == []
            first.over()
        assert went == ["by", "by"]
        await among.let_by()


async def test_replies_give_way_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginnings, "_PATIENCE", 0.0)
    among = Beginnings()
    await some(2, among)
    with anyio.fail_after(5):
        await among.let_by()
        await among.let_by()
    assert among.are_many
