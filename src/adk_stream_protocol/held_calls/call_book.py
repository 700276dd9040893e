"""The call book: an ADK plugin that records how tool calls end, and keeps their ids apart."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from typing_extensions import override

from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.wire.values import JsonValue, jsonable

__all__ = ["CallBook", "end_call"]


class CallBook(BasePlugin):
    """Records how tool calls end, and tells when a run has begun.

    It comes before an app's own plugins: one that answers for a tool would else hide its end.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(name="adk_stream_call_book")
        self._ledger = ledger

    @override
    async def before_run_callback(
        self, *, invocation_context: InvocationContext
    ) -> types.Content | None:
        scope = run_scope.get()
        # What a live run is given comes later.
        if scope is not None and scope.live is None and scope.stored is not None:
            await scope.stored()
        return None

    @override
    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        scope = run_scope.get()
        if scope is not None and not llm_response.partial:
            _tell_apart(llm_response, scope.call_ids, callback_context.session.events)
        return None

    @override
    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        scope = run_scope.get()
        # ADK asks about no response of a live model, and runs the tools of this very event next.
        # An agent's tool runs within, but not live: its responses came by above.
        live = invocation_context.live_request_queue is not None
        if scope is not None and scope.live is not None and live and not event.partial:
            names = _tell_apart(event, scope.call_ids, invocation_context.session.events)
            scope.names.update(names)
            calls = [call.id or "" for call in event.get_function_calls()]
            waiting = event.long_running_tool_ids or ()
            if names and waiting:
                event.long_running_tool_ids = {
                    call_id for call_id in calls if names.get(call_id, call_id) in waiting
                }
        return None

    @override
    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        call_id = tool_context.function_call_id or ""
        if call_id in tool_context.actions.requested_tool_confirmations:
            # Else an app that is not resumable calls the model again before anyone has decided,
            # and the client's helper never sends: it only looks at the last step.
            tool_context.actions.skip_summarization = True
        scope = run_scope.get()
        if scope is not None and not scope.is_refused(tool_context):
            await end_call(
                self._ledger,
                scope,
                call_id,
                result=jsonable(result),
                is_told=_is_told(scope, tool, tool_context),
            )
            await _note_end(scope, tool, tool_context, result)
        return None

    @override
    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        scope = run_scope.get()
        if scope is not None and not scope.is_refused(tool_context):
            call_id = tool_context.function_call_id or ""
            public = self._ledger.policy.error_text(tool.name, error)
            await end_call(
                *(self._ledger, scope, call_id),
                result=None,
                error=public,
                failure=error,
                is_told=_is_told(scope, tool, tool_context),
            )
            if isinstance(error, Exception):
                await _note_end(scope, tool, tool_context, {"error": public})
        return None


async def end_call(
    ledger: Ledger,
    scope: RunScope,
    call_id: str,
    *,
    result: JsonValue,
    error: str | None = None,
    failure: BaseException | None = None,
    is_told: bool = False,
) -> None:
    """Record how a call ended, if it ran; the reply may be yet to tell its result."""
    if call_id not in scope.running:
        return
    claimed = scope.running[call_id]
    if claimed is not None and isinstance(failure, Exception | None):
        await ledger.finish(claimed, result=result, error=error)
    elif claimed is not None:
        # Cancelled from outside while it ran: nobody knows what it did.
        await ledger.calls.lapse(claimed.approval_id, claimed.fence)
    outcome = _outcome(error, failure)
    scope.ended(call_id, outcome, is_told=is_told and outcome != "unknown")


def _is_told(scope: RunScope, tool: BaseTool, tool_context: ToolContext) -> bool:
    """Whether ADK tells the chat a call's result: not of an agent's tool, which has its own chat.

    Of a tool that runs long it may have none.
    """
    return tool_context.session.id == scope.chat_id and not tool.is_long_running


async def _note_end(
    scope: RunScope, tool: BaseTool, tool_context: ToolContext, result: object
) -> None:
    """Let others know that were asked for beside a call: they are told of together."""
    asked = tool_context.function_call_id in tool_context.actions.requested_tool_confirmations
    if scope.asks is not None and not asked:
        await scope.asks.ended(tool, tool_context, result)


def _tell_apart(response: LlmResponse, made: set[str], events: Sequence[Event]) -> dict[str, str]:
    """Give each call of a response an id of its own in the chat; return new ids with the old.

    A model may count from zero in every response. ADK keeps its ids and finds a call that is
    confirmed by its id alone, and so does a client: they would take one call for another.
    """
    parts = (response.content.parts if response.content else None) or []
    calls = [part.function_call for part in parts if part.function_call is not None]
    renamed: dict[str, str] = {}
    if not any(call.id for call in calls):
        # ADK names them itself.
        return renamed
    known = made | {call.id for event in events for call in event.get_function_calls() if call.id}
    for call in calls:
        if call.id and call.id in known:
            # Not ADK's own prefix: it keeps such ids from the model, and some models need one.
            # Cut, as some take no more than forty characters.
            name = f"{call.id[:24]}-{uuid.uuid4().hex[:12]}"
            renamed[name] = call.id
            call.id = name
        if call.id:
            known.add(call.id)
            made.add(call.id)
    return renamed


def _outcome(error: str | None, failure: BaseException | None) -> str:
    if not isinstance(failure, Exception | None):
        return "unknown"
    return "done" if error is None else "failed"
