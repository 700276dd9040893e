"""One server that talks, in a process of its own that tells its own CPU time; and its clients."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio

from benchmarks.servers import PEERS, peer_python
from benchmarks.setting import Setting
from benchmarks.text_clients import Heard, Refused, TextClient

__all__ = ["TextBench", "Turns", "text_bench"]

_ROOT: Final = Path(__file__).parents[1]
_SETTLED: Final = 0.1
"""Seconds until what a turn leaves to do is done, too: the log writes every 25 ms."""


def _command(variant: str) -> list[str]:
    if variant in PEERS:
        return [str(peer_python(variant)), "-m", "benchmarks.text_peers", variant]
    return [sys.executable, "-m", "benchmarks.text_server", variant]


@asynccontextmanager
async def text_bench(variant: str, setting: Setting) -> AsyncIterator[TextBench]:
    """Start the server that a variant names; yield what measures it."""
    # A peer has a Python of its own, and nothing of ours but the model.
    paths = [_ROOT] if variant in PEERS else [_ROOT / "src", _ROOT / "tests", _ROOT]
    process = await anyio.open_process(
        _command(variant),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    async with process:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(f"{setting.to_json()}\n".encode())
        url = (await process.stdout.receive()).decode().strip()
        yield TextBench(variant, TextClient(variant, url))
        await process.stdin.aclose()


@dataclass(frozen=True, slots=True)
class Turns:
    """What turns that were had at once came to."""

    cpu: float
    """Seconds of the server's CPU time, of all."""
    heard: Sequence[Heard]
    failed: int = 0


class TextBench:
    """One server, measured."""

    def __init__(self, variant: str, client: TextClient) -> None:
        self.variant = variant
        self.client = client

    async def cpu(self) -> float:
        """Return the seconds of CPU time that the server has used."""
        return float(await self.client.get("/bench/cpu"))

    async def memory(self) -> float:
        """Return the bytes that the server has in memory; 0 for the loop alone."""
        return 0.0 if self.variant == "bare" else float(await self.client.get("/bench/memory"))

    async def turns(self, text: str, clients: int = 1, *, chat: str = "") -> Turns:
        """Have turns at once, in new chats unless one is named."""
        if self.variant == "bare":
            _, cpu, first = await self.client.bare(text, clients, chat=chat)
            return Turns(cpu, [Heard(first=first)])
        return await self.turns_in([chat or await self.client.chat() for _ in range(clients)], text)

    async def begun(self, clients: int) -> Sequence[str]:
        """Return chats in which one turn was had."""
        chats = [await self.client.chat() for _ in range(clients)]
        if self.variant != "bare":
            await self.turns_in(chats, "text 1")
        return chats

    async def turns_in(self, chats: Sequence[str], text: str) -> Turns:
        """Have a turn in each of some chats, at once."""
        if self.variant == "bare":
            return await self.turns(text, len(chats))
        heard: list[Heard] = []

        async def talk(chat: str) -> None:
            with suppress(Refused):
                heard.append(await self.client.say(chat, text))

        before = await self.cpu()
        async with anyio.create_task_group() as tasks:
            for chat in chats:
                tasks.start_soon(talk, chat)
        await anyio.sleep(_SETTLED)
        return Turns(await self.cpu() - before, heard, failed=len(chats) - len(heard))

    async def usual(self, text: str, times: int) -> float:
        """Return the CPU time of a turn: the median of some, one after another."""
        return statistics.median([(await self.whole(text)).cpu for _ in range(times)])

    async def whole(self, text: str, clients: int = 1, *, chat: str = "") -> Turns:
        """Have turns of which none may fail: what a refused one costs says nothing."""
        turns = await self.turns(text, clients, chat=chat)
        if turns.failed:
            raise RuntimeError(f"{turns.failed} of {clients} clients were refused: {text}")
        return turns
