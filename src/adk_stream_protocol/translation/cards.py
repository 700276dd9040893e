"""A held call as clients see it: in the approvals API, beside the approval, and as an answer."""

from __future__ import annotations

import datetime

from adk_stream_protocol.lifecycle import CallEvent, CallKind, CallState, HeldCall
from adk_stream_protocol.wire.data_parts import (
    ApprovalData,
    ApprovalStepData,
    ResolutionData,
    data_json,
)
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, InputReleased, Outcome
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_text

__all__ = [
    "approval_json",
    "call_answered",
    "call_held",
    "card",
    "input_released",
    "time_text",
    "trail_time",
]


def time_text(seconds: float) -> str:
    """Return a moment as ISO 8601 in UTC, as JavaScript's `Date` reads and writes it."""
    moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def card(call: HeldCall) -> dict[str, JsonValue]:
    """Return what the approval chunk cannot carry: the data of a `data-approval` part."""
    shown = ApprovalData(
        tool_call_id=call.call_id,
        tool_name=call.tool_name,
        status=call.state.value,
        title=call.title,
        hint=call.hint,
        risk=call.risk,
        created_at=time_text(call.created_at),
        expires_at=time_text(call.expires_at),
        payload=call.payload,
        ui=dict(call.ui) or None,
        automatic=call.automatic or None,
        rememberable=(call.rememberable and call.state is CallState.PENDING) or None,
        remembered=call.remember or None,
        editable=_is_editable(call) or None,
        edited_input=call.edited,
        edited_by=_editor(call),
        edited_arguments_hash=call.edited_hash,
        step=_step(call),
        approved_by=_approvers(call),
        decided_at=None if call.decided_at is None else time_text(call.decided_at),
        decided_by=call.decided_by,
        reason=call.reason,
        resolved=_resolution(call),
    )
    return data_json(shown)


def _is_editable(call: HeldCall) -> bool:
    return call.schema is not None and call.state is CallState.PENDING and call.step == 0


def _editor(call: HeldCall) -> str | None:
    """Return who changed the arguments; None: nobody."""
    changes = (entry for entry in call.trail if entry.get("argumentsHash") == call.edited_hash)
    by = None if call.edited is None else next((entry.get("by") for entry in changes), None)
    return as_text(by) or None


def _step(call: HeldCall) -> ApprovalStepData | None:
    """Return the step that waits, or the last one; None: there is just one approval."""
    if not call.steps:
        return None
    n = min(call.step + 1, len(call.steps))
    step = call.steps[n - 1]
    return ApprovalStepData(
        n,
        len(call.steps),
        step.name,
        by=list(step.by) or None,
        four_eyes=step.four_eyes or None,
    )


def _approvers(call: HeldCall) -> list[str] | None:
    """Return who approved its steps, in order; None: nobody did, or it has none."""
    approvers = list(call.step_approvers)
    if call.steps and call.approved and call.decided_by is not None:
        approvers.append(call.decided_by)
    return approvers or None


def _resolution(call: HeldCall) -> ResolutionData | None:
    """Return who found out how it ended, where nobody knew; None: that was never so."""
    for entry in reversed(call.trail):
        if entry.get("event") in {CallEvent.RESOLVE_DONE, CallEvent.RESOLVE_FAILED}:
            by, reason = as_text(entry.get("by")), as_text(entry.get("reason"))
            return ResolutionData(trail_time(entry), by=by or None, reason=reason or None)
    return None


def trail_time(entry: JsonObject) -> str:
    """Return when a line of the trail was written."""
    at = entry.get("at")
    return time_text(at) if isinstance(at, int | float) else ""


def approval_json(call: HeldCall) -> dict[str, JsonValue]:
    """Return the call as the approvals API shows it."""
    return {
        "id": call.approval_id,
        "chatId": call.chat_id,
        "owner": call.owner,
        "input": dict(call.arguments),
        "argumentsHash": call.arguments_hash,
        **({"inputSchema": call.schema} if call.schema is not None else {}),
        **card(call),
    }


def call_held(call: HeldCall) -> CallHeld:
    """Return the beginning of the call's wait, as it stands now."""
    return CallHeld(
        approval_id=call.approval_id,
        call_id=call.call_id,
        tool_name=call.tool_name,
        input=call.arguments,
        hint=call.hint,
        payload=call.payload,
        approval=call.approval,
        kind=call.kind.value,
        request_id=call.request_id,
        card=card(call),
    )


_OUTCOMES: dict[CallState, Outcome] = {
    CallState.DENIED: "denied",
    CallState.EXPIRED: "expired",
    CallState.CANCELLED: "cancelled",
}


def call_answered(call: HeldCall) -> CallAnswered:
    """Return the end of the call's wait, as its recorded state tells it."""
    question = call.kind is CallKind.INPUT
    outcome = _OUTCOMES.get(call.state, "approved")
    return CallAnswered(
        approval_id=call.approval_id,
        call_id=call.call_id,
        outcome=outcome,
        reason=call.reason,
        approval=call.approval,
        was_approved=outcome in {"expired", "cancelled"} and call.was_approved,
        kind=call.kind.value,
        output=call.result if question else None,
        error=call.error if question else None,
        automatic=call.automatic,
        card=card(call),
    )


def input_released(call: HeldCall) -> InputReleased:
    """Return that the browser may run the call now."""
    return InputReleased(call.call_id, call.tool_name, dict(call.run_arguments))
