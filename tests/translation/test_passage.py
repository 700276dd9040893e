"""Whether what ADK was given has come out."""

from __future__ import annotations

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.passage import Passage


def content(text: str = "a") -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def test_nothing_has_come_out_at_first() -> None:
    passage = Passage()
    passage.take(Event(author="a"))
    assert not passage.is_clear
    assert not passage.is_under_way


def test_it_is_clear_when_the_newest_has_come_out() -> None:
    passage, first, second = Passage(), content(), content()
    passage.give(first)
    passage.give(second)
    assert passage.is_under_way
    passage.take(Event(author="a", content=first))
    assert not passage.is_clear
    passage.take(Event(author="a", content=second))
    assert passage.is_clear
    assert not passage.is_under_way


def test_what_says_the_same_is_not_the_same() -> None:
    passage = Passage()
    passage.give(content())
    passage.take(Event(author="a", content=content()))
    assert not passage.is_clear


def test_it_is_not_clear_while_adk_has_more() -> None:
    passage, first = Passage(), content()
    passage.give(first)
    passage.take(Event(author="a", content=first))
    passage.give(None)
    assert not passage.is_clear
    assert not passage.is_under_way
