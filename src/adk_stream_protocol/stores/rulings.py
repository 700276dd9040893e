"""What an answer is worth once the call is settled: the same rule in every store."""

from __future__ import annotations

from typing import Final

from adk_stream_protocol.errors import TooMany
from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.lifecycle import CallEvent, CallState, HeldCall
from adk_stream_protocol.ports import Ruling, TurnRecord, Verdict, WaitingRequest
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_text

__all__ = [
    "FAILED_KEY",
    "MOST_RUNS",
    "READ_KEY",
    "WITHDRAWN",
    "check_most",
    "check_waiting",
    "decision_event",
    "decision_note",
    "is_about",
    "is_same_request",
    "is_same_waiting",
    "output_ruling",
    "verdict_ruling",
]

MOST_RUNS: Final = 5
"""How often an idempotent call is started at most; a process that dies each time is its doing."""

WITHDRAWN: Final = ReplyId("withdrawn")
"""Where an answer was delivered that nobody will deliver any more."""

FAILED_KEY: Final = "failed"
"""The key of a turn that failed: no request has it, so each begins anew."""

READ_KEY: Final = "read"
"""The key of a turn whose reply was read to its end: no request has it, so each begins anew."""


def check_most(most: int | None, running: int, current: TurnRecord | None) -> None:
    """Check that one more turn of a user may run.

    Args:
        most: how many may; None: any number.
        running: how many do.
        current: the newest turn of the chat, if any. Where one runs none is added: it is attached
            to, or in the way.

    Raises:
        TooMany: it may not.
    """
    if most is None or running < most or (current is not None and current.running):
        return
    raise TooMany(f"{most} replies of yours are running already. Wait for one to end, or stop it.")


def check_waiting(most: int | None, waiting: int) -> None:
    """Check that one more request may wait for a chat.

    Raises:
        TooMany: it may not.
    """
    if most is not None and waiting >= most:
        raise TooMany(
            f"{waiting} messages wait in this chat already. Wait for an answer, or stop the chat."
        )


def is_same_request(current: TurnRecord, turn: TurnRecord, *, repeatable: bool) -> bool:
    """Whether a request is the one that the chat's newest turn answers or has answered.

    One that may be repeated is another once that turn has ended, or was asked to stop.
    """
    if current.key != turn.key:
        return False
    goes_on = current.lapsed or (current.running and not current.stopping)
    return goes_on or not repeatable


def is_same_waiting(other: WaitingRequest, request: WaitingRequest, *, once: bool) -> bool:
    """Whether a request is one that waits already.

    One that may be repeated is another once that was stopped.
    """
    return other.key == request.key and (once or not other.stopping)


def is_about(call: HeldCall, verdict: Verdict) -> bool:
    """Whether an approver was shown what would run; a denial is about either."""
    return not verdict.approved or (verdict.shown_hash or call.arguments_hash) == call.run_hash


def verdict_ruling(call: HeldCall, verdict: Verdict) -> Ruling:
    """Return whether a verdict that does not apply repeats what was decided."""
    if verdict.decision_id is not None and verdict.decision_id in _decision_ids(call):
        return "repeat"
    if not call.approval or verdict.edited_hash not in {None, call.edited_hash}:
        return "conflict"
    if call.state is CallState.PENDING:
        # Another step waits by now. Who approved one before clicked twice.
        same = verdict.approved and verdict.by in call.step_approvers
    elif verdict.approved:
        same = call.approved and _agrees(call, verdict)
    else:
        same = call.state is CallState.DENIED
    return "repeat" if same else "conflict"


def _agrees(call: HeldCall, verdict: Verdict) -> bool:
    """Whether an approval means what was approved, not what another person has changed."""
    by_them = verdict.by in {call.decided_by, *call.step_approvers}
    return by_them or verdict.edited_hash is not None or is_about(call, verdict)


def _decision_ids(call: HeldCall) -> set[str | None]:
    return {call.decision_id} | {as_text(entry.get("decisionId")) or None for entry in call.trail}


def decision_event(verdict: Verdict) -> CallEvent:
    """Return what a verdict does to a call that waits for it."""
    if not verdict.approved:
        return CallEvent.DENY
    return CallEvent.APPROVE if verdict.final else CallEvent.STEP


def decision_note(call_event: CallEvent, verdict: Verdict) -> JsonObject:
    """Return what the trail says of a verdict."""
    told: dict[str, JsonValue] = {
        "event": call_event.value,
        "by": verdict.by,
        "via": verdict.via or None,
        "reason": verdict.reason,
        "decisionId": verdict.decision_id,
        "step": verdict.step + 1 if verdict.step or not verdict.final else None,
        "argumentsHash": verdict.edited_hash,
        "automatic": verdict.automatic or None,
        "remember": verdict.remember or None,
    }
    return {key: value for key, value in told.items() if value is not None}


def output_ruling(call: HeldCall, output: JsonValue, error: str | None) -> Ruling:
    """Return whether an output for a settled call repeats what was given."""
    same = call.done_at is not None and (call.result, call.error) == (output, error)
    return "repeat" if same else "conflict"
