"""Finds the cities whose weather a sentence asks for, in English and Japanese."""

import re
from dataclasses import dataclass

from adk_stream_protocol.demo.cities import find_city, known_city_pattern

__all__ = ["NamedCity", "find_cities", "find_cities_in_follow_up", "mentions_weather"]


@dataclass(frozen=True)
class NamedCity:
    """One city as it should be passed to the tool, and where it stands in the sentence."""

    name: str
    position: int


_TOPIC = re.compile(
    r"\b(?:weather|forecast|temperature|how (?:hot|cold|warm)|rain(?:ing)?|snow(?:ing)?|sunny)\b"
    r"|天気|気温|天候|予報|晴れ|雨(?:です|が|は|\?|$)",
    re.IGNORECASE,
)
_KNOWN = re.compile(known_city_pattern(), re.IGNORECASE)
_CAPITALISED = re.compile(r"[A-Z][\w'.-]*(?:\s+[A-Z][\w'-]*){0,2}")
_LOWER_CASE = re.compile(r"[^\W\d_]+")
_PLACE_FOLLOWS = re.compile(r"\b(?:in|for|at)\s+", re.IGNORECASE)
_RIGHT_AFTER_TOPIC = re.compile(
    r"(?:weather|forecast|temperature|(?:rain|snow)(?:ing)?|hot|cold|warm|sunny)(?:\s+like)?"
    r"(?:\s+(?:today|tomorrow|now))?\s+(?:in|for|at)\s+$",
    re.IGNORECASE,
)
_AND_ANOTHER = re.compile(r"\s*(?:,\s*(?:and\s+)?|(?:and|&|or)\s+)(?:in\s+)?", re.IGNORECASE)
_NOT_A_CITY = re.compile(
    r"(?:here|there|my|the|a|an|this|me|your?|today|tomorrow|celsius|fahrenheit|english|japanese"
    r"|pay|send|transfer|wire|give|play|change|switch|set|put|where|what|what's|how|who|tell|show|then"
    r"|please|i|i'm|also|is)\b",
    re.IGNORECASE,
)
_FOLLOW_UP = re.compile(
    r"(?:(?:ok|okay|so|and|also|then)[\s,]+)*(?:(?P<asks>(?:what|how)\s+about(?:\s+in)?|in)\s+)?",
    re.IGNORECASE,
)
_FOLLOW_UP_END = re.compile(
    r"[\s,]*(?:(?:today|now|tomorrow|then|too|please)[\s,]*)*[.?!]*$", re.IGNORECASE
)

_JAPANESE_PLACE = r"[ァ-ヶー・一-龥々A-Za-z][ァ-ヶー・一-龥々A-Za-z ]*|さいたま|つくば"
_JAPANESE_PLACES = re.compile(
    rf"(?P<places>(?:{_JAPANESE_PLACE})(?:(?:と|や|、|,)(?:{_JAPANESE_PLACE}))*)"
    r"(?:の(?:今日|明日|今|現在|今週))*の?お?(?:天気|気温|天候|予報)"
)
_JAPANESE_FOLLOW_UP = re.compile(
    r"(?:じゃあ|では|それでは|それなら|あと)?、?"
    rf"(?P<places>(?:{_KNOWN.pattern})(?:(?:と|や|、|,)(?:{_KNOWN.pattern}))*)"
    r"(?:は|も|だと|では)?(?:どう)?(?:ですか|です)?[?。]*$",
    re.IGNORECASE,
)
_NOT_A_JAPANESE_CITY = re.compile(r"(?:今日|明日|昨日|今|現在|週末|今週|現在地|お?天気|気温|外)$")


def mentions_weather(text: str) -> bool:
    """Return whether the text is about the weather, even if it names no city."""
    return bool(_TOPIC.search(text))


def find_cities(text: str) -> list[NamedCity]:
    """Return the cities whose weather is asked for, each once, in the order of the text."""
    if not mentions_weather(text):
        return []
    found = _japanese_cities(_JAPANESE_PLACES, text) or _cities_after_prepositions(text)
    return _each_once(found or [_named(match) for match in _KNOWN.finditer(text)])


def find_cities_in_follow_up(text: str) -> list[NamedCity]:
    """Return the cities of a sentence that names little else: `And in Paris?`, `パリは?`.

    Only for a sentence that follows one about the weather.
    """
    lead = _FOLLOW_UP.match(text)
    assert lead is not None  # the pattern also matches nothing
    # A bare word is only a city if we know it: `Great` and `Thanks` are capitalised, too.
    if lead["asks"] or _KNOWN.match(text, lead.end()):
        cities, end = _city_list(text, lead.end(), anything=False)
        if _FOLLOW_UP_END.match(text, end):
            return _each_once(cities)
    return _each_once(_japanese_cities(_JAPANESE_FOLLOW_UP, text))


def _cities_after_prepositions(text: str) -> list[NamedCity]:
    cities: list[NamedCity] = []
    for place in _PLACE_FOLLOWS.finditer(text):
        # Only right after "weather in" may a city be any word; elsewhere it could be "in cash".
        anything = bool(_RIGHT_AFTER_TOPIC.search(text[: place.end()]))
        cities.extend(_city_list(text, place.end(), anything=anything)[0])
    return cities


def _city_list(text: str, position: int, *, anything: bool) -> tuple[list[NamedCity], int]:
    """Return the cities from that position on, and where their list ends."""
    cities: list[NamedCity] = []
    end = position
    match = _city_at(text, position, anything=anything)
    while match is not None:
        cities.append(_named(match))
        end = match.end()
        separator = _AND_ANOTHER.match(text, end)
        match = _city_at(text, separator.end(), anything=False) if separator else None
    return cities, end


def _city_at(text: str, position: int, *, anything: bool) -> re.Match[str] | None:
    known = _KNOWN.match(text, position)
    if known is not None:
        return known
    if _NOT_A_CITY.match(text, position):
        return None
    return _CAPITALISED.match(text, position) or (
        _LOWER_CASE.match(text, position) if anything else None
    )


def _japanese_cities(pattern: re.Pattern[str], text: str) -> list[NamedCity]:
    cities: list[NamedCity] = []
    for match in pattern.finditer(text):
        for place in re.finditer(r"[^と、や,]+", match["places"]):
            name = place.group().strip()
            if name and not _NOT_A_JAPANESE_CITY.match(name):
                cities.append(NamedCity(_spelled(name), match.start("places") + place.start()))
    return cities


def _named(match: re.Match[str]) -> NamedCity:
    return NamedCity(_spelled(match.group().rstrip(".")), match.start())


def _spelled(name: str) -> str:
    if not name.isascii():
        return name
    known = find_city(name).name
    return known.title() if known.islower() else known


def _each_once(cities: list[NamedCity]) -> list[NamedCity]:
    first: dict[str, NamedCity] = {}
    for city in sorted(cities, key=lambda city: city.position):
        first.setdefault(find_city(city.name).name, city)
    return list(first.values())
