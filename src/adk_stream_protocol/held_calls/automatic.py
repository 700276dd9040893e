"""Calls that a policy decides, no person: by a rule on the arguments, or "always for this chat".

Only for tools that ADK gates by itself (`require_confirmation`): one that asks in its own body
is known to ask only once it has run.
"""

from __future__ import annotations

import dataclasses
import logging
import uuid
from dataclasses import dataclass
from typing import Final

from adk_stream_protocol.errors import trace_of
from adk_stream_protocol.held_calls.ledger import Ledger, call_ids
from adk_stream_protocol.held_calls.policy import ToolRule
from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallEvent, CallState, HeldCall
from adk_stream_protocol.wire.values import JsonObject, digest

__all__ = ["Asked", "decide_alone"]

logger = logging.getLogger(__name__)

_POLICY: Final = "policy"
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Asked:
    """A gated call that nobody was asked for yet."""

    call_id: CallId
    tool_name: str
    arguments: JsonObject
    owner: UserId
    chat_id: ChatId
    invocation_id: InvocationId
    reply_id: ReplyId


async def decide_alone(ledger: Ledger, rule: ToolRule, asked: Asked) -> HeldCall | None:
    """Return the call as the policy decided it, or None if a person must be asked."""
    now = await ledger.calls.now()
    approved, by = _by_rule(rule, asked), _POLICY
    if approved is None and rule.remember:
        who = await _always(ledger, _waiting(rule, asked, now))
        approved, by = (None, "") if who is None else (True, _always_by(who))
    if approved is None:
        return None
    # Stored as decided, in one write: it never waits, so nobody can be shown it as waiting.
    call = await ledger.calls.open(_decided(rule, asked, by, approved=approved, now=now))
    logger.info("call decided by policy", extra=call_ids(call))
    return call


def _by_rule(rule: ToolRule, asked: Asked) -> bool | None:
    if rule.decide is None:
        return None
    try:
        said = rule.decide(asked.arguments)
    except Exception as error:  # noqa: BLE001  # the edge: whatever an app's own code raises
        _warn(error, asked)
        return None
    # Nothing but a boolean decides: an app's function may return what it found.
    return said if isinstance(said, bool) else None


async def _always(ledger: Ledger, new: HeldCall) -> str | None:
    """Return who said that all calls of the tool in this chat are approved, and may say so."""
    for call in await ledger.calls.of_chat(new.chat_id):
        same = (call.tool_name, call.owner) == (new.tool_name, new.owner)
        if same and call.remember and call.approved and await _may_still(ledger, call, new):
            return call.decided_by
    return None


async def _may_still(ledger: Ledger, remembered: HeldCall, new: HeldCall) -> bool:
    """Whether who approved a call may approve the new one, with its own arguments, today."""
    if remembered.decided_by is None:
        return False
    try:
        return await ledger.deciders.may_approve(UserId(remembered.decided_by), new)
    except Exception as error:  # noqa: BLE001  # the edge: whatever an app's own code raises
        _warn(error, new)
        return False


def _warn(error: Exception, asked: Asked | HeldCall) -> None:
    ids = {"chat": asked.chat_id, "call": asked.call_id, "tool": asked.tool_name}
    logger.warning("policy failed, a person is asked: %s", trace_of(error), extra=ids)


def _always_by(who: str) -> str:
    # As long as the stores' column for a name at most; the trail of the call itself has it whole.
    return f"{_POLICY} (always, {who[:_LONGEST_NAME]})"


def _waiting(rule: ToolRule, asked: Asked, now: float) -> HeldCall:
    """Return the call as a person would be asked for it."""
    approval_id = ApprovalId(f"auto-{uuid.uuid4()}")
    arguments_hash = digest(asked.arguments)
    return HeldCall(
        approval_id=approval_id,
        call_id=asked.call_id,
        owner=asked.owner,
        chat_id=asked.chat_id,
        invocation_id=asked.invocation_id,
        tool_name=asked.tool_name,
        arguments=asked.arguments,
        arguments_hash=arguments_hash,
        created_at=now,
        expires_at=now,
        # ADK made no request: there is nothing to answer, and nothing to deliver.
        request_id=approval_id,
        title=rule.title or asked.tool_name,
        hint=rule.hint,
        risk=rule.risk,
        ui=rule.ui,
        trail=({"at": now, "event": "open", "by": asked.owner, "argumentsHash": arguments_hash},),
    )


def _decided(rule: ToolRule, asked: Asked, by: str, *, approved: bool, now: float) -> HeldCall:
    event = CallEvent.APPROVE if approved else CallEvent.DENY
    decision: dict[str, str | float | bool] = {
        "at": now,
        "event": event.value,
        "by": by,
        "via": _POLICY,
        "automatic": True,
    }
    waiting = _waiting(rule, asked, now)
    return dataclasses.replace(
        waiting,
        delivered_in=asked.reply_id,
        state=CallState.APPROVED if approved else CallState.DENIED,
        decided_at=now,
        decided_by=by,
        decided_via=_POLICY,
        reason=None if approved else _POLICY,
        automatic=True,
        trail=(*waiting.trail, decision),
    )
