"""Event streams that are open while nothing is said: the memory and the CPU time they take."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

import anyio
import httpx
from fastapi import FastAPI
from starlette.responses import StreamingResponse

from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from benchmarks.idle_sockets import allow_files
from benchmarks.page import figure, ratio, table
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.sampling import measure_beside
from benchmarks.served import opened
from benchmarks.setting import Setting
from benchmarks.text_model import text_agent
from benchmarks.web import Usage, served_app

__all__ = ["IDLE_STREAMS", "STREAM_OPENER"]

_NAMES: Final = {
    "bare": "a stream that only waits, in FastAPI",
    "memory": "`/api/chat/{id}/stream`",
}
_AT_ONCE: Final = 50
_WARM_UP: Final = 50
_CHAT: Final = "idle"
_SLOW: Final = "paced 2 0.001"
"""Says a word, and the next one after a quarter of an hour."""


def _count(setting: Setting) -> int:
    return setting.sized(5000, 20)


async def _open(variant: str, setting: Setting) -> Sample:
    """Be the second process: open streams, do nothing, and ask what that costs."""
    allow_files(_count(setting))
    path = "/bench/stream" if variant == "bare" else f"/api/chat/{_CHAT}/stream"
    async with httpx.AsyncClient(base_url=setting.url, timeout=60) as http, AsyncExitStack() as end:
        usage = Usage(http)
        if variant != "bare":
            await end.enter_async_context(_turn(http))
        # What is compiled and cached is not what a stream takes.
        async with _streams(setting.url, path, count=min(_WARM_UP, _count(setting))):
            await usage.cpu()
        before = await usage.memory()
        async with _streams(setting.url, path, count=_count(setting)):
            grown = await usage.memory() - before
            began, cpu = time.perf_counter(), await usage.cpu()
            await anyio.sleep(setting.sized(20, 0))
            used = await usage.cpu() - cpu
            idle = time.perf_counter() - began
    return {"memory": grown / _count(setting), "cpu": used / idle}


@asynccontextmanager
async def _turn(http: httpx.AsyncClient) -> AsyncIterator[None]:
    """Have a turn run that hardly says anything."""
    part = {"type": "text", "text": _SLOW}
    body = {"id": _CHAT, "messages": [{"id": "m", "role": "user", "parts": [part]}]}
    async with http.stream("POST", "/api/chat", json=body) as response:
        async for line in response.aiter_lines():
            if "due" in line:
                break
        yield
        await http.post(f"/api/chat/{_CHAT}/stop")


@asynccontextmanager
async def _streams(url: str, path: str, *, count: int) -> AsyncIterator[None]:
    """Keep as many streams open, each until it has said what there is."""
    host, port = urlsplit(url).hostname, urlsplit(url).port
    with ExitStack() as until_end:
        few = anyio.Semaphore(_AT_ONCE)

        async def open_one() -> None:
            async with few:
                reader, writer = await asyncio.open_connection(host, port)
                until_end.callback(writer.close)
                writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
                await reader.readuntil(b"due")

        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(open_one)
        yield


@asynccontextmanager
async def _app(variant: str, setting: Setting) -> AsyncIterator[FastAPI]:
    if variant == "bare":
        app = FastAPI()

        @app.get("/bench/stream")
        async def stream() -> StreamingResponse:
            async def wait() -> AsyncIterator[str]:
                yield "data: due\n\n"
                await anyio.sleep_forever()

            return StreamingResponse(wait(), media_type="text/event-stream")

        yield app
        return
    async with opened(variant, setting) as database:
        yield create_app(
            text_agent(),
            settings=Settings(),
            services=Services(sessions=database.sessions),
            stores=database.stores,
        )


async def _measure(variant: str, setting: Setting) -> Sample:
    allow_files(_count(setting))
    async with _app(variant, setting) as app, served_app(app) as url:
        return await measure_beside(STREAM_OPENER, variant, replace(setting, url=url))


def _tell(results: Results) -> str:
    floor = results["bare"]
    return table(
        ["", "KiB each", "of the bare stream", "idle CPU, % of a core"],
        [
            [
                _NAMES[variant],
                figure(found["memory"], 1 / 1024),
                ratio(found["memory"], floor["memory"]),
                figure(found["cpu"], 100),
            ]
            for variant, found in results.items()
        ],
    )


STREAM_OPENER: Final = Benchmark("idle-streams-opener", tuple(_NAMES), _open, _tell)
IDLE_STREAMS: Final = Benchmark("idle-streams", tuple(_NAMES), _measure, _tell)
