"""Agents of other shapes: resumable apps, sub-agents, questions, sign-ins, workflows, files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from adk_stream_protocol import create_app, create_router
from support.scripted import Script, ScriptedModel, call
from support.serving import serving
from support.stage import Answered, Stage, user_message

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serve(agent: BaseAgent | App) -> AsyncIterator[Stage]:
    async with serving(create_app(agent)) as url, httpx.AsyncClient(base_url=url) as http:
        yield Stage(url=url, http=http)


def llm(script: Script, tools: Sequence[Any] = (), **more: Any) -> LlmAgent:
    return LlmAgent(name="root", model=ScriptedModel(script=script), tools=list(tools), **more)


def payer(payments: list[int]) -> FunctionTool:
    def pay(amount: int) -> dict[str, int]:
        """Pay."""
        payments.append(amount)
        return {"paid": amount}

    return FunctionTool(pay, require_confirmation=True)


async def test_a_resumable_app_behaves_the_same() -> None:
    payments: list[int] = []
    script: Script = {"pay both": [[call("pay", amount=1), call("pay", amount=2)], ["Told."]]}
    app = App(
        name="resumable",
        root_agent=llm(script, [payer(payments)]),
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    async with serve(app) as stage:
        asked = await stage.say("c", "pay both")
        answered = await stage.post("/api/chat", asked.approving("c", True, False))
    assert answered.text == "Told."
    assert payments == [1]
    assert answered.types.count("tool-output-denied") == 1


async def test_a_gated_tool_of_a_sub_agent_is_asked_and_run() -> None:
    payments: list[int] = []
    script: Script = {
        "pay": [
            ["Handing over. ", call("transfer_to_agent", agent_name="payer")],
        ]
    }
    paying: Script = {"pay": [[call("pay", amount=3)], ["Paid."]]}
    sub = LlmAgent(name="payer", model=ScriptedModel(script=paying), tools=[payer(payments)])
    async with serve(llm(script, sub_agents=[sub])) as stage:
        asked = await stage.say("c", "pay")
        assert asked.only("data-adk-agent")[0]["data"] == {"agent": "payer"}
        assert asked.calls == [asked.only("tool-approval-request")[0]["toolCallId"]]
        answered = await stage.post("/api/chat", asked.approving("c", True))
    assert answered.text == "Paid."
    assert payments == [3]


async def test_a_question_of_the_agent_is_a_tool_the_client_answers() -> None:
    script: Script = {
        "book": [
            [call("adk_request_input", message="Which city?", response_schema={"type": "string"})],
            ["Tokyo it is."],
        ]
    }
    from google.adk.tools._request_input_tool import request_input

    agent = llm(script, [request_input])
    async with serve(agent) as stage:
        asked = await stage.say("c", "book")
        question = asked.only("tool-input-available")[0]
        assert question["toolName"] == "adk_request_input"
        assert question["input"]["message"] == "Which city?"
        assert asked.chunks[-1]["finishReason"] == "tool-calls"
        part = {
            "type": "tool-adk_request_input",
            "toolCallId": question["toolCallId"],
            "state": "output-available",
            "input": {},
            "output": "Tokyo",
        }
        message = {"id": asked.message_id, "role": "assistant", "parts": [part]}
        answered = await stage.post("/api/chat", {"id": "c", "messages": [message]})
        history = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert answered.text == "Tokyo it is."
    assert history[1]["parts"][1]["state"] == "output-available"
    assert history[1]["parts"][1]["output"] == "Tokyo"


async def test_the_apps_own_plugins_stay_and_see_calls_first() -> None:
    seen: list[str] = []

    class Watcher(BasePlugin):
        async def before_tool_callback(
            self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
        ) -> dict[str, Any] | None:
            seen.append(tool.name)
            return None

    payments: list[int] = []
    script: Script = {"pay": [[call("pay", amount=3)], ["Paid."]]}
    app = App(
        name="watched",
        root_agent=llm(script, [payer(payments)]),
        plugins=[Watcher(name="watcher")],
    )
    async with serve(app) as stage:
        asked = await stage.say("c", "pay")
        await stage.post("/api/chat", asked.approving("c", True))
    assert seen == ["pay", "pay"]
    assert [plugin.name for plugin in app.plugins] == ["watcher"]


async def test_the_agents_own_error_callback_decides() -> None:
    def explode() -> dict[str, int]:
        """Fail."""
        raise RuntimeError("inside")

    async def tell(tool: BaseTool, **_more: object) -> dict[str, Any]:
        return {"told": f"by the agent of {tool.name}"}

    agent = llm({"go": [[call("explode")], ["Done."]]}, [explode], on_tool_error_callback=tell)
    async with serve(agent) as stage:
        answered = await stage.say("c", "go")
    assert answered.only("tool-output-available")[0]["output"] == {
        "told": "by the agent of explode"
    }


async def test_a_tool_the_model_made_up_is_told_to_the_model() -> None:
    async with serve(llm({"go": [[call("nothing")], ["Sorry."]]})) as stage:
        answered = await stage.say("c", "go")
    assert "no tool with that name" in answered.only("tool-output-error")[0]["errorText"]
    assert answered.text == "Sorry."


async def test_a_saved_file_can_be_downloaded_by_its_owner_only() -> None:
    async def save(tool_context: ToolContext) -> dict[str, int]:
        """Save a file."""
        part = types.Part(inline_data=types.Blob(data=b"%PDF-1", mime_type="application/pdf"))
        return {"version": await tool_context.save_artifact("a.pdf", part)}

    agent = llm({"go": [[call("save")], ["Saved."]]}, [save])
    async with serve(agent) as stage:
        answered = await stage.say("c", "go")
        told = answered.only("data-adk-artifact")[0]
        assert told["data"] == {"filename": "a.pdf", "version": 0}
        got = await stage.http.get("/api/chats/c/artifacts/a.pdf?version=0")
        assert (got.content, got.headers["content-type"]) == (b"%PDF-1", "application/pdf")
        assert got.headers["content-disposition"] == "attachment"
        none = await stage.http.get("/api/chats/c/artifacts/b.pdf")
        assert (none.status_code, none.json()["error"]["code"]) == (404, "unknown_artifact")


async def test_the_router_works_inside_an_app_with_its_own_lifespan() -> None:
    started: list[str] = []

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        started.append("mine")
        yield

    app = FastAPI(lifespan=lifespan)
    app.include_router(create_router(llm({"hi": [["Hello."]]})), prefix="/agent")
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        response = await http.post(
            "/agent/api/chat", json={"id": "c", "messages": [user_message("hi")]}
        )
    assert started == ["mine"]
    assert Answered.of(response).text == "Hello."


async def test_a_router_whose_lifespan_never_ran_says_so() -> None:
    app = FastAPI()
    app.include_router(create_router(llm({"hi": [["Hello."]]})))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        response = await http.post("/api/chat", json={"id": "c", "messages": [user_message("hi")]})
        assert (await http.get("/readyz")).status_code == 503
    assert response.status_code == 503
    assert response.headers["x-adk-stream-error"] == "not_running"
