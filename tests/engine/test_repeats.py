"""A message that comes again with nothing but itself: is its answer wanted, or another one?

Whether the answer was read to its end decides (ADR 0016). Tools tell: what a client lost may be
sent again and again, and nothing runs twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.opening import SqliteFile
from adk_stream_protocol.stores.sql import sqlite_stores
from support.joining import joined
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.socket import opened
from support.stage import Answered, Stage, user_message

pytestmark = pytest.mark.anyio

CHAT = ChatId("c")
BODY = {"id": "c", "message": user_message("send it", "u1")}


class Post(Stage):
    """A stage whose agent has a tool that needs no approval, and an effect."""

    stores: Stores


@asynccontextmanager
async def posted(
    stores: Stores, services: Services | None = None, settings: Settings | None = None
) -> AsyncIterator[Post]:
    post = Post()
    post.stores = stores

    def send_mail() -> dict[str, int]:
        """Send a mail."""
        post.payments.append(1)
        return {"sent": 1}

    script = {"send it": [[call("send_mail")], ["Sent. ", post.more, "Done."]]}
    post.model = ScriptedModel(script=script)
    agent = LlmAgent(name="stage", model=post.model, tools=[send_mail])
    settings = settings or Settings(drain_seconds=5.0)
    app = create_app(agent, stores=stores, services=services, settings=settings)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        post.url, post.http = url, http
        try:
            yield post
        finally:
            post.go_on()


@pytest.fixture(params=["memory", "sqlite"])
async def post(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Post]:
    sql = request.param == "sqlite"
    stores = sqlite_stores(str(tmp_path / "stores.db")) if sql else memory_stores()
    async with posted(stores) as post:
        yield post


async def lose_the_response(post: Post) -> None:
    """Send the message, lose the connection half way, and let the reply end unread."""
    async with post.http.stream("POST", "/api/chat", json=BODY) as response:
        async for piece in response.aiter_text():
            if "Sent. " in piece:
                break
    await until_nobody_reads(post)
    post.more.set()
    await until_ended(post)


async def until_nobody_reads(post: Post) -> None:
    with anyio.fail_after(60):
        while "open_streams 0\n" not in (await post.http.get("/metrics")).text:
            await anyio.lowlevel.checkpoint()


async def until_ended(post: Post) -> None:
    with anyio.fail_after(60):
        while (turn := await post.stores.turns.latest(CHAT)) is None or turn.running:
            await anyio.lowlevel.checkpoint()


async def test_what_was_lost_is_given_again_and_nothing_runs_twice(post: Post) -> None:
    await lose_the_response(post)
    again = await post.post("/api/chat", BODY)
    assert (again.text, again.types[-1]) == ("Sent. Done.", "finish")
    assert (post.payments, len(post.model.prompts)) == ([1], 2)
    # Now it was read: who sends it once more wants another answer.
    another = await post.post("/api/chat", BODY)
    assert another.message_id != again.message_id
    assert post.payments == [1, 1]


async def test_what_was_lost_with_its_socket_is_given_again(post: Post) -> None:
    async with opened(post.url) as socket:
        await socket.ask("r1", BODY)
        while (await socket.next("r1")).get("chunk", {}).get("delta") != "Sent. ":
            pass
    post.more.set()
    await until_ended(post)
    async with opened(post.url) as socket:
        for request_id, payments in (("r2", [1]), ("r3", [1, 1])):
            await socket.ask(request_id, BODY)
            while (await socket.next(request_id))["type"] != "end":
                pass
            assert post.payments == payments


@pytest.mark.parametrize("path", ["/api/chat/c/stream", "/api/chats/c"])
async def test_an_answer_that_was_resumed_or_loaded_is_read(post: Post, path: str) -> None:
    await lose_the_response(post)
    assert "Done." in (await post.http.get(path)).text
    await post.post("/api/chat", BODY)
    assert post.payments == [1, 1]


async def test_a_chat_that_is_loaded_while_it_is_answered_has_not_its_answer(post: Post) -> None:
    async with post.http.stream("POST", "/api/chat", json=BODY) as response:
        async for piece in response.aiter_text():
            if "Sent. " in piece:
                break
        await post.http.get("/api/chats/c")
    await until_nobody_reads(post)
    post.more.set()
    await until_ended(post)
    assert (await post.post("/api/chat", BODY)).text == "Sent. Done."
    assert post.payments == [1]


async def test_an_answer_that_is_not_kept_any_more_is_not_made_again_unread() -> None:
    now = 1.0
    async with posted(memory_stores(lambda: now, keep_replies=10)) as post:
        await lose_the_response(post)
        now = 20.0
        await post.say("d", "send it")
        refused = await post.post("/api/chat", BODY)
        assert (refused.status, refused.error["code"]) == (409, "message_exists")
        assert "Load the chat" in refused.error["message"]
        assert post.payments == [1, 1]
        # As it says.
        await post.http.get("/api/chats/c")
        assert (await post.post("/api/chat", BODY)).text == "Sent. Done."


@pytest.mark.parametrize("read", [True, False])
async def test_the_next_server_knows_what_was_read(tmp_path: Path, read: bool) -> None:
    file = SqliteFile(tmp_path / "chats.db")
    async with (
        open_database(file) as database,
        posted(database.stores, Services(sessions=database.sessions)) as post,
    ):
        if read:
            post.more.set()
            first = await post.post("/api/chat", BODY)
            assert first.text == "Sent. Done."
        else:
            await lose_the_response(post)
    async with (
        open_database(file) as database,
        posted(database.stores, Services(sessions=database.sessions)) as post,
    ):
        post.more.set()
        assert (await post.post("/api/chat", BODY)).text == "Sent. Done."
        assert post.payments == ([1] if read else [])


async def test_another_server_knows_soon_what_was_read(tmp_path: Path) -> None:
    # Two servers on one database; the sessions are the same, too.
    services = Services()
    stores = [sqlite_stores(str(tmp_path / "stores.db")) for _ in range(2)]
    async with posted(stores[0], services) as one, posted(stores[1], services) as other:
        one.more.set()
        other.more.set()
        first = await one.post("/api/chat", BODY)
        with anyio.fail_after(60):
            while (turn := await stores[1].turns.latest(CHAT)) and turn.key != "read":
                await anyio.lowlevel.checkpoint()
        second = await other.post("/api/chat", BODY)
        assert joined(first.chunks) != joined(second.chunks)
        assert (one.payments, other.payments) == ([1], [1])


async def test_a_message_that_failed_is_answered_anew_though_nobody_read_that(post: Post) -> None:
    post.model.script["send it"] = [[RuntimeError("SECRET")]]
    async with post.http.stream("POST", "/api/chat", json=BODY):
        pass
    await until_nobody_reads(post)
    await until_ended(post)
    post.model.script["send it"] = [["Well."]]
    again = await post.post("/api/chat", BODY)
    assert again.text == "Well."
    history = (await post.http.get("/api/chats/c")).json()["messages"]
    assert [message["role"] for message in history] == ["user", "assistant"]


async def test_many_who_send_the_same_while_it_is_answered_get_one_answer(post: Post) -> None:
    answers: list[Answered] = []

    async def send() -> None:
        answers.append(await post.post("/api/chat", BODY))

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(send)
        with anyio.fail_after(60):
            while "open_streams 10\n" not in (await post.http.get("/metrics")).text:
                await anyio.lowlevel.checkpoint()
        post.more.set()
    assert len({answer.raw for answer in answers}) == 1
    assert post.payments == [1]
