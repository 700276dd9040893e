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
    FinishStepChunk,
    SdkVersion,
    StartStepChunk,
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
from adk_stream_protocol.wire.entries import (
    AnswersStep,
    CallAnswered,
    CallFinished,
    CallHeld,
    Entry,
    InputReleased,
    Outcome,
    OwnBegins,
    Resumed,
)
from adk_stream_protocol.wire.values import JsonValue, dumps

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
    "ai-sdk": EVERYBODYS - {ToolInputAvailableChunk},
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


def _never(_tool_name: str) -> bool:
    return False


_DECIDED: Final[frozenset[Outcome]] = frozenset({"approved", "denied"})
"""What a person, or a policy, says; the other outcomes say that nobody did."""


@dataclass(frozen=True, slots=True)
class Audience:
    """One reader of a log: which profile it speaks and which line of the AI SDK it has."""

    profile: Profile = "ai-sdk"
    sdk: SdkVersion = 6
    runs_in_browser: Callable[[str], bool] = _never
    """Whether the client runs a tool of this name as soon as it sees it, unasked."""
    runs_after_approval: Callable[[str], bool] = _never
    """Whether the client runs a tool of this name once a person has approved the call."""

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
            case CallHeld():
                yield from self._held(entry)
            case CallAnswered():
                yield from self._answered(entry)
            case CallFinished():
                yield _card(entry)
            case Resumed():
                yield from self._resumed(entry)
            case InputReleased():
                yield ToolInputAvailableChunk(entry.call_id, entry.tool_name, entry.input)
            case ToolInputAvailableChunk() if self.runs_after_approval(entry.tool_name):
                # A client runs a call as soon as it gets this, whatever follows.
                return
            case OwnBegins() | AnswersStep():
                return
            case _:
                yield entry

    def _held(self, held: CallHeld) -> Iterator[Chunk]:
        if held.approval:
            yield ToolApprovalRequestChunk(held.approval_id, held.call_id)
            yield _card(held)
        elif held.kind == "browser" and self.runs_after_approval(held.tool_name):
            # Another tool of the same name is asked for; this one is not.
            yield ToolInputAvailableChunk(held.call_id, held.tool_name, held.input)

    def _answered(self, entry: CallAnswered) -> Iterator[Chunk]:
        approved = entry.outcome == "approved"
        verdict = approved or entry.was_approved
        is_decided = entry.was_approved or entry.outcome in _DECIDED
        if entry.automatic and self.sdk == 7:
            # v6 has no word for it: its part would ask the person for a moment.
            yield ToolApprovalRequestChunk(entry.approval_id, entry.call_id, is_automatic=True)
        if entry.approval and is_decided and entry.own_verdict is not verdict:
            # Not if the reader decided it: its part may have an output already, which this hides.
            yield ToolApprovalResponseChunk(entry.approval_id, verdict, entry.reason)
        if entry.approval:
            yield _card(entry)
        # A client's helpers send the other answers only while its part says that it was answered.
        is_left = entry.waits and entry.own_verdict is False
        if not approved and not is_left:
            yield self._ending(entry)

    def _ending(self, entry: CallAnswered) -> Chunk:
        """Return the end of a call that does not run, in a state that its part can be in.

        A part that is denied must hold a denial, and one with an error no denial: the AI SDK's
        `validateUIMessages` refuses any other.
        """
        is_denial_shown = entry.own_verdict is False
        if entry.outcome == "denied":
            # v6 is not told the verdict: its part holds what its own user decided, if anything.
            is_denial_shown = self.sdk == 7 or not (entry.own_verdict or entry.automatic)
        if is_denial_shown:
            return ToolOutputDeniedChunk(entry.call_id)
        return ToolOutputErrorChunk(entry.call_id, outcome_text(entry))

    def _resumed(self, resumed: Resumed) -> Iterator[Chunk]:
        """Yield what a reader gets that begins anew, so that it runs nothing a second time."""
        match resumed.entry:
            case ToolInputAvailableChunk() as given if resumed.progress == "over":
                # Without `tool-input-available` a client makes the same part, and runs nothing.
                yield ToolInputDeltaChunk(given.tool_call_id, dumps(given.input))
            case ToolInputAvailableChunk() | ToolInputDeltaChunk():
                # Given in another form, or released later.
                return
            case CallHeld(approval=True) as held:
                if self._is_asked_again(resumed):
                    yield ToolApprovalRequestChunk(held.approval_id, held.call_id)
                yield _card(held)
            case CallHeld():
                return
            case CallAnswered() as answered:
                # A part that was not asked for holds no verdict.
                unasked = dataclasses.replace(answered, own_verdict=True)
                yield from self._answered(answered if self.sdk == 7 else unasked)

    def _is_asked_again(self, resumed: Resumed) -> bool:
        if self.sdk == 7:
            return resumed.outcome in _DECIDED
        # v6 cannot be told the verdict, and a part that was asked for and has a result without one
        # is invalid. But while others wait, its helpers only send once this is answered, too.
        return resumed.progress == "recorded"

    def _as_adk(self, entry: Entry) -> Iterator[Chunk]:
        match entry:
            case CallHeld(approval=True):
                yield from _confirmation(entry)
            case CallAnswered():
                yield from _confirmed(entry)
            case Resumed():
                yield from self._resumed_as_adk(entry)
            case AnswersStep(begins):
                # Without a step of their own `lastAssistantMessageIsCompleteWithToolCalls` finds
                # every confirmation answered and sends again, for ever.
                yield StartStepChunk() if begins else FinishStepChunk()
            case CallHeld() | CallFinished() | InputReleased() | OwnBegins():
                return
            case ToolInputDeltaChunk():
                # This profile shows a call as start and available, nothing between.
                return
            case ToolInputStartChunk() | ToolInputAvailableChunk():
                yield self._unattended(entry)
            case _:
                yield entry

    def _resumed_as_adk(self, resumed: Resumed) -> Iterator[Chunk]:
        match resumed.entry:
            case ToolInputAvailableChunk() as given if resumed.progress == "over":
                yield ToolInputDeltaChunk(given.tool_call_id, dumps(given.input))
            case CallHeld(approval=True) as held:
                yield from _confirmation(held, is_answered=True)
            case _ as entry:
                yield from self._as_adk(entry)

    def _unattended(
        self, chunk: ToolInputStartChunk | ToolInputAvailableChunk
    ) -> ToolInputStartChunk | ToolInputAvailableChunk:
        # Without `providerExecuted` the stock `lastAssistantMessageIsCompleteWithToolCalls` waits
        # for the gated call's own output for ever, and `onToolCall` fires for it.
        if chunk.tool_name == QUESTION_TOOL or self.runs_in_browser(chunk.tool_name):
            return chunk
        return dataclasses.replace(chunk, provider_executed=True)


def _card(entry: CallHeld | CallAnswered | CallFinished) -> DataChunk:
    # What the approval chunk cannot carry for strict clients; same id, so it updates in place.
    return DataChunk(ApprovalData.name, dict(entry.card), id=entry.approval_id)


def _confirmed(entry: CallAnswered) -> Iterator[Chunk]:
    # Of what a policy decided, this profile shows just the outcome.
    if entry.approval and not entry.automatic:
        approved = entry.outcome == "approved" or entry.was_approved
        output: dict[str, JsonValue] = {"confirmed": approved}
        if entry.outcome not in _DECIDED:
            # Nobody said no; and somebody may have said yes before.
            output["outcome"] = entry.outcome
        yield ToolOutputAvailableChunk(entry.approval_id, output)
    if entry.outcome != "approved":
        yield ToolOutputErrorChunk(entry.call_id, outcome_text(entry))


def _confirmation(held: CallHeld, *, is_answered: bool = False) -> Iterator[Chunk]:
    confirmation: dict[str, JsonValue] = {"hint": held.hint, "confirmed": False}
    if held.payload is not None:
        confirmation["payload"] = held.payload
    confirmation |= {name: held.card[name] for name in _TO_DECIDE if held.card.get(name)}
    asked: JsonValue = {
        "originalFunctionCall": {"id": held.call_id, "name": held.tool_name, "args": held.input},
        "toolConfirmation": confirmation,
    }
    yield ToolInputStartChunk(held.approval_id, CONFIRMATION_TOOL)
    if is_answered:
        yield ToolInputDeltaChunk(held.approval_id, dumps(asked))
    else:
        yield ToolInputAvailableChunk(held.approval_id, CONFIRMATION_TOOL, asked)
