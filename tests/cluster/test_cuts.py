"""Readers that are cut off anywhere in a reply resume it on the other server.

What each of them gets is compared letter by letter, since pieces that are ready together come as
one, and assembled by the real clients of ai v6 and v7. `ADK_STREAM_CUTS=10000` makes it more than
the 300 cuts of every day, `ADK_STREAM_SEED` makes them other ones.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from random import Random
from typing import Any

import anyio
import pytest

from support.cluster_cuts import CutReply, assemble
from support.cluster_plays import Beat, Conductor, called, new_name, play, wait
from support.cluster_tabs import Stream, Tab, saying
from support.joining import joined

pytestmark = pytest.mark.anyio

CUTS = int(os.environ.get("ADK_STREAM_CUTS", "300"))
SEED = int(os.environ.get("ADK_STREAM_SEED", "1"))
CUTS_AT_A_PLACE = 3
PLACES = 3
CUTS_OF_A_REPLY = CUTS_AT_A_PLACE * PLACES + 1
WORDS = ("plain ", "größer ", "日本語 ", "🙂👍🏽 ", '"quoted" \\ ', "line\nend ", "\u2028 ")


def events(told: bytes) -> list[Any]:
    """Return the events that are complete: chunks, and what is none as it is."""
    *whole, _ = told.decode("utf-8", "ignore").split("\n\n")
    data = [event.removeprefix("data: ") for event in whole]
    return [json.loads(each) if each.startswith("{") else each for each in data]


def letters(told: bytes) -> list[object]:
    """Return the events, with each letter of a text by itself."""
    found: list[object] = []
    for event in events(told):
        if isinstance(event, dict) and event["type"] == "text-delta":
            found += [(event["id"], letter) for letter in event["delta"]]
        else:
            found.append(event)
    return found


def is_call(event: object) -> bool:
    """Whether an event lets a client run a call."""
    return isinstance(event, dict) and event["type"] == "tool-input-available"


def least(told: bytes) -> int:
    """Return how many bytes a reader of the same gets at least, however it comes joined."""
    shortest = [
        each
        if isinstance(each, str)
        else json.dumps(each, ensure_ascii=False, separators=(",", ":"))
        for each in joined(events(told))
    ]
    return sum(len(each.encode()) for each in shortest)


@dataclass
class Cutting:
    """One reply that is cut while it runs, at each place where its model waits, and once after."""

    chat: str
    random: Random
    tabs: tuple[Tab, Tab]
    conductor: Conductor
    places: list[str] = field(init=False)
    cuts: list[int] = field(default_factory=list)
    readings: list[tuple[bytes, bytes]] = field(default_factory=list)
    """What each reader had before its cut, and what it got by resuming."""

    def __post_init__(self) -> None:
        self.places = [f"{self.chat}-{number}" for number in range(PLACES)]

    def beats(self) -> list[Beat]:
        """Return text with the places in it."""
        beats: list[Beat] = []
        for place in self.places:
            beats += self.random.choices(WORDS, k=self.random.randint(1, 12))
            beats += [f"<{place}>", wait(place)]
        return [*beats, "the end."]

    async def follow(self, stream: Stream) -> bytes:
        """Cut readers at each place; `stream` shows how far the reply has come."""
        async with anyio.create_task_group() as readers:
            for place in self.places:
                seen = await stream.until(f"<{place}>")
                async with anyio.create_task_group() as cutting:
                    for _ in range(CUTS_AT_A_PLACE):
                        at = self.random.randint(0, least(seen))
                        cutting.start_soon(self._cut, at, readers)
                self.conductor.release(place)
            whole = await stream.all()
        async with anyio.create_task_group() as readers:
            await self._cut(self.random.randint(0, least(whole)), readers)
        return whole

    async def _cut(self, at: int, readers: anyio.abc.TaskGroup) -> None:
        here, there = self.random.sample(self.tabs, 2)
        async with here.resuming(self.chat) as stream:
            before = await stream.first(at)
        self.cuts.append(at)
        await readers.start(self._resume, there, before)

    async def _resume(
        self, tab: Tab, before: bytes, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        async with tab.resuming(self.chat) as stream:
            # The response has begun: the reply may go on.
            task_status.started()
            self.readings.append((before, await stream.all()))

    def check(self, whole: bytes) -> None:
        assert len(self.readings) == CUTS_OF_A_REPLY
        for before, resumed in self.readings:
            begun, told = letters(before), letters(whole)
            assert told[: len(begun)] == begun
            assert letters(resumed) == told


async def cut_an_answer(cutting: Cutting) -> CutReply:
    """Cut the reply to a message; it looks something up on its way, or ends with a question."""
    responses = [cutting.beats()]
    if cutting.random.random() < 0.5:
        responses.insert(0, ["Looking. ", called("look", cutting.chat)])
    if cutting.random.random() < 0.5:
        responses[-1].append(called("pay", cutting.chat))
    tab, other = cutting.random.sample(cutting.tabs, 2)
    said = saying(cutting.chat, play(cutting.chat, *responses))
    async with tab.posting(said) as stream:
        await stream.until(f"<{cutting.places[0]}>")
        # Who resumes is not told to look again, and so gets less than who asked.
        async with other.resuming(cutting.chat) as resumed:
            whole = await cutting.follow(resumed)
        posted = await stream.all()
    cutting.check(whole)
    assert [each for each in letters(posted) if not is_call(each)] == [
        each for each in letters(whole) if not is_call(each)
    ]
    return CutReply(cutting.chat, whole, cutting.cuts, posted=True)


async def cut_a_continuation(cutting: Cutting) -> CutReply:
    """Cut what follows an approval."""
    asking, approving = cutting.random.sample(cutting.tabs, 2)
    told = play(cutting.chat, ["Paying. ", called("pay", cutting.chat)], cutting.beats())
    asked = await asking.say(cutting.chat, told)
    async with approving.posting(asked.approving(cutting.chat, True)) as stream:
        await stream.until(f"<{cutting.places[0]}>")
        # Who approved gets less than who resumes.
        async with asking.resuming(cutting.chat) as resumed:
            whole = await cutting.follow(resumed)
    cutting.check(whole)
    return CutReply(cutting.chat, whole, cutting.cuts, posted=False)


async def test_a_reply_that_is_cut_anywhere_is_whole_on_the_other_server(
    conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    random = Random(SEED)  # noqa: S311  # to choose places, not secrets
    replies: list[CutReply] = []
    at_once = anyio.CapacityLimiter(6)

    async def cut(number: int) -> None:
        async with at_once:
            own = Random(random.random())  # noqa: S311
            cutting = Cutting(new_name(), own, (tab_a, tab_b), conductor)
            do = cut_a_continuation if number % 3 == 2 else cut_an_answer
            replies.append(await do(cutting))

    async with anyio.create_task_group() as tasks:
        for number in range(-(-CUTS // CUTS_OF_A_REPLY)):
            tasks.start_soon(cut, number)

    assert sum(len(reply.cuts) for reply in replies) >= CUTS
    assembled = await assemble(replies)
    assert len(assembled) == 4 * len(replies)
    for reading in assembled:
        assert reading.different == [], (reading.name, reading.version)
        assert reading.message is not None
        texts = [part["text"] for part in reading.message["parts"] if part["type"] == "text"]
        assert texts[-1].endswith("the end.")
