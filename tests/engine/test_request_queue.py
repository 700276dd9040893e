"""Requests that wait for their chats: how each gets its turn, and what keeps none from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from typing_extensions import override

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.engine.reply import WaitingReply
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import Began, Queued, Stores, TurnRecord, WaitingRequest
from adk_stream_protocol.server.identity import anyone
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_service
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.sql import sqlite_stores
from adk_stream_protocol.translation.history import steering_of
from adk_stream_protocol.wire.requests import parse_request
from adk_stream_protocol.wire.values import JsonObject
from support.scripted import ScriptedModel
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio

CHAT, ANN = ChatId("c"), UserId("alice")


def saying(text: str, message_id: str | None = None, **more: object) -> dict[str, Any]:
    return {"id": "c", "messages": [user_message(text, message_id)], **more}


async def history(stage: Stage) -> list[tuple[str, str]]:
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    return [
        (one["role"], "".join(part.get("text", "") for part in one["parts"])) for one in messages
    ]


@asynccontextmanager
async def streaming(stage: Stage, body: dict[str, Any], until: str) -> AsyncIterator[None]:
    """Read a reply up to a text while the block runs."""
    async with stage.http.stream("POST", "/api/chat", json=body) as response:
        async for line in response.aiter_lines():
            if until in line:
                break
        yield


async def until_waiting(stores: Stores, count: int) -> None:
    with anyio.fail_after(60):
        while len(await stores.waiting.of_chat(CHAT)) < count:
            await anyio.lowlevel.checkpoint()


# Beginning


@asynccontextmanager
async def conversing(stores: Stores, gate: anyio.Event) -> AsyncIterator[Conversations]:
    """Serve conversations without a web server."""
    model = ScriptedModel(script={"one": [["1", gate]], "two": [["2", gate, "!"]]})
    service = create_service(
        LlmAgent(name="agent", model=model),
        tools=None,
        identify=anyone,
        settings=Settings(drain_seconds=5.0),
        services=None,
        database=None,
        stores=stores,
        options=None,
        may_decide=None,
    )
    async with stores.serving(), service.conversations.serving():
        try:
            yield service.conversations
        finally:
            gate.set()


async def test_a_request_that_many_begin_at_once_is_begun_once_and_kept(tmp_path: Path) -> None:
    stores, gate = sqlite_stores(str(tmp_path / "chats.db")), anyio.Event()
    async with conversing(stores, gate) as conversations:
        # As if its turn had just ended and nobody had looked at what waits.
        await stores.turns.begin(TurnRecord(CHAT, ANN, ReplyId("r1"), "say:1"), repeatable=False)
        asked = saying("two", busy="queue")
        reply = await conversations.submit(parse_request(asked), ANN)
        assert isinstance(reply, WaitingReply)
        await stores.turns.end(CHAT, ReplyId("r1"))
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(conversations.queue.go_on, CHAT)
        # Or its lease would not be renewed, and another process would take it.
        assert conversations.turns.holds(reply.reply_id)
        assert conversations.turns.running == 1
        gate.set()
        entries: list[object] = []
        with anyio.fail_after(60):
            while not (batch := await reply.next()).ended:
                entries += batch.entries
        assert str(entries).count("'2'") == 1


async def test_what_this_version_cannot_read_says_so_and_makes_room_for_the_next() -> None:
    stores = memory_stores()
    async with staged(stores=stores) as stage:
        async with streaming(stage, saying("long"), "One."):
            unreadable = WaitingRequest(
                CHAT, ANN, ReplyId("r9"), "say:9", request={"messages": "?"}, policy="queue"
            )
            turn = TurnRecord(CHAT, ANN, ReplyId("r9"), "say:9")
            queued = await stores.turns.begin(turn, repeatable=False, request=unreadable)
            assert isinstance(queued, Queued)
            # Who loads the chat meanwhile sees the rest of it.
            assert (await history(stage))[0] == ("user", "long")
            async with streaming(stage, saying("hi", busy="queue"), ""):
                await until_waiting(stores, 2)
                stage.more.set()
                reply = Answered.of(await stage.http.get("/api/chat/c/stream"))
        with anyio.fail_after(60):
            while not reply.text.endswith("Hello."):
                reply = Answered.of(await stage.http.get("/api/chat/c/stream"))
        assert await stores.waiting.chats() == []
        assert (await history(stage))[2:] == [("user", "hi"), ("assistant", "Hello.")]


async def test_what_cannot_be_done_when_its_turn_comes_says_so_and_the_next_is_answered() -> None:
    stores = memory_stores()
    async with staged(stores=stores) as stage:
        answers: dict[str, Answered] = {}

        async def post(name: str, body: dict[str, Any]) -> None:
            answers[name] = await stage.post("/api/chat", {"id": "c", "busy": "queue", **body})

        with anyio.fail_after(60):
            async with (
                streaming(stage, saying("long"), "One."),
                anyio.create_task_group() as tasks,
            ):
                again = {"trigger": "regenerate-message", "messages": [], "messageId": "none"}
                tasks.start_soon(post, "again", again)
                await until_waiting(stores, 1)
                tasks.start_soon(post, "hi", saying("hi"))
                await until_waiting(stores, 2)
                stage.more.set()
        assert answers["again"].types == ["error"]
        assert "There is no message to answer again." in answers["again"].raw
        assert answers["hi"].text == "Hello."
        assert (await history(stage))[1] == ("assistant", "One. Two.")


@pytest.mark.parametrize(
    "body",
    [
        {"trigger": "regenerate-message", "messages": [{"id": "a1", "role": "assistant"}]},
        {"trigger": "regenerate-message", "messages": [], "messageId": "a1"},
        {"messages": [user_message("hi", "u1")], "messageId": "u1"},
        {"messages": [user_message("a"), {"id": "a1", "role": "assistant"}, user_message("hi")]},
        {"messages": [user_message("hi")], "parentId": None},
    ],
)
def test_a_request_that_waited_asks_for_what_it_asked_for(body: JsonObject) -> None:
    asked = parse_request({"id": "c", **body})
    stored = parse_request(asked.to_json())
    assert (stored.trigger, stored.message_id) == (asked.trigger, asked.message_id)
    assert (stored.parent_id, stored.has_trigger) == (asked.parent_id, asked.has_trigger)
    assert stored.messages[-1:] == asked.messages[-1:]


# Stopping


async def test_a_message_whose_turn_was_cut_off_before_it_was_stored_is_kept_if_it_is_stopped() -> (
    None
):
    stores = memory_stores()
    async with staged(stores=stores) as stage:
        await stage.say("c", "hi")
        asked = saying("hello", "u2")
        waiting = WaitingRequest(CHAT, ANN, ReplyId("r2"), "say:2", parse_request(asked).to_json())
        # As if a process had taken it and died.
        await stores.turns.begin(TurnRecord(CHAT, ANN, ReplyId("r1"), "x"), repeatable=False)
        turn = TurnRecord(CHAT, ANN, ReplyId("r2"), "say:2")
        await stores.turns.begin(turn, repeatable=False, request=waiting)
        await stores.turns.end(CHAT, ReplyId("r1"))
        begun = await stores.turns.begin(turn, repeatable=True, waited=True)
        assert isinstance(begun, Began)
        await stores.turns.release(CHAT, ReplyId("r2"))
        assert (await stage.http.post("/api/chat/c/stop")).json() == {"stopped": True}
        with anyio.fail_after(60):
            while (await stores.turns.latest(CHAT)).running:  # type: ignore[union-attr]  # it is there
                await stage.http.get("/api/chat/c/stream")
        assert [text for role, text in await history(stage) if role == "user"] == ["hi", "hello"]
        assert await stores.waiting.get(ReplyId("r2")) is None
        assert (await stage.say("c", "hi")).text == "Hello."


# Steering


class SlowSteering(InMemorySessionService):
    """Sessions that take their time to store a message that steers a turn."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = anyio.Event()

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        if steering_of(event) is not None:
            self.reached.set()
            await anyio.sleep_forever()
        return await super().append_event(session, event)


async def test_a_message_that_was_to_steer_a_turn_that_is_stopped_first_is_answered_next() -> None:
    stores, sessions = memory_stores(), SlowSteering()
    async with staged(services=Services(sessions=sessions), stores=stores) as stage:
        asked = await stage.say("c", "pay slowly")
        approving = asked.approving("c", True)
        answers: dict[str, Answered] = {}

        async def post(name: str, body: dict[str, Any]) -> None:
            answers[name] = await stage.post("/api/chat", body)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(post, "pay", approving)
                await anyio.to_thread.run_sync(stage.tool_started.wait)
                tasks.start_soon(post, "steer", saying("hello", busy="steer"))
                await until_waiting(stores, 1)
                # The keeper of leases tells the turn.
                await anyio.wait_all_tasks_blocked()
                stage.tool_may_end.set()
                await sessions.reached.wait()
                # ADK is cancelled where it is: the message was taken, and is not stored.
                tasks.start_soon(post, "hi", saying("hi"))
        assert answers["pay"].types[-1] == "abort"
        assert answers["hi"].text == "Hello."
        assert [text for role, text in await history(stage) if role == "user"] == [
            "pay slowly",
            "hello",
            "hi",
        ]
        assert ("assistant", "Hello again.") in await history(stage)
        assert stage.payments == [9]
        assert await stores.waiting.chats() == []
