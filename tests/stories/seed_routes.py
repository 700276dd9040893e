"""The two routes of the seeds' protocol: a story is told once on each, with the same words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx

from support.envelope import CONFIRM, DONE, Envelope, enveloped
from support.stage import Answered, Stage, user_message

__all__ = ["ROUTES", "SeedChat", "answering", "talking", "tool_result"]

ROUTES = ["stream", "live"]
"""`POST /stream`, and `WS /live`."""

_PATIENCE = 10.0
_ENDS = {"finish", "error", "abort"}


def tool_result(call_id: str, name: str, result: object) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": call_id, "toolName": name, "result": result}


def answering(*items: dict[str, Any], chat: str | None = "c") -> dict[str, Any]:
    message = {"role": "user", "content": list(items)}
    body: dict[str, Any] = {"messages": [user_message("earlier"), message]}
    return body if chat is None else {"id": chat, **body}


class SeedChat:
    """A chat of a client of the seeds, on either route."""

    route: str

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        """Every chunk, in order."""
        self.ends = 0
        """How many `[DONE]` came."""

    async def write(self, body: Mapping[str, object]) -> None:
        """Send a request; its reply is read by others."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Stop what runs, or give up what waits."""
        raise NotImplementedError

    async def chunk(self) -> dict[str, Any]:
        """Return the next chunk."""
        raise NotImplementedError

    async def until_done(self) -> None:
        """Wait for the end of the stream, or of the turn: nothing may come before it."""
        raise NotImplementedError

    async def send(self, body: Mapping[str, object]) -> Answered:
        """Send a request and return its reply, or why it was refused."""
        await self.write(body)
        return await self.reply()

    async def say(self, text: str) -> Answered:
        return await self.send({"id": "c", "messages": [user_message(text)]})

    async def answer(self, *items: dict[str, Any]) -> Answered:
        return await self.send(answering(*items))

    async def confirm(self, asked: Answered, *verdicts: bool) -> Answered:
        """Answer all confirmations of a reply in one request."""
        ids = [c["toolCallId"] for c in asked.only("tool-input-available") if _confirms(c)]
        return await self.answer(
            *(
                tool_result(confirmation, CONFIRM, {"confirmed": verdict})
                for confirmation, verdict in zip(ids, verdicts, strict=True)
            )
        )

    async def reply(self) -> Answered:
        """Return the chunks up to the end of a reply."""
        chunks = [await self.chunk()]
        if chunks[0]["type"] == "refused":
            return Answered(0, error={"message": chunks[0]["message"]})
        while chunks[-1]["type"] not in _ENDS:
            chunks.append(await self.chunk())
        return Answered(200, chunks)

    async def until_text(self, text: str) -> None:
        while text not in str((await self.chunk()).get("delta", "")):
            pass


class StreamChat(SeedChat):
    """Posts, and reads a response for each."""

    route = "stream"

    def __init__(self, http: httpx.AsyncClient, responses: AsyncExitStack) -> None:
        super().__init__()
        self._http = http
        self._responses = responses
        self._lines: AsyncIterator[str] | None = None

    async def write(self, body: Mapping[str, object]) -> None:
        response = await self._responses.enter_async_context(
            self._http.stream("POST", "/stream", json=body)
        )
        if response.status_code == 200:
            self._lines = response.aiter_lines()
        else:
            await response.aread()
            told = json.dumps({"type": "refused", "message": response.text})
            self._lines = _one(f"data: {told}")

    async def stop(self) -> None:
        assert (await self._http.post("/stream/c/stop")).json() == {"stopped": True}

    async def chunk(self) -> dict[str, Any]:
        chunk: dict[str, Any] = json.loads(await self._line())
        self.heard.append(chunk)
        return chunk

    async def reply(self) -> Answered:
        answered = await super().reply()
        if answered.status:
            await self.until_done()
        return answered

    async def until_done(self) -> None:
        assert await self._line() == DONE
        self.ends += 1

    async def _line(self) -> str:
        assert self._lines is not None
        with anyio.fail_after(_PATIENCE):
            async for line in self._lines:
                if line.startswith("data: "):
                    return line.removeprefix("data: ")
        raise AssertionError("the response ended")


class LiveChat(SeedChat):
    """Writes envelopes, and reads all replies from one socket."""

    route = "live"

    def __init__(self, envelope: Envelope) -> None:
        super().__init__()
        self.envelope = envelope

    async def write(self, body: Mapping[str, object]) -> None:
        await self.envelope.write("message", **body)

    async def stop(self) -> None:
        await self.envelope.write("interrupt")

    async def chunk(self) -> dict[str, Any]:
        while (heard := await self.envelope.next()) == DONE:
            self.ends += 1
        self.heard.append(heard)
        return dict(heard)

    async def until_done(self) -> None:
        assert await self.envelope.next() == DONE
        self.ends += 1


async def _one(line: str) -> AsyncIterator[str]:
    yield line


def _confirms(chunk: Mapping[str, Any]) -> bool:
    return bool(chunk["toolName"] == CONFIRM)


@asynccontextmanager
async def talking(stage: Stage, route: str) -> AsyncIterator[SeedChat]:
    """Open a chat on one of the routes."""
    async with AsyncExitStack() as stack:
        if route == "stream":
            yield StreamChat(stage.http, stack)
        else:
            yield LiveChat(await stack.enter_async_context(enveloped(stage.url)))
