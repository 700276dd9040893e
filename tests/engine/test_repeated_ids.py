"""Call ids that a model gives more than once: no call is taken for another."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol import create_app
from adk_stream_protocol.stores.sql import sqlite_stores
from support.serving import serving
from support.stage import Answered, Stage, staged, user_by_header

pytestmark = pytest.mark.anyio


def first(name: str, **arguments: Any) -> types.Part:
    """Return a call by a model that counts its calls from zero in every response."""
    return types.Part(function_call=types.FunctionCall(name=name, id="call_0", args=arguments))


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    sql = request.param == "sqlite"
    async with staged(stores=sqlite_stores(str(tmp_path / "s.db")) if sql else None) as stage:
        stage.model.script = {
            "big": [[first("pay", amount=500)], ["Big told."]],
            "small": [[first("pay", amount=5)], ["Small told."]],
            "in turn": [[first("add", a=1, b=2)], [first("pay", amount=7)], ["In turn told."]],
            "both": [[first("pay", amount=1), first("pay_slowly", amount=2)], ["Both told."]],
        }
        yield stage


async def statuses(stage: Stage) -> list[tuple[int, str]]:
    listed = (await stage.http.get("/api/approvals")).json()["approvals"]
    return [(approval["input"]["amount"], approval["status"]) for approval in listed]


async def decided(stage: Stage, asked: Answered, text: str, *, approved: bool) -> None:
    """Decide from elsewhere, and wait until the chat has told of it."""
    body = {"approved": approved}
    answer = await stage.http.post(f"/api/approvals/{asked.approvals[0]}", json=body)
    assert answer.status_code == 200
    with anyio.fail_after(10):
        while text not in Answered.of(await stage.http.get("/api/chat/c/stream")).text:
            await anyio.lowlevel.checkpoint()


async def test_an_older_call_is_decided_though_a_newer_one_has_its_id(stage: Stage) -> None:
    big, small = await stage.say("c", "big"), await stage.say("c", "small")
    assert big.calls != small.calls
    await decided(stage, big, "Big told.", approved=True)
    assert stage.payments == [500]
    assert await statuses(stage) == [(500, "done"), (5, "pending")]
    await decided(stage, small, "Small told.", approved=False)
    assert stage.payments == [500]


async def test_a_denial_of_one_call_does_not_hit_its_namesake(stage: Stage) -> None:
    one, two = await stage.say("c", "big"), await stage.say("c", "big")
    await decided(stage, one, "Big told.", approved=False)
    assert stage.payments == []
    assert await statuses(stage) == [(500, "denied"), (500, "pending")]
    await stage.post("/api/chat", two.approving("c", True))
    assert stage.payments == [500]


async def test_an_id_repeated_within_a_turn_names_two_calls(stage: Stage) -> None:
    asked = await stage.say("c", "in turn")
    assert len(set(asked.calls)) == 2
    answered = await stage.post("/api/chat", asked.approving("c", True))
    assert (answered.text, stage.payments) == ("In turn told.", [7])


async def test_two_calls_of_one_response_with_one_id_are_both_asked_for(stage: Stage) -> None:
    stage.tool_may_end.set()
    asked = await stage.say("c", "both")
    assert len(set(asked.calls)) == len(asked.approvals) == 2
    answered = await stage.post("/api/chat", asked.approving("c", True, False))
    assert (answered.text, stage.payments) == ("Both told.", [1])


async def test_the_second_of_two_calls_that_cannot_be_told_apart_is_refused() -> None:
    """An app's own callback answers for the model, so nobody could give them ids."""
    ran: list[int] = []

    async def note(number: int) -> dict[str, int]:
        """Note a number."""
        await anyio.lowlevel.checkpoint()
        ran.append(number)
        return {"noted": number}

    # ADK passes both by name.
    def answer(
        callback_context: CallbackContext,  # noqa: ARG001
        llm_request: LlmRequest,
    ) -> LlmResponse:
        parts = [first("note", number=1), first("note", number=2)]
        if llm_request.contents[-1].parts and llm_request.contents[-1].parts[-1].function_response:
            results.extend(
                part.function_response.response or {}
                for part in llm_request.contents[-1].parts
                if part.function_response
            )
            parts = [types.Part(text="Told.")]
        return LlmResponse(content=types.Content(role="model", parts=parts))

    results: list[dict[str, Any]] = []
    agent = LlmAgent(name="root", tools=[note], before_model_callback=answer)
    app = create_app(agent, identify=user_by_header)
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        reply = await Stage(url=url, http=http).say("c", "go")
    assert (reply.text, ran) == ("Told.", [1])
    assert results[0] == {"noted": 1}
    assert "same id" in results[1]["error"]
