"""Reads a model request: what the user said last, and what came of the calls made since.

ADK removes its own call ids from a request, so a result is matched to its call by what it says
and by its place.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from google.genai import types

from adk_stream_protocol.demo.intents import ToolRequest

__all__ = ["Attachment", "Exchange", "Outcome", "OutcomeState", "read_exchange"]

OutcomeState = Literal["waiting", "denied", "expired", "failed", "done"]

# What ADK, the gate and a browser say in the result of a call that did not run. A denial comes
# first: it may end with the user's own words, which can say anything.
_DENIED = re.compile(r"user denied(?: execution: (?P<reason>.+))?", re.IGNORECASE | re.DOTALL)
_SIGNS: tuple[tuple[OutcomeState, re.Pattern[str]], ...] = (
    (
        "denied",
        re.compile(
            rf"^{_DENIED.pattern}|rejected|denied|declined|not approved|拒否", re.IGNORECASE
        ),
    ),
    ("waiting", re.compile(r"requires confirmation|waiting|pending|output follows", re.IGNORECASE)),
    ("expired", re.compile(r"expired?|timed out|timeout|in time|期限", re.IGNORECASE)),
)


@dataclass
class Outcome:
    """A call that was made, and its result; None until one has come."""

    call: ToolRequest
    result: dict[str, Any] | None = None  # ADK's own type for a function response

    @property
    def error(self) -> str:
        """The error the tool answered with, or an empty string."""
        error = (self.result or {}).get("error")
        return str(error) if error else ""

    @property
    def reason(self) -> str:
        """Why the user said no, or an empty string."""
        told = _DENIED.match(self.error)
        return str((self.result or {}).get("reason") or (told and told["reason"]) or "")

    @property
    def state(self) -> OutcomeState:
        """What became of the call, as far as its result tells."""
        if self.result is None:
            return "waiting"
        if not self.error:
            return _state_of(str(self.result.get("status", "")), otherwise="done")
        return _state_of(self.error, otherwise="failed")


@dataclass(frozen=True)
class Attachment:
    """A file in the user's message."""

    media_type: str
    size: int | None  # in bytes; None if only an address was sent


@dataclass
class Exchange:
    """One request to the model, as a conversation."""

    text: str = ""  # what the user said last
    attachments: list[Attachment] = field(default_factory=list)  # in the same message
    rounds: list[list[Outcome]] = field(default_factory=list)  # calls made since, by step
    earlier_texts: list[str] = field(default_factory=list)  # what the user said before, in order
    earlier_outcomes: list[Outcome] = field(default_factory=list)  # of calls made before

    @property
    def outcomes(self) -> list[Outcome]:
        """The calls made since the user spoke, in order."""
        return [outcome for calls in self.rounds for outcome in calls]


def read_exchange(contents: Sequence[types.Content]) -> Exchange:
    """Return what a request's contents say; never fails, whatever they hold."""
    exchange = Exchange()
    for content in contents:
        parts = content.parts or []
        calls = [part.function_call for part in parts if part.function_call]
        results = [part.function_response for part in parts if part.function_response]
        if calls:
            exchange.rounds.append([Outcome(_request(call)) for call in calls])
        if results:
            _match(results, exchange.outcomes)
        elif content.role == "user":
            _user_speaks(exchange, parts)
    return exchange


def _user_speaks(exchange: Exchange, parts: Iterable[types.Part]) -> None:
    text = "\n".join(part.text for part in parts if part.text)
    attachments = [attachment for attachment in map(_attachment, parts) if attachment is not None]
    if not text and not attachments:
        return
    if exchange.text:
        exchange.earlier_texts.append(exchange.text)
    exchange.earlier_outcomes.extend(exchange.outcomes)
    exchange.rounds.clear()
    exchange.text = text
    exchange.attachments = attachments


def _attachment(part: types.Part) -> Attachment | None:
    if part.inline_data is not None:
        blob = part.inline_data
        return Attachment(blob.mime_type or "application/octet-stream", len(blob.data or b""))
    if part.file_data is not None:
        return Attachment(part.file_data.mime_type or "application/octet-stream", None)
    return None


def _request(call: types.FunctionCall) -> ToolRequest:
    return ToolRequest(call.name or "", call.args or {})


def _match(results: Iterable[types.FunctionResponse], outcomes: Sequence[Outcome]) -> None:
    """Give each result to the call it echoes, else to the first open call of its tool."""
    unplaced: list[types.FunctionResponse] = []
    for response in results:
        echoed = [outcome for outcome in _open(outcomes, response) if _echoes(response, outcome)]
        if echoed:
            echoed[0].result = _unwrapped(response)
        else:
            unplaced.append(response)
    for response in unplaced:
        for outcome in _open(outcomes, response)[:1]:
            outcome.result = _unwrapped(response)


def _open(outcomes: Sequence[Outcome], response: types.FunctionResponse) -> list[Outcome]:
    return [
        outcome
        for outcome in outcomes
        if outcome.result is None and outcome.call.tool == response.name
    ]


def _echoes(response: types.FunctionResponse, outcome: Outcome) -> bool:
    result = _unwrapped(response)
    shared = outcome.call.arguments.keys() & result.keys()
    return bool(shared) and all(result[key] == outcome.call.arguments[key] for key in shared)


def _unwrapped(response: types.FunctionResponse) -> dict[str, Any]:
    result = response.response or {}
    inner = result.get("result")
    return inner if len(result) == 1 and isinstance(inner, dict) else result


def _state_of(words: str, *, otherwise: OutcomeState) -> OutcomeState:
    return next((state for state, sign in _SIGNS if sign.search(words)), otherwise)
