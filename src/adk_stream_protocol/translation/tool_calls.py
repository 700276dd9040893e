"""The tool calls of one message: what was shown of each, and what is still owed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from google.genai import types

from adk_stream_protocol.wire.chunks import (
    Chunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.values import JsonObject, JsonValue, dumps

__all__ = ["ToolCalls", "is_code"]

_CODE_TOOL = "code_execution"


def is_code(part: types.Part) -> bool:
    """Whether the part is code the model ran itself, or what it gave."""
    return part.executable_code is not None or part.code_execution_result is not None


@dataclass(slots=True)
class _Call:
    shown: bool = True
    """Its input is on the wire."""
    settled: bool = False
    """Its output, error or denial is on the wire, or it is never shown."""
    held: bool = False
    """It waits for the client."""
    long_running: bool = False
    """It may end the run without a result."""


@dataclass(slots=True)
class ToolCalls:
    """Shows each input once and each result once, and knows which calls are open."""

    _calls: dict[str, _Call] = field(default_factory=dict)
    _code_count: int = 0

    def __contains__(self, call_id: str) -> bool:
        """Whether the call is on the wire, so that something may be said about it."""
        call = self._calls.get(call_id)
        return call is not None and call.shown

    def is_settled(self, call_id: str) -> bool:
        """Whether nothing more is to be shown of the call; true for a call never seen."""
        call = self._calls.get(call_id)
        return call is None or call.settled

    def owes_result(self, call_id: str) -> bool:
        """Whether the call was shown and must still end; a long-running one may never do."""
        call = self._calls.get(call_id)
        return call is not None and not call.settled and not call.long_running

    def any_open(self, call_ids: Iterable[str]) -> bool:
        """Whether one of the calls still owes its result."""
        calls = (self._calls[call_id] for call_id in call_ids)
        return any(not call.settled and not call.long_running for call in calls)

    @property
    def is_waiting(self) -> bool:
        """Whether some call waits for the client."""
        return any(call.held for call in self._calls.values())

    def show(
        self, call_id: str, name: str, arguments: JsonObject, *, long_running: bool = False
    ) -> Iterator[Chunk]:
        """Yield the call's input; nothing if it was shown before."""
        if call_id in self:
            # Sent once per call, ever: again would undo an approval on the client.
            return
        self._calls[call_id] = _Call(long_running=long_running)
        yield ToolInputStartChunk(call_id, name)
        yield ToolInputDeltaChunk(call_id, dumps(arguments))
        yield ToolInputAvailableChunk(call_id, name, arguments)

    def hide(self, call_id: str) -> None:
        """Show nothing of this call, neither input nor result, unless the client is asked."""
        self._calls.setdefault(call_id, _Call(shown=False, settled=True))

    def hold(self, call_id: str) -> None:
        """Remember that the call waits for the client; nothing for a call never seen."""
        call = self._calls.get(call_id)
        if call is not None:
            call.held = True

    def hold_open(self, call_id: str) -> None:
        """Remember that a call waits for another one that waits for the client."""
        if self.owes_result(call_id):
            self.hold(call_id)

    def release(self, call_id: str, *, settled: bool) -> None:
        """Remember that the wait is over; `settled` if the call will not run."""
        call = self._calls.get(call_id)
        if call is not None:
            call.held = False
            call.settled = call.settled or settled

    def result(self, call_id: str, result: JsonObject) -> Iterator[Chunk]:
        """Yield the call's result; ADK says failure as an object with only an `error`."""
        error = result.get("error")
        if error is not None and len(result) == 1:
            yield from self.give(call_id, error=error if isinstance(error, str) else dumps(error))
            return
        call = self._calls[call_id]
        call.held = False
        call.settled = not call.long_running
        preliminary = True if call.long_running else None
        yield ToolOutputAvailableChunk(call_id, result, preliminary=preliminary)

    def give(
        self, call_id: str, *, output: JsonValue = None, error: str | None = None
    ) -> Iterator[Chunk]:
        """Yield how a call ended for good, as whoever ran it said."""
        call = self._calls[call_id]
        call.held, call.settled = False, True
        if error is not None:
            yield ToolOutputErrorChunk(call_id, error)
        else:
            yield ToolOutputAvailableChunk(call_id, output)

    def settle_open(self, text: str, *, spare_long_running: bool = False) -> Iterator[Chunk]:
        """Yield an error for every call that will get no result; held calls stay as they are."""
        for call_id, call in self._calls.items():
            if call.settled or call.held or (spare_long_running and call.long_running):
                continue
            call.settled = True
            yield ToolOutputErrorChunk(call_id, text)

    def code(self, part: types.Part) -> list[Chunk]:
        """Return code the model ran itself, as a provider-executed tool call."""
        if part.executable_code is not None:
            return self._code_input(part.executable_code)
        if part.code_execution_result is not None and self._code_count:
            return self._code_output(part.code_execution_result)
        return []

    def _code_input(self, code: types.ExecutableCode) -> list[Chunk]:
        self._code_count += 1
        call_id = f"code-{self._code_count}"
        self._calls[call_id] = _Call()
        arguments: dict[str, JsonValue] = {"code": code.code or ""}
        if code.language is not None:
            arguments["language"] = code.language.value
        return [
            ToolInputStartChunk(call_id, _CODE_TOOL, provider_executed=True),
            ToolInputAvailableChunk(call_id, _CODE_TOOL, arguments, provider_executed=True),
        ]

    def _code_output(self, result: types.CodeExecutionResult) -> list[Chunk]:
        call_id = f"code-{self._code_count}"
        self._calls[call_id].settled = True
        outcome = result.outcome.value if result.outcome else ""
        output: JsonObject = {"outcome": outcome, "output": result.output or ""}
        return [ToolOutputAvailableChunk(call_id, output, provider_executed=True)]
