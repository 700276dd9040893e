"""A chat's session: how it is titled, and what an edit leaves of that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_stream_protocol.server.wiring import Services
from support.stage import Stage, staged, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "database"])
async def sessions(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[BaseSessionService]:
    if request.param == "memory":
        yield InMemorySessionService()
        return
    async with DatabaseSessionService(f"sqlite+aiosqlite:///{tmp_path / 'x.db'}") as service:
        yield service


async def listed(stage: Stage) -> dict[str, Any]:
    (chat,) = (await stage.http.get("/api/chats")).json()["chats"]
    return {name: chat[name] for name in ("id", "title", "createdAt")}


async def test_a_chat_is_titled_without_an_event_of_its_own(
    sessions: BaseSessionService,
) -> None:
    async with staged(services=Services(sessions=sessions)) as stage:
        await stage.say("c", "hi")
        assert (await listed(stage))["title"] == "hi"
    found = await sessions.get_session(app_name="stage", user_id="alice", session_id="c")
    assert found is not None
    assert [event.author for event in found.events] == ["user", "stage"]


async def test_a_chat_keeps_its_title_whatever_is_taken_back(
    sessions: BaseSessionService,
) -> None:
    first = user_message("hi", "u1")
    edited = {"id": "c", "messageId": "u1", "messages": [user_message("hello", "u1")]}
    async with staged(services=Services(sessions=sessions)) as stage:
        await stage.post("/api/chat", {"id": "c", "messages": [first]})
        before = await listed(stage)
        await stage.post("/api/chat", edited)
        assert await listed(stage) == before
        again = {"id": "c", "trigger": "regenerate-message", "messages": [first]}
        await stage.post("/api/chat", again)
        assert await listed(stage) == before
        assert len(stage.model.prompts) == 3
