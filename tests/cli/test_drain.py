"""A server that is told to end: the real command, its signals, and what comes after it."""

from __future__ import annotations

import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from support.command import Served, served
from support.postgres import PostgresServer
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio

AGENT = '''\
import asyncio
import pathlib
import threading

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool
from google.genai import types


def said(part, partial=False):
    content = types.Content(role="model", parts=[part])
    return LlmResponse(content=content, partial=partial)


class Model(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.text == "block":
            call = types.FunctionCall(name="block", args={})
            yield said(types.Part(function_call=call))
        elif last.text == "pay":
            call = types.FunctionCall(name="pay", args={"amount": 5})
            yield said(types.Part(function_call=call))
        else:
            yield said(types.Part(text="One. "), partial=True)
            while not pathlib.Path("go").exists():
                await asyncio.sleep(0.02)
            yield said(types.Part(text="One. Two."))


def block() -> dict[str, bool]:
    """Never return."""
    pathlib.Path("blocking").touch()
    threading.Event().wait()
    return {}


def pay(amount: int) -> dict[str, int]:
    """Pay."""
    with open("paid", "a") as paid:
        paid.write(f"{amount}\\n")
    return {"paid": amount}


root_agent = LlmAgent(
    name="slow",
    model=Model(model="slow"),
    tools=[FunctionTool(block), FunctionTool(pay, require_confirmation=True)],
)
'''


@asynccontextmanager
async def slow(
    folder: Path, *, drain: str = "20", database: str = "sqlite:///kept.db"
) -> AsyncIterator[tuple[Served, httpx.AsyncClient]]:
    """Serve the agent above, whose model waits in the middle of a reply for a file named `go`."""
    (folder / "slow").mkdir(exist_ok=True)
    (folder / "slow" / "agent.py").write_text(AGENT)
    environment = {"ADK_STREAM_DRAIN_SECONDS": drain}
    arguments = ("slow", "--database", database)
    async with (
        served(*arguments, cwd=folder, environment=environment) as server,
        httpx.AsyncClient(base_url=server.url, timeout=20) as http,
    ):
        yield server, http


def said(text: str) -> dict[str, object]:
    return {"id": "chat-1", "messages": [user_message(text)]}


async def until(http: httpx.AsyncClient, path: str, status: int) -> httpx.Response:
    """Ask again until the answer is of this status; the requests take turns with the server."""
    with anyio.fail_after(10):
        while (response := await http.get(path)).status_code != status:
            pass
    return response


async def begun(lines: AsyncIterator[str]) -> list[str]:
    """Return the lines up to the first text."""
    seen: list[str] = []
    async for line in lines:
        seen.append(line)
        if "text-delta" in line:
            return seen
    raise AssertionError(f"the reply ended without text: {seen}")


async def test_a_running_reply_finishes_and_nothing_new_begins(tmp_path: Path) -> None:
    async with slow(tmp_path) as (server, http):
        async with http.stream("POST", "/api/chat", json=said("hi")) as response:
            lines = response.aiter_lines()
            seen = await begun(lines)
            server.process.send_signal(signal.SIGTERM)
            draining = await until(http, "/readyz", 503)
            refused = await http.post("/api/chat", json={**said("hi"), "id": "chat-2"})
            resumed = http.stream("GET", "/api/chat/chat-1/stream")
            async with resumed as second:
                (tmp_path / "go").touch()
                seen += [line async for line in lines]
                again = [line async for line in second.aiter_lines()]
        with anyio.fail_after(10):
            code = await server.process.wait()
        log = server.log.read_text()

    assert draining.json() == {"status": "draining"}
    assert (refused.status_code, refused.headers["x-adk-stream-error"]) == (503, "draining")
    assert int(refused.headers["retry-after"]) > 0
    assert "data: [DONE]" in seen
    assert "data: [DONE]" in again
    assert code == 0
    assert "ERROR" not in log
    assert "handed over" not in log


async def cut_off(lines: AsyncIterator[str]) -> None:
    """Read on until the connection is lost, in the middle of the reply."""
    with pytest.raises(httpx.RemoteProtocolError, match="peer closed connection"):
        await anext(line async for line in lines if line == "data: [DONE]")


async def test_a_reply_that_hangs_is_handed_over_when_the_time_is_over(tmp_path: Path) -> None:
    async with slow(tmp_path, drain="0.5") as (server, http):
        async with http.stream("POST", "/api/chat", json=said("hi")) as response:
            lines = response.aiter_lines()
            await begun(lines)
            since = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            await cut_off(lines)
        with anyio.fail_after(10):
            code = await server.process.wait()
        took = time.monotonic() - since
        log = server.log.read_text()

    assert code == 0
    assert 0.5 <= took < 10
    assert "turn handed over chat=chat-1 reply=" in log
    assert "ERROR" not in log

    (tmp_path / "go").touch()
    async with slow(tmp_path) as (server, http):
        recovered = Answered.of(await http.get("/api/chat/chat-1/stream"))
        after = Answered.of(await http.post("/api/chat", json=said("hello")))
    assert recovered.text == after.text == "One. Two."


async def test_another_instance_goes_on_with_what_was_handed_over(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    database = postgres.create("drained")
    async with (
        slow(tmp_path, drain="0.5", database=database) as (server, http),
        slow(tmp_path, database=database) as (_, other),
    ):
        async with http.stream("POST", "/api/chat", json=said("hi")) as response:
            lines = response.aiter_lines()
            await begun(lines)
            server.process.send_signal(signal.SIGTERM)
            await cut_off(lines)
        with anyio.fail_after(10):
            assert await server.process.wait() == 0
        (tmp_path / "go").touch()
        # Far less than the lease of 30 seconds: nobody has to wait for that.
        with anyio.fail_after(15):
            recovered = Answered.of(await other.get("/api/chat/chat-1/stream"))
    assert recovered.text == "One. Two."
    assert recovered.types[-1] == "finish"


async def test_a_decision_during_the_drain_counts_and_is_followed_up_later(
    tmp_path: Path,
) -> None:
    async with slow(tmp_path, drain="0.5") as (server, http):
        asked = Answered.of(await http.post("/api/chat", json=said("pay")))
        url = f"/api/approvals/{asked.approvals[0]}"
        other = {**said("hi"), "id": "chat-2"}
        async with http.stream("POST", "/api/chat", json=other) as response:
            lines = response.aiter_lines()
            await begun(lines)
            server.process.send_signal(signal.SIGTERM)
            await until(http, "/readyz", 503)
            decided = await http.post(url, json={"approved": True})
            await cut_off(lines)
        with anyio.fail_after(10):
            await server.process.wait()
        log = server.log.read_text()

    assert (decided.status_code, decided.json()["status"]) == (200, "approved")
    assert not (tmp_path / "paid").exists()
    assert "ERROR" not in log

    (tmp_path / "go").touch()
    async with slow(tmp_path) as (server, http):
        with anyio.fail_after(20):
            while (await http.get(url)).json()["status"] != "done":
                pass
    assert (tmp_path / "paid").read_text() == "5\n"


async def test_a_second_interrupt_ends_the_wait(tmp_path: Path) -> None:
    async with slow(tmp_path, drain="600") as (server, http):
        async with http.stream("POST", "/api/chat", json=said("hi")) as response:
            lines = response.aiter_lines()
            await begun(lines)
            server.process.send_signal(signal.SIGINT)
            await until(http, "/readyz", 503)
            server.process.send_signal(signal.SIGINT)
            await cut_off(lines)
        with anyio.fail_after(10):
            assert await server.process.wait() == 0
        assert "turn handed over" in server.log.read_text()


async def test_a_tool_that_hangs_in_a_thread_does_not_keep_the_process(tmp_path: Path) -> None:
    async with slow(tmp_path, drain="0.5") as (server, http):
        async with http.stream("POST", "/api/chat", json=said("block")) as response:
            with anyio.fail_after(10):
                while not (tmp_path / "blocking").exists():
                    await http.get("/healthz")
            server.process.send_signal(signal.SIGTERM)
            await cut_off(response.aiter_lines())
        with anyio.fail_after(10):
            assert await server.process.wait() == 0


async def test_a_held_call_outlives_the_server_that_asked(tmp_path: Path) -> None:
    async with slow(tmp_path) as (server, http):
        asked = Answered.of(await http.post("/api/chat", json=said("pay")))
        since = time.monotonic()
        code = await server.end()
        took = time.monotonic() - since
    (tmp_path / "go").touch()
    async with slow(tmp_path) as (server, http):
        waiting = (await http.get("/api/approvals?status=pending")).json()["approvals"]
        answered = Answered.of(await http.post("/api/chat", json=asked.approving("chat-1", True)))

    assert code == 0
    assert took < 10, "nothing ran, so there was nothing to wait for"
    assert [approval["id"] for approval in waiting] == asked.approvals
    assert answered.text == "One. Two."
    assert (tmp_path / "paid").read_text() == "5\n"
