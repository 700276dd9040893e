"""A held call as clients see it: in the approvals API, beside the approval, and as an answer."""

from __future__ import annotations

import datetime

from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.wire.entries import CallAnswered, Outcome
from adk_stream_protocol.wire.values import JsonValue

__all__ = [
    "approval_json",
    "call_answered",
    "card",
    "time_text",
]


def time_text(seconds: float) -> str:
    """Return a moment as ISO 8601 in UTC, as JavaScript's `Date` reads and writes it."""
    moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def card(call: HeldCall) -> dict[str, JsonValue]:
    """Return what the approval chunk cannot carry: the data of a `data-approval` part."""
    told: dict[str, JsonValue] = {
        "toolCallId": call.call_id,
        "toolName": call.tool_name,
        "status": call.state.value,
        "title": call.title,
        "hint": call.hint,
        "risk": call.risk,
        "createdAt": time_text(call.created_at),
        "expiresAt": time_text(call.expires_at),
    }
    optional: dict[str, JsonValue] = {
        "payload": call.payload,
        "ui": dict(call.ui) or None,
        "decidedAt": None if call.decided_at is None else time_text(call.decided_at),
        "decidedBy": call.decided_by,
        "reason": call.reason,
    }
    return told | {key: value for key, value in optional.items() if value is not None}


def approval_json(call: HeldCall) -> dict[str, JsonValue]:
    """Return the call as the approvals API shows it."""
    return {
        "id": call.approval_id,
        "chatId": call.chat_id,
        "input": dict(call.arguments),
        **card(call),
    }


_OUTCOMES: dict[CallState, Outcome] = {
    CallState.DENIED: "denied",
    CallState.EXPIRED: "expired",
    CallState.CANCELLED: "cancelled",
}


def call_answered(call: HeldCall) -> CallAnswered:
    """Return the end of the call's wait, as its recorded state tells it."""
    question = call.kind is CallKind.INPUT
    return CallAnswered(
        approval_id=call.approval_id,
        call_id=call.call_id,
        outcome=_OUTCOMES.get(call.state, "approved"),
        reason=call.reason,
        approval=call.approval,
        kind=call.kind.value,
        output=call.result if question else None,
        error=call.error if question else None,
        card=card(call),
    )
