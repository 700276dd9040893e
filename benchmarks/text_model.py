"""A model that needs no network and says as much as it is asked for, as fast as it is taken.

`tool` and `approval` call a tool and then say a few words. Everything else is as `text_pieces` has
it. It imports nothing of ours: peers run it, too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from benchmarks.text_pieces import pieces

__all__ = ["text_agent"]

_USAGE: Final = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=7, candidates_token_count=3, total_token_count=10
)


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
