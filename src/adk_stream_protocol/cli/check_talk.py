"""A short conversation with the demo over HTTP, as a client has it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import httpx

from adk_stream_protocol.demo.agent import PaymentBook
from adk_stream_protocol.server.headers import ERROR_CODE
from adk_stream_protocol.wire.values import JsonObject, as_object, as_text

__all__ = ["Talk", "Wrong"]


class Wrong(Exception):
    """Something is not as it must be; the message says what."""


@dataclass(frozen=True, slots=True)
class _Reply:
    chunks: Sequence[JsonObject]

    @property
    def text(self) -> str:
        return "".join(as_text(c.get("delta")) for c in self.chunks if c["type"] == "text-delta")

    def one(self, kind: str) -> JsonObject:
        found = [chunk for chunk in self.chunks if chunk["type"] == kind]
        if len(found) != 1:
            got = ", ".join(dict.fromkeys(as_text(chunk["type"]) for chunk in self.chunks))
            raise Wrong(f"expected one {kind} chunk, got {len(found)} among {got}")
        return found[0]


@dataclass(slots=True)
class Talk:
    """One chat with a server whose agent pays into a book we can read."""

    http: httpx.AsyncClient
    payments: PaymentBook
    chat_id: str = field(default_factory=lambda: f"check-{uuid.uuid4()}")
    last: _Reply = field(default_factory=lambda: _Reply(()))
    """The newest reply."""

    def steps(self) -> Sequence[tuple[str, Callable[[], Awaitable[str]]]]:
        """Return what to try, in order, and the name of each."""
        return (
            ("text", self.hear_text),
            ("tool", self.use_tool),
            ("approval approved", self.approve),
            ("approval denied", self.deny),
            ("resume", self.resume),
            ("history", self.read_history),
        )

    async def health(self) -> str:
        """The server takes requests."""
        response = await self.http.get("/readyz")
        if response.status_code != 200:
            raise Wrong(f"/readyz answers {response.status_code}")
        return f"ready at {self.http.base_url}"

    async def hear_text(self) -> str:
        """The agent answers with text."""
        reply = await self._say("hello")
        if not reply.text:
            raise Wrong("the reply has no text")
        return f"{len(reply.chunks)} chunks"

    async def use_tool(self) -> str:
        """The agent runs a tool."""
        reply = await self._say("What is the weather in Tokyo?")
        output = as_object(reply.one("tool-output-available").get("output"))
        if output.get("city") != "Tokyo":
            raise Wrong("the tool did not answer for Tokyo")
        return "get_weather ran"

    async def approve(self) -> str:
        """An approved payment is made once."""
        await self._decide("Send 50 dollars to Hanako", approved=True)
        self.last.one("tool-output-available")
        if len(self.payments.payments) != 1:
            raise Wrong(f"{len(self.payments.payments)} payments were made instead of one")
        return "one payment was made"

    async def deny(self) -> str:
        """A denied payment is not made."""
        before = len(self.payments.payments)
        await self._decide("Send 7 dollars to Bob", approved=False)
        self.last.one("tool-output-denied")
        if len(self.payments.payments) != before:
            raise Wrong("the payment was made although it was denied")
        return "no payment was made"

    async def resume(self) -> str:
        """The newest reply can be read again."""
        response = await self.http.get(f"/api/chat/{self.chat_id}/stream")
        again = _reply(response)
        if not again.text.endswith(self.last.text):
            raise Wrong("the reply reads differently the second time")
        return f"{len(again.chunks)} chunks again"

    async def read_history(self) -> str:
        """The whole chat can be read."""
        response = await self.http.get(f"/api/chats/{self.chat_id}")
        messages = as_object(response.json()).get("messages")
        roles = [as_object(m).get("role") for m in messages] if isinstance(messages, list) else []
        if roles != ["user", "assistant"] * 4:
            raise Wrong(f"the chat has the messages {roles}")
        return f"{len(roles)} messages"

    async def _say(self, text: str) -> _Reply:
        parts = [{"type": "text", "text": text}]
        message = {"id": f"user-{uuid.uuid4()}", "role": "user", "parts": parts}
        return await self._post([message])

    async def _decide(self, text: str, *, approved: bool) -> None:
        before = len(self.payments.payments)
        asked = await self._say(text)
        if len(self.payments.payments) != before:
            raise Wrong("the payment was made before anyone was asked")
        request = asked.one("tool-approval-request")
        part = {
            "type": "tool-process_payment",
            "toolCallId": request["toolCallId"],
            "state": "approval-responded",
            "input": {},
            "approval": {"id": request["approvalId"], "approved": approved},
        }
        message_id = asked.one("start")["messageId"]
        await self._post([{"id": message_id, "role": "assistant", "parts": [part]}])

    async def _post(self, messages: Sequence[object]) -> _Reply:
        body = {"id": self.chat_id, "messages": messages, "trigger": "submit-message"}
        self.last = _reply(await self.http.post("/api/chat", json=body))
        return self.last


def _reply(response: httpx.Response) -> _Reply:
    if response.status_code != 200:
        # The page of a proxy is not worth repeating.
        what = response.text if ERROR_CODE in response.headers else "not an adk-stream server"
        raise Wrong(f"the server answers {response.status_code}: {what}")
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    if not lines or lines[-1] != "[DONE]":
        raise Wrong("the stream has no end")
    reply = _Reply([as_object(_json(line)) for line in lines[:-1]])
    if any(chunk.get("type") == "error" for chunk in reply.chunks):
        raise Wrong(f"the reply ends in an error: {reply.one('error').get('errorText')}")
    return reply


def _json(text: str) -> JsonObject:
    try:
        return as_object(json.loads(text))
    except ValueError:
        return {}
