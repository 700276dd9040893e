"""The audit trail as others read it: one JSON object for each thing that happened to a call."""

from __future__ import annotations

from collections.abc import Iterator

from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.translation.cards import trail_time
from adk_stream_protocol.wire.values import JsonObject, JsonValue

__all__ = ["trail_json"]


def trail_json(
    call: HeldCall, *, since: float = 0.0, arguments: bool = False
) -> Iterator[dict[str, JsonValue]]:
    """Yield what happened to a call, in order.

    Args:
        call: the call.
        since: leave out what happened before that moment.
        arguments: whether to tell the arguments themselves, and not just their hash.
    """
    of_call: JsonObject = {
        "approvalId": call.approval_id,
        "chatId": call.chat_id,
        "toolCallId": call.call_id,
        "toolName": call.tool_name,
        "owner": call.owner,
    }
    # Each line names the arguments that counted then: those shown, or what an approver made of
    # them from that line on.
    counted: dict[str, JsonValue] = {"argumentsHash": call.arguments_hash}
    if arguments:
        counted["input"] = dict(call.arguments)
    for entry in call.trail:
        change: JsonObject = {}
        if call.edited_hash is not None and entry.get("argumentsHash") == call.edited_hash:
            change = {"edited": True}
            counted = {"argumentsHash": call.edited_hash}
            if arguments:
                counted["input"] = dict(call.run_arguments)
        at = entry.get("at")
        if not isinstance(at, int | float) or at >= since:
            yield {**of_call, **entry, **counted, **change, "at": trail_time(entry)}
