"""What the gate must know of a run, and what the run must know of its tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import anyio
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from adk_stream_protocol.held_calls.policy import ToolRule
from adk_stream_protocol.identifiers import ChatId, InvocationId, ReplyId, UserId
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.ports import SteeringMessage
from adk_stream_protocol.telemetry import Span, begin_span
from adk_stream_protocol.translation.passage import Passage
from adk_stream_protocol.translation.text_blocks import BlockKind
from adk_stream_protocol.wire.entries import CallHeld
from adk_stream_protocol.wire.values import JsonObject

__all__ = ["LiveTurnIds", "RunScope", "Tell", "event_of", "run_scope"]

run_scope: ContextVar[RunScope | None] = ContextVar("run_scope", default=None)
"""The run this task belongs to. ADK's own tasks inherit it; None outside a served run."""


Tell: TypeAlias = Callable[[Event, BlockKind, str], Awaitable[bool]]
"""Tells a piece of text: an event like the one ADK would make of it, its kind and the text.

False: it was not told, and has to come through ADK.
"""


class Asks(Protocol):
    """Asks for calls while the run goes on: a live run's tools wait where they are."""

    async def ask(
        self,
        tool: BaseTool,
        tool_args: Mapping[str, Any],
        tool_context: ToolContext,
        confirmation: ToolConfirmation,
    ) -> None:
        """Ask for a call; returns when its answer may be acted on."""
        ...

    def is_inner(self, request_id: str) -> bool:
        """Whether a request is one of an agent's tool, which only this run can act on."""
        ...

    async def ended(self, tool: BaseTool, tool_context: ToolContext, result: object) -> None:
        """Note how a call ended beside which others may be asked for."""
        ...


@dataclass(slots=True)
class LiveTurnIds:
    """What the events of a live run are stored under: ADK has one id for all of its turns."""

    invocation_id: InvocationId
    stamp: Mapping[str, object]


@dataclass(slots=True)
class RunScope:
    """What the gate must know of a run, and what the run must know of its tools."""

    owner: UserId
    chat_id: ChatId
    holder: ReplyId
    """The reply that the run writes: names it in the ledger."""
    origin: ReplyId | None = None
    """The first reply of the request; None: that is the holder."""
    session: Session | None = None
    """The chat's session as it was read for the turn, until ADK takes it; None: ADK reads it."""
    stopping: bool = False
    """No further tool may start."""
    may_be_steered: bool = False
    """Messages wait that may go in front of the next question to the model."""
    is_steered: bool = False
    """Some may have."""
    steering_again: list[types.Content] = field(default_factory=list)
    """Messages of the turn that the model is told with its next question: ADK leaves them out."""
    unstored: list[SteeringMessage] = field(default_factory=list)
    """Those that a live run was given and that ADK has not stored."""
    steered: Callable[[Event], Awaitable[None]] | None = None
    """Called with each, once the session has it; None: nobody wants to know."""
    due: set[str] = field(default_factory=set)
    """The calls that a person approved and that the turn was begun to run, until they run."""
    asking: int = 0
    """How many calls this run has asked for that the ledger may not know yet."""
    running: dict[str, HeldCall | None] = field(default_factory=dict)
    """The tools that run now, by call id; the claimed call where one was needed."""
    telling: set[str] = field(default_factory=set)
    """The tools that have just ended, by call id: the reply is yet to tell their results."""
    since: dict[str, float] = field(default_factory=dict)
    """When each running tool started, by the event loop's clock."""
    spans: dict[str, Span] = field(default_factory=dict)
    """What an operator sees of each running tool."""
    call_ids: set[str] = field(default_factory=set)
    """The ids of the calls that the run's models made."""
    names: dict[str, str] = field(default_factory=dict)
    """A live model's own names of the calls that had to be renamed."""
    taken: set[tuple[str, str]] = field(default_factory=set)
    """The calls that came by, by the event that holds them and by id."""
    refused: list[ToolContext] = field(default_factory=list)
    """The calls that another one of the same response and id came before."""
    rules: dict[str, ToolRule] = field(default_factory=dict)
    """The rule of each tool that was called, by call id, or by ADK's request where it has none."""
    schemas: dict[tuple[str, str], JsonObject] = field(default_factory=dict)
    """What the arguments of editable tools must look like, by agent and tool."""
    decided: list[HeldCall] = field(default_factory=list)
    """The calls that a policy decided, which the reply is yet to tell of."""
    edited: dict[str, JsonObject] = field(default_factory=dict)
    """The calls that run with changed arguments, which the model is yet to be told of."""
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set and replaced whenever there is something new to see."""
    tell: Tell | None = None
    """Takes pieces of text that come past ADK; None: all of them come from ADK."""
    passages: list[Passage] = field(default_factory=list)
    """The answers whose pieces may come past ADK, while models give them."""
    stored: Callable[[], Awaitable[None]] | None = None
    """Called when ADK has stored what the run was given; None: nobody wants to know."""
    said: types.Content | None = None
    """What the user typed in a live turn; None: nothing that is not stored."""
    asks: Asks | None = None
    """None: ADK asks by itself, and ends the run."""
    inner_seconds: float = 0.0
    """How long calls wait that only this very run can act on."""
    live: LiveTurnIds | None = None
    """The turn of a live run; None: ADK's own ids are the turn's."""
    followed: Callable[[], Awaitable[None]] | None = None
    """Returns when a turn follows a live run: no tool starts before; None: one always does."""

    @property
    def carries(self) -> ReplyId:
        """The reply under whose name the turn takes requests that waited."""
        return self.origin or self.holder

    def patience_for(self, held: CallHeld) -> float | None:
        """Return how long a call may wait at most; None: as long as its rule says."""
        is_inner = self.asks is not None and self.asks.is_inner(held.request_id)
        return self.inner_seconds if is_inner else None

    def turn_of(self, tool_context: ToolContext) -> InvocationId:
        """Return the turn that a call belongs to."""
        if self.live is not None:
            return self.live.invocation_id
        return InvocationId(tool_context.invocation_id)

    def take(self, tool_context: ToolContext) -> bool:
        """Note that a call comes by; False if another of the same response has its id."""
        call_id = tool_context.function_call_id or ""
        event = event_of(call_id, tool_context)
        key = ("" if event is None else event.id, call_id)
        if call_id and key in self.taken:
            self.refused.append(tool_context)
            return False
        self.taken.add(key)
        return True

    def rule_for(self, held: CallHeld) -> ToolRule | None:
        """Return the rule of the tool that asks; None if no tool of this run does."""
        return self.rules.get(held.call_id) or self.rules.get(held.request_id)

    def is_refused(self, tool_context: ToolContext) -> bool:
        """Whether what is told of this call must not be taken for its namesake's."""
        return any(refused is tool_context for refused in self.refused)

    def started(self, call_id: str, call: HeldCall | None, tool: str) -> None:
        """Note that a tool starts."""
        self.spans[call_id] = begin_span(
            "adk_stream.tool", chat=self.chat_id, call=call_id, tool=tool
        )
        self.running[call_id] = call
        self.due.discard(call_id)
        self.since[call_id] = anyio.current_time()
        self.notify()

    def ended(self, call_id: str, outcome: str, *, is_told: bool) -> None:
        """Note that a tool ended: done, failed, or unknown.

        Args:
            call_id: its call.
            outcome: how it ended.
            is_told: whether ADK tells the chat its result.
        """
        self._end_span(call_id, outcome)
        self.running.pop(call_id, None)
        self.since.pop(call_id, None)
        if is_told:
            self.telling.add(call_id)
        self.notify()

    def told(self, event: Event) -> None:
        """Note that an event, and so the results in it, is told."""
        results = {response.id or "" for response in event.get_function_responses()}
        if not self.telling.isdisjoint(results):
            self.telling -= results
            self.notify()

    @property
    def is_busy(self) -> bool:
        """Whether a tool runs, or has ended and its result is not told yet."""
        return bool(self.running or self.telling)

    def left(self) -> None:
        """Note that nobody here will see how the running tools end."""
        for call_id in list(self.spans):
            self._end_span(call_id, "unknown")

    def _end_span(self, call_id: str, outcome: str) -> None:
        begun = self.spans.pop(call_id, None)
        if begun is not None:
            begun.note(outcome=outcome)
            begun.end()

    def notify(self) -> None:
        """Wake whoever watches the run."""
        changed, self.changed = self.changed, anyio.Event()
        changed.set()


def event_of(call_id: str, tool_context: ToolContext) -> Event | None:
    """Return the event that holds a call; None if none does."""
    for event in reversed(tool_context.session.events):
        if any(call.id == call_id for call in event.get_function_calls()):
            return event
    return None
