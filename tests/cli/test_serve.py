"""`adk-stream serve`: the real command, killed and started again; and what it refuses."""

from __future__ import annotations

import json
import logging
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from google.adk.apps.app import App

from adk_stream_protocol.cli import main
from adk_stream_protocol.cli.agents import load_agent, model_text
from adk_stream_protocol.errors import BadRequest
from support.command import run_command, served
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio

AGENT = """\
import os
from google.adk.agents import LlmAgent
from google.adk.apps.app import App

root_agent = LlmAgent(name=os.environ.get("TOLD_BY_ENV", "untold"), model="gemini-2.5-flash")
{more}
"""


@pytest.fixture(autouse=True)
def _leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def folder(parent: Path, name: str, code: str) -> Path:
    made = parent / name
    made.mkdir()
    (made / "agent.py").write_text(code)
    return made


async def say(http: httpx.AsyncClient, text: str) -> Answered:
    body = {"id": "chat-1", "messages": [user_message(text)]}
    return Answered.of(await http.post("/api/chat", json=body))


# The demo, as a process.


async def test_the_demo_is_served_until_it_is_told_to_end(tmp_path: Path) -> None:
    async with served("--database", "memory:", "--delay", "0", cwd=tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url) as http:
            page = await http.get("/")
            reply = await say(http, "Send 50 dollars to Hanako")
            foreign = await http.get("/api/chats", headers={"host": "evil.example"})
        code = await server.end()

    assert "agent     demo" in server.welcome
    assert "model     offline" in server.welcome
    assert "database  memory" in server.welcome
    assert (page.status_code, "server" in page.headers) == (200, False)
    assert len(reply.approvals) == 1
    assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "bad_host")
    assert code == 0
    log = server.log.read_text()
    assert "INFO    turn started chat=chat-1 reply=" in log
    assert "Hanako" not in log
    assert "WARNING: 127" not in log


async def test_a_payment_asked_for_before_a_crash_is_approved_after_it(tmp_path: Path) -> None:
    database = ("--database", "sqlite:///kept.db", "--delay", "0")
    async with served(*database, cwd=tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url) as http:
            asked = await say(http, "Send 50 dollars to Hanako")
        await server.end(signal.SIGKILL)

    async with (
        served(*database, cwd=tmp_path) as server,
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        kept = (await http.get("/api/chats/chat-1")).json()
        decided = await run_command(
            "approvals", "approve", asked.approvals[0], "--server", server.url, cwd=tmp_path
        )
        continued = Answered.of(await http.get("/api/chat/chat-1/stream"))
        chat = (await http.get("/api/chats/chat-1")).json()

    waiting = [part for part in kept["messages"][-1]["parts"] if "toolCallId" in part]
    assert [part["state"] for part in waiting] == ["approval-requested"]
    assert decided.code == 0
    assert continued.text == "I sent 50 USD to Hanako (transaction tx-0001)."
    assert len(chat["messages"]) == 2


async def test_a_second_process_is_refused_the_same_file(tmp_path: Path) -> None:
    database = ("--database", "sqlite:///one.db")
    async with served(*database, cwd=tmp_path) as first:
        second = await run_command("serve", "--port", "0", *database, cwd=tmp_path)
        ended = await first.end(signal.SIGINT)
    async with (
        served(*database, cwd=tmp_path) as third,
        httpx.AsyncClient(base_url=third.url) as http,
    ):
        ready = await http.get("/readyz")

    assert second.code == 2
    assert second.err.startswith("adk-stream: Another process has the database one.db")
    assert second.err.count("\n") == 1
    assert (ended, ready.status_code) == (0, 200)


async def test_an_open_address_is_warned_of_and_named_hosts_are_kept(tmp_path: Path) -> None:
    async with (
        served(
            *("--database", "memory:", "--host", "0.0.0.0"),  # noqa: S104  # what is warned of
            cwd=tmp_path,
            environment={"ADK_STREAM_ALLOWED_HOSTS": "demo.example"},
        ) as server,
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        named = await http.get("/api/chats", headers={"host": "demo.example"})
        unnamed = await http.get("/api/chats")
        log = server.log.read_text()

    assert (named.status_code, unnamed.status_code) == (200, 403)
    assert "everybody is one user" in log
    assert "for the host names demo.example only" in log


async def test_json_logs_are_one_object_per_line(tmp_path: Path) -> None:
    open_to_all = ("--host", "0.0.0.0")  # noqa: S104  # what is warned of
    arguments = ("--database", "memory:", "--delay", "0", "--log-format", "json", *open_to_all)
    async with served(*arguments, cwd=tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, headers={"host": "localhost"}) as http:
            await say(http, "Send 50 dollars to Hanako")
        await server.end()
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]

    told = {line["message"]: line for line in lines}
    assert {"time", "level", "logger", "message"} <= set.intersection(*map(set, lines))
    assert told["turn started"]["chat"] == "chat-1"
    assert told["call held"]["tool"] == "process_payment"
    assert any("everybody is one user" in message for message in told)


async def test_a_folder_is_served_with_its_env(tmp_path: Path) -> None:
    agents = folder(tmp_path, "weather", AGENT.format(more=""))
    (agents / ".env").write_text("TOLD_BY_ENV=named_by_env\n")
    async with served("weather", "--database", "memory:", cwd=tmp_path) as server:
        assert "agent     named_by_env" in server.welcome
        assert "model     gemini-2.5-flash\n" in server.welcome


# Which agent.


def test_an_app_is_preferred_to_an_agent(tmp_path: Path) -> None:
    more = "app = App(name='whole', root_agent=root_agent)"
    loaded = load_agent(str(folder(tmp_path, "cli_with_app", AGENT.format(more=more))))
    assert isinstance(loaded, App)
    assert (loaded.name, model_text(loaded)) == ("whole", "gemini-2.5-flash")


@pytest.mark.parametrize("attribute", ["root_agent", "app", "build", "Holder.agent"])
def test_an_attribute_of_a_module_is_an_agent_an_app_or_makes_one(
    attribute: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = """
app = App(name="whole", root_agent=root_agent)
def build():
    return root_agent
class Holder:
    agent = root_agent
"""
    (tmp_path / "cli_module.py").write_text(AGENT.format(more=more))
    monkeypatch.delitem(sys.modules, "cli_module", raising=False)
    assert load_agent(f"cli_module:{attribute}").name in {"untold", "whole"}


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("cli_raises", "raise ValueError('two\\nlines')", "ValueError: two lines at "),
        ("cli_lacks", "import no_such_module", "No module named 'no_such_module' at "),
        ("cli_misspelt", "def (:", "SyntaxError"),
        ("cli_without", "agent = 1", "defines no ADK agent. Name the agent root_agent"),
        ("not-a-name", "", "letters, digits and underscores"),
    ],
)
def test_a_folder_that_cannot_be_loaded_is_explained_in_one_line(
    name: str, code: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRequest) as refused:
        load_agent(str(folder(tmp_path, name, code)))
    assert told in refused.value.message
    assert "\n" not in refused.value.message


def test_a_folder_of_agents_is_told_to_name_one(tmp_path: Path) -> None:
    folder(tmp_path, "one", "")
    folder(tmp_path, "two", "")
    with pytest.raises(BadRequest, match=r"holds several agents: one, two\. Name one: .*one"):
        load_agent(str(tmp_path))


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "COMMAND"),
        (["bake"], "invalid choice: 'bake'"),
        (["serve", "--port", "web"], "'web' is not a port; ports are 0 to 65535"),
        (["serve", "--port", "65536"], "'65536' is not a port"),
        (["serve", "--delay", "-1"], "'-1' is not a number of seconds"),
        (["serve", "--host", "no.such.host.invalid"], "Check --host and --port."),
        (["serve", "nowhere"], "There is no folder nowhere. Give an ADK agent folder"),
        (["serve", "json:"], "lacks a module or an attribute"),
        (["serve", "json:loads"], "cannot be loaded: TypeError"),
        (["serve", "json:nothing"], "has no attribute 'nothing'"),
        (["serve", "json:__name__"], "is of type str, which is no ADK agent"),
        (["serve", "no_such_module:agent"], "No module named 'no_such_module'"),
        (["serve", "json:loads", "--model", "gemini-2.5-flash"], "--model is for the demo"),
        (["serve", "json:loads", "--delay", "1"], "--delay is for the demo"),
        (["serve", "--model", "gemini-2.5-flash"], "Set GOOGLE_API_KEY or GEMINI_API_KEY"),
        (["serve", "--model", "abacus"], "There is no model 'abacus'. Name a Gemini model"),
        (["serve", "--database", "mysql://host/name"], "unknown scheme 'mysql'. Use memory:"),
        (["serve", "--database", "sqlite:////no/such/folder/x.db"], "a folder that exists"),
        (["serve", "--database", "postgresql://127.0.0.1:1/x"], "that the server runs"),
    ],
)
def test_bad_input_gets_one_clear_line(
    arguments: list[str],
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    free = ["--port", "0"] if arguments[:1] == ["serve"] and "--port" not in arguments else []
    assert exit_code([*arguments, *free]) == 2
    printed = capsys.readouterr()
    assert told in printed.err
    assert printed.err.startswith("adk-stream")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_taken_port_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert exit_code(["serve", "--port", str(port), "--database", "memory:"]) == 2
    assert f"Port {port} of 127.0.0.1 is taken" in capsys.readouterr().err


def test_a_bad_setting_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADK_STREAM_MAX_TURNS", "many")
    assert exit_code(["serve", "--port", "0"]) == 2
    assert "ADK_STREAM_MAX_TURNS must be a number" in capsys.readouterr().err


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--version"]) == 0
    assert capsys.readouterr().out.startswith("adk-stream-protocol 0.")


def exit_code(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
