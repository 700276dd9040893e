"""The list of chats: in pages, with titles and archives that people set."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.engine.sessions import ChatInfo
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.server.chat_list import ArchivedFilter, page_of, parse_cursor
from adk_stream_protocol.server.databases import connect
from adk_stream_protocol.server.wiring import Services
from adk_stream_protocol.stores.opening import parse_database
from support.postgres import PostgresServer
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of its own."""
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        return server.create(f"chats-{uuid.uuid4().hex}")
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'chats.db'}"


@asynccontextmanager
async def kept_in(url: str) -> AsyncIterator[Stage]:
    """Serve a stage with everything in a database."""
    database = connect(parse_database(url))
    services = Services(sessions=database.sessions)
    async with staged(services=services, stores=database.stores) as stage:
        yield stage


async def change(stage: Stage, chat: str, body: object, **headers: str) -> httpx.Response:
    return await stage.http.patch(f"/api/chats/{chat}", json=body, headers=headers)


async def listed(stage: Stage, query: str = "", **headers: str) -> list[dict[str, Any]]:
    response = await stage.http.get(f"/api/chats{query}", headers=headers)
    assert response.status_code == 200, response.text
    chats: list[dict[str, Any]] = response.json()["chats"]
    return chats


async def titles(stage: Stage, query: str = "") -> list[str]:
    return [chat["title"] for chat in await listed(stage, query)]


# Renaming


async def test_a_chat_is_renamed(stage: Stage) -> None:
    await stage.say("c", "hi")
    (before,) = await listed(stage)
    changed = await change(stage, "c", {"title": "  花子 and\n Hanako "})
    assert changed.status_code == 200
    assert changed.json() == {**before, "title": "花子 and Hanako"}
    assert await listed(stage) == [changed.json()]
    chat = (await stage.http.get("/api/chats/c")).json()
    assert (chat["title"], chat["archived"]) == ("花子 and Hanako", False)


async def test_null_gives_a_chat_the_title_back_that_it_began_with(stage: Stage) -> None:
    await stage.say("c", "hi")
    await change(stage, "c", {"title": "Mine", "archived": True})
    assert (await change(stage, "c", {"title": None})).json()["title"] == "hi"
    assert (await listed(stage, "?archived=true"))[0]["title"] == "hi"


async def test_a_title_survives_edits_of_the_first_message(stage: Stage) -> None:
    body = {"id": "c", "messages": [user_message("hi", "u1")]}
    await stage.post("/api/chat", body)
    await change(stage, "c", {"title": "Mine"})
    again = {**body, "trigger": "regenerate-message"}
    assert (await stage.post("/api/chat", again)).status == 200
    edited = {"id": "c", "messageId": "u1", "messages": [user_message("hello", "u1")]}
    assert (await stage.post("/api/chat", edited)).text == "Hello again."
    assert await titles(stage) == ["Mine"]


async def test_a_new_chat_does_not_inherit_the_title_of_a_deleted_one(stage: Stage) -> None:
    await stage.say("c", "hi")
    await change(stage, "c", {"title": "Mine", "archived": True})
    assert (await stage.http.delete("/api/chats/c")).status_code == 204
    assert (await change(stage, "c", {"title": "Ghost"})).status_code == 404
    await stage.say("c", "hello")
    assert await titles(stage) == ["hello"]


class DeletedMeanwhile(InMemorySessionService):
    """Deletes a session as soon as somebody looked whether it is there."""

    async def get_session(self, **asked: Any) -> Session | None:
        found = await super().get_session(**asked)
        if asked.get("config") is not None:
            await self.delete_session(**{name: asked[name] for name in asked if name != "config"})
        return found


async def test_a_chat_that_is_deleted_while_it_is_renamed_leaves_no_title_behind() -> None:
    async with staged(services=Services(sessions=DeletedMeanwhile())) as stage:
        await stage.say("c", "hi")
        assert (await change(stage, "c", {"title": "Ghost"})).status_code == 404
        await stage.say("c", "hello")
        assert await titles(stage) == ["hello"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "nothing_to_change"),
        ([], "nothing_to_change"),
        ("Mine", "nothing_to_change"),
        ({"name": "Mine"}, "nothing_to_change"),
        ({"title": ""}, "bad_title"),
        ({"title": " \n"}, "bad_title"),
        ({"title": 7}, "bad_title"),
        ({"title": ["Mine"]}, "bad_title"),
        ({"title": "x" * 201}, "bad_title"),
        ({"title": "x\0"}, "bad_text"),
        ({"archived": None}, "bad_archived"),
        ({"archived": "true"}, "bad_archived"),
        ({"archived": 1}, "bad_archived"),
        ({"title": "Mine", "archived": "no"}, "bad_archived"),
    ],
)
async def test_a_change_that_makes_no_sense_is_a_400_and_changes_nothing(
    stage: Stage, body: object, code: str
) -> None:
    await stage.say("c", "hi")
    before = await listed(stage)
    refused = await change(stage, "c", body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)
    assert await listed(stage) == before


async def test_the_longest_title_and_half_a_character_are_taken(url: str) -> None:
    async with kept_in(url) as stage:
        await stage.say("c", "hi")
        assert (await change(stage, "c", {"title": "花" * 200})).json()["title"] == "花" * 200
        content = b'{"title": "half \\ud83d"}'
        headers = {"content-type": "application/json"}
        half = await stage.http.patch("/api/chats/c", content=content, headers=headers)
        assert (half.status_code, half.json()["title"]) == (200, "half \N{REPLACEMENT CHARACTER}")


async def test_another_users_chat_is_no_chat(stage: Stage) -> None:
    await stage.say("c", "hi")
    for chat in ("c", "none"):
        refused = await change(stage, chat, {"title": "Bob's"}, **{"x-user": "bob"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "unknown_chat")
    assert await titles(stage) == ["hi"]


# Beside what runs


async def test_a_chat_is_renamed_and_archived_while_a_reply_runs(url: str) -> None:
    async with kept_in(url) as stage:
        body = {"id": "c", "messages": [user_message("long")]}
        async with stage.http.stream("POST", "/api/chat", json=body) as response:
            lines = response.aiter_lines()
            while "One." not in await anext(lines):
                pass
            for number in range(3):
                changed = await change(stage, "c", {"title": f"Mine {number}", "archived": True})
                assert changed.status_code == 200
            stage.more.set()
            rest = "\n".join([line async for line in lines])
        assert '"type":"finish"' in rest
        assert '"type":"error"' not in rest
        # The session is as it would be without: the next turn goes on with it.
        assert (await stage.say("c", "hello")).text == "Hello again."
        chat = (await stage.http.get("/api/chats/c")).json()
    assert (chat["title"], chat["archived"]) == ("Mine 2", True)
    parts = [part for message in chat["messages"] for part in message["parts"]]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    assert texts == ["long", "One. Two.", "hello", "Hello again."]


async def test_titles_and_archives_outlive_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    async with kept_in(url) as stage:
        for chat in ("a", "b"):
            await stage.say(chat, "hi")
        await change(stage, "a", {"title": "Mine"})
        await change(stage, "b", {"archived": True})
    async with kept_in(url) as stage:
        assert await titles(stage) == ["Mine"]
        assert [chat["id"] for chat in await listed(stage, "?archived=true")] == ["b"]


async def test_a_chat_is_renamed_on_one_instance_while_another_answers(
    postgres: PostgresServer,
) -> None:
    url = postgres.create(f"chats-{uuid.uuid4().hex}")
    async with kept_in(url) as first, kept_in(url) as second:
        body = {"id": "c", "messages": [user_message("long")]}
        async with first.http.stream("POST", "/api/chat", json=body) as response:
            lines = response.aiter_lines()
            while "One." not in await anext(lines):
                pass
            assert (await change(second, "c", {"title": "Mine"})).status_code == 200
            assert await titles(first) == ["Mine"]
            first.more.set()
            rest = "\n".join([line async for line in lines])
        assert '"type":"error"' not in rest
        resumed = Answered.of(await second.http.get("/api/chat/c/stream"))
        assert resumed.text == "One. Two."
        assert await titles(second) == ["Mine"]


# Archives


async def test_an_archived_chat_leaves_the_list_and_comes_back(stage: Stage) -> None:
    for chat in ("a", "b", "c"):
        await stage.say(chat, "hi")
    assert (await change(stage, "b", {"archived": True})).json()["archived"] is True
    found = {
        query: [chat["id"] for chat in await listed(stage, query)]
        for query in ("", "?archived=false", "?archived=true", "?archived=all")
    }
    assert found == {
        "": ["c", "a"],
        "?archived=false": ["c", "a"],
        "?archived=true": ["b"],
        "?archived=all": ["c", "b", "a"],
    }
    # It is still a chat like any other.
    assert (await stage.say("b", "hello")).text == "Hello again."
    assert [chat["id"] for chat in await listed(stage)] == ["c", "a"]
    await change(stage, "b", {"archived": False})
    assert [chat["id"] for chat in await listed(stage)] == ["b", "c", "a"]


# Pages


async def page(stage: Stage, **query: str) -> tuple[list[str], str | None]:
    body = (await stage.http.get("/api/chats", params=query)).json()
    return [chat["id"] for chat in body["chats"]], body.get("nextCursor")


async def test_pages_have_every_chat_once_while_others_begin(url: str) -> None:
    async with kept_in(url) as stage:
        for number in range(7):
            await stage.say(f"c{number}", "hi")
        first, cursor = await page(stage, limit="3")
        assert (first, cursor is None) == (["c6", "c5", "c4"], False)
        # A new chat, and two that go to the top: one that was listed, one that was not yet.
        for chat in ("new", "c5", "c0"):
            await stage.say(chat, "hello")
        second, cursor = await page(stage, limit="3", cursor=cursor or "")
        assert second == ["c3", "c2", "c1"]
        assert cursor is None
        top, _ = await page(stage, limit="3")
        assert top == ["c0", "c5", "new"]


async def test_a_list_without_a_limit_is_a_page_of_fifty(stage: Stage) -> None:
    for number in range(51):
        await stage.say(f"c{number:02}", "hi")
    first, cursor = await page(stage)
    assert first == [f"c{number:02}" for number in range(50, 0, -1)]
    rest, end = await page(stage, cursor=cursor or "")
    assert (rest, end) == (["c00"], None)
    everything, end = await page(stage, limit="200")
    assert (len(everything), end) == (51, None)


@pytest.mark.parametrize("limit", ["0", "-1", "201", "many", ""])
async def test_a_limit_out_of_bounds_is_a_400(stage: Stage, limit: str) -> None:
    refused = await stage.http.get("/api/chats", params={"limit": limit})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_parameter")
    assert "limit" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    "cursor", ["", "x", "花", "bnVsbA", "WzEsMl0", "WyJhIiwiYiJd", "W05hTiwiYiJd", "e30", "W1tbW1s"]
)
async def test_a_cursor_that_is_none_of_ours_is_a_400(stage: Stage, cursor: str) -> None:
    refused = await stage.http.get("/api/chats", params={"cursor": cursor})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_cursor")


CHATS = st.lists(
    st.builds(
        ChatInfo,
        id=st.text(min_size=1, max_size=4).map(ChatId),
        title=st.just(""),
        created_at=st.just(0.0),
        updated_at=st.sampled_from([1.5, 1e9 / 3, 1763424000.123457]),
        archived=st.booleans(),
    ),
    max_size=12,
    unique_by=lambda chat: chat.id,
).map(lambda chats: sorted(chats, key=lambda chat: (chat.updated_at, chat.id), reverse=True))


@given(chats=CHATS, limit=st.integers(1, 5), archived=st.sampled_from(["false", "true", "all"]))
def test_all_pages_together_are_the_list(
    chats: list[ChatInfo], limit: int, archived: ArchivedFilter
) -> None:
    found: list[ChatInfo] = []
    after = None
    while True:
        some, cursor = page_of(chats, after=after, limit=limit, archived=archived)
        found += some
        if cursor is None:
            break
        assert len(some) == limit
        after = parse_cursor(cursor)
    wanted = {"false": {False}, "true": {True}, "all": {False, True}}[archived]
    assert found == [chat for chat in chats if chat.archived in wanted]
