"""A model for the Live emulator that answers by rules, for as many turns as are asked."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from support.gemini_live import LiveConnection, Script
from support.gemini_live_wire import FunctionCall, audio, call, go_away, heard, spoken, text

__all__ = ["TONE", "Leave", "Reply", "Rule", "Speak", "Story", "brain", "commands"]

TONE = bytes(range(32))
"""The sound of `Speak`."""


@dataclass(frozen=True)
class Speak:
    """Say it as sound, with the transcription."""

    words: str


@dataclass(frozen=True)
class Story:
    """Say it and do not come to an end: the user's next word interrupts."""

    words: str


@dataclass(frozen=True)
class Leave:
    """Send `goAway` and answer nothing more on this connection."""


Reply: TypeAlias = str | Sequence[FunctionCall] | Speak | Story | Leave
"""Text, calls made at once, or one of the others."""

Rule: TypeAlias = Callable[[str], Reply]
"""What the user typed -> what the model does."""


def commands(words: str) -> Reply:
    """Do as told: `call NAME {JSON}` once or more, `speak ..`, `story ..`, `go away`; or echo."""
    calls = re.findall(r"call (\w+) (\{.*?\})", words)
    if calls:
        return [call(name, json.loads(args)) for name, args in calls]
    verb, _, rest = words.partition(" ")
    if verb == "speak":
        return Speak(rest)
    if verb == "story":
        return Story(rest)
    if words == "go away":
        return Leave()
    return f"You said: {words}"


def brain(rule: Rule = commands) -> Script:
    """Return a script that answers each prompt by the rule, and results of tools by telling them.

    Speech is answered with its transcription: the emulator hears how many bytes there were.
    """

    async def play(connection: LiveConnection) -> None:
        while True:
            prompt = await connection.prompt()
            if prompt.results:
                await _tell(connection, list(prompt.results.values()))
            elif prompt.text:
                await _reply(connection, rule(prompt.text))
            else:
                words = f"{len(prompt.audio)} bytes"
                await connection.send(heard(words))
                await _speak(connection, f"I heard {words}.")

    return play


async def _reply(connection: LiveConnection, reply: Reply) -> None:
    match reply:
        case str():
            # In two pieces, so that there are deltas to put together.
            middle = len(reply) // 2
            await connection.say(reply[:middle], reply[middle:])
        case Speak(words):
            await _speak(connection, words)
        case Story(words):
            await connection.send(text(words))
            await connection.prompted()
            await connection.interrupt()
        case Leave():
            await connection.send(go_away())
            await connection.closed.wait()
        case calls:
            results = await connection.call_tools(*calls)
            await _tell(connection, list(results.values()))


async def _tell(connection: LiveConnection, results: list[object]) -> None:
    await connection.say(f"Done: {json.dumps(results, ensure_ascii=False)}")


async def _speak(connection: LiveConnection, words: str) -> None:
    await connection.send(audio(TONE), spoken(words))
    await connection.end_turn()
