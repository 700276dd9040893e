"""A server is told to end while others go on: what it cannot finish, they do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import anyio
import anyio.to_thread
import httpx
import pytest

from support.cluster import Cluster, Instance
from support.cluster_plays import Conductor, called, new_name, play, wait
from support.cluster_tabs import Stream, Tab, open_tab, saying
from support.stage import Answered

pytestmark = pytest.mark.anyio

DRAIN_SECONDS = 3
STREAMING = 20
HELD = 20
RUNNING = 6


@pytest.fixture
async def leaving(cluster: Cluster) -> Instance:
    def start() -> Instance:
        [instance] = cluster.start("C", ADK_STREAM_DRAIN_SECONDS=str(DRAIN_SECONDS))
        return instance

    return await anyio.to_thread.run_sync(start)


@pytest.fixture
async def tab_c(leaving: Instance) -> AsyncIterator[Tab]:
    async with open_tab(leaving) as tab:
        yield tab


async def until_it_leaves(tab: Tab) -> None:
    """Return when the server says, or shows, that it takes no more turns."""
    with anyio.fail_after(20):
        try:
            while (await tab.http.get("/readyz")).status_code == 200:
                pass
        except httpx.TransportError:
            return


async def say_wherever_it_is_taken(tabs: list[Tab], body: dict[str, object]) -> Answered:
    """Post to one server after another, as a load balancer does, until one answers."""
    for tab in tabs:
        try:
            answer = await tab.post(body)
        except httpx.TransportError:
            continue
        if answer.status < 500:
            return answer
    raise AssertionError("no server took it")


async def told(tab: Tab, chat: str, end: str) -> Answered:
    """Return the reply of the chat that comes to this end."""
    with anyio.fail_after(60):
        while not (reply := await tab.resume(chat)).text.endswith(end):
            pass
    return reply


async def read_on(stream: Stream) -> None:
    try:
        await stream.all()
    except httpx.TransportError:
        return  # its server has left


async def test_a_server_that_ends_under_load_loses_nothing(
    cluster: Cluster, conductor: Conductor, leaving: Instance, tab_c: Tab, tab_b: Tab
) -> None:
    streaming = [new_name() for _ in range(STREAMING)]
    held = {chat: Answered(0) for chat in (new_name() for _ in range(HELD))}
    running = {chat: Answered(0) for chat in (new_name() for _ in range(RUNNING))}

    async def ask(chat: str, tool: str, into: dict[str, Answered]) -> None:
        into[chat] = await tab_c.say(chat, play(chat, [called(tool, chat)], ["Told."]))

    async with anyio.create_task_group() as tasks:
        for chat in held:
            tasks.start_soon(ask, chat, "pay", held)
        for chat in running:
            tasks.start_soon(ask, chat, "pay_slowly", running)

    streams: dict[str, Stream] = {}
    async with AsyncExitStack() as open_streams:
        for chat in streaming:
            body = saying(chat, play(chat, ["Begun ", wait(chat), "and ended."]))
            streams[chat] = await open_streams.enter_async_context(tab_c.posting(body))
        for chat, asked in running.items():
            body = asked.approving(chat, True)
            streams[chat] = await open_streams.enter_async_context(tab_c.posting(body))
        await conductor.arrived(*streaming, *running)

        leaving.terminate()
        await until_it_leaves(tab_c)
        # Half of what runs ends in time, half does not.
        in_time = [*streaming[::2], *list(running)[::2]]
        conductor.release(*in_time)
        late = new_name()
        body = saying(late, play(late, ["Taken."]))
        assert (await say_wherever_it_is_taken([tab_c, tab_b], body)).text == "Taken."
        async with anyio.create_task_group() as tasks:
            for stream in streams.values():
                tasks.start_soon(read_on, stream)
        with anyio.fail_after(DRAIN_SECONDS + 10):
            assert await leaving.ended() == 0

    for chat in in_time:
        end = b"and ended." if chat in streaming else b"Told."
        assert end in streams[chat].got

    # What C could not finish, another server does, asking the model anew.
    await conductor.arrived(*streaming[1::2], times=2)
    conductor.release(*streaming)
    for chat in streaming:
        assert (await told(tab_b, chat, "Begun and ended.")).types[-1] == "finish"
        history = await tab_b.history(chat)
        assert [message["role"] for message in history] == ["user", "assistant"]
        runs = 1 if chat in in_time else 2
        assert cluster.model_runs()[chat] == runs

    # A tool that C was cut off in is not run again, and the model is told.
    for chat, asked in running.items():
        await told(tab_b, chat, "Told.")
        ended = chat in in_time
        shown = await tab_b.approval(asked.approvals[0])
        assert shown["status"] == ("done" if ended else "unknown")
        assert cluster.effects()[chat] == (1 if ended else 0)
        assert conductor.arrivals(chat) == 1

    # What C asked still waits, and is answered elsewhere.
    for chat, asked in held.items():
        assert (await tab_b.approval(asked.approvals[0]))["status"] == "pending"
    for chat, asked in held.items():
        assert (await tab_b.post(asked.approving(chat, True))).text == "Told."
        assert cluster.effects()[chat] == 1
    assert cluster.model_runs()[late] == 1
