"""What must hold at the end of a story of a busy chat, whatever was killed in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from faults.agent import NOW, PAY, TALK, TALK_ON, THEN, TOLD, WORK, YES
from faults.case import Busy, Case, Outcome
from faults.user import Heard, Json

__all__ = ["BusyEnding", "check_busy", "first_of", "is_complete", "said_in"]

_TALKED: Final = "One. Two."
_HERE: Final = "Here it is."
_ALL: Final = "That is all."
_TALKED_ON: Final = "Uno. Dos."
_ANSWERS: Final = (_TALKED, _TALKED_ON, _HERE, _ALL, TOLD)
_STEERING: Final = frozenset({"data-adk-steering", "steering-message"})


@dataclass(frozen=True, slots=True)
class _Shape:
    """What a chat holds in the end."""

    said: tuple[str, ...]
    """By the person, in this order."""
    answered: tuple[str, ...] = ()
    """By the model, each once."""
    never: tuple[str, ...] = ()
    """What was stopped before it could be said."""


_SHAPES: Final[Mapping[Busy, _Shape]] = {
    "ask": _Shape((TALK, NOW), (_HERE,), ("Two.",)),
    "regenerate": _Shape((TALK,), (_TALKED,)),
    "edit": _Shape((NOW,), (_HERE,), ("One.",)),
    "interrupt": _Shape((TALK, NOW), (_HERE,), ("Two.",)),
    "queue": _Shape((TALK, NOW, THEN), (_TALKED, _HERE, _ALL)),
    "tabs": _Shape((TALK, TALK_ON)),
    "stops": _Shape((TALK, TALK, TALK, TALK, NOW), (_HERE,), ("Two.",)),
    "stop": _Shape((TALK, NOW), (), ("Two.", _HERE)),
    "thanks": _Shape((PAY, NOW), (_HERE,)),
}


def first_of(case: Case) -> str:
    """Return what is answered while the rest happens."""
    # A live model hears what steers it at once; another one, when it is asked again.
    return WORK if case.busy == "steer" and case.over == "sse" else TALK


def _shape(case: Case) -> _Shape:
    assert case.busy is not None
    if case.busy == "steer":
        return _Shape((first_of(case), NOW), (_HERE,))
    return _SHAPES[case.busy]


@dataclass(frozen=True, slots=True)
class BusyEnding:
    """Everything that is left of a story."""

    case: Case
    running: int
    """How many calls were claimed and not finished in a moment of death."""
    resumed: Heard
    """The last reply, read again."""
    messages: list[Json]
    rows: Json
    effects: list[tuple[str, str]]
    """Tool and call of each."""
    said_more: Heard
    heard: list[Heard] = field(default_factory=list)
    """The replies of a story in which nobody was killed."""


def said_in(messages: list[Json]) -> list[str]:
    """Return what the person said, in the order of the history, into a running answer, too."""
    return [text for message in messages for text in _said(message)]


def _said(message: Json) -> Iterator[str]:
    if message["role"] == "user":
        yield _text(message["parts"])
    for part in message["parts"]:
        if part["type"] in _STEERING:
            yield _text(part["data"]["parts"])


def _text(parts: list[Json]) -> str:
    return "".join(part["text"] for part in parts if part["type"] == "text")


def _told(messages: list[Json]) -> str:
    """Return all that the model said."""
    return "".join(_text(one["parts"]) for one in messages if one["role"] == "assistant")


def is_complete(case: Case, messages: list[Json]) -> bool:
    """Whether all is said and answered that must be."""
    shape, told = _shape(case), _told(messages)
    if case.busy == "tabs":
        # The last one is answered; the other is, or was interrupted.
        last = said_in(messages)[-1:]
        answers = tuple({TALK: _TALKED, TALK_ON: _TALKED_ON}[said] for said in last)
    else:
        answers = shape.answered
    said = len(said_in(messages)) >= len(shape.said)
    return said and all(answer in told for answer in answers)


def check_busy(ending: BusyEnding, outcome: Outcome) -> None:
    """Note what is doubled, stuck or lost, and what is told to be unknown."""
    outcome.doubles += _doubles(ending)
    outcome.stuck += _stuck(ending)
    outcome.losses += _losses(ending)
    calls: list[Json] = ending.rows["calls"]
    outcome.unknown = sum(1 for row in calls if row["state"] == "unknown")


def _doubles(ending: BusyEnding) -> Iterator[str]:
    told = _told(ending.messages)
    for answer in _ANSWERS:
        if told.count(answer) > 1:
            yield f"answered {told.count(answer)} times: {answer}"
    for forbidden in _shape(ending.case).never:
        if forbidden in told:
            yield f"said though it was stopped: {forbidden}"
    tools = [tool for tool, _ in ending.effects]
    for tool in set(tools):
        if tools.count(tool) > 1:
            yield f"{tool} had {tools.count(tool)} effects"


def _stuck(ending: BusyEnding) -> Iterator[str]:
    if not ending.resumed.done:
        yield "the last reply does not end"
    if ending.said_more.text != YES:
        yield f"a new message was answered {ending.said_more}"
    if ending.rows["waiting"]:
        yield f"left waiting: {ending.rows['waiting']}"
    if any(turn["running"] for turn in ending.rows["turns"]):
        yield "a turn was left running"


def _losses(ending: BusyEnding) -> Iterator[str]:
    said, meant = said_in(ending.messages), list(_shape(ending.case).said)
    if ending.case.busy == "tabs":
        said, meant = sorted(said), sorted(meant)
    if said != meant:
        yield f"said {said}"
    if not is_complete(ending.case, ending.messages):
        yield f"not answered: {_told(ending.messages)}"
    yield from _lost_calls(ending)
    for heard in ending.heard:
        if any(chunk["type"] == "error" for chunk in heard.chunks):
            yield f"nobody died, but: {heard.chunks[-1]}"


def _lost_calls(ending: BusyEnding) -> Iterator[str]:
    """Yield the calls that were approved, and not carried out."""
    for row in ending.rows["calls"]:
        had = any(call == row["call_id"] for _, call in ending.effects)
        if row["state"] != "unknown" and (row["state"] != "done" or not had):
            yield f"{row['tool_name']} is {row['state']}, effect {had}"
    unknown = sum(1 for row in ending.rows["calls"] if row["state"] == "unknown")
    if unknown > ending.running:
        yield f"{unknown} unknown, but {ending.running} ran when the server died"
