"""Replies without readers: by default they run on, and with `leave_seconds` they are stopped."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.sql import sqlite_stores
from support.stage import Stage, staged, user_message

pytestmark = pytest.mark.anyio

LEAVE = dataclasses.replace(Settings(), leave_seconds=0.5)


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    is_sql = request.param == "sqlite"
    stores = sqlite_stores(str(tmp_path / "left.db")) if is_sql else memory_stores()
    async with staged(settings=LEAVE, stores=stores) as stage:
        yield stage


@asynccontextmanager
async def reading(stage: Stage, chat: str) -> AsyncIterator[AsyncIterator[str]]:
    """Say something that is answered at length, and read the answer's beginning."""
    body = {"id": chat, "messages": [user_message("long")]}
    async with stage.http.stream("POST", "/api/chat", json=body) as response:
        lines = response.aiter_lines()
        async for line in lines:
            if "One." in line:
                break
        yield lines


async def until_stopped(stage: Stage) -> None:
    """Return once a turn was stopped."""
    with anyio.fail_after(60):
        while True:
            if re.search(r'outcome="stopped"\} 1', (await stage.http.get("/metrics")).text):
                return
            await anyio.sleep(0.05)


async def test_a_reply_that_everybody_left_is_stopped_and_one_that_is_read_is_not(
    stage: Stage,
) -> None:
    async with reading(stage, "read") as lines:
        async with reading(stage, "left"):
            pass
        await until_stopped(stage)
        # What it said is kept.
        left = (await stage.http.get("/api/chats/left")).json()["messages"]
        assert "One. " in str(left[-1]["parts"])
        stage.more.set()
        rest = [line async for line in lines]
    assert any("Two." in line for line in rest)
    assert any('"finish"' in line for line in rest)


async def test_by_default_a_reply_runs_on_without_readers() -> None:
    async with staged() as stage:
        async with reading(stage, "c"):
            pass
        stage.more.set()
        reply = await stage.http.get("/api/chat/c/stream")
        assert "Two." in reply.text
