"""A browser tool that never answers is told as that, and never as a decision that did not come."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from adk_stream_protocol.stores.memory import memory_stores
from stories.telling import ROUTES, Route, Teller, telling
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio

NO_OUTPUT = "The browser gave no output in time; whether it ran the call is not known."
HOUR = 3600.0


class Timed:
    """A server whose clock is moved by hand."""

    def __init__(self) -> None:
        self._now = 1_000_000.0
        self.stores = memory_stores(lambda: self._now)

    async def let_expire(self, stage: Stage, said: str) -> None:
        """Let an hour pass, and wait for what the model says to it."""
        self._now += HOUR
        self.stores.wake.hint("calls")
        with anyio.fail_after(60):
            while said not in (await stage.http.get("/api/chats/c")).text:
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def timed(route: Route) -> AsyncIterator[tuple[Timed, Stage, Teller]]:
    server = Timed()
    async with staged(stores=server.stores) as stage, telling(stage, route) as teller:
        yield server, stage, teller


async def resumed(stage: Stage, path: str) -> Answered:
    return Answered.of(await stage.http.get(f"{path}/c/stream"))


async def part_of(stage: Stage, profile: str, name: str) -> dict[str, Any]:
    chat = (await stage.http.get(f"/api/chats/c?profile={profile}")).json()
    parts = [part for message in chat["messages"] for part in message["parts"]]
    (found,) = [part for part in parts if part["type"] == f"tool-{name}"]
    return dict(found)


@pytest.mark.parametrize("route", ROUTES)
async def test_an_approved_browser_tool_that_times_out_is_told_as_timed_out(route: Route) -> None:
    async with timed(route) as (server, stage, teller):
        asked = await teller.say("where am I")
        await teller.answer(asked, True)
        await server.let_expire(stage, "Place told.")
        assert NO_OUTPUT in str(stage.model.prompts[-1])

        told = await resumed(stage, "/api/chat")
        (error,) = told.only("tool-output-error")
        assert (error["toolCallId"], error["errorText"]) == (asked.calls[0], NO_OUTPUT)
        card = told.only("data-approval")[-1]["data"]
        assert (card["status"], card["decidedBy"]) == ("expired", "alice")
        part = await part_of(stage, "ai-sdk", "get_location")
        assert (part["state"], part["errorText"]) == ("output-error", NO_OUTPUT)
        assert part["approval"] == {"id": asked.approvals[0], "approved": True}

        seeds = await resumed(stage, "/stream")
        outputs = [c["output"] for c in seeds.only("tool-output-available")]
        assert outputs[-1] == {"confirmed": True, "outcome": "expired"}
        assert seeds.only("tool-output-error")[0]["errorText"] == NO_OUTPUT
        confirmation = await part_of(stage, "adk", "adk_request_confirmation")
        assert confirmation["output"] == {"confirmed": True, "outcome": "expired"}
        assert (await part_of(stage, "adk", "get_location"))["errorText"] == NO_OUTPUT

        trail = (await stage.http.get(f"/api/approvals/{asked.approvals[0]}/trail")).json()
        assert [line["event"] for line in trail["trail"]] == ["open", "approve", "expire"]


@pytest.mark.parametrize("route", ROUTES)
async def test_a_browser_tool_without_approval_that_times_out_was_never_to_be_decided(
    route: Route,
) -> None:
    async with timed(route) as (server, stage, teller):
        await teller.say("play jazz")
        await server.let_expire(stage, "Music told.")
        assert NO_OUTPUT in str(stage.model.prompts[-1])
        assert (await part_of(stage, "ai-sdk", "change_bgm"))["errorText"] == NO_OUTPUT
        assert (await part_of(stage, "adk", "change_bgm"))["errorText"] == NO_OUTPUT


@pytest.mark.parametrize("route", ROUTES)
async def test_a_browser_tool_that_nobody_approved_is_told_as_undecided(route: Route) -> None:
    async with timed(route) as (server, stage, teller):
        await teller.say("where am I")
        await server.let_expire(stage, "Place told.")
        part = await part_of(stage, "adk", "get_location")
        assert part["errorText"].startswith("No decision came in time")
        confirmation = await part_of(stage, "adk", "adk_request_confirmation")
        assert confirmation["output"] == {"confirmed": False, "outcome": "expired"}


async def test_an_approved_browser_tool_that_is_stopped_stays_approved() -> None:
    async with staged() as stage, telling(stage, "sse") as teller:
        asked = await teller.say("where am I")
        await teller.answer(asked, True)
        await teller.stop()
        part = await part_of(stage, "ai-sdk", "get_location")
        assert part["approval"] == {"id": asked.approvals[0], "approved": True}
        assert part["errorText"] == "The call was cancelled before the browser gave its output."
        confirmation = await part_of(stage, "adk", "adk_request_confirmation")
        assert confirmation["output"] == {"confirmed": True, "outcome": "cancelled"}
