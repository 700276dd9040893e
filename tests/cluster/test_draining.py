"""A server is told to end while others go on: what it cannot finish, they do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

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


async def until_it_leaves(tab: Tab) -> None:
    """Return when the server says, or shows, that it takes no more turns."""
    with anyio.fail_after(60):
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
    with anyio.fail_after(180):
        while not (reply := await tab.resume(chat)).text.endswith(end):
            pass
    return reply


async def read_on(stream: Stream) -> None:
    try:
        await stream.all()
    except httpx.TransportError:
        return  # its server has left


@dataclass
class Load:
    """What goes on at a server that is told to end."""

    tab: Tab
    streaming: list[str] = field(default_factory=lambda: [new_name() for _ in range(STREAMING)])
    """Chats whose replies run."""
    held: dict[str, Answered] = field(default_factory=dict)
    """Chats that wait for an approval."""
    running: dict[str, Answered] = field(default_factory=dict)
    """Chats whose approved tool runs."""
    streams: dict[str, Stream] = field(default_factory=dict)
    """What the readers of the running replies read."""

    async def ask(self) -> None:
        """Ask for all that needs an approval."""

        async def say(tool: str, into: dict[str, Answered]) -> None:
            chat = new_name()
            into[chat] = await self.tab.say(chat, play(chat, [called(tool, chat)], ["Told."]))

        async with anyio.create_task_group() as tasks:
            for _ in range(HELD):
                tasks.start_soon(say, "pay", self.held)
            for _ in range(RUNNING):
                tasks.start_soon(say, "pay_slowly", self.running)

    @asynccontextmanager
    async def on(self, conductor: Conductor) -> AsyncIterator[None]:
        """Have the replies and the tools run, each at the place that its chat names."""
        async with AsyncExitStack() as tabs:
            for chat in self.streaming:
                body = saying(chat, play(chat, ["Begun ", wait(chat), "and ended."]))
                self.streams[chat] = await tabs.enter_async_context(self.tab.posting(body))
            for chat, asked in self.running.items():
                body = asked.approving(chat, True)
                self.streams[chat] = await tabs.enter_async_context(self.tab.posting(body))
            await conductor.arrived(*self.streams)
            yield

    async def read(self) -> None:
        """Read all replies as far as they come."""
        async with anyio.create_task_group() as tasks:
            for stream in self.streams.values():
                tasks.start_soon(read_on, stream)

    @property
    def in_time(self) -> list[str]:
        """Return the half of what runs that is let end while the server drains."""
        return list(self.streams)[::2]


@pytest.fixture
async def load(conductor: Conductor, leaving: Instance, tab_b: Tab) -> Load:
    """What was going on at a server that has ended under it."""
    async with open_tab(leaving) as tab_c:
        load = Load(tab_c)
        await load.ask()
        async with load.on(conductor):
            leaving.terminate()
            await until_it_leaves(tab_c)
            conductor.release(*load.in_time)
            late = new_name()
            answer = await say_wherever_it_is_taken(
                [tab_c, tab_b], saying(late, play(late, ["Taken."]))
            )
            assert answer.text == "Taken."
            await load.read()
            with anyio.fail_after(DRAIN_SECONDS + 30):
                assert await leaving.ended() == 0
    return load


async def check_replies(load: Load, cluster: Cluster, conductor: Conductor, tab: Tab) -> None:
    """What the server could not finish, another does, asking the model anew."""
    cut_off = [chat for chat in load.streaming if chat not in load.in_time]
    await conductor.arrived(*cut_off, times=2)
    conductor.release(*cut_off)
    for chat in load.streaming:
        assert (await told(tab, chat, "Begun and ended.")).types[-1] == "finish"
        history = await tab.history(chat)
        assert [message["role"] for message in history] == ["user", "assistant"]
        assert cluster.model_runs()[chat] == (2 if chat in cut_off else 1)


async def check_tools(load: Load, cluster: Cluster, conductor: Conductor, tab: Tab) -> None:
    """A tool that was cut off is not run again, and the model is told."""
    # An answer that one server recorded may be carried out by another: those tools go on.
    conductor.release(*load.running)
    for chat, asked in load.running.items():
        await told(tab, chat, "Told.")
        status = (await tab.approval(asked.approvals[0]))["status"]
        assert status == "done" or (status == "unknown" and chat not in load.in_time)
        assert cluster.effects()[chat] == (1 if status == "done" else 0)
        assert conductor.arrivals(chat) == 1


async def check_held(load: Load, cluster: Cluster, tab: Tab) -> None:
    """What the server asked still waits, and is answered elsewhere."""
    for asked in load.held.values():
        assert (await tab.approval(asked.approvals[0]))["status"] == "pending"
    for chat, asked in load.held.items():
        assert (await tab.post(asked.approving(chat, True))).text == "Told."
        assert cluster.effects()[chat] == 1


async def test_a_server_that_ends_under_load_loses_nothing(
    cluster: Cluster, conductor: Conductor, load: Load, tab_b: Tab
) -> None:
    for chat in load.streaming:
        assert (b"and ended." in load.streams[chat].got) == (chat in load.in_time)
    await check_replies(load, cluster, conductor, tab_b)
    await check_tools(load, cluster, conductor, tab_b)
    await check_held(load, cluster, tab_b)
