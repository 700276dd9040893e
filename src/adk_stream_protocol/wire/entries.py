"""What a reply's log holds: chunks, and the moments of a held call.

How a held call looks on the wire depends on the route's profile, so the log keeps the moments
themselves and `wire.profiles` renders them when they are read. A chat can thus be read in either
profile, whatever route produced it. Some entries are never stored: they are made for one reader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from adk_stream_protocol.wire.chunks import (
    Chunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
)
from adk_stream_protocol.wire.values import JsonObject, JsonValue

__all__ = [
    "AnswersStep",
    "CallAnswered",
    "CallFinished",
    "CallHeld",
    "Entry",
    "HeldKind",
    "InputReleased",
    "Outcome",
    "OwnBegins",
    "Progress",
    "Resumed",
]

HeldKind: TypeAlias = Literal["tool", "browser", "input", "credential"]

Outcome: TypeAlias = Literal["approved", "denied", "expired", "cancelled"]

Progress: TypeAlias = Literal["recorded", "released", "over"]
"""How far a decided call has come: it waits for the answers to others, may run, or has ended."""


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
    own_verdict: bool | None = None
    """What the reader itself decided, and so shows; None: nothing. Known when it is read."""
    waits: bool = False
    """The reply only goes on when others are answered, too."""


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A held call that was approved has its result; only its card changes."""

    approval_id: str
    card: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputReleased:
    """The browser may run a call now: it was approved, and its output is awaited."""

    call_id: str
    tool_name: str
    input: JsonValue


@dataclass(frozen=True, slots=True)
class AnswersStep:
    """Answers begin, or end, after which only outputs of the browser are awaited."""

    begins: bool


@dataclass(frozen=True, slots=True)
class OwnBegins:
    """From here on the entries are the reply's own; those before retell the message so far.

    A reader that continues a message skips what is before, one that resumes reads it all.
    """


@dataclass(frozen=True, slots=True)
class Resumed:
    """An entry about a call that was decided or is over, for a reader that begins anew.

    Never stored: what became of a call is known only when its entries are read again.
    """

    entry: ToolInputDeltaChunk | ToolInputAvailableChunk | CallHeld | CallAnswered
    outcome: Outcome | None = None
    """What was decided; None: nothing was, or had to be."""
    progress: Progress = "over"


Entry: TypeAlias = (
    Chunk
    | CallHeld
    | CallAnswered
    | CallFinished
    | InputReleased
    | AnswersStep
    | OwnBegins
    | Resumed
)
