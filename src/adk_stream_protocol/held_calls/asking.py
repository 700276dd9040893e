"""How a live run asks: its tools wait where they are, while a person thinks.

ADK's live mode can only refuse a call that needs a confirmation. Here the gate asks instead, and
leaves in the session the very events that a unary run leaves: one request for all calls of a
response, and one placeholder result. So whatever becomes of the live run, any run can go on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from adk_stream_protocol.held_calls.run_scope import event_of
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.translation.held import inner_mark
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL

__all__ = ["Asking", "static_confirmation"]

_PLACEHOLDER: Final = "This tool call requires confirmation, please approve or reject."


def static_confirmation(tool: BaseTool) -> ToolConfirmation:
    """Return what ADK asks with where a tool is declared to need a confirmation."""
    return ToolConfirmation(
        hint=(
            f"Please approve or reject the tool call {tool.name}() by responding with a "
            "FunctionResponse with an expected ToolConfirmation payload."
        )
    )


@dataclass(slots=True)
class _Asked:
    """One call that waits."""

    tool: BaseTool
    arguments: Mapping[str, Any]
    tool_context: ToolContext
    confirmation: ToolConfirmation
    request_id: str = field(default_factory=lambda: f"adk-{uuid.uuid4()}")
    is_told: bool = False
    """False: it waits for others of its response, and nobody knows of it."""
    released: anyio.Event = field(default_factory=anyio.Event)

    @property
    def call_id(self) -> str:
        return self.tool_context.function_call_id or ""


@dataclass(slots=True)
class _Batch:
    """The calls of one response that ADK runs together: they are asked for together."""

    calls: frozenset[str]
    ended: dict[str, types.Part | None]
    """The results of those that needed nobody; None: it has none yet, and the run goes on."""
    order: Sequence[str] = ()
    """The calls of the response, in the order in which the model made them."""
    asked: dict[str, _Asked] = field(default_factory=dict)
    is_told: bool = False

    def in_order(self) -> list[_Asked]:
        """Return those that wait as the model called them, whichever was asked for first."""
        return sorted(self.asked.values(), key=lambda asked: self._place(asked.call_id))

    def results_in_order(self) -> list[types.Part]:
        """Return the results as the model called for them, whichever came first."""
        names = sorted(self.ended, key=self._place)
        return [part for name in names if (part := self.ended[name]) is not None]

    def _place(self, call_id: str) -> int:
        return self.order.index(call_id) if call_id in self.order else len(self.order)


class Asking:
    """Asks for the calls of one live run."""

    def __init__(
        self, chat_id: ChatId, place: Callable[[Sequence[Event], frozenset[str]], None]
    ) -> None:
        self._chat_id = chat_id
        # Puts events into the run's own, not before the calls they are about.
        self._place = place
        # By the event that holds the calls.
        self._batches: dict[str, _Batch] = {}
        self._results: dict[str, dict[str, types.Part | None]] = {}
        # What waits, by ADK's name of the request.
        self._waiting: dict[str, _Asked] = {}
        # The calls of agents' tools that were asked for and have not ended.
        self._asked_inside: set[str] = set()

    @property
    def waits(self) -> bool:
        """Whether some call waits for an answer."""
        return bool(self._waiting)

    def is_inner(self, request_id: str) -> bool:
        """Whether a request is one of an agent's tool, which only this run can act on."""
        asked = self._waiting.get(request_id)
        return asked is not None and not self._is_outer(asked.tool_context)

    @property
    def waits_inside(self) -> bool:
        """Whether some call waits that only this run can act on."""
        return any(map(self.is_inner, self._waiting))

    @property
    def blocks(self) -> bool:
        """Whether the run cannot go on before an answer comes."""
        return any(not _is_non_blocking(asked.tool) for asked in self._waiting.values())

    def waits_for(self, requests: Collection[str]) -> bool:
        """Whether these are the requests that somebody was told of, all of them and no other."""
        told = {request for request, asked in self._waiting.items() if asked.is_told}
        return bool(told) and told == set(requests)

    async def ask(
        self,
        tool: BaseTool,
        tool_args: Mapping[str, Any],
        tool_context: ToolContext,
        confirmation: ToolConfirmation,
    ) -> None:
        """Ask for a call; returns when its answer may be acted on."""
        asked = _Asked(tool, dict(tool_args), tool_context, confirmation)
        batch = await self._batch(tool, tool_context)
        batch.asked[asked.call_id] = asked
        self._waiting[asked.request_id] = asked
        if not self._is_outer(tool_context):
            self._asked_inside.add(asked.call_id)
        try:
            await self._tell_if_complete(batch)
            await asked.released.wait()
        finally:
            del self._waiting[asked.request_id]

    async def ended(self, tool: BaseTool, tool_context: ToolContext, result: object) -> None:
        """Note how a call ended beside which others may be asked for."""
        call_id = tool_context.function_call_id or ""
        if call_id in self._asked_inside:
            # Its result is stored in a session that nobody reads.
            self._asked_inside.discard(call_id)
            content = types.Content(role="user", parts=[_response(call_id, tool.name, result)])
            self._place([Event(author=tool_context.agent_name, content=content)], frozenset())
        event = event_of(call_id, tool_context)
        if event is None or _is_non_blocking(tool) or len(event.get_function_calls()) == 1:
            return
        has_none = tool.is_long_running and not result
        results = self._results.setdefault(event.id, {})
        results[call_id] = None if has_none else _response(call_id, tool.name, result)
        if event.id in self._batches:
            await self._tell_if_complete(self._batches[event.id])

    async def release(self, requests: Collection[str], answers: types.Content) -> None:
        """Let calls go on whose answers are recorded; the session gets the answers first."""
        released = [self._waiting[request] for request in requests]
        outer = {asked.request_id for asked in released if self._is_outer(asked.tool_context)}
        parts = [
            part
            for part in answers.parts or []
            if part.function_response is not None and part.function_response.id in outer
        ]
        if parts:
            context = next(
                asked.tool_context for asked in released if self._is_outer(asked.tool_context)
            )
            content = types.Content(role="user", parts=parts)
            await self._append(context, Event(author="user", content=content))
        for asked in released:
            asked.released.set()

    async def _batch(self, tool: BaseTool, tool_context: ToolContext) -> _Batch:
        call_id = tool_context.function_call_id or ""
        event = event_of(call_id, tool_context)
        if event is None or _is_non_blocking(tool):
            return _Batch(frozenset({call_id}), {})
        if event.id not in self._batches:
            calls = await _run_together(event, tool_context) | {call_id}
            results = self._results.setdefault(event.id, {})
            order = [call.id or "" for call in event.get_function_calls()]
            # Another call of the response may have come here meanwhile.
            self._batches.setdefault(event.id, _Batch(calls, results, order))
        batch = self._batches[event.id]
        # One that asks for more than was asked for before, asks alone.
        return _Batch(frozenset({call_id}), {}) if batch.is_told else batch

    async def _tell_if_complete(self, batch: _Batch) -> None:
        settled = batch.asked.keys() | batch.ended.keys()
        if batch.is_told or not batch.asked or not batch.calls <= settled:
            return
        batch.is_told = True
        for asked in batch.asked.values():
            asked.is_told = True
        context = next(iter(batch.asked.values())).tool_context
        calls_event = event_of(context.function_call_id or "", context)
        author = context.agent_name if calls_event is None else calls_event.author
        branch = None if calls_event is None else calls_event.branch
        request = _request(batch.in_order(), author=author, branch=branch)
        results = _results(batch, author=author, branch=branch)
        if not self._is_outer(context):
            request.custom_metadata = inner_mark()
        else:
            # In the order in which a unary run stores them.
            mixed = any(part is not None for part in batch.ended.values())
            for event in (results, request) if mixed else (request, results):
                await self._append(context, event)
        seen_after = batch.calls if self._is_outer(context) else frozenset[str]()
        self._place([results, request], seen_after)

    def _is_outer(self, tool_context: ToolContext) -> bool:
        """Whether a call is the chat's own, and not one in the session of an agent's tool."""
        return tool_context.session.id == self._chat_id

    async def _append(self, tool_context: ToolContext, event: Event) -> None:
        run = tool_context.get_invocation_context()
        event.invocation_id = run.invocation_id
        await run.session_service.append_event(session=run.session, event=event)


async def _run_together(event: Event, tool_context: ToolContext) -> frozenset[str]:
    """Return the calls of a response that ADK runs at the same time and waits for."""
    agent = tool_context.get_invocation_context().agent
    if not isinstance(agent, LlmAgent):
        return frozenset()
    tools = {tool.name: tool for tool in await agent.canonical_tools(tool_context)}
    return frozenset(
        call.id or ""
        for call in event.get_function_calls()
        if call.name in tools and not _is_non_blocking(tools[call.name])
    )


def _is_non_blocking(tool: BaseTool) -> bool:
    if tool.behavior is not None:
        return tool.behavior is types.Behavior.NON_BLOCKING
    return tool.response_scheduling is not None


def _request(asked: Sequence[_Asked], *, author: str, branch: str | None) -> Event:
    parts = [
        types.Part(
            function_call=types.FunctionCall(
                id=call.request_id,
                name=CONFIRMATION_TOOL,
                args={
                    "originalFunctionCall": {
                        "id": call.call_id,
                        "name": call.tool.name,
                        "args": dict(call.arguments),
                    },
                    "toolConfirmation": call.confirmation.model_dump(
                        mode="json", by_alias=True, exclude_none=True
                    ),
                },
            )
        )
        for call in asked
    ]
    return Event(
        author=author,
        branch=branch,
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={call.request_id for call in asked},
    )


def _results(batch: _Batch, *, author: str, branch: str | None) -> Event:
    """Return what the calls gave so far, with a placeholder for each that waits."""
    given = batch.results_in_order()
    waiting = [
        _response(call.call_id, call.tool.name, {"error": _PLACEHOLDER})
        for call in batch.in_order()
    ]
    return Event(
        author=author,
        branch=branch,
        content=types.Content(role="user", parts=[*given, *waiting]),
        actions=EventActions(
            skip_summarization=True if not given else None,
            requested_tool_confirmations={
                call.call_id: call.confirmation for call in batch.asked.values()
            },
        ),
    )


def _response(call_id: str, name: str, result: object) -> types.Part:
    response = result if isinstance(result, dict) else {"result": result}
    return types.Part(
        function_response=types.FunctionResponse(id=call_id, name=name, response=response)
    )
