"""Who looks at each piece of what a model says, and would miss it."""

from __future__ import annotations

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.plugins.base_plugin import BasePlugin

__all__ = ["is_adks", "looks_at_pieces", "watches"]


def watches(plugin: BasePlugin) -> bool:
    """Whether a plugin is shown every piece."""
    kind = type(plugin)
    return (
        kind.after_model_callback is not BasePlugin.after_model_callback
        or kind.on_event_callback is not BasePlugin.on_event_callback
    )


def looks_at_pieces(agent: LlmAgent, root: object) -> bool:
    """Whether the agent, or one that runs it, may be shown every piece.

    One that is not below the root is run by something that we know nothing of.
    """
    # One that another delegates to may have its answer to itself.
    delegated = agent.mode not in {None, "chat"}
    if agent.after_model_callback or agent.planner is not None or delegated:
        return True
    top: BaseAgent = agent
    while is_adks(top):
        if top.parent_agent is None:
            # By name: ADK runs copies.
            return not isinstance(root, BaseAgent) or top.name != root.name
        top = top.parent_agent
    return True


def is_adks(agent: BaseAgent) -> bool:
    """Whether an agent is of ADK's own kinds, which look at no pieces."""
    return type(agent).__module__.startswith("google.adk.")
