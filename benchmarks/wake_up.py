"""Wake-up: how long after a decision in one process another acts on it, over PostgreSQL.

The clock is the machine's monotonic one, which both processes share. Decisions come at random
times, so that no poll can be in step with them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from adk_stream_protocol.identifiers import ApprovalId
from adk_stream_protocol.lifecycle import CallState
from adk_stream_protocol.ports import Calls, Verdict
from adk_stream_protocol.stores.sql import postgres_stores
from benchmarks.page import figure, ratio, table
from benchmarks.ready_calls import held_call
from benchmarks.rounds import Benchmark, Results, Sample, percentile
from benchmarks.sampling import measure_beside
from benchmarks.setting import Setting

__all__ = ["DECIDER", "WAKE_UP"]

_TOPIC: Final = "calls"
"""The engine's own topic for held calls that changed."""
_CATCH_UP: Final = 5.0
"""How long at most the engine's sweeper waits for a hint."""
_WARM_UP: Final = 5
"""How many decisions do not count: both processes are still connecting."""
_GAP: Final = 0.04

_NAMES: Final = {
    "postgres-notify": "**`NOTIFY`, and a poll every 5 s**",
    "postgres-poll-250": "a poll every 250 ms",
    "postgres-poll-25": "a poll every 25 ms",
}


def _count(setting: Setting) -> int:
    return _WARM_UP + setting.sized(300, 3)


async def _decide(_variant: str, setting: Setting) -> Sample:
    """Be the second process: decide calls at random times; tell when each was committed."""
    stores = postgres_stores(setting.url)
    committed: Sample = {}
    by = Verdict(approved=True, by="bench")
    async with stores.serving():
        for number in range(_count(setting)):
            await anyio.sleep(random.expovariate(1 / _GAP))
            approval_id = held_call(number, 0).approval_id
            await stores.calls.decide(approval_id, by)
            committed[approval_id] = time.monotonic()
            stores.wake.hint(_TOPIC)
        # The last hint may be on its way.
        await anyio.sleep(_GAP)
    return committed


async def _act(
    calls: Calls, ids: Sequence[ApprovalId], wait: Callable[[], Awaitable[None]]
) -> dict[str, float]:
    """Return when each decision was seen by someone who waits, and then looks."""
    acted: dict[str, float] = {}
    for approval_id in ids:
        while (call := await calls.get(approval_id)) is None or call.state is CallState.PENDING:
            await wait()
        acted[approval_id] = time.monotonic()
    return acted


async def _measure(variant: str, setting: Setting) -> Sample:
    stores = postgres_stores(setting.url)

    async def hinted() -> None:
        await stores.wake.wait(_TOPIC, _CATCH_UP)

    async def polled() -> None:
        await anyio.sleep(int(variant.rpartition("-")[2]) / 1000)

    async with stores.serving():
        now = await stores.calls.now()
        ids = [held_call(number, 0).approval_id for number in range(_count(setting))]
        for number in range(len(ids)):
            await stores.calls.open(held_call(number, now))
        acted: dict[str, float] = {}

        async def act() -> None:
            acted.update(await _act(stores.calls, ids, hinted if "notify" in variant else polled))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act)
            committed = await measure_beside(DECIDER, variant, setting)
    late = [acted[each] - committed[each] for each in ids[_WARM_UP:]]
    return {"p50": percentile(late, 0.5), "p99": percentile(late, 0.99), "max": max(late)}


def _tell(results: Results) -> str:
    floor = results["postgres-notify"]
    return table(
        ["", "p50 ms", "p99 ms", "longest ms", "p50 against `NOTIFY`"],
        [
            [
                _NAMES[variant],
                *(figure(found[name], 1e3) for name in ("p50", "p99", "max")),
                ratio(found["p50"], floor["p50"]),
            ]
            for variant, found in results.items()
        ],
    )


DECIDER: Final = Benchmark("wake-up-decider", tuple(_NAMES), _decide, _tell)
WAKE_UP: Final = Benchmark("wake-up", tuple(_NAMES), _measure, _tell)
