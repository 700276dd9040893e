"""The stories on the two routes of the seeds: answers as results of the confirmation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup

from stories.seed_routes import answering, tool_result
from stories.telling import Running, Teller
from support.envelope import CONFIRM, DONE, Envelope, enveloped
from support.stage import Answered, Stage

__all__ = ["SEED_ROUTES", "SeedRoute", "SeedTeller", "seed_telling"]

SeedRoute: TypeAlias = Literal["stream", "envelope"]
SEED_ROUTES: tuple[SeedRoute, ...] = ("stream", "envelope")


_ENDS = {"finish", "error", "abort"}


class SeedTeller(Teller):
    """Asks on `POST /stream`, or on `WS /live`."""

    path = "/stream"

    def __init__(self, stage: Stage, envelope: Envelope | None, tasks: TaskGroup) -> None:
        super().__init__(stage, "stream", "c", None, tasks)
        self._envelope = envelope
        self._reading = 0
        # How many messages were refused, each with an end of its own.
        self._refused = 0

    async def begin_answering(self, asked: Answered, *verdicts: bool) -> Running:
        items = [
            tool_result(confirmation, CONFIRM, {"confirmed": verdict})
            for confirmation, verdict in zip(_confirmations(asked), verdicts, strict=True)
        ]
        return await self.begin(answering(*items))

    async def answer_what_is_unknown(self, asked: Answered) -> Answered:
        return await self.ask(answering(tool_result("unknown", CONFIRM, {"confirmed": True})))

    def questions(self, asked: Answered) -> int:
        return len(_confirmations(asked))

    async def give(self, asked: Answered, name: str, **output: object) -> Answered:
        items = [
            tool_result(confirmation, CONFIRM, {"confirmed": True})
            for confirmation in _confirmations(asked)
        ]
        return await self.ask(answering(*items, tool_result(asked.calls[0], name, output)))

    async def answer_first(self, asked: Answered, verdict: bool) -> Answered:
        first = tool_result(_confirmations(asked)[0], CONFIRM, {"confirmed": verdict})
        return await self.ask(answering(first))

    async def give_later(self, asked: Answered, name: str, **output: object) -> Answered:
        return await self.ask(answering(tool_result(asked.call_of(name), name, output)))

    async def stop(self) -> None:
        if self._envelope is None:
            await super().stop()
            return
        await self._envelope.write("interrupt")
        if not self._reading:
            # What becomes of a call that waited is told by itself.
            running = Running()
            await self._reply(self._envelope, running)
            self.replies.append(running.chunks)

    async def check_ends(self) -> None:
        """Check that every turn on the socket had its one end."""
        if self._envelope is None:
            return
        heard = self._envelope.heard
        chunks = [each for each in heard if each != DONE]
        turns = {each["messageId"] for each in chunks if each["type"] == "start"}
        ends = len(turns) + self._refused
        while heard.count(DONE) < ends:
            assert await self._envelope.next() == DONE
        assert heard.count(DONE) == ends
        assert await self._envelope.is_silent()

    async def _read(self, body: Mapping[str, object], running: Running) -> None:
        if self._envelope is None:
            await super()._read(body, running)
            return
        await self._envelope.write("message", **body)
        self._reading += 1
        refusal = await self._reply(self._envelope, running)
        self._reading -= 1
        if refusal and not _is_aside(body):
            # Whoever sent it reads a stream of its own.
            assert await self._envelope.next() == DONE
            self._refused += 1
        self.replies.append(refusal or running.chunks)
        running.end(refusal)

    async def _reply(self, envelope: Envelope, running: Running) -> str:
        """Read a reply to its end; return why there is none, or nothing."""
        while not running.chunks or running.chunks[-1]["type"] not in _ENDS:
            while (heard := await envelope.next()) == DONE:
                pass
            if heard["type"] == "refused":
                return str(heard["message"])
            running.add(heard)
        return ""


def _is_aside(body: Mapping[str, Any]) -> bool:
    """Whether a message only answers, beside the stream of its turn."""
    return any("content" in message for message in body.get("messages", ()))


def _confirmations(asked: Answered) -> list[str]:
    shown: list[dict[str, Any]] = asked.only("tool-input-available")
    return [chunk["toolCallId"] for chunk in shown if chunk["toolName"] == CONFIRM]


@asynccontextmanager
async def seed_telling(stage: Stage, route: SeedRoute) -> AsyncIterator[SeedTeller]:
    """Tell a story on a route of the seeds."""
    async with anyio.create_task_group() as tasks:
        if route == "stream":
            yield SeedTeller(stage, None, tasks)
        else:
            async with enveloped(stage.url) as envelope:
                yield SeedTeller(stage, envelope, tasks)
