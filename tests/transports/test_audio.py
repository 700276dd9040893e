"""The audio socket, with the demo's offline model: it listens, and speaks in tones."""

from __future__ import annotations

import dataclasses
import json
import math
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from adk_stream_protocol import ToolRule, create_app
from adk_stream_protocol.demo.agent import PaymentBook, build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.stores.memory import memory_stores
from support.serving import serving
from support.socket import Socket, chunks_of, opened
from support.stage import Stage, user_by_header

pytestmark = pytest.mark.anyio

_PATIENCE = 10.0
LOUD = b"".join(
    struct.pack("<h", int(8000 * math.sin(2 * math.pi * 440 * n / 16_000))) for n in range(1_600)
)
QUIET = bytes(len(LOUD))
WEATHER = "What is the weather in Tokyo?"


@dataclass
class Sound:
    """One audio socket: what it heard, and what it was told."""

    connection: ClientConnection
    heard: bytearray = field(default_factory=bytearray)
    told: list[dict[str, Any]] = field(default_factory=list)

    async def speak(self, *, tenths: int = 5) -> None:
        """Say something, and then be silent."""
        for piece in [LOUD] * tenths + [QUIET] * 6:
            await self.connection.send(piece)

    async def receive(self) -> None:
        with anyio.fail_after(_PATIENCE):
            frame = await self.connection.recv()
        if isinstance(frame, bytes):
            self.heard += frame
        else:
            self.told.append(json.loads(frame))


@asynccontextmanager
async def sounding(url: str, chat: str, **headers: str) -> AsyncIterator[Sound]:
    address = f"{url.replace('http', 'ws', 1)}/api/chat/{chat}/audio"
    async with connect(
        address, additional_headers=headers, compression=None, proxy=None
    ) as connection:
        yield Sound(connection)


@asynccontextmanager
async def talking(
    *heard: str,
    pace: float = 0.0,
    stores: Stores | None = None,
    rules: Mapping[str, ToolRule] | None = None,
) -> AsyncIterator[Stage]:
    """Serve the demo with a model that takes each utterance for the next phrase."""
    book = PaymentBook()
    model = OfflineModel(heard=heard, speech_pace=pace)
    app = create_app(build_agent(model, book), identify=user_by_header, stores=stores, tools=rules)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        yield Stage(url=url, http=http, payments=book.payments)  # type: ignore[arg-type]


async def hint(socket: Socket) -> None:
    frame = await socket.next("-")
    assert frame == {"type": "active", "requestId": "-", "id": "c"}


async def test_what_is_spoken_is_answered_aloud_and_is_text_in_the_chat() -> None:
    async with (
        talking("What is the weather in Tokyo?") as stage,
        opened(stage.url, route="live") as socket,
        sounding(stage.url, "c") as sound,
    ):
        await socket.resume("r1", "c")
        assert (await socket.all("r1"))[-1]["type"] == "no-active"
        await sound.speak()
        await hint(socket)
        await socket.resume("r2", "c")
        chunks = chunks_of(await socket.all("r2"))
        while len(sound.heard) < 24_000:
            await sound.receive()
        history = (await stage.http.get("/api/chats/c")).json()["messages"]
    captions = [chunk["data"] for chunk in chunks if chunk["type"] == "data-adk-transcription"]
    assert captions[-1] == {"side": "input", "text": "What is the weather in Tokyo?", "final": True}
    text = "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")
    assert text.startswith("The weather in Tokyo")
    assert [message["role"] for message in history] == ["user", "assistant"]
    assert history[0]["parts"] == [{"type": "text", "text": "What is the weather in Tokyo?"}]
    assert history[1]["parts"][-1]["text"] == text


async def test_a_spoken_wish_is_approved_by_hand() -> None:
    async with (
        talking("Send 50 dollars to Hanako") as stage,
        opened(stage.url, route="live") as socket,
        sounding(stage.url, "c") as sound,
    ):
        await socket.resume("r1", "c")
        await socket.all("r1")
        await sound.speak()
        await hint(socket)
        await socket.resume("r2", "c")
        chunks = chunks_of(await socket.all("r2"))
        (asked,) = [chunk for chunk in chunks if chunk["type"] == "tool-approval-request"]
        decided = await stage.http.post(
            f"/api/approvals/{asked['approvalId']}", json={"approved": True}
        )
        assert decided.status_code == 200
        while len(sound.heard) < 24_000:
            await sound.receive()
    assert [payment["amount"] for payment in stage.payments] == [50]  # type: ignore[index]


async def test_speaking_interrupts_the_model() -> None:
    async with (
        talking("Hello", "What is the weather in Tokyo?", pace=3600) as stage,
        opened(stage.url, route="live") as socket,
        sounding(stage.url, "c") as sound,
    ):
        await socket.resume("r1", "c")
        await socket.all("r1")
        await sound.speak()
        await hint(socket)
        while not sound.heard:
            await sound.receive()
        await socket.resume("r2", "c")
        await sound.speak()
        chunks = chunks_of(await socket.all("r2"))
        while {"type": "interrupted"} not in sound.told:
            await sound.receive()
        await stage.http.post("/api/chat/c/stop")
    assert chunks[-1]["messageMetadata"]["interrupted"] is True


async def test_the_microphone_can_be_switched_off() -> None:
    async with talking("Hello") as stage, sounding(stage.url, "c") as sound:
        await sound.connection.send(LOUD)
        await sound.connection.send(LOUD)
        await sound.connection.send('{"type":"end"}')
        while not sound.heard:
            await sound.receive()


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"odd", "16-bit"),
        (bytes(64 * 1024 + 2), "at most"),
        ("hello", "JSON"),
        ('{"type":"begin"}', "binary frames"),
    ],
)
async def test_a_bad_frame_is_refused_and_the_socket_goes_on(frame: str | bytes, why: str) -> None:
    async with talking("Hello") as stage, sounding(stage.url, "c") as sound:
        await sound.connection.send(frame)
        while not sound.told:
            await sound.receive()
        assert sound.told[0]["type"] == "error"
        assert why in sound.told[0]["errorText"]
        await sound.speak()
        while not sound.heard:
            await sound.receive()


async def test_nobody_hears_a_chat_of_another() -> None:
    async with talking("Hello", "Hello") as stage:
        async with sounding(stage.url, "c", **{"x-user": "mallory"}) as early:
            async with sounding(stage.url, "c", **{"x-user": "alice"}) as sound:
                await sound.speak()
                while not sound.heard:
                    await sound.receive()
            # Mallory was there first, but the chat is Alice's.
            await early.connection.send(LOUD)
            while not early.told:
                await early.receive()
            assert not early.heard
        with pytest.raises(ConnectionClosed) as closed:
            async with sounding(stage.url, "c", **{"x-user": "mallory"}) as late:
                await late.connection.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


async def runs_of(stage: Stage, count: int) -> None:
    """Wait until so many live runs go on."""
    with anyio.fail_after(_PATIENCE):
        while f"adk_stream_live_runs {count}" not in (await stage.http.get("/metrics")).text:
            await anyio.lowlevel.checkpoint()


async def test_nobody_speaks_in_a_chat_of_another() -> None:
    async with (
        talking("Hello") as stage,
        sounding(stage.url, "c", **{"x-user": "mallory"}) as other,
        sounding(stage.url, "c") as sound,
    ):
        # A run, and no turn yet that would tell whose the chat is.
        await sound.connection.send(QUIET)
        await runs_of(stage, 1)
        await other.speak()
        while not other.told:
            await other.receive()
        assert other.told[0]["type"] == "error"
        assert (await stage.http.get("/api/chats/c")).json()["messages"] == []


async def test_nobody_types_in_a_chat_that_another_has_begun_to_speak_in() -> None:
    async with talking("Hello") as stage, sounding(stage.url, "c") as sound:
        await sound.connection.send(QUIET)
        await runs_of(stage, 1)
        async with opened(stage.url, route="live", headers={"x-user": "mallory"}) as socket:
            await socket.say("r1", "c", "Hello")
            frames = await socket.all("r1")
        assert [frame["type"] for frame in frames] == ["error"]
        await sound.speak()
        while not sound.heard:
            await sound.receive()


async def test_a_listener_who_comes_back_hears_on() -> None:
    async with talking("Hello", "Hello") as stage:
        for _ in range(2):
            async with sounding(stage.url, "c") as sound:
                await sound.speak()
                while not sound.heard:
                    await sound.receive()


class Waylaid:
    """A store; something comes after one of the things it does."""

    def __init__(self, inner: Any, name: str, after: Callable[[], Awaitable[None]]) -> None:
        self._inner = inner
        self._name = name
        self._after = after

    def __getattr__(self, name: str) -> Any:
        do = getattr(self._inner, name)
        if name != self._name:
            return do

        async def waylaid(*arguments: Any, **named: Any) -> Any:
            done = await do(*arguments, **named)
            await self._after()
            return done

        return waylaid


@dataclass
class Pause:
    """Holds up the next that comes, once it is asked to."""

    wanted: bool = False
    reached: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self) -> None:
        if self.wanted:
            self.wanted = False
            self.reached.set()
            await self.over.wait()


async def test_a_microphone_does_not_end_the_turn_that_begins_at_the_same_time() -> None:
    pause = Pause()
    stores = memory_stores()
    waylaid: Any = Waylaid(stores.turns, "latest", pause)
    async with (
        talking("Hello", pace=3600, stores=dataclasses.replace(stores, turns=waylaid)) as stage,
        opened(stage.url, route="live") as socket,
        sounding(stage.url, "c") as sound,
    ):
        pause.wanted = True
        # Nobody has the chat, it seems.
        await sound.connection.send(QUIET)
        with anyio.fail_after(_PATIENCE):
            await pause.reached.wait()
        await socket.say("r1", "c", "What is the weather in Tokyo?")
        await socket.until_text("r1", "The")
        pause.over.set()
        await sound.connection.send("no JSON")
        while not sound.told:
            await sound.receive()
        assert (await stage.http.post("/api/chat/c/stop")).json() == {"stopped": True}
        assert (await socket.all("r1"))[-2]["chunk"]["type"] == "abort"


async def stored(stage: Stage, text: str) -> None:
    """Wait until the chat's history has a text."""
    with anyio.fail_after(_PATIENCE):
        while text not in (await stage.http.get("/api/chats/c")).text:
            await anyio.lowlevel.checkpoint()


async def test_a_turn_spoken_while_the_last_one_is_given_back_begins_then() -> None:
    pause = Pause()
    stores = memory_stores()
    waylaid: Any = Waylaid(stores.log, "append", pause)
    async with (
        talking("Hello", WEATHER, stores=dataclasses.replace(stores, log=waylaid)) as stage,
        opened(stage.url, route="live") as socket,
        sounding(stage.url, "c") as sound,
    ):
        await socket.resume("r1", "c")
        await socket.all("r1")
        pause.wanted = True
        await sound.speak()
        with anyio.fail_after(_PATIENCE):
            await pause.reached.wait()
        await hint(socket)
        # The whole answer is said, though its turn is slow to write it down; and the next.
        await stored(stage, "Hello!")
        await sound.speak()
        await stored(stage, "The weather in Tokyo")
        pause.over.set()
        await hint(socket)
        await socket.resume("r2", "c")
        assert chunks_of(await socket.all("r2"))[-1]["type"] == "finish"
        history = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert [message["role"] for message in history] == ["user", "assistant"] * 2


class SlowTurns(Waylaid):
    """A chat is taken only after a while."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner, "", self._nothing)

    async def _nothing(self) -> None: ...

    async def begin(self, *arguments: Any, **named: Any) -> Any:
        await anyio.sleep(0.3)
        return await self._inner.begin(*arguments, **named)


async def test_what_a_policy_approves_runs_in_a_spoken_turn() -> None:
    rules = {"process_payment": ToolRule(decide=lambda _arguments: True)}
    stores = memory_stores()
    slow: Any = SlowTurns(stores.turns)
    stores = dataclasses.replace(stores, turns=slow)
    async with (
        talking("Send 50 dollars to Hanako", rules=rules, stores=stores) as stage,
        sounding(stage.url, "c") as sound,
    ):
        await sound.speak()
        await stored(stage, "output")
    assert [payment["amount"] for payment in stage.payments] == [50]  # type: ignore[index]
