"""Live runs when two things happen at once, or one at a bad moment."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from fastapi import FastAPI
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import Services, Settings, create_app
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.stores.memory import memory_stores
from engine.test_live import on, prompts_of
from stories.telling import ROUTES, Route, telling
from support.scripted import Script, ScriptedModel, call
from support.stage import staged

pytestmark = pytest.mark.anyio

Before = Callable[[], Awaitable[None]]


class Waylaid:
    """A store; something comes before one of the things it does."""

    def __init__(self, inner: Any, name: str, before: Before) -> None:
        self._inner = inner
        self._name = name
        self._before = before

    def __getattr__(self, name: str) -> Any:
        do = getattr(self._inner, name)
        if name != self._name:
            return do

        async def waylaid(*arguments: Any, **named: Any) -> Any:
            await self._before()
            return await do(*arguments, **named)

        return waylaid


def stores_with(port: str, name: str, before: Before) -> Stores:
    stores = memory_stores()
    waylaid: Any = {port: Waylaid(getattr(stores, port), name, before)}
    return dataclasses.replace(stores, **waylaid)


# The moment between the choice of a run and its turn


async def test_a_run_does_not_end_by_itself_while_its_turn_is_prepared() -> None:
    slow = anyio.Event()

    async def wait() -> None:
        if slow.is_set():
            # A database that takes longer than a run may rest.
            await anyio.sleep(0.5)

    settings = dataclasses.replace(Settings(), live_idle_seconds=0.3)
    stores = stores_with("calls", "deliver", wait)
    async with staged(settings=settings, stores=stores) as stage, telling(stage, "live") as teller:
        await teller.say("hi")
        slow.set()
        assert (await teller.say("hello")).text == "Hello again."


async def test_a_run_does_not_hibernate_while_its_answer_is_prepared() -> None:
    slow = anyio.Event()

    async def wait() -> None:
        if slow.is_set():
            await anyio.sleep(0.5)

    settings = dataclasses.replace(Settings(), live_hold_seconds=0.3)
    stores = stores_with("calls", "deliver", wait)
    async with staged(settings=settings, stores=stores) as stage, telling(stage, "live") as teller:
        asked = await teller.say("pay 5")
        slow.set()
        told = await teller.answer(asked, True)
        assert told.text == "Result told.", told.chunks
    assert stage.payments == [5]


async def test_a_turn_that_could_not_be_prepared_leaves_no_run_behind() -> None:
    broken = [True]

    async def fail() -> None:
        if broken:
            broken.pop()
            raise RuntimeError("the database is down")

    async with (
        staged(stores=stores_with("calls", "deliver", fail)) as stage,
        telling(stage, "live") as teller,
    ):
        assert (await teller.say("hi")).error
        assert (await teller.say("hello")).text == "Hello again."


# Two servers


async def test_a_run_is_not_used_after_another_server_has_answered() -> None:
    stores, services = memory_stores(), Services()
    script: Script = {"hi": [["Hello."]], "hello": [["Hello again."]], "bye": [["Goodbye."]]}
    model = ScriptedModel(script=script)

    def app() -> FastAPI:
        agent = LlmAgent(name="root", model=model)
        # Of its own: hints may be lost on their way to another server.
        own = dataclasses.replace(stores, wake=memory_stores().wake)
        return create_app(agent, stores=own, services=services)

    async with on(app()) as one, on(app()) as other, telling(one, "live") as teller:
        await teller.say("hi")
        async with telling(other, "sse") as elsewhere:
            assert (await elsewhere.say("hello")).text == "Hello again."
        assert (await teller.say("bye")).text == "Goodbye."
    assert prompts_of(model)[-1] == ["hi", "Hello.", "hello", "Hello again.", "bye"]


# Calls that are made together


@pytest.mark.parametrize("route", ROUTES)
async def test_requests_come_in_the_order_in_which_the_model_called(route: Route) -> None:
    waits = iter(range(200, 0, -50))

    async def longest_first() -> None:
        for _ in range(next(waits, 0)):
            await anyio.lowlevel.checkpoint()

    stores = stores_with("calls", "count_pending", longest_first)
    async with staged(stores=stores) as stage, telling(stage, route) as teller:
        calls = [call("pay", amount=amount) for amount in (1, 2, 3)]
        stage.model.script["pay all"] = [calls, ["All told."]]
        asked = await teller.say("pay all")
        cards = [chunk["data"]["toolCallId"] for chunk in asked.only("data-approval")]
        assert cards == asked.calls
        shown = [chunk["input"]["amount"] for chunk in asked.only("tool-input-available")]
        assert shown == [1, 2, 3]
        told = await teller.answer(asked, True, False, True)
        # Each is decided, and those that ran are done after that.
        decided = dict.fromkeys(c["data"]["toolCallId"] for c in told.only("data-approval"))
        assert list(decided) == asked.calls
    assert sorted(stage.payments) == [1, 3]
