"""A reply that runs on one server is read on the other, byte for byte."""

from __future__ import annotations

import anyio
import pytest

from support.cluster_plays import Beat, Conductor, called, new_name, play, wait
from support.cluster_tabs import Tab, saying
from support.joining import joined

pytestmark = pytest.mark.anyio


def events(told: bytes) -> list[bytes]:
    """Return the events after the first comment."""
    return told.split(b"\n\n")[1:-1]


def halves(place: str) -> list[Beat]:
    return ["One ", "größe ", "日本 ", "🙂 ", "<half>", wait(place), "two ", "three."]


async def test_a_running_reply_is_the_same_on_both_servers(
    conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    async with tab_a.posting(saying(chat, play(chat, halves(chat)))) as first:
        await first.until("<half>")
        async with tab_a.resuming(chat) as on_a, tab_b.resuming(chat) as on_b:
            half = await on_b.until("<half>")
            assert await on_a.first(len(half)) == half
            conductor.release(chat)
            whole = await first.all()
            assert await on_b.all() == whole
            assert await on_a.all() == whole
    assert whole.endswith(b"data: [DONE]\n\n")
    assert b"three." in whole


async def test_an_ended_reply_is_the_same_on_both_servers(tab_a: Tab, tab_b: Tab) -> None:
    chat = new_name()
    told = play(chat, ["Looking. ", called("look", chat)], ["Seen."])
    first = await tab_a.say(chat, told)
    assert first.text == "Looking. Seen."
    again = await tab_b.resume(chat)
    assert (await tab_a.resume(chat)).raw == again.raw
    # Who resumes is not told to look again.
    assert joined(again.chunks) == joined(
        chunk for chunk in first.chunks if chunk["type"] != "tool-input-available"
    )


async def test_a_reply_that_asks_for_approval_is_the_same_on_both_servers(
    tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, ["Paying. ", called("pay", chat)], ["Told."]))
    assert len(asked.approvals) == 1
    assert (await tab_b.resume(chat)).raw == asked.raw


async def test_a_running_continuation_is_the_same_on_both_servers(
    conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    asked = await tab_a.say(chat, play(chat, ["Paying. ", called("pay", chat)], halves(chat)))
    async with tab_a.posting(asked.approving(chat, True)) as first:
        await first.until("<half>")
        async with tab_a.resuming(chat) as on_a, tab_b.resuming(chat) as on_b:
            await on_b.until("<half>")
            conductor.release(chat)
            whole = await on_b.all()
            assert await on_a.all() == whole
        # Who resumes gets the message from its beginning, who approved only what follows.
        own = await first.all()
    # A card says how its call stands when it is read.
    start, *rest = [each for each in events(own) if b"data-approval" not in each]
    told = [each for each in events(whole) if b"data-approval" not in each]
    assert told[0] == start
    assert told[-len(rest) :] == rest
    assert any(b'"tool-output-available"' in each for each in rest)
    assert b"Paying. " in whole
    assert b"Paying. " not in own


async def test_a_tab_sees_on_b_each_piece_as_a_writes_it(
    conductor: Conductor, tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    places = [f"{chat}-{number}" for number in range(5)]
    beats: list[Beat] = [beat for place in places for beat in (f"<{place}>", wait(place))]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tab_a.say, chat, play(chat, beats))
        await conductor.arrived(places[0])
        async with tab_b.resuming(chat) as stream:
            for place in places:
                got = await stream.until(f"<{place}>")
                assert b"[DONE]" not in got
                conductor.release(place)
            assert (await stream.all()).endswith(b"data: [DONE]\n\n")


async def test_a_chat_that_is_unknown_on_both_servers_has_nothing_to_resume(
    tab_a: Tab, tab_b: Tab
) -> None:
    chat = new_name()
    assert (await tab_a.resume(chat)).status == 204
    assert (await tab_b.resume(chat)).status == 204
