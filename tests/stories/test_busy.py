"""A chat that is busy: what people do while a reply runs, with the stock clients on every route.

Over SSE `stop()` only hangs up; over a WebSocket it is a stop. Whatever people do next is answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.to_thread
import pytest

from stories.connecting import CONNECTIONS, Connect
from support.conformance import ChatState, StockChat
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture(params=CONNECTIONS, ids=str)
def connect(request: pytest.FixtureRequest) -> Connect:
    chosen: Connect = request.param
    return chosen


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


async def history(stage: Stage, chat_id: str) -> list[tuple[str, str]]:
    """Return who said what, as the server stored it."""
    response = await stage.http.get(f"/api/chats/{chat_id}")
    assert response.status_code == 200, response.text
    return [(message["role"], text_of(message)) for message in response.json()["messages"]]


def text_of(message: Any) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def said(state: ChatState) -> list[tuple[str, str]]:
    return [(message["role"], text_of(message)) for message in state.messages]


def shows_twice(connect: Connect) -> bool:
    """Whether a client pushes a copy of a message that streams when another was added below it."""
    return connect.sdk in {"ai6strict", "ai7strict", "ai7early"}


async def streaming(chat: StockChat) -> ChatState:
    """Let a reply run that goes on until the stage says so."""
    await chat.send("long", wait=False)
    return await chat.text_contains("One.")


async def paying(stage: Stage, chat: StockChat) -> None:
    """Let a tool run that takes as long as the stage says."""
    asked = await chat.send("pay slowly")
    await chat.approve(asked.open_approvals[0], wait=False)
    with anyio.fail_after(60):
        await anyio.to_thread.run_sync(stage.tool_started.wait)


async def test_stop_then_ask_is_answered(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c") as chat:
        await streaming(chat)
        assert (await chat.stop()).status == "ready"
        state = await chat.send("hi")
    assert (state.status, state.error) == ("ready", None)
    everything = [
        ("user", "long"),
        ("assistant", "One. "),
        ("user", "hi"),
        ("assistant", "Hello."),
    ]
    assert said(state) == everything
    assert await history(stage, "c") == everything


async def test_stop_then_regenerate_is_answered_anew(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c") as chat:
        await streaming(chat)
        await chat.stop()
        await chat.regenerate(wait=False)
        await chat.text_contains("One.")
        stage.more.set()
        state = await chat.settled()
    assert (state.status, state.error) == ("ready", None)
    assert said(state) == [("user", "long"), ("assistant", "One. Two.")]
    assert await history(stage, "c") == said(state)


async def test_stop_then_edit_is_answered(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c") as chat:
        begun = await streaming(chat)
        await chat.stop()
        state = await chat.edit(begun.messages[0]["id"], "hi")
    assert (state.status, state.error) == ("ready", None)
    assert said(state) == [("user", "hi"), ("assistant", "Hello.")]
    assert await history(stage, "c") == said(state)


async def test_a_message_while_it_answers_interrupts(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c") as chat:
        await streaming(chat)
        state = await chat.send("hi")
    assert (state.status, state.error) == ("ready", None)
    assert [chunk["type"] for chunk in state.chunks[0]][-1] == "abort"
    everything = [
        ("user", "long"),
        ("assistant", "One. "),
        ("user", "hi"),
        ("assistant", "Hello."),
    ]
    assert await history(stage, "c") == everything
    if not shows_twice(connect):
        assert said(state) == everything


async def test_a_tool_that_runs_is_let_finish_before_the_next_message_is_answered(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c") as chat, connect(stage, chat_id="c") as other:
        await paying(stage, chat)
        await other.send("hi", wait=False)
        await other.requests_made(1)
        # Its stream is open: nobody refused it.
        stage.tool_may_end.set()
        state = await other.settled()
        paid = await chat.settled()
    assert (state.status, state.text) == ("ready", "Hello.")
    assert [part["state"] for part in paid.tool_parts] == ["output-available"]
    assert stage.payments == [9]
    assert [role for role, _ in await history(stage, "c")] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]


async def test_a_queued_message_is_answered_after_the_reply_that_runs(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c") as chat:
        await streaming(chat)
        await chat.send("hi", body={"busy": "queue"}, wait=False)
        await chat.send("hello", body={"busy": "queue"}, wait=False)
        await chat.requests_made(3)
        await heard(stage, "c", "hi", "hello")
        stage.more.set()
        state = await chat.settled()
    assert (state.status, state.error) == ("ready", None)
    assert await history(stage, "c") == [
        ("user", "long"),
        ("assistant", "One. Two."),
        ("user", "hi"),
        ("assistant", "Hello."),
        ("user", "hello"),
        ("assistant", "Hello again."),
    ]


async def heard(stage: Stage, chat_id: str, *texts: str) -> None:
    """Wait until the server has what was said: a page that loads shows it, also while it waits."""
    with anyio.fail_after(60):
        while True:
            shown = (await stage.http.get(f"/api/chats/{chat_id}")).text
            if all(f'"text":"{text}"' in shown for text in texts):
                return
            await anyio.sleep(0.01)


async def test_a_queued_message_is_answered_though_its_tab_closed(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c") as first:
        await streaming(first)
        async with connect(stage, chat_id="c") as second:
            await second.send("hi", body={"busy": "queue"}, wait=False)
            await heard(stage, "c", "hi")
        stage.more.set()
        await first.settled()
        # Whether it waits, runs or has ended: this reads it to its end.
        await stage.http.get("/api/chat/c/stream")
    assert (await history(stage, "c"))[1:] == [
        ("assistant", "One. Two."),
        ("user", "hi"),
        ("assistant", "Hello."),
    ]


async def test_a_message_steers_a_turn_that_asks_the_model_again(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c") as chat:
        await paying(stage, chat)
        await chat.send("hello", body={"busy": "steer"}, wait=False)
        await chat.requests_made(3)
        await heard(stage, "c", "hello")
        stage.tool_may_end.set()
        state = await chat.settled()
    assert (state.status, state.error) == ("ready", None)
    assert stage.payments == [9]
    # One reply goes on, and the model was told in the middle of it.
    answer = state.messages[3 if shows_twice(connect) else 1]
    if not shows_twice(connect):
        assert [message["role"] for message in state.messages] == ["user", "assistant", "user"]
    assert text_of(answer) == "Hello again."
    shown = [part for part in answer["parts"] if part["type"] == "data-adk-steering"]
    assert [part["data"] for part in shown] == [{"parts": [{"type": "text", "text": "hello"}]}]
    stored = await history(stage, "c")
    assert [role for role, _ in stored] == ["user", "assistant"]


async def test_a_message_that_cannot_steer_is_answered_next(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c") as chat:
        await streaming(chat)
        await chat.send("hi", body={"busy": "steer"}, wait=False)
        await heard(stage, "c", "hi")
        stage.more.set()
        state = await chat.settled()
    assert (state.status, state.error) == ("ready", None)
    if connect.socket == "live":
        # A live model hears it at once, and answers it in the same reply.
        assert await history(stage, "c") == [("user", "long"), ("assistant", "One. Two.Hello.")]
    else:
        assert await history(stage, "c") == [
            ("user", "long"),
            ("assistant", "One. Two."),
            ("user", "hi"),
            ("assistant", "Hello."),
        ]


async def test_a_rejected_message_says_what_to_do(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c") as first, connect(stage, chat_id="c") as second:
        await streaming(first)
        refused = await second.send("hi", body={"busy": "reject"})
        assert refused.status == "error"
        assert "A reply is running in this chat." in (refused.error or "")
        stage.more.set()
        state = await first.settled()
    assert (state.status, state.text) == ("ready", "One. Two.")


async def test_two_tabs_ask_at_once_and_nothing_is_lost(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c") as one, connect(stage, chat_id="c") as two:
        await one.send("hi")
        await one.send("hello", wait=False)
        await two.send("think", wait=False)
        first, second = await one.settled(), await two.settled()
    assert (first.status, second.status) == ("ready", "ready")
    stored = [text for role, text in await history(stage, "c") if role == "user"]
    assert sorted(stored) == ["hello", "hi", "think"]


async def test_who_stops_again_and_again_is_not_locked_out(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c0") as chat:
        for number in range(1, 7):
            await streaming(chat)
            await chat.stop()
            if number % 2:
                await chat.show(f"c{number}")
        state = await chat.send("hi")
    assert (state.status, state.text) == ("ready", "Hello.")
