"""The gate: an ADK plugin that every tool call of a served agent passes.

It asks for browser tools, lets an approved call run only under a claim, answers for a call that
may not run, and turns a raising tool into a result; how calls end, the `CallBook` records. Both use
ADK's public hooks only and keep no state of their own; what they need to know of the run comes
from the `RunScope` of its task.
"""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext
from typing_extensions import override

from adk_stream_protocol.errors import trace_of
from adk_stream_protocol.held_calls.asking import static_confirmation
from adk_stream_protocol.held_calls.automatic import Asked, decide_alone
from adk_stream_protocol.held_calls.call_book import end_call
from adk_stream_protocol.held_calls.editing import schemas_of, with_changes
from adk_stream_protocol.held_calls.ledger import Ledger
from adk_stream_protocol.held_calls.policy import ToolRule
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.identifiers import CallId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.cards import call_answered
from adk_stream_protocol.translation.held import WORKFLOW_PREFIX, browser_payload
from adk_stream_protocol.wire.profiles import outcome_text
from adk_stream_protocol.wire.values import as_object, digest, jsonable

__all__ = ["Gate"]

logger = logging.getLogger(__name__)

_STOPPED = "Stopped before it ran."
_TOO_MANY = "Too many calls wait for a decision already; this one was not asked for."
_NOT_RELEASED = "This call was not released; it was not run."
_UNKNOWN = (
    "The server was interrupted while this ran. It is not known whether it took effect: do not "
    "call it again before a person has checked."
)
_SAME_ID = (
    "Another call of the same response has the same id, so their results could not be told apart; "
    "this one was not run. Call it again."
)
_OTHER_RULE = "This call was not asked for as its tool must be; it was not run. Call it again."
_ENDED = frozenset({CallState.DONE, CallState.FAILED})
_CHANGED = "The arguments are not the ones that were approved; the call was not run."


class Gate(BasePlugin):
    """Holds and releases tool calls, and answers for a tool that raises.

    It comes after an app's own plugins, so that they see every call and error first.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(name="adk_stream_gate")
        self._ledger = ledger
        self._policy = ledger.policy

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        scope = run_scope.get()
        if scope is not None:
            self._policy.learn(llm_request.tools_dict.values())

            def is_editable(name: str) -> bool:
                tool = llm_request.tools_dict.get(name)
                return tool is not None and self._policy.rule_of(tool).editable

            for name, schema in schemas_of(llm_request, is_editable):
                scope.schemas[callback_context.agent_name, name] = schema
        return None

    @override
    async def before_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
    ) -> dict[str, Any] | None:
        scope = run_scope.get()
        if scope is None:
            return None
        if scope.followed is not None:
            # Someone spoke: the chat is being taken, and nobody may claim a call before.
            await scope.followed()
        if scope.stopping:
            return {"error": _STOPPED}
        if tool_context.tool_confirmation is not None:
            return await self._resume(scope, tool, tool_args, tool_context)
        if not scope.take(tool_context):
            return {"error": _SAME_ID}
        # A live run does not show what it offers its model.
        self._policy.learn([tool])
        rule = self._policy.rule_of(tool)
        # Noted before anyone is asked: the row is opened under the rule of the very tool.
        scope.rules[_place(tool_context)] = rule
        if rule.browser:
            return await self._hand_to_browser(scope, tool, tool_args, tool_context)
        if await tool.check_require_confirmation(tool_args, tool_context):
            return await self._ask(scope, tool, tool_args, tool_context)
        scope.started(tool_context.function_call_id or "", None, tool.name)
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
        scope = run_scope.get()
        call_id = tool_context.function_call_id or ""
        if scope is not None and scope.asks is not None:
            asked = tool_context.actions.requested_tool_confirmations.pop(call_id, None)
            if asked is not None:
                return await self._ask_again(scope, tool, tool_args, tool_context, asked)
        edited = None if scope is None else scope.edited.pop(call_id, None)
        if edited is None or call_id in tool_context.actions.requested_tool_confirmations:
            return None
        if tool.is_long_running and not result:
            # Its result comes from outside, later.
            return None
        # ADK asks the agent's own callbacks only if no plugin answers; they must not be skipped.
        own = await _agents_answer(tool, tool_args, tool_context, result)
        return with_changes(result if own is None else own, edited)

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
        if scope is None or not isinstance(error, Exception):
            return None
        logger.warning(
            "tool failed: %s",
            trace_of(error),
            extra={
                "chat": scope.chat_id,
                "call": tool_context.function_call_id,
                "tool": tool.name,
            },
        )
        if await _is_handled_by_adk(tool, tool_context):
            return None
        # Without a result ADK ends the whole run, and the client's tool part would wait for ever.
        return {"error": self._policy.error_text(tool.name, error)}

    async def _ask(
        self,
        scope: RunScope,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
    ) -> dict[str, Any] | None:
        asked = Asked(
            call_id=CallId(tool_context.function_call_id or ""),
            tool_name=tool.name,
            arguments=as_object(jsonable(tool_args)),
            owner=scope.owner,
            chat_id=scope.chat_id,
            invocation_id=scope.turn_of(tool_context),
            reply_id=scope.holder,
        )
        rule = self._policy.rule_of(tool)
        # A workflow's tool node has no call id: there would be no part to show the decision on.
        call = await decide_alone(self._ledger, rule, asked) if asked.call_id else None
        if call is None:
            # ADK's own gate asks; all there is to decide here is whether it may.
            refusal = await self._refuse_more(scope)
            if refusal is None and scope.asks is not None:
                asked_for = static_confirmation(tool)
                return await self._hold(scope, tool, tool_args, tool_context, asked_for)
            return refusal
        scope.decided.append(call)
        claimed = await self._ledger.calls.claim(call.approval_id, scope.holder)
        if claimed is None:
            return _refusal(call)
        scope.started(call.call_id, claimed, tool.name)
        # ADK's own gate comes next, and finds it confirmed.
        tool_context.tool_confirmation = ToolConfirmation(confirmed=True)
        return None

    async def _hold(
        self,
        scope: RunScope,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        asked: ToolConfirmation,
    ) -> dict[str, Any] | None:
        """Ask within the run, and wait; None: the call may run now."""
        assert scope.asks is not None, "only a live run waits"
        await self._note_schema(scope, tool, tool_context)
        await scope.asks.ask(tool, tool_args, tool_context, asked)
        scope.asking -= 1
        if scope.stopping:
            return {"error": _STOPPED}
        # ADK's own gate comes next, and finds it confirmed.
        tool_context.tool_confirmation = ToolConfirmation(confirmed=True, payload=asked.payload)
        return await self._resume(scope, tool, tool_args, tool_context)

    async def _note_schema(
        self, scope: RunScope, tool: BaseTool, tool_context: ToolContext
    ) -> None:
        """Remember how a tool's arguments may be edited: a live run does not show its requests."""
        if self._policy.rule_of(tool).editable:
            request = LlmRequest()
            await tool.process_llm_request(tool_context=tool_context, llm_request=request)
            for name, schema in schemas_of(request, lambda _name: True):
                scope.schemas[tool_context.agent_name, name] = schema

    async def _ask_again(
        self,
        scope: RunScope,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        asked: ToolConfirmation,
    ) -> dict[str, Any]:
        """Ask for a tool that asks by itself, then run it once more."""
        tool_context.actions.skip_summarization = None
        refusal = await self._refuse_more(scope)
        if refusal is None:
            refusal = await self._hold(scope, tool, tool_args, tool_context, asked)
        if refusal is not None:
            return refusal
        call_id = tool_context.function_call_id or ""
        try:
            result = await tool.run_async(args=tool_args, tool_context=tool_context)
        except Exception as error:  # noqa: BLE001  # the edge: as ADK would tell the plugins
            public = self._policy.error_text(tool.name, error)
            await end_call(self._ledger, scope, call_id, result=None, error=public, failure=error)
            return {"error": public}
        told = result if isinstance(result, dict) else {"result": result}
        await end_call(self._ledger, scope, call_id, result=jsonable(told))
        own = await _agents_answer(tool, tool_args, tool_context, told)
        answer = told if own is None else own
        edited = scope.edited.pop(call_id, None)
        return answer if edited is None else with_changes(answer, edited)

    async def _refuse_more(self, scope: RunScope) -> dict[str, Any] | None:
        """Return the refusal if no more calls may wait for this user."""
        if not await self._ledger.has_room(scope.owner, scope.asking):
            return {"error": _TOO_MANY}
        scope.asking += 1
        return None

    async def _hand_to_browser(
        self,
        scope: RunScope,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
    ) -> dict[str, Any] | None:
        refusal = await self._refuse_more(scope)
        if refusal is not None:
            return refusal
        rule = self._policy.rule_of(tool)
        # Asked as ADK's own confirmation: it pauses and resumes beside gated siblings, in every
        # session service, and leaves one answer event for all of them. See ADR-0003.
        hint = rule.hint or f"The browser runs {tool.name}."
        payload = browser_payload(approval=rule.approval)
        if scope.asks is not None:
            asked = ToolConfirmation(hint=hint, payload=payload)
            return await self._hold(scope, tool, tool_args, tool_context, asked)
        tool_context.request_confirmation(hint=hint, payload=payload)
        tool_context.actions.skip_summarization = True
        return {"status": "The browser runs this; its output follows."}

    async def _resume(
        self,
        scope: RunScope,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
    ) -> dict[str, Any] | None:
        call_id = tool_context.function_call_id or ""
        call = await self._held(scope, tool, tool_context)
        if call is None or not call.approved:
            return _refusal(call)
        if not _is_opened_under(self._policy.rule_of(tool), call):
            return {"error": _OTHER_RULE}
        if call.kind is CallKind.BROWSER or call.state in _ENDED:
            # Ended before, in a process that died before ADK had the result.
            return _result(call)
        if call.state is CallState.UNKNOWN:
            return {"error": _UNKNOWN}
        if digest(as_object(jsonable(tool_args))) != call.arguments_hash:
            return {"error": _CHANGED}
        claimed = await self._ledger.calls.claim(call.approval_id, scope.holder)
        if claimed is None:
            return _refusal(call)
        scope.started(call_id, claimed, claimed.tool_name)
        if claimed.edited is not None:
            # ADK runs the tool with this very dictionary.
            tool_args.clear()
            tool_args.update(copy.deepcopy(dict(claimed.edited)))
            scope.edited[call_id] = claimed.edited
        return None

    async def _held(
        self, scope: RunScope, tool: BaseTool, tool_context: ToolContext
    ) -> HeldCall | None:
        """Return the row of the call that is resumed."""
        call_id = CallId(tool_context.function_call_id or "")
        # ADK resumes a call in the invocation that made it.
        invocation_id = scope.turn_of(tool_context)
        call = await self._ledger.calls.latest(scope.chat_id, invocation_id, call_id)
        if call is not None:
            return call if call.tool_name == tool.name else None
        request_id = _request_of(tool_context)
        for row in await self._ledger.calls.of_chat(scope.chat_id):
            same_run = row.invocation_id == invocation_id
            if row.request_id == request_id and same_run:
                return row
        return None


def _request_of(tool_context: ToolContext) -> str:
    """Return how ADK names what a workflow's tool node asks."""
    return f"{WORKFLOW_PREFIX}{tool_context.node_path}"


def _place(tool_context: ToolContext) -> str:
    # A workflow's tool node has no call id of its own: it is known by its place.
    return tool_context.function_call_id or _request_of(tool_context)


def _is_opened_under(rule: ToolRule, call: HeldCall) -> bool:
    """Whether a call was asked for as its tool's rule wants it.

    A row that recovery opens may lack what a tool in a toolset carries.
    """
    if (call.kind is CallKind.BROWSER) != rule.browser:
        return False
    return call.kind is CallKind.BROWSER or bool(call.steps) or not rule.steps


def _refusal(call: HeldCall | None) -> dict[str, Any]:
    if call is None or call.approved or call.state is CallState.PENDING:
        return {"error": _NOT_RELEASED}
    return {"error": outcome_text(call_answered(call))}


def _result(call: HeldCall) -> dict[str, Any]:
    result: dict[str, Any] = {"result": call.result}
    if call.error is not None:
        result = {"error": call.error}
    elif isinstance(call.result, dict):
        result = dict(call.result)
    return result if call.edited is None else with_changes(result, call.edited)


async def _agents_answer(
    tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: dict[str, Any]
) -> dict[str, Any] | None:
    """Return what the agent's own callbacks make of a result, as ADK would ask them."""
    agent = tool_context.get_invocation_context().agent
    callbacks: Sequence[Callable[..., Any]] = (
        agent.canonical_after_tool_callbacks if isinstance(agent, LlmAgent) else ()
    )
    for callback in callbacks:
        told = callback(tool=tool, args=tool_args, tool_context=tool_context, tool_response=result)
        answer = await told if inspect.isawaitable(told) else told
        if answer is not None:
            return dict(answer)
    return None


async def _is_handled_by_adk(tool: BaseTool, tool_context: ToolContext) -> bool:
    """Whether the agent's own error callbacks, or ADK's answer to an unknown tool, come next."""
    agent = tool_context.get_invocation_context().agent
    if not isinstance(agent, LlmAgent):
        return False
    known = {known.name for known in await agent.canonical_tools(tool_context)}
    return bool(agent.canonical_on_tool_error_callbacks) or tool.name not in known
