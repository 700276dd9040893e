"""The agent that stories are told with, served for real, and what its tools did."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from starlette.requests import HTTPConnection

from adk_stream_protocol.held_calls.browser_tool import BrowserTool
from adk_stream_protocol.held_calls.deciders import MayDecide
from adk_stream_protocol.held_calls.policy import ToolRule
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.server.identity import Identify
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from support.chunk_schema import check_chunk
from support.scripted import Script, ScriptedModel, call, thought
from support.serving import serving
from support.stored_chats import check_chats

__all__ = ["Answered", "Stage", "staged", "user_by_header", "user_message"]


@dataclass
class Stage:
    """A running server, a client for it, and the effects of its agent's tools."""

    url: str = ""
    http: httpx.AsyncClient = field(default_factory=httpx.AsyncClient)
    payments: list[int] = field(default_factory=list)
    model: ScriptedModel = field(default_factory=ScriptedModel)
    more: anyio.Event = field(default_factory=anyio.Event)
    """Lets the scripts that wait go on."""
    tool_started: threading.Event = field(default_factory=threading.Event)
    tool_may_end: threading.Event = field(default_factory=threading.Event)
    """Let the slow, synchronous payment go on; it runs in a thread."""

    def go_on(self) -> None:
        """Let whatever waits go on."""
        self.more.set()
        self.tool_may_end.set()

    def tools(self) -> list[BaseTool]:  # noqa: C901  # eight small functions, no branches
        """Return the tools, all of them plain functions."""

        def add(a: int, b: int) -> dict[str, int]:
            """Add two numbers."""
            return {"sum": a + b}

        def explode() -> dict[str, int]:
            """Fail."""
            raise RuntimeError("SECRET 4711")

        def pay(amount: int) -> dict[str, int]:
            """Pay."""
            self.payments.append(amount)
            return {"paid": amount}

        def pay_slowly(amount: int) -> dict[str, int]:
            """Pay, and take long about it."""
            self.tool_started.set()
            assert self.tool_may_end.wait(10)
            self.payments.append(amount)
            return {"paid": amount}

        def pay_badly(amount: int) -> dict[str, int]:
            """Fail to pay."""
            raise RuntimeError(f"SECRET {amount}")

        def book(days: int, tool_context: ToolContext) -> dict[str, object]:
            """Book days off, after asking by itself."""
            confirmation = tool_context.tool_confirmation
            if confirmation is None:
                tool_context.request_confirmation(hint="Book?", payload={"days": days})
                return {"status": "waiting"}
            self.payments.append(-days)
            return {"booked": confirmation.payload}

        def get_location() -> dict[str, float]:
            """Return where the user is."""
            raise AssertionError("runs in the browser")

        def change_bgm(track: str) -> dict[str, str]:  # noqa: ARG001  # the model sees it
            """Change the background music."""
            raise AssertionError("runs in the browser")

        return [
            FunctionTool(add),
            FunctionTool(explode),
            FunctionTool(pay, require_confirmation=True),
            FunctionTool(pay_slowly, require_confirmation=True),
            FunctionTool(pay_badly, require_confirmation=True),
            FunctionTool(book),
            BrowserTool(get_location, require_confirmation=True),
            BrowserTool(change_bgm),
        ]

    def script(self) -> Script:
        """Return what the model says to what."""
        return {
            "hi": [["Hel", "lo."]],
            "hello": [["Hello again."]],
            "think": [[thought("Let me "), thought("see."), "Done."]],
            "add": [[call("add", a=1, b=2)], ["It is 3."]],
            "add badly": [[call("add", a=1)], ["It cannot be added."]],
            "fail": [[call("explode")], ["It failed."]],
            "pay": [[call("pay", amount=5)], ["Told."]],
            "pay 5": [["Paying. ", call("pay", amount=5)], ["Result told."]],
            "pay both": [[call("pay", amount=1), call("pay", amount=2)], ["Both told."]],
            "pay in turn": [[call("pay", amount=1)], [call("pay", amount=2)], ["All told."]],
            "pay and add": [
                [call("pay", amount=5), call("pay", amount=6), call("add", a=1, b=2)],
                ["Told."],
            ],
            "pay slowly": [[call("pay_slowly", amount=9)], ["Slowly told."]],
            "pay badly": [[call("pay_badly", amount=9)], ["Badly told."]],
            "book 3": [[call("book", days=3)], ["Booking told."]],
            "where am I": [[call("get_location")], ["Place told."]],
            "play jazz": [[call("change_bgm", track="jazz")], ["Music told."]],
            "pay and play": [
                [call("pay", amount=7), call("change_bgm", track="rock")],
                ["Mixed told."],
            ],
            "pay one, then two": [
                [call("pay", amount=1)],
                [call("pay", amount=2), call("pay", amount=3)],
                ["All told."],
            ],
            "pay and locate": [
                [call("pay", amount=7), call("get_location")],
                ["Both known."],
            ],
            "long": [["One. ", self.more, "Two."]],
            "add late": [[call("add", a=1, b=2)], [self.more, "It is 3."]],
            "pay late": [[call("pay", amount=5)], [self.more, "Late told."]],
            "break": [["Some ", RuntimeError("SECRET model")]],
            "break at once": [[RuntimeError("SECRET model")]],
            "花子さんに50ドル送金してください": [
                ["送金します。", call("pay", amount=50)],
                ["花子さんに50ドルを送金しました。"],
            ],
        }

    async def post(self, path: str, body: Mapping[str, object], **headers: str) -> Answered:
        """Post a chat request and read the whole reply."""
        response = await self.http.post(path, json=body, headers=headers)
        return Answered.of(response)

    async def say(
        self, chat: str, text: str, *, path: str = "/api/chat", **headers: str
    ) -> Answered:
        """Say something in a chat."""
        body = {"id": chat, "messages": [user_message(text)]}
        return await self.post(path, body, **headers)


@dataclass
class Answered:
    """A response: its chunks, or why it was refused."""

    status: int
    chunks: list[dict[str, Any]] = field(default_factory=list)
    error: dict[str, str] = field(default_factory=dict)
    raw: str = ""

    @classmethod
    def of(cls, response: httpx.Response) -> Answered:
        """Read a response."""
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return cls(response.status_code, _chunks(response.text), raw=response.text)
        return cls(response.status_code, error=_error(response), raw=response.text)

    @property
    def types(self) -> list[str]:
        """The types of the chunks, in order."""
        return [chunk["type"] for chunk in self.chunks]

    @property
    def text(self) -> str:
        """All text."""
        return "".join(c["delta"] for c in self.chunks if c["type"] == "text-delta")

    def only(self, kind: str) -> list[dict[str, Any]]:
        """Return the chunks of a type."""
        return [chunk for chunk in self.chunks if chunk["type"] == kind]

    @property
    def message_id(self) -> str:
        """The message that the reply makes or continues."""
        return str(self.chunks[0]["messageId"])

    @property
    def approvals(self) -> list[str]:
        """The ids of the approvals that the reply asks for."""
        return [chunk["approvalId"] for chunk in self.only("tool-approval-request")]

    @property
    def calls(self) -> list[str]:
        """The ids of the tool calls that the reply shows."""
        return [chunk["toolCallId"] for chunk in self.only("tool-input-start")]

    def call_of(self, name: str) -> str:
        """Return the id of the call of a tool."""
        shown = self.only("tool-input-start")
        return next(str(chunk["toolCallId"]) for chunk in shown if chunk["toolName"] == name)

    def approving(self, chat: str, *verdicts: bool, reason: str | None = None) -> dict[str, Any]:
        """Return the request that a stock client makes once every approval is answered."""
        parts = [
            {
                "type": "tool-pay",
                "toolCallId": chunk["toolCallId"],
                "state": "approval-responded",
                "input": {"forged": True},
                "approval": {
                    "id": chunk["approvalId"],
                    "approved": verdict,
                    **({"reason": reason} if reason else {}),
                },
            }
            for chunk, verdict in zip(self.only("tool-approval-request"), verdicts, strict=True)
        ]
        message = {"id": self.message_id, "role": "assistant", "parts": parts}
        return {
            "id": chat,
            "trigger": "submit-message",
            "messageId": self.message_id,
            "messages": [message],
        }


def _error(response: httpx.Response) -> dict[str, str]:
    """Return a fault's code, message and id, from wherever the response has them."""
    if "x-adk-stream-error" in response.headers and not _is_json(response):
        code, error_id = (response.headers[f"x-adk-stream-error{end}"] for end in ("", "-id"))
        return {"code": code, "message": response.text, "id": error_id}
    error: dict[str, str] = response.json().get("error", {}) if response.content else {}
    return error


def _is_json(response: httpx.Response) -> bool:
    return response.headers["content-type"] == "application/json"


def _chunks(text: str) -> list[dict[str, Any]]:
    lines = (line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: {"))
    chunks = [json.loads(line) for line in lines]
    for chunk in chunks:
        check_chunk(chunk)
    return chunks


_count = iter(range(1, 1_000_000))


def user_message(text: str, message_id: str | None = None) -> dict[str, Any]:
    """Return a user's message as useChat sends it."""
    return {
        "id": message_id or f"user-{next(_count)}",
        "role": "user",
        "parts": [{"type": "text", "text": text}],
    }


def user_by_header(request: HTTPConnection) -> str | None:
    """Name the user by a header, as behind a proxy that authenticates."""
    return request.headers.get("x-user", "alice")


@asynccontextmanager
async def staged(
    *,
    settings: Settings | None = None,
    rules: Mapping[str, ToolRule] | None = None,
    services: Services | None = None,
    stores: Stores | None = None,
    cut_off: bool = False,
    may_decide: MayDecide | None = None,
    identify: Identify = user_by_header,
    checked: bool = True,
) -> AsyncIterator[Stage]:
    """Serve a stage with uvicorn on loopback.

    What still waits at the end may go on then; or, to be cut off, only when the server has ended.
    Before that its chats are checked, unless they are not to be asked for.
    """
    stage = Stage()
    stage.model = ScriptedModel(script=stage.script())
    agent = LlmAgent(name="stage", model=stage.model, tools=list(stage.tools()))
    drain = 0.05 if cut_off else 20.0
    app = create_app(
        agent,
        tools=rules,
        identify=identify,
        settings=settings
        or dataclasses.replace(Settings(), keep_alive_seconds=5.0, drain_seconds=drain),
        services=services,
        stores=stores,
        may_decide=may_decide,
    )
    try:
        async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
            stage.url, stage.http = url, http
            try:
                yield stage
                if checked and not cut_off:
                    await check_chats(http)
            finally:
                if not cut_off:
                    stage.go_on()
    finally:
        stage.go_on()
