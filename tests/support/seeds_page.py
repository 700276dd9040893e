"""A page of the front end in `tests/seeds_client`, driven by commands."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from support.node import node

__all__ = ["PageState", "SeedsPage", "SeedsRoute", "Stand", "seeds_page"]

Stand: TypeAlias = Literal["wrapped", "flat", "native"]
SeedsRoute: TypeAlias = Literal["stream", "live"]

_FOLDER = Path(__file__).parents[1] / "seeds_client"
_LONGEST = 10_000_000
_PATIENCE = 120.0


@dataclass(frozen=True)
class PageState:
    """What a page shows, and what it sent and got."""

    status: str
    error: str | None
    messages: list[dict[str, Any]]
    posts: int
    sent: list[dict[str, Any]]
    """The frames that it wrote to its socket."""
    besides: list[dict[str, Any]]
    """The frames that came beside the stream, pongs left out."""
    latencies: list[float]
    runs: list[str]
    """The tools that it ran."""

    @property
    def text(self) -> str:
        """The text of the last message."""
        parts = self.messages[-1]["parts"]
        return "".join(part["text"] for part in parts if part["type"] == "text")

    @property
    def tools(self) -> list[tuple[str, str]]:
        """The name and the state of each tool call in the last message, confirmations left out."""
        found = [part for part in self.messages[-1]["parts"] if "toolCallId" in part]
        named = [(part["type"].removeprefix("tool-"), part["state"]) for part in found]
        return [(name, state) for name, state in named if name != "adk_request_confirmation"]


class SeedsPage:
    """One page; each method returns what it shows then."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._answers = BufferedByteReceiveStream(process.stdout)
        self._count = 0

    async def say(self, text: str) -> PageState:
        return await self._do("say", text=text)

    async def asked(self, count: int = 1) -> PageState:
        """Wait until it asks so many questions."""
        return await self._do("wait", **{"for": "questions", "count": count})

    async def click(self, *approved: bool, times: int = 1) -> PageState:
        """Click on every question, in one tick: these verdicts in turn, each so many times."""
        return await self._do("click", approved=list(approved), times=times)

    async def settled(self) -> PageState:
        return await self._do("wait", **{"for": "settled"})

    async def ping(self) -> PageState:
        await self._do("ping")
        return await self._do("wait", **{"for": "pong"})

    async def talk(self, *chunks: str) -> PageState:
        return await self._do("talk", chunks=list(chunks))

    async def state(self) -> PageState:
        return await self._do("state")

    async def _do(self, verb: str, **fields: object) -> PageState:
        assert self._process.stdin is not None
        self._count += 1
        command = json.dumps({"n": self._count, "do": verb, **fields})
        await self._process.stdin.send(f"{command}\n".encode())
        with anyio.fail_after(_PATIENCE):
            answer = json.loads(await self._answers.receive_until(b"\n", _LONGEST))
        assert answer.pop("n") == self._count
        failure = answer.pop("failure")
        assert failure is None, f"{verb}: {failure} {answer}"
        return PageState(**answer)


@asynccontextmanager
async def seeds_page(
    url: str, stand: Stand, route: SeedsRoute, *, draft: bool = False
) -> AsyncIterator[SeedsPage]:
    """Open a page; leaving the block closes it."""
    arguments = ["--stand", stand, "--route", route, "--url", url, *(["--draft"] if draft else [])]
    command = node(str(_FOLDER / "page.mjs"), *arguments)
    process = await anyio.open_process(command, cwd=_FOLDER, stderr=None)
    try:
        yield SeedsPage(process)
    finally:
        with anyio.move_on_after(5, shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
