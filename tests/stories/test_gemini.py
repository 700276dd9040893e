"""The real google-genai client, through ADK's own `Gemini`, through the whole server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.tools.function_tool import FunctionTool

from adk_stream_protocol import create_app
from support.gemini_emulator import (
    CUT,
    GeminiEmulator,
    Reply,
    call,
    finish,
    http_error,
    serve_gemini,
    text,
    thought,
)
from support.serving import serving
from support.stage import Stage
from support.stored_chats import check_chats

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served(
    script: Sequence[Reply], payments: list[int]
) -> AsyncIterator[tuple[Stage, GeminiEmulator]]:
    def add(a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    def pay(amount: int) -> dict[str, int]:
        """Pay."""
        payments.append(amount)
        return {"paid": amount}

    async with serve_gemini(script) as gemini:
        model = Gemini(
            model="gemini-2.5-flash",
            base_url=gemini.base_url,
            client_kwargs={"api_key": "fake"},
        )
        tools = [FunctionTool(add), FunctionTool(pay, require_confirmation=True)]
        agent = LlmAgent(name="root", model=model, tools=list(tools))
        async with serving(create_app(agent)) as url, httpx.AsyncClient(base_url=url) as http:
            yield Stage(url=url, http=http), gemini
            await check_chats(http)


async def test_text_and_thoughts_stream() -> None:
    script = [[thought("Hm. "), text("Hel"), text("lo."), finish()]]
    async with served(script, []) as (stage, _):
        answered = await stage.say("c", "hi")
    assert answered.text == "Hello."
    assert [c["delta"] for c in answered.only("reasoning-delta")] == ["Hm. "]
    assert answered.chunks[-1]["finishReason"] == "stop"
    assert answered.chunks[-1]["messageMetadata"]["usage"]["inputTokens"] == 10


async def test_a_tool_and_parallel_tools_run() -> None:
    script = [
        [call("add", {"a": 1, "b": 2}), call("add", {"a": 3, "b": 4}), finish()],
        [text("3 and 7."), finish()],
    ]
    async with served(script, []) as (stage, gemini):
        answered = await stage.say("c", "add")
    outputs = [c["output"] for c in answered.only("tool-output-available")]
    assert outputs == [{"sum": 3}, {"sum": 7}]
    assert answered.text == "3 and 7."
    assert "functionResponse" in str(gemini.requests[1].contents)


@pytest.mark.parametrize("approved", [True, False])
async def test_a_confirmation_is_asked_and_answered(approved: bool) -> None:
    payments: list[int] = []
    script = [
        [text("Paying. "), call("pay", {"amount": 5}), finish()],
        [text("Told."), finish()],
    ]
    async with served(script, payments) as (stage, gemini):
        asked = await stage.say("c", "pay")
        assert len(asked.approvals) == 1
        answered = await stage.post("/api/chat", asked.approving("c", approved, reason="mine"))
    assert answered.text == "Told."
    assert payments == ([5] if approved else [])
    told = str(gemini.requests[1].contents)
    assert ("'paid': 5" in told) is approved
    assert ("User denied execution: mine" in told) is not approved
    assert "adk_request_confirmation" not in told


async def test_a_failure_half_way_is_an_error_with_a_public_text() -> None:
    script: list[Reply] = [[text("Half "), CUT], [text("Whole."), finish()]]
    async with served(script, []) as (stage, _):
        broken = await stage.say("c", "hi")
        assert broken.text == "Half "
        assert broken.types[-1] == "error"
        assert "could not finish" in broken.chunks[-1]["errorText"]
        again = await stage.say("c", "again")
    assert again.text == "Whole."


async def test_a_refusal_by_the_api_leaks_nothing() -> None:
    script = [http_error(403, "PERMISSION_DENIED", "Key SECRET is not allowed")]
    async with served(script, []) as (stage, _):
        broken = await stage.say("c", "hi")
    assert broken.types == ["start", "error"]
    assert "SECRET" not in broken.raw
