"""A tool is asked what became of its calls: each by itself, and again if it does not know."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from adk_stream_protocol.held_calls import reconciling
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.policy import Policy, Reconciled, ToolRule
from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.stores.memory import MemoryCalls

pytestmark = pytest.mark.anyio


class World:
    """Calls whose process dies when it is told to, and a clock that stands still."""

    def __init__(self, reconcile: Any, tool: str = "pay") -> None:
        self.alive = True
        self.now = 1000.0
        self.calls = MemoryCalls(lambda: self.now, lambda _reply: self.alive)
        self.ledger = Ledger(self.calls, Policy({tool: ToolRule(reconcile=reconcile)}))

    async def die_while_running(self, *names: str) -> None:
        for name in names:
            await self.calls.open(
                HeldCall(
                    approval_id=ApprovalId(name),
                    call_id=CallId(name),
                    owner=UserId("ann"),
                    chat_id=ChatId(f"chat-{name}"),
                    invocation_id=InvocationId("e-1"),
                    tool_name="pay",
                    arguments={},
                    arguments_hash="",
                    created_at=self.now,
                    expires_at=self.now + 600,
                    state=CallState.APPROVED,
                )
            )
            assert await self.calls.claim(ApprovalId(name), ReplyId("run-1"))
        self.alive = False

    async def states(self, *names: str) -> list[str]:
        found = [await self.calls.get(ApprovalId(name)) for name in names]
        return [call.state.value for call in found if call is not None]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconciling, "_FIRST_PAUSE", 0.0)


@pytest.mark.usefixtures("impatient")
async def test_a_tool_that_does_not_know_yet_is_asked_again() -> None:
    answers: list[Reconciled | None] = [Reconciled({"paid": 5}), None]

    async def reconcile(_call_id: str) -> Reconciled | None:
        return answers.pop()

    world = World(reconcile)
    await world.die_while_running("a")
    (marked,) = await world.ledger.settle_orphans()
    assert (marked.state, len(answers)) == (CallState.UNKNOWN, 1)
    (known,) = await world.ledger.settle_orphans()
    assert (known.state, known.result) == (CallState.DONE, {"paid": 5})
    assert await world.ledger.settle_orphans() == []


@pytest.mark.usefixtures("impatient")
async def test_what_one_call_fails_with_is_not_the_others_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def reconcile(call_id: str) -> Reconciled | None:
        if call_id == "a":
            raise ConnectionError("SECRET 4711")
        if call_id == "b":
            return {"paid": 5}  # type: ignore[return-value]  # what careless code returns
        return Reconciled(error="The bank refused.")

    world = World(reconcile)
    await world.die_while_running("a", "b", "c")
    await world.ledger.settle_orphans()
    assert await world.states("a", "b", "c") == ["unknown", "unknown", "failed"]
    assert "call not reconciled: ConnectionError" in caplog.text
    assert "call not reconciled: TypeError" in caplog.text
    assert "SECRET" not in caplog.text


async def test_one_chat_waits_for_its_own_calls_only() -> None:
    asked: list[str] = []

    async def reconcile(call_id: str) -> Reconciled | None:
        asked.append(call_id)
        return Reconciled()

    world = World(reconcile)
    await world.die_while_running("a", "b")
    await world.ledger.settle_orphans(ChatId("chat-b"))
    assert (asked, await world.states("a", "b")) == (["b"], ["running", "done"])


async def test_asking_that_was_cut_off_is_made_up_for() -> None:
    asked: list[str] = []
    reached = anyio.Event()

    async def reconcile(call_id: str) -> Reconciled | None:
        asked.append(call_id)
        if len(asked) == 1:
            reached.set()
            await anyio.sleep_forever()
        return Reconciled()

    world = World(reconcile)
    await world.die_while_running("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(world.ledger.settle_orphans, ChatId("chat-a"))
        with anyio.fail_after(5):
            await reached.wait()
        tasks.cancel_scope.cancel()
    assert await world.states("a") == ["unknown"]
    # The next try to recover the chat asks at once.
    await world.ledger.settle_orphans(ChatId("chat-a"))
    assert await world.states("a") == ["done"]


async def test_two_that_come_to_a_call_at_once_ask_its_tool_once() -> None:
    asked: list[str] = []
    reached, may_tell = anyio.Event(), anyio.Event()

    async def reconcile(call_id: str) -> Reconciled | None:
        asked.append(call_id)
        reached.set()
        await may_tell.wait()
        return Reconciled()

    world = World(reconcile)
    await world.die_while_running("a")

    async def recover() -> None:
        await world.ledger.settle_orphans(ChatId("chat-a"))
        # A recovery goes on with what is known by then.
        assert await world.states("a") == ["done"]

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.ledger.settle_orphans)
            await reached.wait()
            tasks.start_soon(recover)
            await anyio.wait_all_tasks_blocked()
            may_tell.set()
    assert asked == ["a"]


async def test_a_call_is_not_asked_about_all_the_time_nor_for_ever() -> None:
    asked: list[str] = []

    async def reconcile(call_id: str) -> Reconciled | None:
        asked.append(call_id)
        return None

    world = World(reconcile)
    await world.die_while_running("a")
    for _ in range(3):
        await world.ledger.settle_orphans()
    assert asked == ["a"]
    await world.ledger.settle_orphans(ChatId("chat-a"))
    assert asked == ["a", "a"]
    world.now += 25 * 3600
    await world.ledger.settle_orphans(ChatId("chat-a"))
    assert asked == ["a", "a"]


async def test_a_few_calls_are_asked_about_at_a_time() -> None:
    asked: set[str] = set()

    async def reconcile(call_id: str) -> Reconciled | None:
        asked.add(call_id)
        return None

    world = World(reconcile)
    names = [f"call-{number}" for number in range(10)]
    await world.die_while_running(*names)
    assert len(await world.ledger.settle_orphans()) == 10
    assert len(asked) == 8
    await world.ledger.settle_orphans()
    assert asked == set(names)


async def test_a_tool_without_a_word_for_it_is_not_asked() -> None:
    async def reconcile(_call_id: str) -> Reconciled | None:
        raise AssertionError("another tool's")

    world = World(reconcile, tool="other")
    await world.die_while_running("a")
    (marked,) = await world.ledger.settle_orphans()
    assert marked.state is CallState.UNKNOWN
