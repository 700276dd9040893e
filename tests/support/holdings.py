"""What a process holds: objects of ours and ADK's, tasks, sockets, and what is kept in lists.

Whatever a class is called and wherever it is kept: a leak shows as a count that grows.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.lowlevel

__all__ = ["forget_timers", "holdings"]

_OURS = ("adk_stream_protocol.", "google.adk.", "websockets.", "uvicorn.", "support.")
_ROWS = ("adk_stream_protocol.wire.", "google.adk.events.", "google.adk.sessions.")
"""What is stored is made of these; those who test count it themselves."""
_STORED = frozenset(
    {
        "HeldCall",
        "TurnRecord",
        "ToolConfirmation",
        "MemoryCalls",
        "MemoryTurns",
        "MemoryLog",
        "_Reply",
        # Each reply that is kept has one.
        "Bell",
    }
)
_MANY = 10_000
_CONTAINERS = (dict, list, set, deque)


async def forget_timers() -> None:
    """Let asyncio drop the timers that were cancelled.

    It keeps them, with the context they were made in, until they are due or there are many.
    """
    loop = asyncio.get_running_loop()
    for _ in range(_MANY):
        loop.call_later(3600, _nothing).cancel()
    await anyio.lowlevel.checkpoint()


def _nothing() -> None:
    """Is never called."""


def holdings() -> Counter[str]:
    """Count everything but what is stored."""
    gc.collect()
    held: Counter[str] = Counter()
    for each in gc.get_objects():
        kind = type(each)
        name = f"{kind.__module__}.{kind.__name__}"
        if not name.startswith(_OURS) or name.startswith(_ROWS) or kind.__name__ in _STORED:
            continue
        held[name] += 1
        if name.startswith("adk_stream_protocol."):
            held.update({f"{name}.{field}": count for field, count in _kept(each)})
    held["tasks"] = len(asyncio.all_tasks())
    # Not files: how many a pool of connections has open depends on the moment.
    held["sockets"] = sum(1 for name in _open() if name.startswith("socket:"))
    return held


def _open() -> Iterator[str]:
    for place in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(place.readlink())


def _kept(each: Any) -> Iterator[tuple[str, int]]:
    """Yield how much there is in each list of an object."""
    names = [name for kind in type(each).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in {*names, *getattr(each, "__dict__", {})}:
        value = getattr(each, name, None)
        if isinstance(value, _CONTAINERS):
            yield name, len(value)
