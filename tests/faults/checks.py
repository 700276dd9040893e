"""What must hold at the end of every story, whatever was killed in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from faults.agent import TOLD, YES, Tool
from faults.case import Case, Outcome
from faults.user import Heard, Json

__all__ = ["Ending", "check", "is_told"]

_TOOLS: Final[Mapping[Tool, frozenset[str]]] = {
    "plain": frozenset({"pay"}),
    "idempotent": frozenset({"pay_once"}),
    "ungated": frozenset({"note"}),
    "both": frozenset({"pay", "pay_once"}),
}
_ENDED: Final = frozenset({"output-available", "output-error", "output-denied"})


@dataclass(frozen=True, slots=True)
class Ending:
    """Everything that is left of a story."""

    case: Case
    running: int
    """How many calls were claimed and not finished in a moment of death."""
    resumed: Heard
    """The last reply, read again."""
    messages: list[Json]
    calls: list[Json]
    """Rows of the ledger."""
    effects: list[tuple[str, str]]
    """Tool and call of each."""
    decided_again: list[tuple[int, int]]
    """The statuses of the same verdict again, and of the other."""
    said_more: Heard

    @property
    def parts(self) -> dict[str, Json]:
        """The tool parts of the history, by call."""
        parts = [part for message in self.messages for part in message["parts"]]
        return {part["toolCallId"]: part for part in parts if "toolCallId" in part}

    def had_effect(self, call_id: str) -> bool:
        """Whether a call did something."""
        return any(each == call_id for _, each in self.effects)


def is_told(messages: list[Json]) -> bool:
    """Whether the answer is there, and once."""
    if not messages or messages[-1]["role"] != "assistant":
        return False
    said = "".join(part.get("text", "") for part in messages[-1]["parts"])
    return said.endswith(TOLD) and said.count(TOLD) == 1


def check(ending: Ending, outcome: Outcome) -> None:
    """Note what is doubled, stuck or lost, and what is told to be unknown or unasked."""
    outcome.doubles += _doubles(ending)
    outcome.stuck += _stuck(ending)
    outcome.losses += [*_losses(ending), *_false_rows(ending), *_unasked(ending)]
    outcome.unknown = sum(1 for row in ending.calls if row["state"] == "unknown")
    outcome.unasked = len(_without_row(ending))


def _doubles(ending: Ending) -> Iterator[str]:
    if not is_told(ending.messages):
        yield f"the answer is not there once: {ending.messages}"
    for tool in sorted(_TOOLS[ending.case.tool]):
        count = sum(1 for name, _ in ending.effects if name == tool)
        if count > 1:
            yield f"{tool} had {count} effects"
        if count and tool != "note" and not ending.case.verdict:
            yield f"{tool} ran though it was denied"


def _stuck(ending: Ending) -> Iterator[str]:
    if not ending.resumed.done:
        yield "the last reply does not end"
    if ending.said_more.text != YES:
        yield f"a new message was answered {ending.said_more}"


def _losses(ending: Ending) -> Iterator[str]:
    said = sum(1 for message in ending.messages if message["role"] == "user")
    if said != 1:
        yield f"the message is {said} times in the history"
    if len(ending.parts) != len(_TOOLS[ending.case.tool]):
        yield f"{len(ending.parts)} calls in the history"
    for call_id, part in ending.parts.items():
        if part["state"] not in _ENDED:
            yield f"a call was left {part['state']}"
        if part["state"] == "output-available" and not ending.had_effect(call_id):
            yield "a result is shown of a tool that did nothing"
    for again in ending.decided_again:
        if again != (200, 409):
            yield f"settled, but decided again: {again}"


def _false_rows(ending: Ending) -> Iterator[str]:
    """Yield the rows that do not say what happened and what is shown."""
    for row in ending.calls:
        part = ending.parts.get(row["call_id"], {"state": "missing"})
        had = ending.had_effect(row["call_id"])
        if not _is_true(row, part, had=had, verdict=ending.case.verdict):
            yield f"{row['tool_name']} is {row['state']}, shown as {part}, effect {had}"
    unknown = sum(1 for row in ending.calls if row["state"] == "unknown")
    if unknown > ending.running:
        yield f"{unknown} unknown, but {ending.running} ran when the server died"


def _is_true(row: Json, part: Json, *, had: bool, verdict: bool) -> bool:
    match row["state"]:
        case "done":
            return verdict and had and part["state"] == "output-available"
        case "denied":
            return not verdict and not had and part["state"] == "output-denied"
        case "unknown":
            told = part["state"] == "output-error" and "not known" in part["errorText"]
            return told and row["tool_name"] == "pay"
    return False


def _without_row(ending: Ending) -> list[str]:
    """Return the calls that were to be asked about, and never were."""
    if ending.case.tool == "ungated":
        return []
    asked = {row["call_id"] for row in ending.calls}
    return [call_id for call_id in ending.parts if call_id not in asked]


def _unasked(ending: Ending) -> Iterator[str]:
    for call_id in _without_row(ending):
        state = ending.parts[call_id]["state"]
        if state != "output-error" or ending.had_effect(call_id):
            yield f"{state}, but nobody was asked"
