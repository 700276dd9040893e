"""Any Google ADK agent behind the Vercel AI SDK's `useChat`, with approvals people can trust.

    from adk_stream_protocol import create_app

    app = create_app(root_agent)

`create_router` gives the same routes to an app you have.
"""

from __future__ import annotations

from adk_stream_protocol.held_calls.browser_tool import BrowserTool
from adk_stream_protocol.held_calls.deciders import MayDecide
from adk_stream_protocol.held_calls.policy import Reconciled, ToolRule
from adk_stream_protocol.lifecycle import ApprovalStep
from adk_stream_protocol.server.identity import Identify
from adk_stream_protocol.server.page import page_routes
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app, create_router
from adk_stream_protocol.translation.events import TranslationOptions

__all__ = [
    "ApprovalStep",
    "BrowserTool",
    "Identify",
    "MayDecide",
    "Reconciled",
    "Services",
    "Settings",
    "ToolRule",
    "TranslationOptions",
    "create_app",
    "create_router",
    "page_routes",
]
