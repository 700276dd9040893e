"""The life of one held call, as a table.

    pending ──approve──> approved ──claim──> running ──finish──> done
       │                    │     <─release──   ├─────fail─────> failed
       │                    │                   └────lapse─────> unknown ──resolve──> done | failed
       │                    ├─output / output_error (a browser ran it)──────────────> done | failed
       ├─deny──> denied     ├─expire (the browser never answered)──> expired
       ├─expire─> expired   └─cancel──> cancelled
       └─cancel─> cancelled

A call that needs no decision, because the browser just runs it, opens as `approved`. One that needs
several stays `pending` through each `step` but the last. Only a call of an idempotent tool is
released: its process died while it ran, and it may run again under the same key. If it is given
up instead, it lapses: it is not cancelled, because it may have had its effect.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.wire.values import JsonObject, JsonValue

__all__ = [
    "TRANSITIONS",
    "ApprovalStep",
    "CallEvent",
    "CallKind",
    "CallState",
    "HeldCall",
    "IllegalTransition",
    "next_state",
]


class CallState(StrEnum):
    """Where a held call stands."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"


class CallEvent(StrEnum):
    """What can happen to a held call."""

    STEP = "step"
    APPROVE = "approve"
    DENY = "deny"
    EXPIRE = "expire"
    CANCEL = "cancel"
    CLAIM = "claim"
    FINISH = "finish"
    FAIL = "fail"
    RELEASE = "release"
    LAPSE = "lapse"
    OUTPUT = "output"
    OUTPUT_ERROR = "output_error"
    RESOLVE_DONE = "resolve_done"
    RESOLVE_FAILED = "resolve_failed"


class CallKind(StrEnum):
    """Who runs a held call once it is released, and so what its answer is."""

    TOOL = "tool"
    """The server runs it; the answer is a decision."""
    BROWSER = "browser"
    """The client runs it; the answer is its output, after a decision if it needs one."""
    INPUT = "input"
    """ADK asked the person a question (`adk_request_input`); the answer is the reply."""
    CREDENTIAL = "credential"
    """ADK asked for a sign-in (`adk_request_credential`); the answer is where it led."""


TRANSITIONS: Final[dict[CallState, dict[CallEvent, CallState]]] = {
    CallState.PENDING: {
        CallEvent.STEP: CallState.PENDING,
        CallEvent.APPROVE: CallState.APPROVED,
        CallEvent.DENY: CallState.DENIED,
        CallEvent.EXPIRE: CallState.EXPIRED,
        CallEvent.CANCEL: CallState.CANCELLED,
    },
    CallState.APPROVED: {
        CallEvent.CLAIM: CallState.RUNNING,
        CallEvent.OUTPUT: CallState.DONE,
        CallEvent.OUTPUT_ERROR: CallState.FAILED,
        CallEvent.EXPIRE: CallState.EXPIRED,
        CallEvent.CANCEL: CallState.CANCELLED,
        CallEvent.LAPSE: CallState.UNKNOWN,
    },
    CallState.RUNNING: {
        CallEvent.FINISH: CallState.DONE,
        CallEvent.FAIL: CallState.FAILED,
        CallEvent.RELEASE: CallState.APPROVED,
        CallEvent.LAPSE: CallState.UNKNOWN,
    },
    CallState.UNKNOWN: {
        CallEvent.RESOLVE_DONE: CallState.DONE,
        CallEvent.RESOLVE_FAILED: CallState.FAILED,
    },
    CallState.DENIED: {},
    CallState.EXPIRED: {},
    CallState.CANCELLED: {},
    CallState.DONE: {},
    CallState.FAILED: {},
}


class IllegalTransition(ValueError):
    """The event cannot happen in that state; the caller lost a race, or has a bug."""


def next_state(state: CallState, event: CallEvent) -> CallState:
    """Return where the event leads.

    Raises:
        IllegalTransition: the table has no such step.
    """
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise IllegalTransition(f"A call that is {state} cannot {event}.") from None


@dataclass(frozen=True, slots=True)
class ApprovalStep:
    """One of several approvals that a call needs, one after another, each by another person."""

    name: str
    """What the step is called on the card, such as `manager`."""
    by: tuple[str, ...] = ()
    """The users of whom any one may approve it; empty: whoever may decide the call."""
    four_eyes: bool = False
    """The person whose chat it is may not approve it."""


@dataclass(frozen=True, slots=True)
class HeldCall:
    """Everything known about one held call: a row of the ledger, and of the audit trail.

    Times are seconds since the epoch by the store's clock.
    """

    approval_id: ApprovalId
    call_id: CallId
    owner: UserId
    chat_id: ChatId
    invocation_id: InvocationId
    tool_name: str
    arguments: JsonObject
    """Frozen when the call was opened: shown = approved = run."""
    arguments_hash: str
    created_at: float
    expires_at: float
    request_id: str = ""
    """ADK's own id of the request, to answer it with."""
    lane: str = ""
    """Which agent of the invocation asked; each is answered in a run of its own."""
    kind: CallKind = CallKind.TOOL
    approval: bool = True
    """False: no decision is needed, the browser just runs it."""
    state: CallState = CallState.PENDING
    title: str = ""
    hint: str = ""
    risk: str = ""
    payload: JsonValue = None
    """What a tool that asks by itself showed with its request."""
    ui: JsonObject = dataclasses.field(default_factory=dict)
    """Free metadata for the client, from the tool's rule."""
    decided_at: float | None = None
    """None until decided, expired or cancelled."""
    decided_by: str | None = None
    decision_id: str | None = None
    reason: str | None = None
    result: JsonValue = None
    """The tool's or browser's output, once done."""
    error: str | None = None
    """Why it failed, in public words, once failed."""
    done_at: float | None = None
    fence: int = 0
    """Counts claims; a finish under an older fence is ignored."""
    holder: str | None = None
    """Who runs it, while running."""
    delivered_in: ReplyId | None = None
    """The reply that carried the answer to ADK; None until then."""
    idempotent: bool = False
    """The tool may run again under the same call id."""
    steps: tuple[ApprovalStep, ...] = ()
    """The approvals it needs; empty: one, by whoever may decide it."""
    step: int = 0
    """How many of the steps are approved."""
    schema: JsonObject | None = None
    """What edited arguments must look like; None: they cannot be edited."""
    edited: JsonObject | None = None
    """The arguments that run instead of those shown; None: those shown."""
    edited_hash: str | None = None
    automatic: bool = False
    """A policy decided it, no person."""
    remember: bool = False
    """The decision counts for later calls of the tool in this chat, too."""
    decided_via: str | None = None
    """Where the decision came from, such as `chat` or `api 10.0.0.7`."""
    trail: tuple[JsonObject, ...] = ()
    """All that happened to it, in order: what, when, by whom, from where, why."""

    @property
    def is_open(self) -> bool:
        """Whether the client still owes an answer."""
        if self.state is CallState.PENDING:
            return True
        return self.state is CallState.APPROVED and self.kind is not CallKind.TOOL

    @property
    def awaits_browser(self) -> bool:
        """Whether a person approved it, and the client now runs it."""
        is_released = self.state is CallState.APPROVED and self.approval
        return is_released and self.kind is CallKind.BROWSER

    @property
    def is_deliverable(self) -> bool:
        """Whether the answer is complete and has not been given to ADK yet."""
        return self.delivered_in is None and not self.is_open

    @property
    def is_settled(self) -> bool:
        """Whether nothing more can happen to it."""
        return not TRANSITIONS[self.state]

    @property
    def approved(self) -> bool:
        """Whether the call was let through, whatever became of it afterwards."""
        return self.state not in _NOT_LET_THROUGH

    @property
    def was_approved(self) -> bool:
        """Whether somebody approved it, also if it expired or was cancelled afterwards."""
        events = (entry.get("event") for entry in self.trail)
        return self.approval and (self.approved or CallEvent.APPROVE in events)

    @property
    def run_arguments(self) -> JsonObject:
        """The arguments to run it with."""
        return self.arguments if self.edited is None else self.edited

    @property
    def run_hash(self) -> str:
        """The hash of the arguments to run it with."""
        return self.arguments_hash if self.edited_hash is None else self.edited_hash

    @property
    def step_approvers(self) -> tuple[str, ...]:
        """Who approved steps so far."""
        told = (entry.get("by") for entry in self.trail if entry.get("event") == CallEvent.STEP)
        return tuple(by for by in told if isinstance(by, str))

    @property
    def rememberable(self) -> bool:
        """Whether its approval may count for later calls of the tool in this chat, too."""
        return bool(self.trail) and self.trail[0].get("rememberable") is True

    def after(self, event: CallEvent) -> HeldCall:
        """Return the call as the event leaves it.

        Raises:
            IllegalTransition: the table has no such step.
        """
        return dataclasses.replace(self, state=next_state(self.state, event))


_NOT_LET_THROUGH = frozenset(
    {CallState.PENDING, CallState.DENIED, CallState.EXPIRED, CallState.CANCELLED}
)
