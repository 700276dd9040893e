"""A loopback Gemini for tests: real HTTP, scripted replies, recorded requests.

Speaks the unary API of Google's `v1beta`, streaming and not, so that ADK's own `Gemini` model can
be driven without a network. It knows nothing about our code or about ADK.

    async with serve_gemini([[text("Hello"), finish()]]) as gemini:
        model = Gemini(model="gemini-2.5-flash", base_url=gemini.base_url,
                       client_kwargs={"api_key": "fake"})
"""

import json
import re
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio.to_thread
import uvicorn
from pydantic import JsonValue

__all__ = [
    "CUT",
    "Chunk",
    "Cut",
    "GeminiEmulator",
    "GeminiRequest",
    "HttpError",
    "Reply",
    "call",
    "finish",
    "http_error",
    "serve_gemini",
    "text",
    "thought",
]

Chunk: TypeAlias = dict[str, JsonValue]
"""One `GenerateContentResponse`, as it goes over the wire."""


@dataclass(frozen=True)
class Cut:
    """Breaks the connection here, in the middle of the reply."""


CUT = Cut()


@dataclass(frozen=True)
class HttpError:
    """A reply that is an error and nothing else."""

    status: int
    reason: str
    message: str


Reply: TypeAlias = Sequence[Chunk | Cut] | HttpError
"""What one request is answered with."""


@dataclass(frozen=True)
class GeminiRequest:
    """One request, as it came over the wire."""

    model: str
    streaming: bool
    api_key: str
    body: dict[str, Any]

    @property
    def contents(self) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = self.body.get("contents", [])
        return contents

    @property
    def tool_names(self) -> list[str]:
        """The names of the functions offered, in order."""
        return [
            declaration["name"]
            for tool in self.body.get("tools", [])
            for declaration in tool.get("functionDeclarations", [])
        ]


def text(words: str) -> Chunk:
    """Return a chunk with a piece of the answer."""
    return _chunk({"text": words})


def thought(words: str) -> Chunk:
    """Return a chunk with a piece of a thought summary."""
    return _chunk({"text": words, "thought": True})


def call(name: str, args: dict[str, JsonValue], call_id: str | None = None) -> Chunk:
    """Return a chunk with a whole function call; Gemini itself seldom gives an id."""
    function_call: dict[str, JsonValue] = {"name": name, "args": args}
    if call_id is not None:
        function_call["id"] = call_id
    return _chunk({"functionCall": function_call})


def finish(reason: str = "STOP", *, prompt_tokens: int = 10, answer_tokens: int = 5) -> Chunk:
    """Return the chunk that ends a reply, with its usage."""
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": ""}]},
                "finishReason": reason,
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": prompt_tokens,
            "candidatesTokenCount": answer_tokens,
            "totalTokenCount": prompt_tokens + answer_tokens,
        },
        "modelVersion": "gemini-emulated",
    }


def http_error(
    status: int = 503,
    reason: str = "UNAVAILABLE",
    message: str = "The model is overloaded. Please try again later.",
) -> HttpError:
    """Return a reply with Gemini's own error body."""
    return HttpError(status, reason, message)


Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass
class GeminiEmulator:
    """Answers each request with the next reply of the script; an ASGI application."""

    script: list[Reply]
    base_url: str
    requests: list[GeminiRequest] = field(default_factory=list)  # in the order they came

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        address = re.fullmatch(
            r"/v1beta/models/(?P<model>[^:]+):(?P<method>streamGenerateContent|generateContent)",
            scope["path"],
        )
        if address is None or scope["method"] != "POST":
            unknown = f"No such method: {scope['method']} {scope['path']}"
            await _send_error(send, HttpError(404, "NOT_FOUND", unknown))
            return
        headers = dict(scope["headers"])
        request = GeminiRequest(
            model=address["model"],
            streaming=address["method"] == "streamGenerateContent",
            api_key=headers.get(b"x-goog-api-key", b"").decode(),
            body=json.loads(await _read_body(receive)),
        )
        self.requests.append(request)
        await _send_reply(send, self._next_reply(), streaming=request.streaming)

    def _next_reply(self) -> Reply:
        number = len(self.requests)
        if number > len(self.script):
            # 400: a client that retries does so for 5xx, which would hide the mistake.
            told = f"The script has {len(self.script)} replies; this is request {number}."
            return HttpError(400, "FAILED_PRECONDITION", told)
        return self.script[number - 1]


@asynccontextmanager
async def serve_gemini(script: Sequence[Reply]) -> AsyncGenerator[GeminiEmulator, None]:
    """Serve the script on a free port of 127.0.0.1, from a thread of its own.

    Ready when entered; when left, the port is closed and the thread has ended.
    """
    # Bound and listening before the server runs: a client that comes early waits in the backlog.
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    emulator = GeminiEmulator(list(script), f"http://127.0.0.1:{port}")
    config = uvicorn.Config(
        emulator,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        # A client that is still reading must not hold up the end of a test.
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [listener]}, name="gemini-emulator", daemon=True
    )
    thread.start()
    try:
        yield emulator
    finally:
        server.should_exit = True
        with anyio.move_on_after(5, shield=True):
            await anyio.to_thread.run_sync(thread.join)
        listener.close()


# ADK's Gemini never closes its HTTP client; an idle connection of it would outlive the test and
# be reported as a leak.
_CLOSE = (b"connection", b"close")


def _chunk(part: JsonValue) -> Chunk:
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}],
        "modelVersion": "gemini-emulated",
    }


async def _read_body(receive: Receive) -> bytes:
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


async def _send_reply(send: Send, reply: Reply, *, streaming: bool) -> None:
    if isinstance(reply, HttpError):
        await _send_error(send, reply)
    elif streaming:
        await _send_stream(send, reply)
    else:
        await _send_json(send, 200, _merged(reply))


async def _send_stream(send: Send, reply: Sequence[Chunk | Cut]) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream"), _CLOSE],
        }
    )
    for chunk in reply:
        if isinstance(chunk, Cut):
            # A response that returns unfinished makes uvicorn close the connection.
            return
        line = f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
        await send({"type": "http.response.body", "body": line.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _send_error(send: Send, error: HttpError) -> None:
    detail: Chunk = {
        "error": {"code": error.status, "message": error.message, "status": error.reason}
    }
    await _send_json(send, error.status, detail)


async def _send_json(send: Send, status: int, body: Chunk) -> None:
    headers = [(b"content-type", b"application/json; charset=UTF-8"), _CLOSE]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def _merged(reply: Sequence[Chunk | Cut]) -> Chunk:
    """Return the chunks of a reply as the one response of the method that does not stream."""
    merged: dict[str, Any] = {}
    parts: list[JsonValue] = []
    for chunk in reply:
        assert not isinstance(chunk, Cut), "only a stream can be cut"
        candidate: dict[str, Any] = json.loads(json.dumps(chunk))["candidates"][0]
        parts.extend(part for part in candidate["content"]["parts"] if part != {"text": ""})
        merged.update(chunk)
    last: dict[str, Any] = dict(merged["candidates"][0])
    return {**merged, "candidates": [{**last, "content": {"role": "model", "parts": parts}}]}
