"""Rules of tools: what a name says adds to what a tool carries."""

from __future__ import annotations

import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import BrowserTool, ToolRule, create_app
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio


async def test_a_title_by_name_does_not_take_a_browser_tool_to_the_server() -> None:
    ran: list[str] = []

    def locate() -> dict[str, str]:
        """Locate."""
        ran.append("here")
        return {}

    model = ScriptedModel(script={"go": [[call("locate")], ["Done."]]})
    agent = LlmAgent(name="root", model=model, tools=[BrowserTool(locate, True)])
    app = create_app(agent, tools={"locate": ToolRule(title="Find me", expires_in=9)})
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        asked = await Stage(url=url, http=http).say("c", "go")
    assert ran == []
    assert asked.only("data-approval")[0]["data"]["title"] == "Find me"


async def test_a_plain_tool_becomes_a_browser_tool_by_name() -> None:
    async with staged(rules={"add": ToolRule(browser=True)}) as stage:
        asked = await stage.say("c", "add")
        assert asked.types[-3:] == ["tool-input-available", "finish-step", "finish"]
        assert len(stage.model.prompts) == 1


async def test_a_bad_parameter_is_a_clear_400() -> None:
    async with staged() as stage:
        refused = await stage.http.get("/api/chats/c?profile=x")
    assert refused.status_code == 400
    assert "profile" in refused.json()["error"]["message"]
