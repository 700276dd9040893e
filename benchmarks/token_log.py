"""The token log: what it costs that a reply can be resumed, against Redis and against no log.

Fifty replies at once, each written chunk by chunk and followed by a reader. Once as fast as it
goes, and once at the pace of models: fifty chunks a second each.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.ports import Batch, Log
from adk_stream_protocol.stores.memory import MemoryLog
from adk_stream_protocol.stores.sql import postgres_stores, sqlite_stores
from adk_stream_protocol.wire.chunks import FinishChunk, TextDeltaChunk
from adk_stream_protocol.wire.entries import Entry
from benchmarks.page import figure, ratio, table
from benchmarks.redis_log import RedisLog
from benchmarks.rounds import Benchmark, Results, Sample
from benchmarks.servers import cpu_seconds
from benchmarks.setting import Setting

__all__ = ["TOKEN_LOG"]

_REPLIES: Final = 50
_PACE: Final = 0.02

_NAMES: Final = {
    "list": "no log: a list, read at the end",
    "memory": "memory log",
    "sqlite": "**SQLite log**",
    "postgres": "**PostgreSQL log**",
    "redis-everysec": "Redis, `appendfsync everysec`",
    "redis-always": "Redis, `appendfsync always`",
}


class _Lists:
    """The floor: nobody can follow, resume or read twice."""

    def __init__(self) -> None:
        self._entries: dict[ReplyId, list[Entry]] = {}
        self._ended: dict[ReplyId, anyio.Event] = {}

    async def open(self, reply_id: ReplyId) -> None:
        self._entries[reply_id], self._ended[reply_id] = [], anyio.Event()

    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        self._entries[reply_id].extend(entries)

    async def end(self, reply_id: ReplyId) -> None:
        self._ended[reply_id].set()

    async def leave(self, reply_id: ReplyId) -> None:
        self._ended[reply_id].set()

    async def written(self, reply_id: ReplyId) -> Sequence[Entry]:
        return tuple(self._entries[reply_id])

    async def read(self, reply_id: ReplyId, after: int) -> Batch | None:
        await self._ended[reply_id].wait()
        return Batch(self._entries[reply_id][after:], ended=True)


@asynccontextmanager
async def _opened(variant: str, setting: Setting) -> AsyncIterator[Log]:
    match variant:
        case "list":
            yield _Lists()
        case "memory":
            yield MemoryLog()
        case "sqlite" | "postgres":
            sqlite = variant == "sqlite"
            stores = sqlite_stores(str(setting.file)) if sqlite else postgres_stores(setting.url)
            async with stores.serving():
                yield stores.log
        case _:
            log = RedisLog(setting.url)
            async with log.serving():
                yield log


async def _write(log: Log, reply_id: ReplyId, *, chunks: int, pace: float | None) -> None:
    due = anyio.current_time()
    for number in range(chunks):
        await log.append(reply_id, [TextDeltaChunk("text-1", f" token{number}")])
        if pace is None:
            # A model's chunk comes through the event loop, too; readers get their turn.
            await checkpoint()
        else:
            due += pace
            await anyio.sleep_until(due)
    await log.append(reply_id, [FinishChunk("stop")])
    await log.end(reply_id)


async def _follow(log: Log, reply_id: ReplyId, chunks: int) -> None:
    seen, ended = 0, False
    while not ended:
        batch = await log.read(reply_id, seen)
        assert batch is not None
        seen, ended = seen + len(batch.entries), batch.ended
    assert seen == chunks + 1, "nothing lost, nothing twice"


async def _stream(log: Log, *, chunks: int, pace: float | None, server: int) -> tuple[float, ...]:
    """Return seconds, own CPU and the server's CPU for all replies, the first untimed."""
    ids = [ReplyId(f"reply-{pace}-{number}") for number in range(_REPLIES + 1)]
    for reply_id in ids:
        await log.open(reply_id)
    # The first statement is compiled, the connections are opened.
    await _write(log, ids.pop(), chunks=1, pace=None)
    wall, cpu, servers = time.perf_counter(), time.process_time(), cpu_seconds(server)
    async with anyio.create_task_group() as tasks:
        for reply_id in ids:
            tasks.start_soon(_follow, log, reply_id, chunks)
        for reply_id in ids:
            tasks.start_soon(lambda each: _write(log, each, chunks=chunks, pace=pace), reply_id)
    return (
        time.perf_counter() - wall,
        time.process_time() - cpu,
        cpu_seconds(server) - servers,
    )


async def _measure(variant: str, setting: Setting) -> Sample:
    fast, paced = setting.sized(1000, 4), setting.sized(200, 4)
    async with _opened(variant, setting) as log:
        seconds, cpu, servers = await _stream(log, chunks=fast, pace=None, server=setting.server)
        _, slow_cpu, slow_servers = await _stream(
            log, chunks=paced, pace=_PACE, server=setting.server
        )
    total, slow_total = fast * _REPLIES, paced * _REPLIES
    return {
        "rate": total / seconds,
        "cpu": cpu / total,
        "server": servers / total,
        "paced cpu": slow_cpu / slow_total,
        "paced server": slow_servers / slow_total,
    }


def _tell(results: Results) -> str:
    floor = results["memory"]
    head = ["", "chunks/s", "of the memory log", "CPU us/chunk", "server's CPU us/chunk"]
    fast = table(
        head,
        [
            [
                _NAMES[variant],
                figure(found["rate"]),
                ratio(found["rate"], floor["rate"]),
                figure(found["cpu"], 1e6),
                figure(found["server"], 1e6),
            ]
            for variant, found in results.items()
        ],
    )
    paced = table(
        ["", "CPU us/chunk", "of the memory log", "server's CPU us/chunk"],
        [
            [
                _NAMES[variant],
                figure(found["paced cpu"], 1e6),
                ratio(found["paced cpu"], floor["paced cpu"]),
                figure(found["paced server"], 1e6),
            ]
            for variant, found in results.items()
        ],
    )
    return (
        f"{_REPLIES} replies at once, as fast as it goes:\n\n{fast}\n"
        f"{_REPLIES} replies at once at {1 / _PACE:.0f} chunks a second each:\n\n{paced}"
    )


TOKEN_LOG: Final = Benchmark("token-log", tuple(_NAMES), _measure, _tell)
