"""The end of a server, whoever serves it: the drain, and the lifespan that ends in one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import Settings, create_app
from adk_stream_protocol.engine.drain import Drain
from adk_stream_protocol.server.wiring import turns_of
from support.scripted import ScriptedModel
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio


async def test_a_wait_within_the_bound_ends_at_the_deadline() -> None:
    drain = Drain(seconds=0.05)
    drain.begin()
    with anyio.fail_after(5), drain.bound():
        await anyio.sleep_forever()


async def test_a_drain_begins_once() -> None:
    drain = Drain(seconds=0.05)
    drain.begin()
    drain.seconds = 600
    drain.begin()
    with anyio.fail_after(5), drain.bound():
        await anyio.sleep_forever()


async def test_a_wait_that_began_before_the_drain_is_bound_by_it_too() -> None:
    drain = Drain(seconds=600)
    ended = anyio.Event()

    async def wait() -> None:
        with drain.bound():
            await anyio.sleep_forever()
        ended.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert not drain.has_begun
            drain.begin()
            await anyio.wait_all_tasks_blocked()
            assert (drain.has_begun, ended.is_set()) == (True, False)
            drain.hurry()
            await ended.wait()


async def test_a_drain_that_was_reset_bounds_nothing() -> None:
    drain = Drain()
    drain.hurry()
    drain.reset()
    with drain.bound():
        await anyio.lowlevel.checkpoint()
        assert not drain.has_begun


@dataclass
class Ending:
    """An app whose model waits in the middle of its reply, and what became of the reply."""

    app: FastAPI
    http: httpx.AsyncClient
    more: anyio.Event
    answers: list[Answered] = field(default_factory=list)

    async def say(self, chat: str = "c") -> None:
        body = {"id": chat, "messages": [user_message("long")]}
        self.answers.append(Answered.of(await self.http.post("/api/chat", json=body)))

    async def until_running(self) -> None:
        with anyio.fail_after(5):
            while not turns_of(self.app).running:
                await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def ending(drain_seconds: float) -> AsyncIterator[Ending]:
    more = anyio.Event()
    model = ScriptedModel(script={"long": [["One. ", more, "Two."]]})
    app = create_app(
        LlmAgent(name="slow", model=model), settings=Settings(drain_seconds=drain_seconds)
    )
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        yield Ending(app, http, more)


async def test_the_lifespan_ends_when_the_running_turns_have() -> None:
    async with ending(600) as stage, anyio.create_task_group() as tasks:
        async with stage.app.router.lifespan_context(stage.app):
            tasks.start_soon(stage.say)
            await stage.until_running()

            async def go_on() -> None:
                with anyio.fail_after(5):
                    while (await stage.http.get("/readyz")).status_code == 200:
                        pass
                await stage.say("other")
                stage.more.set()

            tasks.start_soon(go_on)
        assert turns_of(stage.app).running == 0

    refused, finished = stage.answers
    assert (refused.status, refused.error["code"]) == (503, "draining")
    assert finished.text == "One. Two."
    assert finished.types[-1] == "finish"


async def test_a_turn_that_does_not_end_is_left_when_the_time_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "adk_stream_protocol")
    async with ending(0.05) as stage, anyio.create_task_group() as tasks:
        with anyio.fail_after(5):
            async with stage.app.router.lifespan_context(stage.app):
                tasks.start_soon(stage.say)
                await stage.until_running()
        assert turns_of(stage.app).running == 0
        tasks.cancel_scope.cancel()
    assert "turn handed over" in [record.message for record in caplog.records]


async def test_an_app_can_be_served_again_after_its_drain() -> None:
    async with ending(0.05) as stage:
        stage.more.set()
        for _ in range(2):
            async with stage.app.router.lifespan_context(stage.app):
                await stage.say()
    assert [answer.text for answer in stage.answers] == ["One. Two."] * 2
