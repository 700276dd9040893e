"""What an agent's tools ask of people, found without calling any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.tool_context import ToolContext

from adk_stream_protocol.held_calls.policy import Policy

__all__ = ["tool_lines"]

_PLAIN: Final = "runs at once"


async def tool_lines(agent: BaseAgent | App) -> list[str]:
    """Return a line for each tool of the agent and of those below it."""
    root = agent.root_agent if isinstance(agent, App) else agent
    lines = []
    for found in _agents(root):
        of = f"{found.name}: " if found is not root else ""
        for tool in found.tools:
            if isinstance(tool, BaseToolset):
                # Asking it for its tools may need the network.
                lines.append(f"{of}{type(tool).__name__}: a toolset, opened when it is used")
            elif isinstance(tool, BaseTool):
                lines.append(f"{of}{tool.name}: {await _how(tool, found)}")
            else:
                lines.append(f"{of}{getattr(tool, '__name__', type(tool).__name__)}: {_PLAIN}")
    return lines


def _agents(root: object) -> Iterator[LlmAgent]:
    if isinstance(root, LlmAgent):
        yield root
    for child in getattr(root, "sub_agents", None) or []:
        yield from _agents(child)


async def _how(tool: BaseTool, agent: LlmAgent) -> str:
    rule = Policy().rule_of(tool)
    if rule.browser:
        return "runs in the browser" + (", after approval" if rule.approval else "")
    try:
        needs = await tool.check_require_confirmation({}, _context(agent))
    except Exception:  # noqa: BLE001  # a rule of the author's that wants real arguments
        return "asks for approval, depending on its arguments"
    return "asks for approval" if needs else _PLAIN


def _context(agent: LlmAgent) -> ToolContext:
    invocation = InvocationContext(
        session_service=InMemorySessionService(),
        invocation_id="check",
        agent=agent,
        session=Session(id="check", app_name=agent.name, user_id="check"),
    )
    return ToolContext(invocation)
