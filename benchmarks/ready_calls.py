"""Held calls, ready-made: a payment that waits for one of many users."""

from __future__ import annotations

from adk_stream_protocol.identifiers import ApprovalId, CallId, ChatId, InvocationId, UserId
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.wire.values import JsonObject, digest

__all__ = ["PER_USER", "held_call", "owner_of"]

PER_USER = 20
"""How many wait for one user: the most that the server's settings allow by default."""


def owner_of(number: int) -> UserId:
    """Return whose the call of that number is."""
    return UserId(f"user-{number // PER_USER}")


def held_call(number: int, now: float) -> HeldCall:
    """Return the pending call of that number; it does not expire while anyone measures."""
    arguments: JsonObject = {"amount": number, "currency": "USD", "recipient": f"shop-{number}"}
    return HeldCall(
        approval_id=ApprovalId(f"adk-approval-{number:012}"),
        call_id=CallId(f"adk-call-{number:012}"),
        owner=owner_of(number),
        chat_id=ChatId(f"chat-{number:012}"),
        invocation_id=InvocationId(f"e-{number:012}"),
        tool_name="process_payment",
        arguments=arguments,
        arguments_hash=digest(arguments),
        created_at=now,
        expires_at=now + 3600 + number / 1000,
        request_id=f"adk-approval-{number:012}",
        title="Pay",
        hint="Pays a shop.",
    )
