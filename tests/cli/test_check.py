"""`adk-stream check`: an installation that works, and ones that do not."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.base_agent import BaseAgent

from adk_stream_protocol.cli import check as check_module
from adk_stream_protocol.cli import main
from adk_stream_protocol.demo.agent import PaymentBook
from adk_stream_protocol.demo.offline_model import OfflineModel
from support.command import run_command

AGENT = """\
from google.adk.agents import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from adk_stream_protocol import BrowserTool

def look(place: str) -> str:
    \"\"\"Look.\"\"\"
    raise AssertionError("no tool is called")

def pay(amount: int) -> str:
    \"\"\"Pay.\"\"\"
    raise AssertionError("no tool is called")

def spend(amount: int) -> str:
    \"\"\"Spend.\"\"\"
    raise AssertionError("no tool is called")

def locate() -> None:
    \"\"\"Locate.\"\"\"

def play() -> None:
    \"\"\"Play.\"\"\"

helper = LlmAgent(name="helper", model="gemini-2.5-flash", tools=[look])
root_agent = LlmAgent(
    name="shop",
    model="gemini-2.5-flash",
    sub_agents=[helper],
    tools=[
        look,
        FunctionTool(pay, require_confirmation=True),
        FunctionTool(spend, require_confirmation=lambda amount: amount > 5),
        BrowserTool(locate, require_confirmation=True),
        BrowserTool(play),
    ],
)
"""


@pytest.fixture(autouse=True)
def _leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.anyio
async def test_an_installation_that_works_says_so(tmp_path: Path) -> None:
    ran = await run_command("check", cwd=tmp_path)

    assert ran.code == 0, ran.out
    *lines, last = ran.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "ok      versions",
        "ok      agent",
        "ok      app",
        "ok      server",
        "ok      text",
        "ok      tool",
        "ok      approval approved",
        "ok      approval denied",
        "ok      resume",
        "ok      history",
    ]
    assert "google-adk 2." in lines[0]
    assert last == "Everything works."
    assert ran.err == ""
    assert os.listdir(tmp_path) == []


def test_an_agent_is_loaded_and_its_tools_are_listed_without_calling_any(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cli_shop").mkdir()
    (tmp_path / "cli_shop" / "agent.py").write_text(AGENT)

    assert main(["check", str(tmp_path / "cli_shop")]) == 0

    told = capsys.readouterr().out
    assert "ok      agent: shop, gemini-2.5-flash\n" in told
    for line in (
        "look: runs at once",
        "pay: asks for approval",
        "spend: asks for approval, depending on its arguments",
        "locate: runs in the browser, after approval",
        "play: runs in the browser",
        "helper: look: runs at once",
    ):
        assert f"{line}\n" in told
    assert "ok      server: ready at http://127.0.0.1:" in told
    assert "ok      text" not in told


def test_an_agent_that_does_not_load_fails_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(tmp_path / "nowhere")]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("FAILED  agent: There is no folder")
    assert lines[1].endswith("Correct the agent, then check again.")
    assert lines[2:] == ["Not everything works; see FAILED above."]


def test_a_payment_made_without_asking_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def careless_agent(*, delay: float, payments: PaymentBook) -> BaseAgent:
        def get_weather(city: str) -> dict[str, str]:
            """Get the weather."""
            return {"city": city}

        tools = [get_weather, payments.process_payment]
        return LlmAgent(name="careless", model=OfflineModel(delay=delay), tools=list(tools))

    monkeypatch.setattr(check_module, "demo_agent", careless_agent)

    assert main(["check"]) == 1

    told = capsys.readouterr().out
    assert "ok      tool: get_weather ran" in told
    assert "FAILED  approval approved: the payment was made before anyone was asked." in told
    assert "denied" not in told


def test_a_bad_setting_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ADK_STREAM_TURN_SECONDS", "soon")
    assert main(["check"]) == 1
    assert "FAILED  app: ADK_STREAM_TURN_SECONDS must be a number" in capsys.readouterr().out
