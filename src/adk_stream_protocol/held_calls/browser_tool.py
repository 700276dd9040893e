"""A tool that the client runs: declared like any other, never run here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from typing_extensions import override

from adk_stream_protocol.held_calls.policy import RULE_KEY, ToolRule

__all__ = ["BrowserTool"]


class BrowserTool(FunctionTool):
    """A function whose name, parameters and docstring the model sees and the browser runs.

    The function's body is never called by this server; elsewhere (`adk web`, tests) it runs as a
    plain tool. With `require_confirmation` the person is asked before the browser runs it.
    """

    def __init__(
        self,
        func: Callable[..., object],
        require_confirmation: bool = False,
        *,
        rule: ToolRule | None = None,
    ) -> None:
        super().__init__(func)
        shown = rule or ToolRule()
        carried = dataclasses.replace(shown, browser=True, approval=require_confirmation)
        self.custom_metadata = {RULE_KEY: carried}

    @override
    async def check_require_confirmation(
        self,
        args: dict[str, Any],
        tool_context: ToolContext,
    ) -> bool:
        # The gate asks for browser tools, in its own words; ADK must not ask a second time.
        return False
