"""A model that needs no network and says as much as it is asked for, as fast as it is taken.

`text 2000` is answered in 2,000 pieces. `paced 100 30` is answered in 100 pieces, 30 a second; each
piece says when it was due, so that whoever reads it knows how late it is. `tool` and `approval`
call a tool and then say a few words. It imports nothing of ours: peers run it, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

__all__ = ["pieces", "text_agent"]

_AFTER_TOOL: Final = 50
_USAGE: Final = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=7, candidates_token_count=3, total_token_count=10
)


async def pieces(asked: str) -> AsyncIterator[str]:
    """Yield the pieces that are asked for."""
    kind, *numbers = asked.split()
    count = int(numbers[0]) if numbers else _AFTER_TOOL
    began = time.monotonic()
    for number in range(count):
        if kind == "paced":
            due = began + number / float(numbers[1])
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            yield f"due{due:.6f} "
        else:
            # As from a socket: others get a turn in between.
            await asyncio.sleep(0)
            yield f"word{number} "


async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


async def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


class TextModel(BaseLlm):
    """The model."""

    model: str = "bench-text"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer what was said last."""
        last = llm_request.contents[-1].parts or []
        said = "".join(part.text or "" for part in last)
        if said in _CALLS:
            call = types.FunctionCall(**_CALLS[said])
            yield _response(types.Part(function_call=call), partial=False)
            return
        whole: list[str] = []
        async for piece in pieces(said or "text"):
            whole.append(piece)
            if stream:
                yield _response(types.Part(text=piece), partial=True)
        yield _response(types.Part(text="".join(whole)), partial=False)


_CALLS: Final = {
    "tool": {"name": "add", "args": {"a": 1, "b": 2}},
    "approval": {"name": "pay", "args": {"amount": 5}},
}


def _response(part: types.Part, *, partial: bool) -> LlmResponse:
    return LlmResponse(
        content=types.Content(role="model", parts=[part]),
        partial=partial,
        usage_metadata=None if partial else _USAGE,
    )


def text_agent() -> LlmAgent:
    """Return the agent."""
    tools = [FunctionTool(add), FunctionTool(pay, require_confirmation=True)]
    return LlmAgent(name="bench", model=TextModel(), tools=list(tools))
