"""What an answer is worth once the call is settled: the same rule in every store."""

from __future__ import annotations

from typing import Final

from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.ports import Ruling, Verdict
from adk_stream_protocol.wire.values import JsonValue

__all__ = ["FAILED_KEY", "WITHDRAWN", "output_ruling", "verdict_ruling"]

WITHDRAWN: Final = ReplyId("withdrawn")
"""Where an answer was delivered that nobody will deliver any more."""

FAILED_KEY: Final = "failed"
"""The key of a turn that failed: no request has it, so each begins anew."""


def verdict_ruling(call: HeldCall, verdict: Verdict) -> Ruling:
    """Return whether a verdict on a settled call repeats what was decided."""
    if verdict.decision_id is not None and verdict.decision_id == call.decision_id:
        return "repeat"
    same = call.approved if verdict.approved else call.state is CallState.DENIED
    return "repeat" if same and call.approval else "conflict"


def output_ruling(call: HeldCall, output: JsonValue, error: str | None) -> Ruling:
    """Return whether an output for a settled call repeats what was given."""
    same = call.done_at is not None and (call.result, call.error) == (output, error)
    return "repeat" if same else "conflict"
