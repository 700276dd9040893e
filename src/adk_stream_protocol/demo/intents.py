"""Finds the tool calls that a message asks for, in English and Japanese.

Pure functions of text: the same message always asks for the same calls. What the tools do, and
which of them a request offers, is not known here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from adk_stream_protocol.demo.languages import normalise
from adk_stream_protocol.demo.payment_intents import find_payments, has_japanese_payment_verb
from adk_stream_protocol.demo.weather_intents import (
    find_cities,
    find_cities_in_follow_up,
    mentions_weather,
)

__all__ = ["Step", "ToolRequest", "find_follow_up", "find_steps"]


@dataclass(frozen=True)
class ToolRequest:
    """One tool call that was asked for."""

    tool: str
    arguments: Mapping[str, JsonValue]


Step = tuple[ToolRequest, ...]

_Placed = tuple[int, ToolRequest]

_THEN = re.compile(
    r"\b(?:and\s+then|then|after\s+that|afterwards)\b"
    r"|てから|その後|そのあと|それから|次に",
    re.IGNORECASE,
)
_LOCATION = re.compile(
    r"\bwhere (?:am i|are we|i am)\b|\bmy (?:current )?(?:location|position|coordinates)\b"
    r"|\b(?:locate|find) me\b"
    r"|現在地|現在位置|位置情報|今どこ|いまどこ|ここはどこ|(?:私|僕|俺)はどこ|居場所",
    re.IGNORECASE,
)
_ENGLISH_TRACK = r"(?P<track>(?:(?!\band\b|\bthen\b)[^.,!?;])*)"
_MUSIC = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:change|switch|set|turn)\s+(?:(?:the|my|this|background)\s+)*"
        rf"(?:music|bgm|song|track|tune)\b(?:\s+to\b{_ENGLISH_TRACK})?",
        rf"\b(?:play|put\s+on)\b{_ENGLISH_TRACK}",
        r"(?:BGM|音楽|曲|ミュージック)[をもは]?\s*(?P<track>[^、。!?を]*?)"
        r"(?:に?(?:変え|変更|切り?替え|替え|換え|かえて|チェンジ)|にして)",
        r"(?P<track>[^\s、。!?をてで]+)を(?:かけ|流し|再生|聴|聞かせ|聞きた)",
    )
)
_TRACK_LEAD = re.compile(
    r"^(?:(?:some|any|a|an|the|me|my|us|something|nice|background)\b\s*)+|^(?:何か|なにか)",
    re.IGNORECASE,
)
_TRACK_END = re.compile(
    r"(?:\s*\b(?:music|songs?|tunes?|bgm|please|now|for me|for us|in the background)\b)+\s*$"
    r"|の?(?:音楽|曲|BGM)$",
    re.IGNORECASE,
)
_ANY_TRACK = "jazz"


def find_steps(text: str) -> tuple[Step, ...]:
    """Return the calls a message asks for, grouped into steps that follow one another.

    Calls of one step can be made together, and stand in the order of the text. "Then" begins a
    new step. A message that asks for no tool has no steps.
    """
    plain = normalise(text)
    verb_comes_last = has_japanese_payment_verb(plain)
    steps: list[Step] = []
    for sentence in _THEN.split(plain):
        paid_before = any(call.tool == "process_payment" for step in steps for call in step)
        step = _calls_in(sentence, continued=paid_before or verb_comes_last)
        if not step and steps and steps[-1][-1].tool == "get_weather":
            step = _weather_calls_in_follow_up(sentence)
        if step:
            steps.append(step)
    return tuple(steps)


def find_follow_up(text: str, previous: str) -> Step:
    """Return the calls of a message that only makes sense after the one before it.

    After a message about the weather, `And in Paris?` or `パリは?` asks for the weather there.
    """
    if not mentions_weather(normalise(previous)):
        return ()
    return _weather_calls_in_follow_up(normalise(text))


def _calls_in(sentence: str, *, continued: bool) -> Step:
    placed: list[_Placed] = [
        *((city.position, _weather(city.name)) for city in find_cities(sentence)),
        *_payments(sentence, continued=continued),
        *_location(sentence),
        *_music(sentence),
    ]
    placed.sort(key=lambda item: item[0])
    return tuple(call for _, call in placed)


def _weather_calls_in_follow_up(sentence: str) -> Step:
    return tuple(_weather(city.name) for city in find_cities_in_follow_up(sentence.strip(" ,、")))


def _weather(city: str) -> ToolRequest:
    return ToolRequest("get_weather", {"city": city})


def _payments(sentence: str, *, continued: bool) -> list[_Placed]:
    return [
        (
            payment.position,
            ToolRequest(
                "process_payment",
                {
                    "amount": payment.amount,
                    "recipient": payment.recipient,
                    "currency": payment.currency,
                },
            ),
        )
        for payment in find_payments(sentence, continued=continued)
    ]


def _location(sentence: str) -> list[_Placed]:
    match = _LOCATION.search(sentence)
    return [(match.start(), ToolRequest("get_location", {}))] if match else []


def _music(sentence: str) -> list[_Placed]:
    for pattern in _MUSIC:
        match = pattern.search(sentence)
        if match is not None:
            track = _track(match["track"] or "")
            return [(match.start(), ToolRequest("change_bgm", {"track": track}))]
    return []


def _track(words: str) -> str:
    """Return the track's name without the words around it; "jazz" if none is left."""
    name = _TRACK_LEAD.sub("", words.strip())
    return _TRACK_END.sub("", name).strip(" \"'「」") or _ANY_TRACK
