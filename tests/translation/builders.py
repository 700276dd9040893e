"""What the tests of translation are told with: events of ADK's, rows of the ledger, messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.translation.events import EventTranslator
from adk_stream_protocol.wire.chunks import to_json
from adk_stream_protocol.wire.entries import CallAnswered, Entry, HeldKind, Outcome
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL, Audience, Profile
from adk_stream_protocol.wire.values import JsonObject, JsonValue, digest

__all__ = [
    "INVOCATION",
    "answered",
    "call",
    "confirmation",
    "event",
    "feed",
    "held_call",
    "kinds",
    "partial",
    "question",
    "response",
    "shown",
    "sign_in",
    "text",
    "thought",
]

INVOCATION = InvocationId("e-1")


def text(said: str) -> types.Part:
    return types.Part(text=said)


def thought(said: str) -> types.Part:
    return types.Part(text=said, thought=True)


def call(call_id: str, name: str = "pay", **arguments: object) -> types.Part:
    return types.Part(function_call=types.FunctionCall(id=call_id, name=name, args=dict(arguments)))


def response(call_id: str, name: str = "pay", **result: object) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(id=call_id, name=name, response=dict(result))
    )


def confirmation(
    request_id: str, call_id: str, *, name: str = "pay", hint: str = "Sure?", payload: object = None
) -> types.Part:
    """Return ADK's request to approve a call."""
    asked: dict[str, object] = {"hint": hint, "confirmed": False}
    if payload is not None:
        asked["payload"] = payload
    original = {"id": call_id, "name": name, "args": {"amount": 5}}
    return call(
        request_id, CONFIRMATION_TOOL, originalFunctionCall=original, toolConfirmation=asked
    )


def question(request_id: str, message: str = "Which city?") -> types.Part:
    return call(request_id, "adk_request_input", message=message)


def sign_in(request_id: str, call_id: str) -> types.Part:
    """Return ADK's request for a credential, secrets and all."""
    oauth2 = {"clientId": "cid", "clientSecret": "SECRET", "authUri": "https://idp/auth"}
    config = {
        "authScheme": {"type": "oauth2"},
        "exchangedAuthCredential": {"authType": "oauth2", "oauth2": oauth2},
    }
    return call(request_id, "adk_request_credential", functionCallId=call_id, authConfig=config)


def event(
    *parts: types.Part,
    author: str = "root",
    branch: str | None = None,
    invocation: str = INVOCATION,
    **fields: object,
) -> Event:
    """Return a complete event; further fields by ADK's own names."""
    content = types.Content(role="model", parts=list(parts)) if parts else None
    calls = [part.function_call for part in parts if part.function_call is not None]
    # ADK marks its own requests so; a model cannot.
    asked = {call.id for call in calls if (call.name or "").startswith("adk_request_")}
    return Event.model_validate(
        {
            "long_running_tool_ids": asked or None,
            "author": author,
            "branch": branch,
            "invocation_id": invocation,
            "content": content,
            **fields,
        }
    )


def partial(*parts: types.Part, author: str = "root", branch: str | None = None) -> Event:
    """Return an event that brings a piece of a response."""
    return event(*parts, author=author, branch=branch, partial=True)


def feed(translator: EventTranslator, *events: Event) -> list[Entry]:
    return [entry for told in events for entry in translator.feed(told)]


def shown(
    entries: Iterable[Entry], profile: Profile = "ai-sdk", *, sdk: int = 6
) -> list[JsonObject]:
    """Return the chunks that a reader gets."""
    audience = Audience(profile, 7 if sdk == 7 else 6)
    return [to_json(chunk) for chunk in audience.render(entries)]


def kinds(entries: Iterable[Entry], profile: Profile = "ai-sdk") -> list[JsonValue]:
    return [chunk["type"] for chunk in shown(entries, profile)]


def answered(
    approval_id: str,
    call_id: str,
    outcome: Outcome = "approved",
    *,
    kind: HeldKind = "tool",
    output: JsonValue = None,
    error: str | None = None,
) -> CallAnswered:
    return CallAnswered(
        approval_id,
        call_id,
        outcome,
        approval=kind == "tool",
        kind=kind,
        output=output,
        error=error,
    )


def held_call(
    approval_id: str = "adk-1",
    call_id: str = "c1",
    *,
    tool_name: str = "pay",
    kind: CallKind = CallKind.TOOL,
    approval: bool = True,
    state: CallState | None = None,
    arguments: Mapping[str, JsonValue] | None = None,
    request_id: str | None = None,
    invocation: str = INVOCATION,
    payload: JsonValue = None,
    ui: JsonObject | None = None,
    decided_at: float | None = None,
    decided_by: str | None = None,
    reason: str | None = None,
    result: JsonValue = None,
    error: str | None = None,
    done_at: float | None = None,
    delivered_in: str | None = None,
) -> HeldCall:
    """Return a row of the ledger; pending, or approved if there is nothing to approve."""
    frozen = {"amount": 5} if arguments is None else dict(arguments)
    opened = CallState.PENDING if approval else CallState.APPROVED
    return HeldCall(
        approval_id=ApprovalId(approval_id),
        call_id=CallId(call_id),
        owner=UserId("ann"),
        chat_id=ChatId("chat"),
        invocation_id=InvocationId(invocation),
        tool_name=tool_name,
        arguments=frozen,
        arguments_hash=digest(frozen),
        created_at=0.0,
        expires_at=3600.0,
        request_id=approval_id if request_id is None else request_id,
        kind=kind,
        approval=approval,
        state=opened if state is None else state,
        title="Pay",
        hint="Sure?",
        risk="high",
        payload=payload,
        ui=ui or {},
        decided_at=decided_at,
        decided_by=decided_by,
        reason=reason,
        result=result,
        error=error,
        done_at=done_at,
        delivered_in=None if delivered_in is None else ReplyId(delivered_in),
    )
