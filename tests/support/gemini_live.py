"""A loopback Gemini Live for tests: real WebSockets over TLS, scripted, all messages recorded.

Speaks `BidiGenerateContent` of `v1alpha`, so that ADK's own `Gemini` model can be driven live
through the real google-genai client. It knows nothing about our code. It runs in the event loop
of the test, so a script can wait for the test's events and the test for the script's.

    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        results = await connection.call_tools(call("add", {"a": 1, "b": 2}))
        await connection.say(f"It is {results}.")

    async with gemini_live(script) as server:
        agent = LlmAgent(name="root", model=server.model(), tools=[add])

The first connection plays the first script, and so on; `then` plays all further ones. A script
that has ended leaves its connection open and silent. `steps` makes a script from a list, and
`support.gemini_live_brain` has one that answers by rules.
"""

import itertools
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeAlias

import anyio
from google import genai
from google.adk.models.google_llm import Gemini
from google.genai.types import HttpOptions
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from support.certificate import Certificate, loopback_certificate
from support.gemini_live_wire import (
    GENERATION_COMPLETE,
    INTERRUPTED,
    TURN_COMPLETE,
    Frame,
    FunctionCall,
    Message,
    resumption,
    text,
    tool_call,
    usage,
)

__all__ = [
    "CUT",
    "GEMINI_2",
    "GEMINI_3",
    "INVALID_HANDLE",
    "PROMPT",
    "RESULTS",
    "SESSION_NOT_FOUND",
    "Close",
    "Cut",
    "GeminiLive",
    "LiveConnection",
    "Prompt",
    "Script",
    "Step",
    "Take",
    "Until",
    "gemini_live",
    "steps",
]

# ADK tells the generations apart by the name.
GEMINI_2 = "gemini-live-2.5-flash-preview"
GEMINI_3 = "gemini-3.1-flash-live-preview"

_ADDRESS = "/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContent"

# What ADK sends a 3.x model after a history that ends with the user, to have it answered.
_TRIGGER = "."


@dataclass(frozen=True)
class Close:
    """Ends the connection with a close frame."""

    code: int = 1011
    reason: str = "Internal error encountered."


SESSION_NOT_FOUND = Close(1008, "BidiGenerateContent session not found")
INVALID_HANDLE = Close(1007, "Invalid session handle")


@dataclass(frozen=True)
class Cut:
    """Breaks the connection without a close frame; the client sees 1006."""


@dataclass(frozen=True)
class Take:
    """Waits for something of the client: a `prompt`, or the `results` of calls."""

    what: str


@dataclass(frozen=True)
class Until:
    """Waits for an event of the test."""

    event: anyio.Event


CUT = Cut()
PROMPT = Take("prompt")
RESULTS = Take("results")

Step: TypeAlias = Frame | Close | Cut | Take | Until


@dataclass(frozen=True)
class Prompt:
    """Something of the client that the model answers."""

    text: str = ""  # empty when the user spoke, or when a history ends with results
    results: dict[str, Any] = field(default_factory=dict)  # of a history that ends with them
    audio: bytes = b""  # what came since the last prompt


class LiveConnection:
    """One socket of a client, from its setup on. Scripts act on it; tests look at it."""

    def __init__(
        self,
        socket: ServerConnection,
        setup: dict[str, Any],
        *,
        number: int,
        new_handle: Callable[[], str],
    ) -> None:
        self._socket = socket
        self._new_handle = new_handle
        # Arrived and not yet taken by the script.
        self._pending: list[Message] = []
        # Set and replaced with each message.
        self._news = anyio.Event()
        self._calls = 0
        self.setup = setup
        self.number = number  # 1 for the first of the server
        self.messages: list[Message] = []  # all after the setup, in the order they came
        self.refused = False  # whether its resumption was
        self.closed = anyio.Event()

    @property
    def api_key(self) -> str:
        assert self._socket.request is not None
        return self._socket.request.headers.get("x-goog-api-key", "")

    @property
    def generation(self) -> int:
        """2 or 3, by the model the setup asks for."""
        return 3 if self.setup["model"].removeprefix("models/").startswith("gemini-3") else 2

    @property
    def handle(self) -> str | None:
        """The handle that the client resumes with; None starts anew."""
        handle: str | None = self.setup.get("sessionResumption", {}).get("handle")
        return handle

    @property
    def close_code(self) -> int | None:
        """The code of the close frame; None while open."""
        return self._socket.close_code

    @property
    def history(self) -> list[dict[str, Any]]:
        """The contents that the client replayed when it connected."""
        if "historyConfig" not in self.setup or not self.messages:
            return []
        return self.messages[0].turns

    async def send(self, *frames: Frame) -> None:
        for frame in frames:
            # Gemini sends its JSON in binary frames.
            await self._socket.send(json.dumps(frame, ensure_ascii=False).encode())

    async def say(self, *pieces: str) -> None:
        """Send an answer and the end of the turn."""
        await self.send(*map(text, pieces))
        await self.end_turn()

    async def end_turn(self) -> None:
        await self.send(GENERATION_COMPLETE, {**TURN_COMPLETE, **usage()})

    async def offer_resumption(self) -> str:
        """Send a handle that a later connection can resume with, and return it."""
        handle = self._new_handle()
        await self.send(resumption(handle))
        return handle

    async def interrupt(self) -> None:
        await self.send(INTERRUPTED, TURN_COMPLETE)

    async def call_tools(self, *calls: FunctionCall) -> dict[str, Any]:
        """Send calls and return call id -> response when all have come."""
        return await self.results_of(await self.send_calls(*calls))

    async def send_calls(self, *calls: FunctionCall) -> list[str]:
        """Send calls in one `toolCall`; return their ids.

        A 2.x model ends its turn with the calls, a 3.x model after the answer to the results.
        """
        numbered = [{"id": self._next_id(), **function_call} for function_call in calls]
        await self.send(tool_call(*numbered))
        if self.generation == 2:
            await self.send(GENERATION_COMPLETE, TURN_COMPLETE)
        return [str(function_call["id"]) for function_call in numbered]

    async def results_of(self, call_ids: Sequence[str]) -> dict[str, Any]:
        """Take responses until each of the calls has one: call id -> response."""
        results: dict[str, Any] = {}
        while not results.keys() >= set(call_ids):
            results |= await self.results()
        return results

    async def prompt(self) -> Prompt:
        """Take the next message that the model answers; others stay."""
        message = await self._until(self._is_prompt, self._pending)
        speech = self._take_speech(message)
        await self._take(lambda other: other is message)
        if message.text == _TRIGGER and self.history:
            message = self.messages[0]
        return Prompt(message.text, message.results, speech)

    async def prompted(self) -> None:
        """Wait until there is something to answer, or the user begins to speak; take nothing."""
        await self._until(lambda m: self._is_prompt(m) or "activityStart" in m.body, self._pending)

    async def results(self) -> dict[str, Any]:
        """Take the next `toolResponse`: call id -> response."""
        return (await self._take(lambda message: message.kind == "toolResponse")).results

    async def seen(self, wanted: Callable[[Message], bool]) -> Message:
        """Return the first message that fits, waiting for it; taken or not."""
        return await self._until(wanted, self.messages)

    async def close(self, close: Close | None = None) -> None:
        close = close or Close()
        await self._socket.close(close.code, close.reason)

    def cut(self) -> None:
        self._socket.transport.abort()

    async def read(self) -> None:
        """Record what comes until the client is gone. For the server."""
        with suppress(ConnectionClosed):
            async for raw in self._socket:
                message = Message.read(raw)
                self.messages.append(message)
                self._pending.append(message)
                self._news.set()
                self._news = anyio.Event()
        self.closed.set()

    def _is_prompt(self, message: Message) -> bool:
        if message.kind == "realtimeInput":
            return bool(message.text) or message.ends_speech
        if self.generation == 3 and self.history and message is self.messages[0]:
            # A 3.x model takes the replayed history in, and says nothing to it.
            return False
        return message.kind == "clientContent" and bool(message.body.get("turnComplete"))

    async def _take(self, wanted: Callable[[Message], bool]) -> Message:
        message = await self._until(wanted, self._pending)
        self._pending[:] = [other for other in self._pending if other is not message]
        return message

    async def _until(self, wanted: Callable[[Message], bool], among: list[Message]) -> Message:
        while True:
            for message in among:
                if wanted(message):
                    return message
            await self._news.wait()

    def _take_speech(self, end: Message) -> bytes:
        """Take what was spoken up to a message, with the signs of its beginning."""
        before = itertools.takewhile(lambda message: message is not end, self._pending)
        spoken = [message for message in before if message.kind == "realtimeInput"]
        # By identity: a user who is silent sends the same frame again and again.
        taken = {id(message) for message in spoken}
        self._pending[:] = [message for message in self._pending if id(message) not in taken]
        return b"".join(message.audio for message in spoken)

    def _next_id(self) -> str:
        self._calls += 1
        return f"function-call-{self.number}-{self._calls}"


Script: TypeAlias = Callable[[LiveConnection], Awaitable[None]]
"""What the model does on one connection, once its setup is accepted."""


def steps(*sequence: Step) -> Script:
    """Return a script that does one step after the other; frames are sent."""

    async def play(connection: LiveConnection) -> None:
        for step in sequence:
            await _do(connection, step)

    return play


async def _do(connection: LiveConnection, step: Step) -> None:
    match step:
        case Close():
            await connection.close(step)
        case Cut():
            connection.cut()
        case Take("prompt"):
            await connection.prompt()
        case Take():
            await connection.results()
        case Until(event):
            await event.wait()
        case frame:
            await connection.send(frame)


class GeminiLive:
    """The server: which connections there were, and a model that connects to it."""

    def __init__(
        self, scripts: Sequence[Script], then: Script | None, address: str, trust: Certificate
    ) -> None:
        self._scripts = list(scripts)
        # None refuses every connection beyond the scripts.
        self._then = then
        # Set and replaced with each connection.
        self._news = anyio.Event()
        self._numbers = itertools.count(1)
        # The handles that can be resumed with.
        self._handles: set[str] = set()
        self.base_url = address
        self.certificate = trust
        self.connections: list[LiveConnection] = []  # also the refused, in the order they came
        self.failures: list[Exception] = []  # of scripts; raised when the server is left
        self.refusal = SESSION_NOT_FOUND  # how an unknown handle is turned away

    def model(self, name: str = GEMINI_2, **socket: Any) -> Gemini:
        """Return ADK's own model, connecting here; `socket` is for `websockets.connect`.

        The name decides the order on the wire. `max_queue=4096` lets the client read on while
        a call is held; its default of 16 frames does not.
        """
        options = HttpOptions(
            base_url=self.base_url,
            api_version="v1alpha",
            async_client_args={"ssl": self.certificate.client_context(), "proxy": None, **socket},
        )
        return Gemini(model=name, client=genai.Client(api_key="fake", http_options=options))

    async def connection(self, number: int) -> LiveConnection:
        """Return the connection with this number, 1 for the first, once it is set up."""
        while len(self.connections) < number:
            await self._news.wait()
        return self.connections[number - 1]

    def forget_sessions(self, refusal: Close = SESSION_NOT_FOUND) -> None:
        """Refuse every handle given so far, from now on and this way."""
        self._handles.clear()
        self.refusal = refusal

    def _new_handle(self) -> str:
        handle = f"handle-{next(self._numbers)}"
        self._handles.add(handle)
        return handle

    async def serve(self, socket: ServerConnection) -> None:
        """Play a connection to its end."""
        with suppress(ConnectionClosed):
            setup = Message.read(await socket.recv())
            assert setup.kind == "setup", f"the first message is {setup.kind}"
            number = len(self.connections) + 1
            connection = LiveConnection(
                socket, setup.body, number=number, new_handle=self._new_handle
            )
            script = self._script_for(connection)
            self.connections.append(connection)
            self._news.set()
            self._news = anyio.Event()
            if isinstance(script, Close):
                connection.refused = True
                await connection.close(script)
                connection.closed.set()
                return
            await self._accept(connection)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._play, script, connection)
                await connection.read()
                tasks.cancel_scope.cancel()

    def _script_for(self, connection: LiveConnection) -> Script | Close:
        if connection.handle and connection.handle not in self._handles:
            return self.refusal
        played = sum(not other.refused for other in self.connections)
        if played < len(self._scripts):
            return self._scripts[played]
        told = f"There are {len(self._scripts)} scripts; this is connection {played + 1}."
        return self._then or Close(1008, told)

    async def _accept(self, connection: LiveConnection) -> None:
        await connection.send({"setupComplete": {"sessionId": f"session-{connection.number}"}})
        if "sessionResumption" in connection.setup:
            await connection.offer_resumption()

    async def _play(self, script: Script, connection: LiveConnection) -> None:
        with suppress(ConnectionClosed):
            try:
                await script(connection)
            except ConnectionClosed:
                raise
            except Exception as failure:
                self.failures.append(failure)
                raise


@asynccontextmanager
async def gemini_live(
    *scripts: Script, then: Script | None = None
) -> AsyncGenerator[GeminiLive, None]:
    """Serve the scripts on a free port of 127.0.0.1; what a script raises is raised at the end."""
    listener = socket.create_server(("127.0.0.1", 0))
    with loopback_certificate() as certificate:
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        server = GeminiLive(scripts, then, address, certificate)
        async with serve(
            server.serve,
            sock=listener,
            ssl=certificate.server_context(),
            process_request=_only_live,
            compression=None,
            # Gemini's server was not seen to ping; a client's own pings are its own affair.
            ping_interval=None,
            # A client that does not answer must not hold up the end of a test.
            close_timeout=1,
            max_size=None,
        ):
            yield server
    if server.failures:
        raise ExceptionGroup("a script of the emulator failed", server.failures)


def _only_live(connection: ServerConnection, request: Request) -> Response | None:
    if request.path == _ADDRESS:
        return None
    return connection.respond(HTTPStatus.NOT_FOUND, f"No such method: {request.path}\n")
