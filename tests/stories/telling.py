"""Stories told chunk by chunk: one client without a mind of its own, on any of the routes."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup

from support.chunk_schema import check_chunk
from support.joining import joined
from support.socket import Socket, opened
from support.stage import Answered, Stage, user_message

__all__ = ["ROUTES", "Chunks", "Route", "Running", "Teller", "plain", "read", "telling"]

Route: TypeAlias = Literal["sse", "ws", "live"]
ROUTES: tuple[Route, ...] = ("sse", "ws", "live")

Chunks: TypeAlias = list[dict[str, Any]]

_IDS = {"messageId": "message", "toolCallId": "call", "approvalId": "approval"}
_PATIENCE = 10.0
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
_ERROR = re.compile(r"error [0-9a-f]{12}")


@dataclass
class Running:
    """A reply that is being read."""

    chunks: Chunks = field(default_factory=list)
    error: str = ""
    ended: anyio.Event = field(default_factory=anyio.Event)
    more: anyio.Event = field(default_factory=anyio.Event)

    def add(self, chunk: dict[str, Any]) -> None:
        if chunk["type"] != "refused":
            # That is a frame of the envelope, beside the stream.
            check_chunk(chunk)
        self.chunks.append(chunk)
        self._tell()

    def end(self, error: str = "") -> None:
        self.error = error
        self.ended.set()
        self._tell()

    def _tell(self) -> None:
        more, self.more = self.more, anyio.Event()
        more.set()

    async def until(self, seen: Callable[[dict[str, Any]], bool]) -> None:
        """Wait for a chunk."""
        with anyio.fail_after(_PATIENCE):
            while not any(map(seen, self.chunks)):
                assert not self.ended.is_set(), self.chunks
                await self.more.wait()

    async def rest(self) -> Answered:
        """Wait for the end."""
        with anyio.fail_after(_PATIENCE):
            await self.ended.wait()
        return Answered(200, self.chunks, {"message": self.error} if self.error else {})


class Teller:
    """Asks on one route, and remembers the replies in order."""

    path = "/api/chat"

    def __init__(
        self, stage: Stage, route: str, chat: str, socket: Socket | None, tasks: TaskGroup
    ) -> None:
        self.stage = stage
        self.route = route
        self.chat = chat
        self.replies: list[Chunks | str] = []
        self._socket = socket
        self._tasks = tasks
        self._numbers = itertools.count(1)

    async def say(self, text: str) -> Answered:
        """Say something, and read the reply."""
        return await (await self.begin_saying(text)).rest()

    async def begin_saying(self, text: str) -> Running:
        return await self.begin({"id": self.chat, "messages": [user_message(text)]})

    async def answer(self, asked: Answered, *verdicts: bool) -> Answered:
        """Answer what a reply asked for, all at once, as a stock client does."""
        return await (await self.begin_answering(asked, *verdicts)).rest()

    async def answer_first(self, asked: Answered, verdict: bool) -> Answered:
        """Answer the first of two calls that a reply asked for."""
        body = asked.approving(self.chat, verdict, verdict)
        del body["messages"][0]["parts"][1]
        return await self.ask(body)

    async def begin_answering(self, asked: Answered, *verdicts: bool) -> Running:
        return await self.begin(asked.approving(self.chat, *verdicts))

    async def answer_what_is_unknown(self, asked: Answered) -> Answered:
        """Approve a call that nobody made."""
        body = asked.approving(self.chat, True)
        body["messages"][0]["parts"][0]["approval"]["id"] = "adk-unknown"
        body["messages"][0]["parts"][0]["toolCallId"] = "unknown"
        return await self.ask(body)

    def questions(self, asked: Answered) -> int:
        """Return how many decisions a reply asks for."""
        return len(asked.approvals)

    async def give(self, asked: Answered, name: str, **output: object) -> Answered:
        """Give what the browser made of a call, approved first if that was asked for."""
        part: dict[str, Any] = {
            "type": f"tool-{name}",
            "toolCallId": asked.calls[0],
            "state": "output-available",
            "input": {},
            "output": output,
        }
        if asked.approvals:
            part["approval"] = {"id": asked.approvals[0], "approved": True}
        message = {"id": asked.message_id, "role": "assistant", "parts": [part]}
        return await self.ask({"id": self.chat, "messages": [message]})

    async def give_later(self, asked: Answered, name: str, **output: object) -> Answered:
        """Give what the browser made of a call that was approved in a request before."""
        part: dict[str, Any] = {
            "type": f"tool-{name}",
            "toolCallId": asked.call_of(name),
            "state": "output-available",
            "input": {},
            "output": output,
        }
        message = {"id": asked.message_id, "role": "assistant", "parts": [part]}
        return await self.ask({"id": self.chat, "messages": [message]})

    async def ask(self, body: Mapping[str, object]) -> Answered:
        return await (await self.begin(body)).rest()

    async def begin(self, body: Mapping[str, object]) -> Running:
        running = Running()
        self._tasks.start_soon(self._read, body, running)
        return running

    async def stop(self) -> None:
        """Press stop."""
        response = await self.stage.http.post(f"{self.path}/{self.chat}/stop")
        assert response.json() == {"stopped": True}

    async def _read(self, body: Mapping[str, object], running: Running) -> None:
        if self._socket is None:
            await self._read_stream(body, running)
        else:
            await self._read_frames(self._socket, body, running)
        self.replies.append(running.chunks if not running.error else running.error)

    async def _read_stream(self, body: Mapping[str, object], running: Running) -> None:
        async with self.stage.http.stream("POST", self.path, json=dict(body)) as response:
            if response.status_code != 200:
                await response.aread()
                running.end(response.text)
                return
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    running.add(json.loads(line.removeprefix("data: ")))
        running.end()

    async def _read_frames(
        self, socket: Socket, body: Mapping[str, object], running: Running
    ) -> None:
        request_id = f"r{next(self._numbers)}"
        await socket.ask(request_id, body)
        frame = await socket.next(request_id)
        while frame["type"] in {"start", "chunk"}:
            if frame["type"] == "chunk":
                assert frame["sequence"] == len(running.chunks)
                running.add(frame["chunk"])
            frame = await socket.next(request_id)
        running.end(frame.get("errorText", ""))


@asynccontextmanager
async def telling(stage: Stage, route: Route, chat: str = "c") -> AsyncIterator[Teller]:
    """Tell a story on a route."""
    async with anyio.create_task_group() as tasks:
        if route == "sse":
            yield Teller(stage, route, chat, None, tasks)
        else:
            async with opened(stage.url, route=route) as socket:
                yield Teller(stage, route, chat, socket, tasks)
                tasks.cancel_scope.cancel()


class _Names:
    """Gives each id a name that is the same in every telling."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def note(self, chunk: Mapping[str, Any]) -> None:
        for field_name, kind in _IDS.items():
            value = chunk.get(field_name)
            if isinstance(value, str) and value not in self._names:
                self._counts[kind] += 1
                self._names[value] = f"<{kind} {self._counts[kind]}>"

    def of(self, value: object) -> object:
        if isinstance(value, dict):
            return {key: self.of(_timeless(key, item)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if isinstance(value, str):
            text = self._names.get(value, value)
            return _ERROR.sub("error <id>", _TIME.sub("<time>", text))
        return value


def _timeless(key: str, value: object) -> object:
    """Return a field without the time that it tells, if it does as a number."""
    return "<time>" if key == "createdAt" and isinstance(value, int) else value


def plain(replies: list[Chunks | str]) -> str:
    """Return replies as text, without what differs from one telling to the next."""
    names = _Names()
    told: list[str] = []
    for reply in replies:
        items: Sequence[object] = [reply] if isinstance(reply, str) else reply
        for chunk in reply if isinstance(reply, list) else ():
            names.note(chunk)
        told.append("\n".join(json.dumps(names.of(item), ensure_ascii=False) for item in items))
    return "\n\n".join(told) + "\n"


def read(told: str) -> list[object]:
    """Return what `plain` made, with pieces of text joined, for a comparison."""
    return joined(json.loads(line) if line else "" for line in told.splitlines())
