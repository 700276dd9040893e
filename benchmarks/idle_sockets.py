"""Sockets that are open while nobody says anything: the memory and the CPU time they take."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Final

import anyio
import httpx
from fastapi import FastAPI, WebSocket
from websockets.asyncio.client import ClientConnection, connect

from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from benchmarks.live_model import live_agent
from benchmarks.page import figure, ratio, table
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.sampling import measure_beside
from benchmarks.served import opened
from benchmarks.setting import Setting
from benchmarks.web import Usage, served_app

__all__ = ["IDLE_SOCKETS", "SOCKET_OPENER", "allow_files"]

_NAMES: Final = {
    "bare": "a socket that only listens, in FastAPI",
    "memory-ws": "`/api/chat/ws`",
    "memory-live": "`/api/chat/live`",
    "memory-watching": "`/api/chat/live`, each with a chat; memory",
    "sqlite-watching": "`/api/chat/live`, each with a chat; SQLite",
}
_AT_ONCE: Final = 50
_WARM_UP: Final = 50


def _count(setting: Setting) -> int:
    return setting.sized(5000, 20)


def allow_files(count: int) -> None:
    """Let this process have as many sockets, and some files besides."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + 1000
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, max(hard, needed)))


async def _open(variant: str, setting: Setting) -> Sample:
    """Be the second process: open sockets, do nothing, and ask what that costs."""
    allow_files(_count(setting))
    async with httpx.AsyncClient(base_url=setting.url, timeout=60) as http:
        usage = Usage(http)
        # What is compiled and cached is not what a socket takes.
        async with _sockets(variant, setting.url, count=min(_WARM_UP, _count(setting))):
            await usage.cpu()
        before = await usage.memory()
        async with _sockets(variant, setting.url, count=_count(setting)):
            grown = await usage.memory() - before
            began, cpu = time.perf_counter(), await usage.cpu()
            # Each is pinged every 20 s, and each chat looked at every 30.
            await anyio.sleep(setting.sized(60, 0))
            used = await usage.cpu() - cpu
            idle = time.perf_counter() - began
    return {"memory": grown / _count(setting), "cpu": used / idle}


@asynccontextmanager
async def _sockets(variant: str, url: str, *, count: int) -> AsyncIterator[None]:
    """Keep as many sockets open."""
    async with AsyncExitStack() as until_end:
        few = anyio.Semaphore(_AT_ONCE)

        async def open_one(number: int) -> None:
            async with few:
                connection = await until_end.enter_async_context(
                    # The server pings; one side is enough.
                    connect(
                        _address(variant, url), compression=None, ping_interval=None, proxy=None
                    )
                )
                if variant.endswith("watching"):
                    await _watch(connection, f"chat-{number}")

        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(open_one, number)
        yield


def _address(variant: str, url: str) -> str:
    route = "ws" if variant.endswith("ws") else "live"
    path = "/bench/socket" if variant == "bare" else f"/api/chat/{route}"
    return f"{url.replace('http', 'ws', 1)}{path}"


async def _watch(connection: ClientConnection, chat: str) -> None:
    """Ask for a chat's reply, as `useChat` does with `resume`; there is none, yet."""
    frame = {"type": "resume", "requestId": "1", "id": chat, "headers": {}, "body": {}}
    await connection.send(json.dumps(frame))
    assert json.loads(await connection.recv())["type"] == "no-active"


@asynccontextmanager
async def _app(variant: str, setting: Setting) -> AsyncIterator[FastAPI]:
    if variant == "bare":
        app = FastAPI()

        @app.websocket("/bench/socket")
        async def listen(socket: WebSocket) -> None:
            await socket.accept()
            while (await socket.receive())["type"] != "websocket.disconnect":
                pass

        yield app
        return
    async with opened(variant, setting) as database:
        yield create_app(
            live_agent(),
            settings=replace(Settings(), max_sockets=_count(setting)),
            services=Services(sessions=database.sessions),
            stores=database.stores,
        )


async def _measure(variant: str, setting: Setting) -> Sample:
    allow_files(_count(setting))
    async with _app(variant, setting) as app, served_app(app) as url:
        return await measure_beside(SOCKET_OPENER, variant, replace(setting, url=url))


def _tell(results: Results) -> str:
    floor = results["bare"]
    return table(
        ["", "KiB each", "of the bare socket", "idle CPU, % of a core", "of the bare sockets"],
        [
            [
                _NAMES[variant],
                figure(found["memory"], 1 / 1024),
                ratio(found["memory"], floor["memory"]),
                figure(found["cpu"], 100),
                ratio(found["cpu"], floor["cpu"]),
            ]
            for variant, found in results.items()
        ],
    )


SOCKET_OPENER: Final = Benchmark("idle-sockets-opener", tuple(_NAMES), _open, _tell)
IDLE_SOCKETS: Final = Benchmark("idle-sockets", tuple(_NAMES), _measure, _tell)
