"""Where tools of a live run run. Guards the one private name of ADK that we use: ADR-0011."""

from __future__ import annotations

import threading

import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import create_app
from stories.telling import Route, telling
from support.scripted import Script, ScriptedModel, call
from support.serving import serving
from support.stage import Stage

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("route", ["sse", "live"])
async def test_plain_tools_run_in_threads_and_async_ones_on_the_loop(route: Route) -> None:
    threads: dict[str, str] = {}

    def plain() -> str:
        """Do something."""
        threads["plain"] = threading.current_thread().name
        return "done"

    async def awaited() -> str:
        """Do something else."""
        threads["awaited"] = threading.current_thread().name
        return "done"

    script: Script = {"go": [[call("plain"), call("awaited")], ["Told."]]}
    agent = LlmAgent(name="root", model=ScriptedModel(script=script), tools=[plain, awaited])
    app = create_app(agent)
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        stage = Stage(url=url, http=http)
        async with telling(stage, route) as teller:
            assert (await teller.say("go")).text == "Told."
    here = threading.current_thread().name
    assert threads["awaited"] == here
    assert threads["plain"] != here
