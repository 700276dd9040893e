"""One socket, frame by frame: order, numbers, several chats at once, and what ends them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session

from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.ports import TurnRecord, turns_topic
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from adk_stream_protocol.stores.memory import MemoryTurns, memory_stores
from support.joining import joined
from support.postgres import PostgresServer
from support.serving import serving
from support.socket import Socket, chunks_of, opened
from support.stage import Answered, Stage, staged, user_by_header, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


@pytest.fixture
async def socket(stage: Stage) -> AsyncIterator[Socket]:
    async with opened(stage.url) as socket:
        yield socket


async def asked_to_pay(socket: Socket, chat: str) -> Answered:
    await socket.say("ask", chat, "pay 5")
    return Answered(200, chunks_of(await socket.all("ask")))


# Frames


async def test_a_reply_is_start_then_numbered_chunks_then_end(socket: Socket) -> None:
    await socket.say("r1", "c1", "hi")
    frames = await socket.all("r1")
    assert frames[0] == {"type": "start", "requestId": "r1"}
    assert frames[-1] == {"type": "end", "requestId": "r1"}
    assert {frame["type"] for frame in frames[1:-1]} == {"chunk"}
    assert all(set(f) == {"type", "requestId", "sequence", "chunk"} for f in frames[1:-1])
    answered = Answered(200, chunks_of(frames))
    assert answered.types[0] == "start"
    assert answered.types[-1] == "finish"
    assert answered.text == "Hello."


async def test_the_chunks_are_those_of_the_event_stream(stage: Stage, socket: Socket) -> None:
    await socket.say("r1", "c1", "pay 5")
    over_socket = Answered(200, chunks_of(await socket.all("r1")))
    over_http = await stage.say("c2", "pay 5")
    assert over_socket.types == over_http.types
    assert over_socket.text == over_http.text


async def test_a_reader_of_v7_is_told_what_only_v7_knows(stage: Stage) -> None:
    async with opened(stage.url, query={"sdk": "7"}) as socket:
        asked = await asked_to_pay(socket, "c1")
        await socket.ask("r2", asked.approving("c1", True))
        await socket.all("r2")
        await socket.resume("r3", "c1")
        resumed = Answered(200, chunks_of(await socket.all("r3")))
    assert "tool-approval-response" in resumed.types
    assert stage.payments == [5]


async def test_a_continuation_is_numbered_from_0_and_repeats_the_message_id(
    stage: Stage, socket: Socket
) -> None:
    asked = await asked_to_pay(socket, "c1")
    assert stage.payments == []
    await socket.ask("r2", asked.approving("c1", True))
    answered = Answered(200, chunks_of(await socket.all("r2")))
    assert answered.message_id == asked.message_id
    assert "tool-input-available" not in answered.types
    assert answered.text == "Result told."
    assert stage.payments == [5]


async def test_resume_replays_the_whole_message_from_0(stage: Stage, socket: Socket) -> None:
    asked = await asked_to_pay(socket, "c1")
    await socket.ask("r2", asked.approving("c1", True))
    await socket.all("r2")
    async with opened(stage.url) as other:
        await other.resume("again", "c1")
        replayed = Answered(200, chunks_of(await other.all("again")))
    assert replayed.message_id == asked.message_id
    assert replayed.text == "Paying. Result told."
    assert "tool-input-delta" in replayed.types
    assert "tool-input-available" not in replayed.types
    assert replayed.types.count("start") == 1


async def test_nothing_to_resume_is_no_active(socket: Socket) -> None:
    await socket.resume("r1", "new")
    assert await socket.all("r1") == [{"type": "no-active", "requestId": "r1"}]


async def test_the_same_request_again_gets_the_same_reply(stage: Stage, socket: Socket) -> None:
    body = {"id": "c1", "messages": [user_message("pay 5")]}
    await socket.ask("r1", body)
    first = Answered(200, chunks_of(await socket.all("r1")))
    await socket.ask("r2", body)
    again = Answered(200, chunks_of(await socket.all("r2")))
    assert joined(again.chunks) == joined(first.chunks)
    assert len(stage.model.prompts) == 1


# Several at once


async def test_chats_on_one_socket_do_not_wait_for_each_other(stage: Stage, socket: Socket) -> None:
    await socket.say("slow", "c1", "long")
    await socket.until_text("slow", "One.")
    await socket.say("quick", "c2", "hi")
    assert Answered(200, chunks_of(await socket.all("quick"))).text == "Hello."
    stage.more.set()
    rest = await socket.all("slow")
    assert rest[-1]["type"] == "end"


async def test_two_readers_of_one_reply_are_numbered_each_for_itself(
    stage: Stage, socket: Socket
) -> None:
    await socket.say("r1", "c1", "long")
    first = [await socket.next("r1") for _ in range(4)]
    await socket.resume("r2", "c1")
    second = [await socket.next("r2") for _ in range(4)]
    stage.more.set()
    one = chunks_of(first + await socket.all("r1"))
    two = chunks_of(second + await socket.all("r2"))
    assert one == two


async def test_a_busy_chat_fails_only_the_second_request(stage: Stage, socket: Socket) -> None:
    await socket.say("r1", "c1", "long")
    await socket.until_text("r1", "One.")
    await socket.ask("r2", {"id": "c1", "messages": [user_message("hi")], "busy": "reject"})
    (refused,) = await socket.all("r2")
    assert refused["type"] == "error"
    assert refused["errorText"].startswith("A reply is running in this chat.")
    stage.more.set()
    assert (await socket.all("r1"))[-1]["type"] == "end"


async def test_a_request_id_that_is_open_cannot_be_taken_again(
    stage: Stage, socket: Socket
) -> None:
    await socket.say("r1", "c1", "long")
    await socket.until_text("r1", "One.")
    await socket.say("r1", "c2", "hi")
    await socket.write({"type": "dance", "requestId": "r1"})
    assert "of its own" in (await socket.next("-"))["errorText"]
    assert '"type" must be' in (await socket.next("-"))["errorText"]
    stage.more.set()
    rest = await socket.all("r1")
    assert rest[-1]["type"] == "end"
    assert "Two." in str(rest)
    await socket.say("r1", "c2", "hi")
    assert (await socket.all("r1"))[-1]["type"] == "end"


# Abort, and leaving


async def test_abort_stops_the_reply_and_no_other(socket: Socket) -> None:
    await socket.say("r1", "c1", "long")
    await socket.until_text("r1", "One.")
    await socket.abort("r1")
    await socket.abort("r1")
    await socket.abort("never was")
    await socket.say("r2", "c2", "hi")
    await socket.all("r2")
    await socket.resume("r3", "c1")
    stopped = Answered(200, chunks_of(await socket.all("r3")))
    assert (stopped.text, stopped.types[-1]) == ("One. ", "abort")
    assert [frame for frame in socket.unread if frame["requestId"] == "r1"] == []


async def test_who_only_leaves_a_reply_does_not_stop_it(stage: Stage, socket: Socket) -> None:
    await socket.say("r1", "c1", "long")
    await socket.until_text("r1", "One.")
    await socket.write({"type": "abort", "requestId": "r1", "leave": True})
    await socket.say("r2", "c2", "hi")
    await socket.all("r2")
    stage.more.set()
    await socket.resume("r3", "c1")
    assert Answered(200, chunks_of(await socket.all("r3"))).text == "One. Two."


class SlowSessions(InMemorySessionService):
    """Sessions that take their time, so that a request can be left while it is being taken."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = anyio.Event()
        self.may_answer = anyio.Event()

    async def create_session(self, **given: Any) -> Session:
        self.asked.set()
        await self.may_answer.wait()
        return await super().create_session(**given)


@pytest.mark.parametrize("leaves", [False, True], ids=["aborts", "leaves"])
async def test_who_goes_right_behind_a_message_does_not_take_it_back(leaves: bool) -> None:
    sessions = SlowSessions()
    async with (
        staged(services=Services(sessions=sessions)) as stage,
        opened(stage.url) as socket,
        opened(stage.url) as other,
    ):
        await socket.say("r1", "c1", "hi")
        await sessions.asked.wait()
        if leaves:
            await socket.connection.close()
        else:
            await socket.abort("r1")
            # Frames are read in order: once this is answered, so is the abort.
            await socket.write({"type": "dance", "requestId": "r2"})
            await socket.next("r2")
        sessions.may_answer.set()
        await other.resume("r3", "c1")
        reply = Answered(200, chunks_of(await other.all("r3")))
        if leaves:
            assert reply.text == "Hello."
        else:
            # It was stopped, and what was said stays.
            assert reply.types[-1] == "abort"
        chat = (await stage.http.get("/api/chats/c1")).json()
        assert chat["messages"][0]["parts"] == [{"type": "text", "text": "hi"}]


async def test_leaving_is_not_stopping(stage: Stage) -> None:
    async with opened(stage.url) as socket:
        await socket.say("r1", "c1", "long")
        await socket.until_text("r1", "One.")
        socket.connection.transport.abort()
    stage.more.set()
    async with opened(stage.url) as socket:
        await socket.resume("r2", "c1")
        assert Answered(200, chunks_of(await socket.all("r2"))).text == "One. Two."


async def test_stop_ends_the_reply_for_its_readers(stage: Stage, socket: Socket) -> None:
    await socket.say("r1", "c1", "long")
    await socket.until_text("r1", "One.")
    stopped = await stage.http.post("/api/chat/c1/stop")
    assert stopped.json() == {"stopped": True}
    assert (await socket.all("r1"))[-1]["type"] == "end"


# What is refused


async def test_another_users_chat_is_no_chat(stage: Stage, socket: Socket) -> None:
    await socket.say("r1", "c1", "hi")
    await socket.all("r1")
    async with opened(stage.url, headers={"x-user": "mallory"}) as other:
        await other.say("r1", "c1", "hi")
        await other.resume("r2", "c1")
        for request_id in ("r1", "r2"):
            assert await other.all(request_id) == [
                {"type": "error", "requestId": request_id, "errorText": "No such chat."}
            ]


@pytest.mark.parametrize(
    ("written", "request_id", "said"),
    [
        ("{", "-", "The frame is not JSON"),
        ("[1]", "-", "A frame must be a JSON object."),
        ('{"type":"send"}', "-", '"requestId"'),
        ('{"type":"dance","requestId":"r1"}', "r1", '"type" must be'),
        ('{"type":"send","requestId":"r1","id":"c1","messages":[]}', "r1", '"messages"'),
        ('{"type":"resume","requestId":"r1","id":"a/b"}', "r1", "A chat id is"),
    ],
)
async def test_a_bad_frame_is_answered_and_the_socket_stays_open(
    socket: Socket,
    caplog: pytest.LogCaptureFixture,
    written: str,
    request_id: str,
    said: str,
) -> None:
    await socket.write(written)
    refused = await socket.next(request_id)
    assert refused["type"] == "error"
    assert said in refused["errorText"]
    assert [record.getMessage() for record in caplog.records] == ["request refused"]
    await socket.say("r2", "c1", "hi")
    assert (await socket.all("r2"))[-1]["type"] == "end"


async def test_a_binary_frame_is_refused(socket: Socket) -> None:
    await socket.connection.send(b"\x00\x01")
    assert "text frames" in (await socket.next("-"))["errorText"]


class BrokenSessions(InMemorySessionService):
    async def create_session(self, **_: Any) -> Session:
        raise RuntimeError("SECRET")


async def test_a_fault_of_ours_is_told_with_an_id_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        staged(services=Services(sessions=BrokenSessions())) as stage,
        opened(stage.url) as socket,
    ):
        await socket.say("r1", "c1", "hi")
        (failed,) = await socket.all("r1")
    (record,) = [record for record in caplog.records if hasattr(record, "error")]
    assert failed["errorText"] == (
        f"The server failed. Please try again. (error {vars(record)['error']})"
    )
    assert "SECRET" not in record.getMessage()


async def test_requests_beyond_the_limit_are_refused_one_by_one(
    stage: Stage, socket: Socket
) -> None:
    await socket.say("r1", "c1", "long")
    await socket.until_text("r1", "One.")
    for number in range(32):
        await socket.resume(f"more-{number}", "c1")
    assert (await socket.next("more-31"))["errorText"].startswith("32 requests are open")
    stage.more.set()
    assert (await socket.all("more-30"))[-1]["type"] == "end"


# Turns that others begin


async def test_a_decision_made_elsewhere_is_hinted_at(stage: Stage, socket: Socket) -> None:
    asked = await asked_to_pay(socket, "c1")
    decided = await stage.http.post(f"/api/approvals/{asked.approvals[0]}", json={"approved": True})
    assert decided.status_code == 200
    assert await socket.next("-") == {"type": "active", "requestId": "-", "id": "c1"}
    await socket.resume("r2", "c1")
    replayed = Answered(200, chunks_of(await socket.all("r2")))
    assert replayed.text == "Paying. Result told."


async def test_a_message_from_another_tab_is_hinted_at_once(stage: Stage, socket: Socket) -> None:
    await socket.resume("r1", "c1")
    await socket.all("r1")
    await stage.say("c1", "hi")
    assert (await socket.next("-"))["id"] == "c1"
    await socket.say("r2", "c1", "hello")
    await socket.all("r2")
    await socket.say("r3", "c2", "hello")
    await socket.all("r3")
    assert socket.unread == []


async def test_turns_of_a_chat_that_became_anothers_are_not_hinted_at(
    stage: Stage, socket: Socket
) -> None:
    await socket.resume("r1", "c1")
    await socket.all("r1")
    await stage.say("c1", "hi", **{"x-user": "bob"})
    await socket.say("r2", "c2", "hi")
    await socket.all("r2")
    assert socket.unread == []


async def test_the_chats_used_last_are_watched(stage: Stage, socket: Socket) -> None:
    for number in range(17):
        await socket.resume(f"r{number}", f"c{number}")
        await socket.all(f"r{number}")
    await stage.say("c0", "hi")
    await stage.say("c16", "hi")
    assert (await socket.next("-"))["id"] == "c16"
    await socket.resume("last", "c16")
    await socket.all("last")
    assert socket.unread == []


async def test_a_turn_that_begins_before_a_reply_was_read_to_its_end_is_hinted_at_then(
    stage: Stage, socket: Socket
) -> None:
    stage.model.script["long and wide"] = [["One. ", stage.more, *["x" * 100_000] * 120]]
    asked = await asked_to_pay(socket, "c1")
    await socket.say("r2", "c1", "long and wide")
    await socket.until_text("r2", "One.")
    socket.connection.transport.pause_reading()
    await stage.http.post(f"/api/approvals/{asked.approvals[0]}", json={"approved": True})
    stage.more.set()
    with anyio.fail_after(10):
        while "Result told." not in (await stage.http.get("/api/chats/c1")).text:
            pass
    socket.connection.transport.resume_reading()
    await socket.all("r2")
    assert (await socket.next("-"))["id"] == "c1"


async def test_what_a_request_itself_sets_going_is_not_hinted_at(
    stage: Stage, socket: Socket
) -> None:
    asked = await asked_to_pay(socket, "c1")
    body = asked.approving("c1", True)
    said = body | {"messages": [*body["messages"], user_message("hi")], "messageId": None}
    await socket.ask("r2", said)
    assert Answered(200, chunks_of(await socket.all("r2"))).text == "Hello."
    await socket.resume("r3", "c1")
    await socket.all("r3")
    assert stage.payments == [5]
    assert socket.unread == []


async def test_a_socket_that_only_answered_is_told_of_what_follows_and_not_of_what_was(
    stage: Stage, socket: Socket
) -> None:
    asked = await stage.say("c1", "pay both")
    one, two = asked.approvals
    body = asked.approving("c1", True, True)
    parts = body["messages"][0]["parts"]
    await socket.ask("r1", body | {"messages": [body["messages"][0] | {"parts": parts[:1]}]})
    await socket.all("r1")
    assert socket.unread == []
    await stage.http.post(f"/api/approvals/{two}", json={"approved": False})
    assert (await socket.next("-"))["id"] == "c1"
    assert one != two


class DownAtTimes(MemoryTurns):
    """Turns in a database that does not answer now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False
        self.missed = anyio.Event()

    async def latest(self, chat_id: ChatId) -> TurnRecord | None:
        if self.is_down:
            self.missed.set()
            raise OSError("SECRET")
        return await super().latest(chat_id)


async def test_a_database_that_does_not_answer_ends_no_socket(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns = DownAtTimes()
    stores = dataclasses.replace(memory_stores(), turns=turns)
    async with staged(stores=stores) as stage, opened(stage.url) as socket:
        await socket.resume("r1", "c1")
        await socket.all("r1")
        turns.is_down = True
        stores.wake.hint(turns_topic(ChatId("c1")))
        with anyio.fail_after(5):
            await turns.missed.wait()
        turns.is_down = False
        await stage.say("c1", "hi")
        assert (await socket.next("-"))["id"] == "c1"
    told = [record.getMessage() for record in caplog.records]
    assert [text.partition("\n")[0] for text in told] == ["chat not watched: OSError"]
    assert "SECRET" not in str(told)


@asynccontextmanager
async def instance(database: str, stage: Stage) -> AsyncIterator[str]:
    """Serve the stage's agent once more, on a database that others serve, too."""
    agent = LlmAgent(name="stage", model=stage.model, tools=list(stage.tools()))
    app = create_app(agent, identify=user_by_header, settings=Settings(), database=database)
    async with serving(app) as url:
        yield url


async def test_a_turn_that_another_instance_begins_is_hinted_at_and_resumed_here(
    stage: Stage, postgres: PostgresServer
) -> None:
    database = postgres.create("sockets")
    async with (
        instance(database, stage) as here,
        instance(database, stage) as there,
        opened(here) as socket,
        httpx.AsyncClient(base_url=there, timeout=20) as http,
    ):
        asked = await asked_to_pay(socket, "c1")
        decided = await http.post(f"/api/approvals/{asked.approvals[0]}", json={"approved": True})
        assert decided.status_code == 200
        assert await socket.next("-") == {"type": "active", "requestId": "-", "id": "c1"}
        await socket.resume("r2", "c1")
        replayed = Answered(200, chunks_of(await socket.all("r2")))
    assert replayed.message_id == asked.message_id
    assert replayed.text == "Paying. Result told."
    assert stage.payments == [5]


# A client that takes nothing


async def test_a_client_that_reads_too_slowly_is_dropped_and_can_resume(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = dataclasses.replace(Settings(), send_seconds=0.3)
    async with staged(settings=settings) as stage:
        stage.model.script["huge"] = [["x" * 100_000] * 200]
        async with opened(stage.url) as socket:
            socket.connection.transport.pause_reading()
            await socket.say("r1", "c1", "huge")
            await until_logged(caplog, "socket dropped", stage)
            socket.connection.transport.abort()
        async with opened(stage.url) as socket:
            await socket.resume("r2", "c1")
            text = Answered(200, chunks_of(await socket.all("r2"))).text
    assert len(text) == 20_000_000


async def until_logged(caplog: pytest.LogCaptureFixture, message: str, stage: Stage) -> None:
    with anyio.fail_after(20):
        while message not in {record.getMessage() for record in caplog.records}:
            await stage.http.get("/healthz")


async def test_sockets_that_come_and_go_leave_no_task_behind(stage: Stage) -> None:
    await stage.say("held", "pay 5")
    before = len(anyio.get_running_tasks())
    async with opened(stage.url) as first:
        await first.say("r1", "running", "long")
        await first.until_text("r1", "One.")
        with_a_turn = len(anyio.get_running_tasks())
        for _ in range(200):
            async with opened(stage.url) as socket:
                await socket.resume("r1", "held")
                await socket.all("r1")
                await socket.resume("r2", "running")
                await socket.until_text("r2", "One.")
                socket.connection.transport.abort()
        await until_fewer_tasks(stage, with_a_turn)
        stage.more.set()
        await first.all("r1")
    await until_fewer_tasks(stage, before)


async def until_fewer_tasks(stage: Stage, most: int) -> None:
    with anyio.fail_after(20):
        while len(anyio.get_running_tasks()) > most:
            await stage.http.get("/healthz")
