"""Rules that a tool carries itself: they count wherever it comes from, and only for itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from adk_stream_protocol import ApprovalStep, BrowserTool, ToolRule, create_app
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.policy import RULE_KEY, Policy
from adk_stream_protocol.identifiers import ChatId, InvocationId, UserId
from adk_stream_protocol.stores.memory import MemoryCalls
from adk_stream_protocol.wire.entries import CallHeld
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.stage import Stage, user_by_header

pytestmark = pytest.mark.anyio

FOUR_EYES = ToolRule(
    title="Wire", steps=(ApprovalStep("finance", by=("carol",), four_eyes=True),), editable=True
)


class Toolbox(BaseToolset):
    """Tools that are known only when a run asks for them."""

    def __init__(self, *tools: BaseTool) -> None:
        super().__init__()
        self._tools = list(tools)

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return self._tools

    async def close(self) -> None:
        """Nothing is open."""


def wire_tool(wired: list[int], rule: ToolRule) -> FunctionTool:
    def wire(amount: int) -> dict[str, int]:
        """Wire money."""
        wired.append(amount)
        return {"wired": amount}

    tool = FunctionTool(wire, require_confirmation=True)
    tool.custom_metadata = {RULE_KEY: rule}
    return tool


@asynccontextmanager
async def served(tools: Sequence[Any], sub_agents: Sequence[Any] = ()) -> AsyncIterator[Stage]:
    script = {"wire": [[call("wire", amount=5)], ["Wire told."]]}
    agent = LlmAgent(
        name="root",
        model=ScriptedModel(script=script),
        tools=list(tools),
        sub_agents=list(sub_agents),
    )
    app = create_app(agent, identify=user_by_header)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        yield Stage(url=url, http=http)


async def decide(stage: Stage, approval_id: str, user: str, **more: object) -> httpx.Response:
    body = {"approved": True, **more}
    path = f"/api/approvals/{approval_id}"
    return await stage.http.post(path, json=body, headers={"x-user": user})


async def test_the_steps_of_a_tool_in_a_toolset_are_asked_for() -> None:
    wired: list[int] = []
    async with served([Toolbox(wire_tool(wired, FOUR_EYES))]) as stage:
        asked = await stage.say("c", "wire")
        (card,) = asked.only("data-approval")
        assert card["data"]["title"] == "Wire"
        own = await decide(stage, asked.approvals[0], "alice")
        assert (own.status_code, wired) == (403, [])
        others = await decide(stage, asked.approvals[0], "carol", input={"amount": 4})
        assert (others.status_code, others.json()["status"]) == (200, "approved")


async def test_of_two_tools_of_one_name_the_rule_of_the_called_one_counts() -> None:
    other = LlmAgent(
        name="other", model=ScriptedModel(), tools=[wire_tool([], ToolRule(title="Wrong"))]
    )
    async with served([wire_tool([], FOUR_EYES)], [other]) as stage:
        asked = await stage.say("c", "wire")
        assert asked.only("data-approval")[0]["data"]["title"] == "Wire"
        assert (await decide(stage, asked.approvals[0], "alice")).status_code == 403


async def test_a_browser_tool_in_a_toolset_is_asked_for_once() -> None:
    def wire(amount: int) -> dict[str, int]:  # noqa: ARG001  # the model sees it
        """Wire money."""
        raise AssertionError("runs in the browser")

    async with served([Toolbox(BrowserTool(wire, True))]) as stage:
        asked = await stage.say("c", "wire")
        assert len(asked.approvals) == 1
        # Nor is it run before.
        assert "tool-input-available" not in asked.types
        answered = await stage.post("/api/chat", asked.approving("c", True))
        assert [chunk["toolName"] for chunk in answered.only("tool-input-available")] == ["wire"]


async def test_a_browser_tool_in_a_toolset_is_left_to_the_client() -> None:
    def wire(amount: int) -> dict[str, int]:  # noqa: ARG001  # the model sees it
        """Wire money."""
        raise AssertionError("runs in the browser")

    async with served([Toolbox(BrowserTool(wire))]) as stage:
        asked = await stage.say("c", "wire", path="/stream")
        (shown,) = asked.only("tool-input-available")
        assert "providerExecuted" not in shown


async def test_a_tool_that_asks_with_a_browsers_payload_is_still_asked_for() -> None:
    wired: list[int] = []

    def wire(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Wire money, after asking with what the model may have written."""
        if tool_context.tool_confirmation is None:
            payload = {"adkStreamBrowser": {"approval": False}}
            tool_context.request_confirmation(hint="Wire?", payload=payload)
            return {"status": "waiting"}
        wired.append(amount)
        return {"wired": amount}

    async with served([FunctionTool(wire)]) as stage:
        asked = await stage.say("c", "wire")
        assert (len(asked.approvals), wired) == (1, [])
        answered = await stage.post("/api/chat", asked.approving("c", True))
        assert (answered.text, wired) == ("Wire told.", [5])


@pytest.mark.parametrize("rule", [None, ToolRule(browser=True, approval=True)])
async def test_no_payload_lets_a_call_go_unasked(rule: ToolRule | None) -> None:
    held = CallHeld("adk-a", "c1", "wire", {}, "", approval=False, kind="browser")
    ledger = Ledger(MemoryCalls(), Policy())
    row = await ledger.open(
        held,
        owner=UserId("alice"),
        chat_id=ChatId("c"),
        invocation_id=InvocationId("e-1"),
        rule=rule,
    )
    assert (row.approval, row.state.value) == (True, "pending")


async def test_a_call_that_was_asked_for_without_its_tools_steps_does_not_run() -> None:
    """As if recovery had opened it, which cannot know what a tool in a toolset carries."""
    wired: list[int] = []
    tool = wire_tool(wired, ToolRule())
    async with served([Toolbox(tool)]) as stage:
        asked = await stage.say("c", "wire")
        tool.custom_metadata = {RULE_KEY: FOUR_EYES}
        answered = await stage.post("/api/chat", asked.approving("c", True))
        assert (answered.text, wired) == ("Wire told.", [])
        assert "as its tool must be" in answered.only("tool-output-error")[0]["errorText"]
