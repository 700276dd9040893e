"""How the entries of a log look to one reader: profile, and line of the AI SDK.

`ai-sdk` shows a held call as the AI SDK's own approval on the tool's part. `adk` shows it as a
tool call named `adk_request_confirmation`, the protocol the first clients of ADK bridges speak.
Rendering is pure: the same log can be read in both at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from adk_stream_protocol.wire.chunks import (
    EVERYBODYS,
    Chunk,
    DataChunk,
    SdkVersion,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    fit,
)
from adk_stream_protocol.wire.data_parts import ApprovalData
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry, OwnBegins
from adk_stream_protocol.wire.values import JsonValue

__all__ = [
    "CONFIRMATION_TOOL",
    "DENIED_TEXT",
    "Audience",
    "Profile",
    "outcome_text",
]

Profile: TypeAlias = Literal["ai-sdk", "adk"]

CONFIRMATION_TOOL = "adk_request_confirmation"
QUESTION_TOOL = "adk_request_input"
DENIED_TEXT = "User denied execution"
POLICY_TEXT = "Denied by policy; no person was asked."
EXPIRED_TEXT = "No decision came in time; the call was not run."
NO_OUTPUT_TEXT = "The browser gave no output in time; whether it ran the call is not known."
NO_REPLY_TEXT = "No reply came in time."
CANCELLED_TEXT = "The call was cancelled before a decision; it was not run."
NOT_RUN_TEXT = "The call was cancelled before it ran."
NOT_DONE_TEXT = "The call was cancelled before the browser gave its output."
NOT_REPLIED_TEXT = "The question was cancelled before a reply came."


_AS_THEY_ARE: Final[Mapping[Profile, frozenset[type[Chunk]]]] = {
    "ai-sdk": EVERYBODYS,
    "adk": EVERYBODYS - {ToolInputStartChunk, ToolInputDeltaChunk, ToolInputAvailableChunk},
}
"""What every reader of a profile gets as it was written: nearly all there is."""


_TO_DECIDE: Final = ("title", "risk", "expiresAt", "step", "approvedBy", "ui")
"""What of a call's card a confirmation shows, beside its hint: this profile has no card."""


def outcome_text(answered: CallAnswered) -> str:
    """Return why a call that was not approved did not run."""
    match answered.outcome:
        case "denied" if answered.automatic:
            return POLICY_TEXT
        case "denied":
            return f"{DENIED_TEXT}: {answered.reason}" if answered.reason else DENIED_TEXT
        case "expired" | "cancelled":
            expired, cancelled = _awaited_texts(answered)
            return expired if answered.outcome == "expired" else cancelled
        case "approved":
            return ""


def _awaited_texts(answered: CallAnswered) -> tuple[str, str]:
    """Return what to say of a call that expired, or was cancelled: by what it waited for."""
    if answered.approval and not answered.was_approved:
        return EXPIRED_TEXT, CANCELLED_TEXT
    match answered.kind:
        case "browser":
            return NO_OUTPUT_TEXT, NOT_DONE_TEXT
        case "input" | "credential":
            return NO_REPLY_TEXT, NOT_REPLIED_TEXT
        case "tool":
            return EXPIRED_TEXT, NOT_RUN_TEXT


def _runs_at_once_in_browser(_tool_name: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Audience:
    """One reader of a log: which profile it speaks and which line of the AI SDK it has."""

    profile: Profile = "ai-sdk"
    sdk: SdkVersion = 6
    runs_in_browser: Callable[[str], bool] = _runs_at_once_in_browser
    """Whether the client runs a tool of this name as soon as it sees it, unasked."""

    def render(self, entries: Iterable[Entry]) -> Iterator[Chunk]:
        """Yield the chunks this reader gets for the entries, in order."""
        as_they_are: frozenset[type[Entry]] = _AS_THEY_ARE[self.profile]
        for entry in entries:
            if type(entry) in as_they_are:
                yield entry  # type: ignore[misc]  # only chunks are in there
                continue
            show = self._as_ai_sdk if self.profile == "ai-sdk" else self._as_adk
            for chunk in show(entry):
                fitting = fit(chunk, self.sdk)
                if fitting is not None:
                    yield fitting

    def _as_ai_sdk(self, entry: Entry) -> Iterator[Chunk]:
        match entry:
            case CallHeld(approval=True):
                yield ToolApprovalRequestChunk(entry.approval_id, entry.call_id)
                yield _card(entry)
            case CallHeld() | OwnBegins():
                return
            case CallAnswered(automatic=True):
                yield from self._automatic(entry)
            case CallAnswered(approval=True):
                if entry.was_approved or entry.outcome in {"approved", "denied"}:
                    approved = entry.outcome != "denied"
                    yield ToolApprovalResponseChunk(entry.approval_id, approved, entry.reason)
                yield _card(entry)
                yield from _ending(entry)
            case CallAnswered():
                yield from _ending(entry)
            case _:
                yield entry

    def _automatic(self, entry: CallAnswered) -> Iterator[Chunk]:
        if self.sdk == 7:
            # v6 has no word for it: its part would ask the person for a moment.
            yield ToolApprovalRequestChunk(entry.approval_id, entry.call_id, is_automatic=True)
            approved = entry.outcome == "approved"
            yield ToolApprovalResponseChunk(entry.approval_id, approved, entry.reason)
        yield _card(entry)
        yield from _ending(entry)

    def _as_adk(self, entry: Entry) -> Iterator[Chunk]:
        match entry:
            case CallHeld(approval=True):
                yield from _confirmation(entry)
            case CallHeld() | OwnBegins():
                return
            case CallAnswered():
                # Of what a policy decided, this profile shows just the outcome.
                if entry.approval and not entry.automatic:
                    yield ToolOutputAvailableChunk(entry.approval_id, _confirmed(entry))
                if entry.outcome != "approved":
                    yield ToolOutputErrorChunk(entry.call_id, outcome_text(entry))
            case ToolInputDeltaChunk():
                # This profile shows a call as start and available, nothing between.
                return
            case ToolInputStartChunk() | ToolInputAvailableChunk():
                yield self._unattended(entry)
            case _:
                yield entry

    def _unattended(
        self, chunk: ToolInputStartChunk | ToolInputAvailableChunk
    ) -> ToolInputStartChunk | ToolInputAvailableChunk:
        # Without `providerExecuted` the stock `lastAssistantMessageIsCompleteWithToolCalls` waits
        # for the gated call's own output for ever, and `onToolCall` fires for it.
        if chunk.tool_name == QUESTION_TOOL or self.runs_in_browser(chunk.tool_name):
            return chunk
        return dataclasses.replace(chunk, provider_executed=True)


def _card(entry: CallHeld | CallAnswered) -> DataChunk:
    # What the approval chunk cannot carry for strict clients; same id, so it updates in place.
    return DataChunk(ApprovalData.name, dict(entry.card), id=entry.approval_id)


def _ending(entry: CallAnswered) -> Iterator[Chunk]:
    match entry.outcome:
        case "denied":
            yield ToolOutputDeniedChunk(entry.call_id)
        case "expired" | "cancelled":
            yield ToolOutputErrorChunk(entry.call_id, outcome_text(entry))
        case "approved":
            return


def _confirmed(entry: CallAnswered) -> dict[str, JsonValue]:
    if entry.outcome in {"approved", "denied"}:
        return {"confirmed": entry.outcome == "approved"}
    # Nobody said no; and somebody may have said yes before.
    return {"confirmed": entry.was_approved, "outcome": entry.outcome}


def _confirmation(held: CallHeld) -> Iterator[Chunk]:
    confirmation: dict[str, JsonValue] = {"hint": held.hint, "confirmed": False}
    if held.payload is not None:
        confirmation["payload"] = held.payload
    confirmation |= {name: held.card[name] for name in _TO_DECIDE if held.card.get(name)}
    yield ToolInputStartChunk(held.approval_id, CONFIRMATION_TOOL)
    yield ToolInputAvailableChunk(
        held.approval_id,
        CONFIRMATION_TOOL,
        {
            "originalFunctionCall": {
                "id": held.call_id,
                "name": held.tool_name,
                "args": held.input,
            },
            "toolConfirmation": confirmation,
        },
    )
