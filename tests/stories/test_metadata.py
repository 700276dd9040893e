"""When a message began, and which model answered: the same streamed, resumed and stored."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.server.wiring import Services
from adk_stream_protocol.stores.opening import SqliteFile
from stories.telling import ROUTES, Route, telling
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio


def streamed(*replies: Answered) -> dict[str, Any]:
    """Return the metadata that a client has after the replies of one message."""
    told: dict[str, Any] = {}
    for reply in replies:
        for chunk in reply.chunks:
            told |= chunk.get("messageMetadata", {})
    return told


async def stored(stage: Stage) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = (await stage.http.get("/api/chats/c")).json()["messages"]
    return messages


@pytest.mark.parametrize("route", ROUTES)
async def test_metadata_is_the_same_streamed_and_stored(route: Route) -> None:
    before = int(time.time() * 1000)
    async with staged() as stage, telling(stage, route) as teller:
        asked = await teller.say("pay 5")
        answered = await teller.answer(asked, True)
        again = await teller.say("hi")
        user, first, _, second = await stored(stage)
    after = int(time.time() * 1000)
    assert first["metadata"] == streamed(asked, answered)
    assert second["metadata"] == streamed(again)
    assert first["metadata"]["model"] == "scripted"
    times = [message["metadata"]["createdAt"] for message in (user, first, second)]
    assert [before, *times, after] == sorted([before, *times, after])


@asynccontextmanager
async def life(folder: Path) -> AsyncIterator[Stage]:
    async with (
        open_database(SqliteFile(folder / "chats.db")) as opened,
        staged(services=Services(sessions=opened.sessions), stores=opened.stores) as stage,
    ):
        yield stage


async def test_metadata_outlives_the_process(tmp_path: Path) -> None:
    async with life(tmp_path) as stage:
        told = streamed(await stage.say("c", "hi"))
        assert told.keys() == {"createdAt", "model", "usage"}
        kept = await stored(stage)
        assert kept[-1]["metadata"] == told
    async with life(tmp_path) as stage:
        assert streamed(Answered.of(await stage.http.get("/api/chat/c/stream"))) == told
        assert await stored(stage) == kept


async def test_an_answer_that_is_given_anew_began_later() -> None:
    async with staged() as stage:
        first = await stage.say("c", "hi")
        asked = {"id": "c", "trigger": "regenerate-message", "messageId": first.message_id}
        second = await stage.post("/api/chat", {**asked, "messages": [user_message("hi")]})
        (_, answer) = await stored(stage)
    assert streamed(second)["createdAt"] >= streamed(first)["createdAt"]
    assert answer["metadata"] == streamed(second)
