"""What a reply's log holds: chunks, and the two moments of a held call.

How a held call looks on the wire depends on the route's profile, so the log keeps the moments
themselves and `wire.profiles` renders them when they are read. A chat can thus be read in either
profile, whatever route produced it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adk_stream_protocol.wire.chunks import Chunk
from adk_stream_protocol.wire.values import JsonObject, JsonValue

__all__ = ["CallAnswered", "CallHeld", "Entry", "HeldKind", "Outcome", "OwnBegins"]

HeldKind: TypeAlias = Literal["tool", "browser", "input", "credential"]

Outcome: TypeAlias = Literal["approved", "denied", "expired", "cancelled"]


@dataclass(frozen=True, slots=True)
class CallHeld:
    """A tool call now waits for the client."""

    approval_id: str
    call_id: str
    tool_name: str
    input: JsonValue
    hint: str
    payload: JsonValue = None
    """What a tool that asks by itself wants the person to see or to edit."""
    approval: bool = True
    """False: nothing to approve, the client just answers."""
    kind: HeldKind = "tool"
    """Who answers what: a decision for a `tool`, an output for the others."""
    request_id: str = ""
    """ADK's own id of the request; differs from `approval_id` where ADK's is not unique."""
    card: JsonObject = field(default_factory=dict)
    """What a client needs to show the request: title, hint, risk, expiry, status."""


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """The wait for a decision is over."""

    approval_id: str
    call_id: str
    outcome: Outcome
    reason: str | None = None
    approval: bool = True
    """False: there was nothing to approve."""
    was_approved: bool = False
    """It was approved, and then expired or was cancelled."""
    kind: HeldKind = "tool"
    output: JsonValue = None
    """The person's reply, where ADK asked a question: no tool will give it as a result."""
    error: str | None = None
    """Why there is no reply to a question; None: there is one."""
    automatic: bool = False
    """A policy decided: the client was never asked."""
    card: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwnBegins:
    """From here on the entries are the reply's own; those before retell the message so far.

    A reader that continues a message skips what is before, one that resumes reads it all.
    """


Entry: TypeAlias = Chunk | CallHeld | CallAnswered | OwnBegins
