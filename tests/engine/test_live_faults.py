"""Live chats whose sockets are cut, whose calls are answered twice, late, or never.

Each story is told in band, where the call waits inside its run, and out of band, where the run has
ended before anyone answers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager

import anyio
import anyio.to_thread
import httpx
import pytest
from typing_extensions import override

from adk_stream_protocol.identifiers import ApprovalId, ReplyId
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.stores.memory import MemoryCalls, memory_stores
from support.live import LiveChat, LiveLog, live_chat, watching_lives
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio

IN_BAND, OUT_OF_BAND = 60.0, 0.0
TIMES = 3
"""How often what happens at the same instant is tried."""


@pytest.fixture(params=[IN_BAND, OUT_OF_BAND], ids=["in band", "out of band"])
def hold(request: pytest.FixtureRequest) -> float:
    """How long calls wait inside the run."""
    seconds: float = request.param
    return seconds


@pytest.fixture
def lives() -> Iterator[LiveLog]:
    with watching_lives() as lives:
        yield lives


def served(
    hold: float, *, leave: float = 60.0, stores: Stores | None = None
) -> AbstractAsyncContextManager[Stage]:
    settings = dataclasses.replace(
        Settings(),
        live_hold_seconds=hold,
        live_leave_seconds=leave,
        max_sockets=100,
        keep_alive_seconds=5.0,
    )
    return staged(settings=settings, stores=stores)


@pytest.fixture
async def stage(hold: float) -> AsyncIterator[Stage]:
    async with served(hold) as stage:
        yield stage


async def asked(chat: LiveChat, lives: LiveLog, hold: float, text: str = "pay 5") -> Answered:
    """Ask, and wait until the call waits as it should."""
    reply = await chat.say(text)
    assert len(reply.approvals) == 1
    if hold == OUT_OF_BAND:
        await lives.until_ended(chat.chat)
    assert lives.runs(chat.chat) == (hold == IN_BAND)
    return reply


async def decide(stage: Stage, approval: str, approved: bool) -> httpx.Response:
    return await stage.http.post(f"/api/approvals/{approval}", json={"approved": approved})


async def until_told(stage: Stage, chat: str, text: str) -> Answered:
    """Resume until the newest reply ends with a text."""
    with anyio.fail_after(15):
        while True:
            resumed = Answered.of(await stage.http.get(f"/api/chat/{chat}/stream"))
            if resumed.text.endswith(text):
                return resumed


async def states(stage: Stage, chat: str) -> list[str]:
    """Return the states of the chat's tool calls, as a reload shows them."""
    messages = (await stage.http.get(f"/api/chats/{chat}")).json()["messages"]
    parts = [part for message in messages for part in message["parts"]]
    return [part["state"] for part in parts if "toolCallId" in part]


# Cuts


async def test_text_goes_on_though_everybody_has_left(lives: LiveLog) -> None:
    async with served(IN_BAND, leave=0.0) as stage:
        async with live_chat(stage.url, "c") as chat:
            await chat.socket.until_text(await chat.begin("long"), "One.")
        stage.more.set()
        async with live_chat(stage.url, "c") as chat:
            resumed = await chat.resume()
        assert resumed.text == "One. Two."
        await lives.until_ended("c")
        assert lives.runs("c") == 0


@pytest.mark.parametrize("how", ["live", "sse", "rest"])
@pytest.mark.parametrize("approved", [True, False])
async def test_a_socket_that_is_cut_while_a_call_is_held_loses_no_answer(
    lives: LiveLog, stage: Stage, hold: float, how: str, approved: bool
) -> None:
    async with live_chat(stage.url, "c") as chat:
        question = await asked(chat, lives, hold)
    body = question.approving("c", approved)
    match how:
        case "live":
            async with live_chat(stage.url, "c") as chat:
                assert (await chat.answer(body)).text == "Result told."
        case "sse":
            assert (await stage.post("/api/chat", body)).text == "Result told."
        case _:
            assert (await decide(stage, question.approvals[0], approved)).status_code == 200
            await until_told(stage, "c", "Result told.")
    assert await states(stage, "c") == ["output-available" if approved else "output-denied"]
    assert stage.payments == ([5] if approved else [])


async def test_leaving_ends_the_run_and_not_the_wait(lives: LiveLog) -> None:
    async with served(IN_BAND, leave=0.0) as stage:
        async with live_chat(stage.url, "c") as chat:
            question = await chat.say("pay 5")
            assert lives.runs("c") == 1
        await lives.until_ended("c")
        async with live_chat(stage.url, "c") as chat:
            reply = await chat.answer(question.approving("c", True))
            assert reply.message_id == question.message_id
            assert reply.text == "Result told."
        assert stage.payments == [5]


async def test_a_socket_that_is_cut_while_the_tool_runs_loses_no_result(
    lives: LiveLog, hold: float
) -> None:
    async with served(hold, leave=0.0) as stage:
        async with live_chat(stage.url, "c") as chat:
            question = await asked(chat, lives, hold, "pay slowly")
            await chat.begin_answer(question.approving("c", True))
            started = stage.tool_started.wait
            assert await anyio.to_thread.run_sync(started, 10)
        stage.tool_may_end.set()
        async with live_chat(stage.url, "c") as chat:
            resumed = await chat.resume()
        assert resumed.text == "Slowly told."
        assert await states(stage, "c") == ["output-available"]
        assert stage.payments == [9]


async def test_a_socket_that_is_cut_while_the_continuation_streams_is_resumed(
    lives: LiveLog, hold: float
) -> None:
    async with served(hold, leave=0.0) as stage:
        async with live_chat(stage.url, "c") as chat:
            question = await asked(chat, lives, hold, "pay late")
            request = await chat.begin_answer(question.approving("c", True))
            await chat.until_chunk(request, "tool-output-available")
        stage.more.set()
        async with live_chat(stage.url, "c") as chat:
            resumed = await chat.resume()
        assert resumed.text == "Late told."
        assert stage.payments == [5]


# Two answers


async def test_the_same_answer_over_two_sockets_at_once_pays_once(
    lives: LiveLog, stage: Stage, hold: float
) -> None:
    for number in range(TIMES):
        name = f"c{number}"
        async with live_chat(stage.url, name) as one, live_chat(stage.url, name) as two:
            question = await asked(one, lives, hold)
            body = question.approving(name, True)
            first, second = await one.begin_answer(body), await two.begin_answer(body)
            assert (await one.all(first)).text == "Result told."
            assert (await two.all(second)).text == "Result told."
        assert await states(stage, name) == ["output-available"]
    assert stage.payments == [5] * TIMES


async def test_the_same_answer_over_a_socket_and_away_from_the_chat_pays_once(
    lives: LiveLog, stage: Stage, hold: float
) -> None:
    for number in range(TIMES):
        name = f"c{number}"
        async with live_chat(stage.url, name) as chat:
            question = await asked(chat, lives, hold)
            request = await chat.begin_answer(question.approving(name, True))
            assert (await decide(stage, question.approvals[0], True)).status_code == 200
            assert (await chat.all(request)).text == "Result told."
        assert await states(stage, name) == ["output-available"]
    assert stage.payments == [5] * TIMES


async def test_contrary_answers_at_once_count_for_one(
    lives: LiveLog, stage: Stage, hold: float
) -> None:
    paid = 0
    for number in range(TIMES):
        name = f"c{number}"
        async with live_chat(stage.url, name) as chat:
            question = await asked(chat, lives, hold)
            request = await chat.begin_answer(question.approving(name, False))
            decided = await decide(stage, question.approvals[0], True)
            told = await chat.all(request)
            if told.text != "Result told.":
                told = await until_told(stage, name, "Result told.")
        counted = decided.status_code == 200
        paid += counted
        assert await states(stage, name) == ["output-available" if counted else "output-denied"]
    assert stage.payments == [5] * paid


async def test_an_answer_again_after_the_end_runs_nothing(
    lives: LiveLog, stage: Stage, hold: float
) -> None:
    async with live_chat(stage.url, "c") as chat:
        question = await asked(chat, lives, hold)
        await chat.answer(question.approving("c", True))
        again = await chat.answer(question.approving("c", True))
        contrary = await chat.answer(question.approving("c", False))
    for told in (again, contrary):
        assert told.only("tool-output-available")[0]["output"] == {"paid": 5}
    assert stage.payments == [5]


# No answer


async def test_an_expired_call_never_runs(lives: LiveLog, hold: float) -> None:
    now = [1_000_000.0]
    stores = memory_stores(clock=lambda: now[0])
    async with served(hold, stores=stores) as stage, live_chat(stage.url, "c") as chat:
        question = await asked(chat, lives, hold)
        now[0] += Settings().approval_seconds + 1
        # The sweeper would look by itself, after some seconds.
        stores.wake.hint("calls")
        await until_told(stage, "c", "Result told.")
        late = await chat.answer(question.approving("c", True))
        assert "No decision" in late.only("tool-output-error")[0]["errorText"]
        assert (await decide(stage, question.approvals[0], True)).status_code == 409
        assert await states(stage, "c") == ["output-error"]
        assert stage.payments == []


async def test_a_call_that_is_given_up_never_runs(
    lives: LiveLog, stage: Stage, hold: float
) -> None:
    async with live_chat(stage.url, "c") as chat:
        question = await asked(chat, lives, hold)
        assert (await stage.http.post("/api/chat/c/stop")).json() == {"stopped": True}
        late = await chat.answer(question.approving("c", True))
        assert "cancelled" in late.only("tool-output-error")[0]["errorText"]
        assert (await chat.say("hi")).text == "Hello."
    assert stage.payments == []


# What comes in between


class LateCalls(MemoryCalls):
    """Lets something happen after a turn was prepared and before it begins."""

    meanwhile: Callable[[], Awaitable[None]] | None = None
    """Happens once."""

    @override
    async def deliver(self, approval_ids: Iterable[ApprovalId], reply_id: ReplyId) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        await super().deliver(approval_ids, reply_id)


@pytest.fixture
def late() -> LateCalls:
    return LateCalls()


def with_late(late: LateCalls) -> Stores:
    return dataclasses.replace(memory_stores(), calls=late)


async def test_a_run_does_not_end_under_a_turn_that_is_about_to_follow_it(
    lives: LiveLog, late: LateCalls
) -> None:
    settings = dataclasses.replace(Settings(), live_hold_seconds=0.5, live_idle_seconds=0.5)

    async def let_it_end() -> None:
        with anyio.move_on_after(1.0):
            await lives.until_ended("c")

    async with (
        staged(settings=settings, stores=with_late(late)) as stage,
        live_chat(stage.url, "c") as chat,
    ):
        await chat.say("hi")
        late.meanwhile = let_it_end
        assert (await chat.say("hello")).text == "Hello again."
        question = await chat.say("pay 5")
        late.meanwhile = let_it_end
        assert (await chat.answer(question.approving("c", True))).text == "Result told."
        assert stage.payments == [5]
        # Nobody comes any more: it ends as it did before.
        await lives.until_ended("c", lives.started["c"])


@pytest.mark.parametrize("first", [True, False])
async def test_a_turn_that_cannot_begin_leaves_no_run_that_the_next_would_wait_for(
    lives: LiveLog, late: LateCalls, first: bool
) -> None:
    async def fail() -> None:
        raise ConnectionError("The store is down.")

    async with served(IN_BAND, stores=with_late(late)) as stage, live_chat(stage.url, "c") as chat:
        if not first:
            await chat.say("hi")
        late.meanwhile = fail
        assert "(error " in (await chat.say("hello")).error["message"]
        assert (await chat.say("hello")).text == "Hello again."
        question = await chat.say("pay 5")
        late.meanwhile = fail
        assert "(error " in (await chat.answer(question.approving("c", True))).error["message"]
        assert (await chat.answer(question.approving("c", True))).text == "Result told."
        assert stage.payments == [5]
        assert lives.runs("c") == 1
