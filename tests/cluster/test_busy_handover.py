"""Messages wait for a reply whose server is killed, paused or told to end: another goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.to_thread
import httpx
import pytest

from support.cluster import Cluster, Instance
from support.cluster_busy import Rows, answers, asking, rows_of, said, until_said
from support.cluster_plays import Conductor, called, new_name, play
from support.cluster_tabs import Stream, Tab, open_tab

pytestmark = pytest.mark.anyio

Start = Callable[..., Awaitable[Instance]]


@pytest.fixture
async def rows(cluster: Cluster) -> AsyncIterator[Rows]:
    async with rows_of(cluster) as rows:
        yield rows


@pytest.fixture
def start(cluster: Cluster) -> Start:
    """Return what starts one more server, whose turns lapse soon if it does not say it lives."""

    async def started(name: str, **settings: str) -> Instance:
        def begin() -> Instance:
            [instance] = cluster.start(name, ADK_STREAM_LEASE_SECONDS="2", **settings)
            return instance

        return await anyio.to_thread.run_sync(begin)

    return started


async def read_on(stream: Stream) -> bytes:
    """Read what a server sends that may be killed meanwhile."""
    try:
        return await stream.all()
    except httpx.TransportError:
        return stream.got


async def until_answered(rows: Rows, tab: Tab, chat: str) -> None:
    """Wait until nothing waits for a chat any more."""
    with anyio.fail_after(180):
        while await rows.waiting(chat):
            await tab.resume(chat)
        # The newest reply, to its end.
        await tab.resume(chat)


async def test_messages_that_wait_for_a_server_that_is_killed_are_answered_by_another(
    conductor: Conductor, rows: Rows, tab_b: Tab, start: Start
) -> None:
    chat, texts = new_name(), ["One.", "Two.", "Three."]
    dying = await start("K")
    bodies = [asking(chat, text, busy="queue") for text in texts]
    async with open_tab(dying) as tab_k, tab_k.posting(asking(chat, name=chat)) as stream:
        await stream.until("Half ")
        async with tab_k.posting(bodies[0]) as first, tab_b.posting(bodies[1]) as second:
            assert (first.status, second.status) == (200, 200)
            await until_said(tab_b, chat, *bodies[:2])
            dying.kill()
            conductor.release(chat)
            # Also one that comes while nobody knows yet that the server has died.
            assert (await tab_b.post(bodies[2])).text == "Three."
            assert b'"Two."' in await second.all()
            await read_on(first)
        await read_on(stream)
    await until_answered(rows, tab_b, chat)
    history = await tab_b.history(chat)
    assert answers(history) == ["Half whole.", *texts]
    assert len(said(history)) == 4
    await rows.check_at_rest(chat)


async def test_what_was_approved_on_a_server_that_is_killed_is_not_run_twice(
    conductor: Conductor, rows: Rows, tab_b: Tab, start: Start
) -> None:
    chat = new_name()
    dying = await start("K")
    async with open_tab(dying) as tab_k:
        asked = await tab_k.say(chat, play(chat, [called("pay_slowly", chat)], ["Told."]))
        async with tab_k.posting(asked.approving(chat, True)) as stream:
            await conductor.arrived(chat)
            async with tab_b.posting(asking(chat, "Now.")) as second:
                assert second.status == 200
                dying.kill()
                assert b'"Now."' in await second.all()
            await read_on(stream)
    # It ran when its server died, so nobody knows; it is not run again.
    assert (await tab_b.approval(asked.approvals[0]))["status"] == "unknown"
    assert conductor.arrivals(chat) == 1
    assert answers(await tab_b.history(chat))[-1] == "Now."
    await rows.check_at_rest(chat)


@pytest.mark.parametrize("busy", ["interrupt", "queue"])
async def test_messages_that_wait_for_a_server_that_is_paused_are_answered_by_another(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_b: Tab, start: Start, busy: str
) -> None:
    chat = new_name()
    paused = await start("P")
    async with open_tab(paused) as tab_p, tab_p.posting(asking(chat, name=chat)) as stream:
        await stream.until("Half ")
        await conductor.arrived(chat)
        paused.pause()
        body = asking(chat, "Now.", busy=busy, name=f"{chat}-now")
        async with tab_b.posting(body) as second:
            assert second.status == 200
            if busy == "queue":
                # Another one goes on with the reply, and asks the model anew.
                await conductor.arrived(chat, times=2)
                conductor.release(chat)
            assert b'"Now."' in await second.all()
        before = await tab_b.history(chat)
        # The one that was paused finds that it has lost the chat, and changes nothing.
        conductor.release(chat)
        paused.go_on()
        await read_on(stream)
        assert (await tab_p.post(asking(chat, "Then."))).text == "Then."
    # What was shown of an answer that was stopped then, only the paused server could have stored.
    assert answers(before) == (["Half whole.", "Now."] if busy == "queue" else ["Now."])
    after = await tab_b.history(chat)
    assert after[: len(before)] == before
    assert answers(after[len(before) :]) == ["Then."]
    assert cluster.model_runs()[f"{chat}-now"] == 1
    await rows.check_at_rest(chat)
    paused.terminate()
    assert await paused.ended() == 0


@pytest.mark.parametrize("in_time", [True, False], ids=["in time", "too late"])
async def test_messages_that_wait_for_a_server_that_ends_are_answered_by_another(
    cluster: Cluster, conductor: Conductor, rows: Rows, tab_b: Tab, start: Start, in_time: bool
) -> None:
    chat = new_name()
    leaving = await start("L", ADK_STREAM_DRAIN_SECONDS="5" if in_time else "1")
    bodies = [asking(chat, "One.", busy="queue"), asking(chat, "Two.", busy="queue")]
    async with open_tab(leaving) as tab_l, tab_l.posting(asking(chat, name=chat)) as stream:
        await stream.until("Half ")
        async with tab_l.posting(bodies[0]) as first, tab_b.posting(bodies[1]) as second:
            await until_said(tab_b, chat, *bodies)
            leaving.terminate()
            # It takes no more turns: whoever waits there is told that the message is kept.
            assert b"Your message is kept" in await read_on(first)
            if in_time:
                conductor.release(chat)
            whole = await read_on(stream)
            assert await leaving.ended() == 0
            conductor.release(chat)
            assert b'"Two."' in await second.all()
    assert (b'whole."' in whole) == in_time
    await until_answered(rows, tab_b, chat)
    history = await tab_b.history(chat)
    assert answers(history) == ["Half whole.", "One.", "Two."]
    assert len(said(history)) == 3
    assert cluster.model_runs()[chat] == (1 if in_time else 2)
    await rows.check_at_rest(chat)
