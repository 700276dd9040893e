"""What it costs to make bytes of an event, without a server: translated, written, nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Final

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import MessageId
from adk_stream_protocol.translation.events import EventTranslator, TranslationOptions
from adk_stream_protocol.wire.chunks import encode
from adk_stream_protocol.wire.profiles import Audience
from benchmarks.page import figure, ratio, table
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.setting import Setting

__all__ = ["ENCODING"]

_NAMES: Final = {
    "by-hand": "an f-string for each event",
    "dumped": "ADK's own: `event.model_dump_json`",
    "ours": "**ours**",
}


def _text(count: int) -> list[Event]:
    return [
        Event(
            author="bench",
            invocation_id="i",
            partial=True,
            content=types.Content(role="model", parts=[types.Part(text=f"word{number} ")]),
        )
        for number in range(count)
    ]


def _tools(count: int) -> list[Event]:
    """Return calls and their results in turn, as events."""
    events: list[Event] = []
    for number in range(count // 2):
        call = types.FunctionCall(id=f"call-{number}", name="add", args={"a": number, "b": 2})
        given = types.FunctionResponse(id=call.id, name="add", response={"sum": number + 2})
        for role, part in (
            ("model", types.Part(function_call=call)),
            ("user", types.Part(function_response=given)),
        ):
            content = types.Content(role=role, parts=[part])
            events.append(Event(author="bench", invocation_id="i", content=content))
    return events


def _tool_turns(count: int) -> list[Event]:
    """Return turns as most are that use a tool: a call, its result, and 50 pieces of text.

    ADK says the text once more when it is complete.
    """
    turns = count // 53
    calls, texts = _tools(2 * turns), _text(50 * turns)
    events: list[Event] = []
    for turn in range(turns):
        pieces = texts[50 * turn : 50 * turn + 50]
        events += calls[2 * turn : 2 * turn + 2]
        events += pieces
        events.append(_whole(pieces))
    return events


def _whole(pieces: Sequence[Event]) -> Event:
    said = [part for piece in pieces if piece.content for part in piece.content.parts or ()]
    whole = types.Part(text="".join(part.text or "" for part in said))
    content = types.Content(role="model", parts=[whole])
    return Event(author="bench", invocation_id="i", content=content)


def _ours(events: Sequence[Event]) -> int:
    translator = EventTranslator(MessageId("m"), TranslationOptions())
    audience = Audience()
    sent = 0
    for event in events:
        chunks = audience.render(translator.feed(event))
        sent += len("".join([f"data: {encode(chunk)}\n\n" for chunk in chunks]).encode())
    return sent


def _dumped(events: Sequence[Event]) -> int:
    sent = 0
    for event in events:
        text = event.model_dump_json(exclude_none=True, by_alias=True)
        sent += len(f"data: {text}\n\n".encode())
    return sent


def _by_hand(events: Sequence[Event]) -> int:
    """Write what a client needs of these very events, and look for nothing else."""
    sent = 0
    for event in events:
        assert event.content is not None
        assert event.content.parts is not None
        part = event.content.parts[0]
        if part.text is not None and not event.partial:
            continue
        if part.text is not None:
            line = f'data: {{"type":"text-delta","id":"1","delta":{json.dumps(part.text)}}}\n\n'
        elif (call := part.function_call) is not None:
            line = (
                f'data: {{"type":"tool-input-available","toolCallId":"{call.id}",'
                f'"toolName":"{call.name}","input":{json.dumps(call.args)}}}\n\n'
            )
        else:
            given = part.function_response
            assert given is not None
            line = (
                f'data: {{"type":"tool-output-available","toolCallId":"{given.id}",'
                f'"output":{json.dumps(given.response)}}}\n\n'
            )
        sent += len(line.encode())
    return sent


_KINDS: Final = {"text": _text, "turn": _tool_turns, "tool": _tools}
_TOLD: Final = {"text": "text", "turn": "tool turns", "tool": "calls and results alone"}
_WAYS: Final[dict[str, Callable[[Sequence[Event]], int]]] = {
    "by-hand": _by_hand,
    "dumped": _dumped,
    "ours": _ours,
}


async def _measure(variant: str, setting: Setting) -> Sample:
    count = setting.sized(21_200, 106)
    way, found = _WAYS[variant], Sample()
    for kind, make in _KINDS.items():
        events = make(count)
        # The lowest of some: nothing makes it faster than it is.
        times = [_timed(way, events) for _ in range(setting.sized(5, 1))]
        found[kind] = min(times) / len(events)
        found[f"{kind} sent"] = way(events) / len(events)
    return found


def _timed(way: Callable[[Sequence[Event]], int], events: Sequence[Event]) -> float:
    began = time.process_time()
    way(events)
    return time.process_time() - began


def _tell(results: Results) -> str:
    floor = results["by-hand"]
    return table(
        ["", *(head for kind in _KINDS for head in (f"{_TOLD[kind]}, CPU us/event", "bytes"))],
        [
            [
                _NAMES[variant],
                *(
                    cell
                    for kind in _KINDS
                    for cell in (
                        f"{figure(found[kind], 1e6)}, {ratio(found[kind], floor[kind])}",
                        figure(found[f"{kind} sent"]),
                    )
                ),
            ]
            for variant, found in results.items()
        ],
    )


ENCODING: Final = Benchmark("encoding", tuple(_NAMES), _measure, _tell)
