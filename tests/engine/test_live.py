"""Live runs: kept between turns, held within bounds, ended, woken, and mixed with other modes."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from adk_stream_protocol import Settings, ToolRule, create_app
from stories.telling import Route, telling
from support.gemini_live import GEMINI_3, LiveConnection, gemini_live
from support.gemini_live_brain import brain
from support.gemini_live_wire import text as words
from support.scripted import Script, ScriptedModel, call
from support.serving import serving
from support.stage import Stage, staged, user_message

pytestmark = pytest.mark.anyio

QUICK = dataclasses.replace(Settings(), live_hold_seconds=0.05)
"""A live run that waits for nobody."""


@asynccontextmanager
async def on(app: FastAPI) -> AsyncIterator[Stage]:
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        yield Stage(url=url, http=http)


def served(
    agent: BaseAgent, settings: Settings | None = None
) -> AbstractAsyncContextManager[Stage]:
    return on(create_app(agent, settings=settings or Settings()))


def payer(payments: list[int], **more: Any) -> FunctionTool:
    def pay(amount: int) -> dict[str, int]:
        """Pay."""
        payments.append(amount)
        return {"paid": amount}

    tool = FunctionTool(pay, require_confirmation=True)
    for name, value in more.items():
        setattr(tool, name, value)
    return tool


async def history_with(stage: Stage, text: str, chat: str = "c") -> list[dict[str, Any]]:
    """Return the chat's messages once they hold a text."""
    with anyio.fail_after(10):
        while True:
            response = await stage.http.get(f"/api/chats/{chat}")
            if text in response.text:
                messages: list[dict[str, Any]] = response.json()["messages"]
                return messages
            await anyio.lowlevel.checkpoint()


def prompts_of(model: ScriptedModel) -> list[list[str]]:
    """Return what the model was asked with, each time, as words."""

    def word(part: types.Part) -> str:
        if part.function_call is not None:
            return f"call {part.function_call.name}"
        if part.function_response is not None:
            return f"result {part.function_response.response}"
        return part.text or ""

    return [
        [word(part) for content in prompt for part in content.parts or []]
        for prompt in model.prompts
    ]


# Turns


async def test_a_live_run_goes_on_between_turns() -> None:
    async with staged() as stage, telling(stage, "live") as teller:
        await teller.say("hi")
        told = await teller.say("hello")
        assert told.text == "Hello again."
        history = await history_with(stage, "Hello again.")
    # The connection remembers: the second message came without a history.
    assert prompts_of(stage.model) == [["hi"], ["hi", "Hello.", "hello"]]
    assert [message["role"] for message in history] == ["user", "assistant"] * 2
    assert len({message["id"] for message in history}) == 4


async def test_a_live_run_that_is_idle_ends_and_the_next_message_finds_the_history() -> None:
    settings = dataclasses.replace(Settings(), live_idle_seconds=0.05)
    async with staged(settings=settings) as stage, telling(stage, "live") as teller:
        await teller.say("hi")
        told = await teller.say("hello")
    assert told.text == "Hello again."
    assert prompts_of(stage.model)[-1] == ["hi", "Hello.", "hello"]


@pytest.mark.parametrize("ends_calls", [False, True])
async def test_a_complete_turn_after_a_result_is_not_the_end(ends_calls: bool) -> None:
    async with staged() as stage, telling(stage, "live") as teller:
        stage.model.ends_calls = ends_calls
        told = await teller.say("add")
        assert told.text == "It is 3."
        paid = await teller.answer(await teller.say("pay"), True)
        assert paid.text == "Told."
        assert (await teller.say("hi")).text == "Hello."
    assert stage.payments == [5]


async def test_a_message_of_a_live_chat_can_be_answered_anew() -> None:
    async with staged() as stage, telling(stage, "live") as teller:
        first, second = user_message("hi", "one"), user_message("hello", "two")
        await teller.ask({"id": "c", "messages": [first]})
        await teller.ask({"id": "c", "messages": [second]})
        again = {"id": "c", "trigger": "regenerate-message", "messages": [first, second]}
        told = await teller.ask(again)
        assert told.text == "Hello again."
        history = await history_with(stage, "Hello again.")
    # Only the second turn was taken back, though one live run made both.
    texts = [part["text"] for m in history for part in m["parts"] if part["type"] == "text"]
    assert texts == ["hi", "Hello.", "hello", "Hello again."]


async def test_a_run_goes_on_after_an_answer_that_was_cut_off(tmp_path: Path) -> None:
    async def breaks(model: LiveConnection) -> None:
        await model.prompt()
        await model.send(words("Once upon "))
        await model.close()

    async with gemini_live(breaks, then=brain()) as server:
        agent = LlmAgent(name="root", model=server.model())
        app = create_app(agent, database=f"sqlite:///{tmp_path / 'chats.db'}")
        async with on(app) as stage, telling(stage, "live") as teller:
            assert (await teller.say("Tell")).text == "Once upon "
            told = await teller.say("Go on")
            assert told.text == "You said: Go on", told.chunks
            history = await history_with(stage, "You said: Go on")
    texts = [part["text"] for m in history for part in m["parts"] if part["type"] == "text"]
    assert texts == ["Tell", "Once upon ", "Go on", "You said: Go on"]


# Held calls


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("settings", [Settings(), QUICK], ids=["in-band", "hibernated"])
@pytest.mark.parametrize("text", ["pay 5", "book 3", "pay both"])
async def test_an_answer_is_acted_on_whether_or_not_the_run_still_waits(
    text: str, settings: Settings, approved: bool
) -> None:
    async with staged(settings=settings) as stage, telling(stage, "live") as teller:
        asked = await teller.say(text)
        if settings is QUICK:
            await no_live_run(stage)
        verdicts = [approved] * len(asked.approvals)
        told = await teller.answer(asked, *verdicts)
        await history_with(stage, told.text)
    effects = {"pay 5": [5], "book 3": [-3], "pay both": [1, 2]}[text]
    assert sorted(stage.payments) == (effects if approved else [])
    assert told.chunks[-1]["finishReason"] == "stop"


async def no_live_run(stage: Stage) -> None:
    """Wait until no live run is left."""
    await none_left(stage, "live_runs")


async def none_left(stage: Stage, what: str) -> None:
    """Wait until the server counts none of something any more."""
    with anyio.fail_after(10):
        while f"adk_stream_{what} 0" not in (await stage.http.get("/metrics")).text:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("asked_on", ["sse", "ws", "live"])
@pytest.mark.parametrize("answered_on", ["sse", "ws", "live", "rest"])
async def test_what_is_asked_on_one_route_is_answered_on_another(
    asked_on: Route, answered_on: str
) -> None:
    async with staged() as stage, telling(stage, asked_on) as teller:
        asked = await teller.say("pay 5")
        if answered_on == "rest":
            path = f"/api/approvals/{asked.approvals[0]}"
            assert (await stage.http.post(path, json={"approved": True})).status_code == 200
        else:
            async with telling(stage, answered_on) as other:  # type: ignore[arg-type]  # a route
                told = await other.answer(asked, True)
                assert told.text == "Result told."
        history = await history_with(stage, "Result told.")
        await none_left(stage, "running_turns")
        # And the chat goes on, on either.
        assert (await teller.say("hi")).text == "Hello."
    assert stage.payments == [5]
    parts = [part["type"] for part in history[1]["parts"]]
    assert parts == ["step-start", "text", "tool-pay", "data-approval", "step-start", "text"]


async def test_the_session_is_the_same_whatever_the_route() -> None:
    told: dict[str, list[Any]] = {}
    routes: tuple[Route, ...] = ("sse", "live")
    for route in routes:
        async with staged() as stage, telling(stage, route) as teller:
            asked = await teller.say("pay and add")
            await teller.answer(asked, True, False)
            await teller.say("hi")
            told[route] = prompts_of(stage.model)
    assert told["live"][-1] == told["sse"][-1]


async def test_a_call_asked_for_live_is_approved_after_a_restart(tmp_path: Path) -> None:
    payments: list[int] = []
    script: Script = {"pay": [[call("pay", amount=5)], ["Told."]], "hi": [["Hello."]]}

    def app() -> FastAPI:
        model = ScriptedModel(script=script)
        agent = LlmAgent(name="root", model=model, tools=[payer(payments)])
        return create_app(agent, database=f"sqlite:///{tmp_path / 'chats.db'}")

    async with on(app()) as stage, telling(stage, "live") as teller:
        asked = await teller.say("pay")
    async with on(app()) as stage, telling(stage, "live") as teller:
        told = await teller.answer(asked, True)
        assert told.text == "Told."
        assert (await teller.say("hi")).text == "Hello."
        history = await history_with(stage, "Hello.")
    assert payments == [5]
    assert [message["role"] for message in history] == ["user", "assistant"] * 2


async def test_edited_arguments_run_live() -> None:
    rules = {"pay": ToolRule(editable=True)}
    async with staged(rules=rules) as stage, telling(stage, "live") as teller:
        asked = await teller.say("pay 5")
        path = f"/api/approvals/{asked.approvals[0]}"
        decided = await stage.http.post(path, json={"approved": True, "input": {"amount": 4}})
        assert decided.status_code == 200, decided.text
        await history_with(stage, "Result told.")
    assert stage.payments == [4]
    assert "4" in prompts_of(stage.model)[-1][-1]


async def test_a_policy_decides_live_without_a_person() -> None:
    rules = {"pay": ToolRule(decide=lambda arguments: arguments["amount"] < 10)}  # type: ignore[operator]
    async with staged(rules=rules) as stage, telling(stage, "live") as teller:
        told = await teller.say("pay 5")
    assert told.text == "Paying. Result told."
    assert stage.payments == [5]


# Agents and tools of other kinds


async def test_a_sub_agent_asks_live() -> None:
    payments: list[int] = []
    script: Script = {"pay": [[call("pay", amount=5)], ["Told."]]}
    cashier = LlmAgent(name="cashier", model=ScriptedModel(script=script), tools=[payer(payments)])
    transfer: Script = {"pay": [[call("transfer_to_agent", agent_name="cashier")]]}
    root = LlmAgent(name="root", model=ScriptedModel(script=transfer), sub_agents=[cashier])
    async with served(root) as stage, telling(stage, "live") as teller:
        asked = await teller.say("pay")
        told = await teller.answer(asked, True)
        assert told.text == "Told."
    assert payments == [5]


def nested(payments: list[int]) -> LlmAgent:
    inner = LlmAgent(
        name="cashier",
        description="Pays.",
        model=ScriptedModel(script={"5 please": [[call("pay", amount=5)], ["Paid it."]]}),
        tools=[payer(payments)],
    )
    script: Script = {"pay": [[call("cashier", request="5 please")], ["Told."]], "hi": [["Hello."]]}
    return LlmAgent(name="root", model=ScriptedModel(script=script), tools=[AgentTool(agent=inner)])


@pytest.mark.parametrize("approved", [True, False])
async def test_an_agent_that_is_a_tool_asks_live(approved: bool) -> None:
    payments: list[int] = []
    async with served(nested(payments)) as stage, telling(stage, "live") as teller:
        asked = await teller.say("pay")
        assert len(asked.approvals) == 1, asked.chunks
        told = await teller.answer(asked, approved)
        assert told.text == "Told.", told.chunks
        outputs = {
            chunk["toolCallId"]: chunk["type"] for chunk in told.chunks[1:] if "toolCallId" in chunk
        }
        assert (await teller.say("hi")).text == "Hello."
    assert payments == ([5] if approved else [])
    inner = "tool-output-available" if approved else "tool-output-denied"
    assert [outputs[name] for name in asked.calls] == ["tool-output-available", inner]


async def test_an_agent_that_is_a_tool_waits_no_longer_than_its_run() -> None:
    payments: list[int] = []
    settings = dataclasses.replace(Settings(), live_hold_seconds=0.3)
    async with served(nested(payments), settings) as stage, telling(stage, "live") as teller:
        asked = await teller.say("pay")
        history = await history_with(stage, "Told.")
        late = await stage.http.post(
            f"/api/approvals/{asked.approvals[0]}", json={"approved": True}
        )
        assert late.status_code == 409
        assert late.json()["status"] == "expired"
        assert (await teller.say("hi")).text == "Hello."
    assert payments == []
    assert [message["role"] for message in history] == ["user", "assistant"]


async def test_an_agents_own_call_is_asked_for_after_one_inside_its_tool() -> None:
    payments: list[int] = []
    inner = LlmAgent(
        name="cashier",
        description="Pays.",
        model=ScriptedModel(script={"5 please": [[call("pay", amount=5)], ["Paid it."]]}),
        tools=[payer(payments)],
    )
    script: Script = {
        "pay": [[call("pay", amount=1), call("cashier", request="5 please")], ["Told."]]
    }
    root = LlmAgent(
        name="root",
        model=ScriptedModel(script=script),
        tools=[payer(payments), AgentTool(agent=inner)],
    )
    async with served(root) as stage, telling(stage, "live") as teller:
        first = await teller.say("pay")
        assert len(first.approvals) == 1
        second = await teller.answer(first, True)
        assert payments == [5]
        assert len(second.approvals) == 1, second.chunks
        told = await teller.answer(second, True)
        assert told.text == "Told.", told.chunks
    assert payments == [5, 1]


async def test_a_model_goes_on_talking_while_a_call_beside_it_waits() -> None:
    payments: list[int] = []
    tool = payer(payments, behavior=types.Behavior.NON_BLOCKING)

    async def talk(model: LiveConnection) -> None:
        await model.prompt()
        ids = await model.send_calls({"name": "pay", "args": {"amount": 5}})
        await model.say("Meanwhile.")
        await model.results_of(ids)
        await model.say("Paid.")

    async with gemini_live(talk) as server:
        agent = LlmAgent(name="root", model=server.model(GEMINI_3), tools=[tool])
        async with served(agent) as stage, telling(stage, "live") as teller:
            asked = await teller.say("pay")
            assert asked.text == "Meanwhile."
            assert asked.chunks[-1]["finishReason"] == "tool-calls"
            told = await teller.answer(asked, True)
            assert told.text == "Paid."
    assert payments == [5]


async def test_a_turn_does_not_end_while_its_tool_runs() -> None:
    payments: list[int] = []
    started, may_end = anyio.Event(), anyio.Event()

    async def pay(amount: int) -> dict[str, int]:
        """Pay, and take long about it."""
        started.set()
        await may_end.wait()
        payments.append(amount)
        return {"paid": amount}

    tool = FunctionTool(pay, require_confirmation=True)
    tool.behavior = types.Behavior.NON_BLOCKING

    async def talk(model: LiveConnection) -> None:
        await model.prompt()
        ids = await model.send_calls({"name": "pay", "args": {"amount": 5}})
        await model.say("Meanwhile.")
        await started.wait()
        await model.say("Still at it.")
        await model.send(words("I am "))
        await model.interrupt()
        await model.results_of(ids)
        await model.say("Paid.")

    async with gemini_live(talk) as server:
        agent = LlmAgent(name="root", model=server.model(GEMINI_3), tools=[tool])
        async with served(agent) as stage, telling(stage, "live") as teller:
            asked = await teller.say("pay")
            running = await teller.begin(asked.approving("c", True))
            await running.until(lambda chunk: chunk.get("delta") == "I am ")
            # The interruption follows at once: a turn that took it for its end would end here.
            with anyio.move_on_after(0.3):
                await running.ended.wait()
            may_end.set()
            told = await running.rest()
            assert told.text.endswith("Paid."), told.chunks
            approval = await stage.http.get(f"/api/approvals/{asked.approvals[0]}")
    assert payments == [5]
    assert approval.json()["status"] == "done"


async def test_a_tool_that_streams_waits_for_its_approval() -> None:
    counted: list[int] = []

    async def count(to: int) -> AsyncIterator[str]:
        """Count."""
        for number in range(to):
            counted.append(number)
            yield str(number)

    script: Script = {"count": [[call("count", to=3)], ["Counting."]]}
    tool = FunctionTool(count, require_confirmation=True)
    agent = LlmAgent(name="root", model=ScriptedModel(script=script), tools=[tool])
    async with served(agent) as stage, telling(stage, "live") as teller:
        asked = await teller.say("count")
        assert counted == []
        told = await teller.answer(asked, True)
        assert told.text.startswith("Counting.")
        with anyio.fail_after(10):
            while counted != [0, 1, 2]:
                await anyio.lowlevel.checkpoint()


async def test_a_raising_tool_does_not_end_the_run() -> None:
    async with staged() as stage, telling(stage, "live") as teller:
        assert (await teller.say("fail")).text == "It failed."
        assert (await teller.say("hi")).text == "Hello."
        prompts = prompts_of(stage.model)
    assert len(prompts[-1]) > 1, "the same connection"


class TypedOnly(BaseLlm):
    """A model that has no live mode."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="Hello.")]))


async def test_a_model_that_cannot_run_live_says_so_and_the_chat_goes_on() -> None:
    agent = LlmAgent(name="root", model=TypedOnly(model="typed"))
    async with served(agent) as stage:
        async with telling(stage, "live") as teller:
            told = await teller.say("hi")
        assert told.chunks[-1]["type"] == "error"
        assert "cannot run live" in told.chunks[-1]["errorText"]
        assert (await stage.say("c", "hi")).text == "Hello."
