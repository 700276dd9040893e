"""The life of one approval, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from adk_stream_protocol.cli.text import json_text, visible
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object

__all__ = ["explained", "step_text"]

_DID: Final = {
    "open": "asked for it",
    "approve": "approved it",
    "deny": "denied it",
    "resolve_done": "found that it took effect",
    "resolve_failed": "found that it did not take effect",
}
"""What somebody did."""

_HAPPENED: Final = {
    "expire": "No decision came in time: it expired and will not run.",
    "cancel": "It was cancelled before it ran: the reply was stopped, or its message taken back.",
    "claim": "The tool started.",
    "finish": "The tool ended well.",
    "fail": "The tool failed.",
    "release": "The server was interrupted while the tool ran; it may run again.",
    "lapse": "The server was interrupted, or the tool took too long: nobody knows how it ended.",
    "output": "The browser gave its output.",
    "output_error": "The browser failed to run it.",
}
"""What nobody did."""

_EXPIRED_AFTER_APPROVAL: Final = {
    "expire": "The browser gave no output in time: it expired.",
    "expired": (
        "It was approved, and the browser gave no output in time. Whether it ran is not known."
    ),
}
"""What is to be said of a browser tool that was approved instead."""

_STANDS: Final = {
    "approved": "It is approved and has not run yet.",
    "denied": "It was denied: the tool did not run, and the agent was told so.",
    "expired": "It expired: nobody rejected it, nobody decided. The tool did not run.",
    "cancelled": "It was cancelled: the tool did not run.",
    "running": "The tool runs now.",
    "done": "The tool ran once, and its result is recorded.",
    "failed": "The tool ran, or was to run, and failed.",
    "unknown": (
        "Nobody knows whether it took effect, and it is not run again by itself. Find out, then "
        "say so with `adk-stream approvals resolve`."
    ),
}


def explained(approval: JsonObject, trail: Sequence[JsonObject]) -> Iterator[str]:
    """Yield the lines that tell an approval's life and how it stands."""
    tool, chat = _text(approval, "toolName"), _text(approval, "chatId")
    yield f"{tool} {json_text(approval.get('input'))} in the chat {chat}"
    yield ""
    was_approved = any(entry.get("event") == "approve" for entry in trail)
    instead = _EXPIRED_AFTER_APPROVAL if was_approved else {}
    for entry in trail:
        told = instead.get(_text(entry, "event")) or _sentence(entry, approval)
        yield f"{_moment(_text(entry, 'at'))}  {told}"
    yield ""
    status = _text(approval, "status")
    if status == "pending":
        yield from _waiting(approval)
    else:
        yield instead.get(status) or _STANDS.get(status, "")


def step_text(approval: JsonObject) -> str:
    """Return which step of a call waits, and for whom."""
    step = as_object(approval.get("step"))
    who = _names(step.get("by"))
    told = f"step {step.get('n')} of {step.get('of')} ({_text(step, 'name')})"
    return f"{told}, by {who}" if who else told


def _sentence(entry: JsonObject, approval: JsonObject) -> str:
    event = _text(entry, "event")
    if event in _HAPPENED:
        return _HAPPENED[event]
    by = "A policy" if entry.get("automatic") else _text(entry, "by")
    said = f"{by} {_did(event, entry, approval)}"
    if entry.get("automatic"):
        # `policy`, or `policy (always, ann)`.
        said += _text(entry, "by").removeprefix("policy")
    if entry.get("via") and not entry.get("automatic"):
        said += f", via {_text(entry, 'via')}"
    if event == "open" or entry.get("edited"):
        said += f", arguments sha256 {_text(entry, 'argumentsHash')}"
    return f"{said}: {_text(entry, 'reason')}" if entry.get("reason") else f"{said}."


def _did(event: str, entry: JsonObject, approval: JsonObject) -> str:
    number = entry.get("step")
    if event in {"step", "approve"} and number:
        of = as_object(approval.get("step")).get("of")
        told = f"approved step {number} of {of}"
    else:
        told = _DID.get(event, event)
    if entry.get("edited") and event in {"step", "approve"}:
        told += " with other arguments"
    if entry.get("remember"):
        told += ", and all later calls of this tool in this chat"
    return told


def _waiting(approval: JsonObject) -> Iterator[str]:
    owner = _text(approval, "owner")
    step = as_object(approval.get("step"))
    who = _names(step.get("by"))
    if step:
        yield f"It waits for {step_text(approval)}."
    if who:
        yield f"Any one of them may approve it{_but(step, owner)}; {owner} may withdraw it."
    elif step.get("fourEyes"):
        yield f"Not {owner}, but whoever else the server lets decide may approve it."
    else:
        yield f"{owner} may decide it, and whoever else the server lets decide."
    yield (
        f"If nobody does until {_moment(_text(approval, 'expiresAt'))}, it expires: the tool does "
        "not run, and the agent is told that no decision came in time."
    )


def _but(step: JsonObject, owner: str) -> str:
    approved_before = " who has not approved a step before"
    return f"{approved_before}, but not {owner}" if step.get("fourEyes") else approved_before


def _names(value: JsonValue) -> str:
    names = value if isinstance(value, list) else []
    return " or ".join(visible(str(name)) for name in names)


def _text(source: JsonObject, name: str) -> str:
    value = source.get(name)
    return "" if value is None else visible(str(value))


def _moment(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z").partition(".")[0] + " UTC"
