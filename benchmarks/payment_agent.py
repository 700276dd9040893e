"""An agent with a plain tool and one that is asked about, and a model that needs no network."""

from __future__ import annotations

from typing import Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from support.scripted import Script, ScriptedModel, call

__all__ = ["DELTAS", "payment_agent"]

DELTAS: Final = 50
"""How many pieces the model's text comes in."""

_ANSWER: Final = [f"word{number} " for number in range(DELTAS)]
_SCRIPT: Final[Script] = {
    "text": [_ANSWER],
    "tool": [[call("add", a=1, b=2)], _ANSWER],
    "approval": [[call("pay", amount=5)], _ANSWER],
}


async def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"sum": a + b}


async def pay(amount: int) -> dict[str, int]:
    """Pay."""
    return {"paid": amount}


def payment_agent() -> LlmAgent:
    """Return the agent; it says the same to the same words, each time."""
    return LlmAgent(
        name="bench",
        model=ScriptedModel(script=_SCRIPT),
        tools=[FunctionTool(add), FunctionTool(pay, require_confirmation=True)],
    )
