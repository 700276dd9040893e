"""An agent whose tools fail, each in its way; served as `support.browser_agent:agent`."""

from __future__ import annotations

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from support.scripted import ScriptedModel, call

__all__ = ["agent"]


def raise_it() -> dict[str, str]:
    """Fails without a word to the model."""
    raise RuntimeError("The cup broke.")


def return_it() -> dict[str, str]:
    """Tells the model that it failed."""
    return {"error": "The cup is broken."}


_SCRIPT = {
    "Raise it": [[call("raise_it")], ["I dropped the cup."]],
    "Return it": [[call("return_it")], ["The cup was broken before."]],
    "Are you there?": [["Yes, I am."]],
}

agent = LlmAgent(
    name="clumsy",
    model=ScriptedModel(script=_SCRIPT),
    tools=[FunctionTool(raise_it, require_confirmation=True), return_it],
)
