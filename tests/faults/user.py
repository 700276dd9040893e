"""A person at a client: what is said, heard, decided, and seen after a reload.

Blocking, on plain sockets: the process that plays the person also forks servers, and must have no
threads and no event loop.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, Final

from faults.case import Over
from faults.line import Line

__all__ = ["Cut", "Heard", "Hung", "Json", "Stream", "User"]

_LONGEST: Final = 40.0
"""Seconds after which a server that has not answered, or a reply that has not ended, hangs."""

Json = dict[str, Any]


class Cut(Exception):
    """The connection broke before the whole answer was there."""


class Hung(Exception):
    """There is a server, but it does not answer, or its reply does not end."""


@dataclass
class Heard:
    """What came of a request for a stream."""

    status: int
    chunks: list[Json] = field(default_factory=list)
    done: bool = False
    """The stream ended as it should."""
    body: str = ""
    """What a refusal said."""

    @property
    def text(self) -> str:
        """All text."""
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")


class Stream:
    """A reply that is read bit by bit, while other requests are made."""

    def __init__(
        self, heard: Heard, pieces: Generator[object, None, None], leave: Callable[[], None]
    ) -> None:
        self.heard = heard
        # Each adds to what was heard.
        self._pieces = pieces
        self._leave = leave

    def begin(self) -> int:
        """Return the status, once there is one; 0: it was cut."""
        while not self.heard.status and self._read():
            pass
        return self.heard.status

    def until(self, text: str) -> bool:
        """Read until a chunk holds this text; False: it ended, or was cut."""
        while not any(text in json.dumps(chunk) for chunk in self.heard.chunks):
            if not self._read():
                return False
        return True

    def rest(self) -> Heard:
        """Read to the end, or the cut."""
        while self._read():
            pass
        return self.heard

    def leave(self) -> None:
        """Hang up."""
        self._pieces.close()
        self._leave()

    def _read(self) -> bool:
        try:
            return next(self._pieces, None) is not None
        except TimeoutError as error:
            raise Hung("a stream") from error
        except (OSError, HTTPException):
            self.heard.done = False
            return False


@dataclass
class User:
    """One user with one chat."""

    name: str
    chat: str
    port: int
    """Of the server that lives now."""
    over: Over = "sse"
    _line: Line | None = None
    """The open socket; None: there is none."""

    # Streams

    def say(self, text: str, message_id: str) -> Heard:
        """Send a message and listen until the reply ends or is cut."""
        message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
        return self._send({"id": self.chat, "messages": [message]})

    def resume(self) -> Heard:
        """Listen to the newest reply from its beginning."""
        if self.over == "sse":
            return self._listen("GET", f"/api/chat/{self.chat}/stream")
        return self._talk("resume", {})

    def answer(self, message: Json, verdict: bool) -> Heard:
        """Send a message back with its approvals answered, as a stock client does."""
        return self._send(self.answering(message, verdict))

    def answering(self, message: Json, verdict: bool) -> Json:
        """Return the request that answers a message's approvals."""
        parts = [_answered(part, verdict) for part in message["parts"]]
        return {
            "id": self.chat,
            "trigger": "submit-message",
            "messageId": message["id"],
            "messages": [{**message, "parts": parts}],
        }

    def send(self, body: Json) -> Stream:
        """Send a request over a connection of its own; the reply is read later."""
        body = {"id": self.chat, "trigger": "submit-message", **body}
        heard = Heard(0)
        if self.over == "sse":
            connection = self._connect("POST", "/api/chat", body)
            return Stream(heard, _read(connection, heard), connection.close)
        line = Line(self.port, self.name, _LONGEST)
        frames = line.frames(line.send("send", self.chat, body))
        return Stream(heard, (_hear(frame, heard) for frame in frames), line.close)

    def leave(self) -> None:
        """Close the socket, if one is open."""
        if self._line is not None:
            self._line.close()
            self._line = None

    # Plain requests; each raises `Cut`

    def decide(self, approval_id: str, verdict: bool, decision_id: str | None = None) -> int:
        """Decide away from the chat; return the status."""
        body = {"approved": verdict, **({"decisionId": decision_id} if decision_id else {})}
        return self._ask("POST", f"/api/approvals/{approval_id}", body)[0]

    def stop(self) -> int:
        """Stop what runs and what waits; return the status."""
        return self._ask("POST", f"/api/chat/{self.chat}/stop")[0]

    def approvals(self) -> list[Json]:
        """Return the approvals of this user: all are of the one chat."""
        found: list[Json] = self._ask("GET", "/api/approvals")[1]["approvals"]
        return found

    def messages(self) -> list[Json]:
        """Return the chat's messages; none if there is no chat yet."""
        status, shown = self._ask("GET", f"/api/chats/{self.chat}")
        found: list[Json] = shown["messages"] if status == 200 else []
        return found

    def rows(self) -> Json:
        """Return the chat's rows, from the database itself, and how many live runs go on."""
        found: Json = self._ask("GET", f"/faults/rows?chat={self.chat}")[1]
        return found

    def trap(self, kill: Mapping[str, Any] | None) -> Json:
        """Set the server's trap; return what the last one has seen."""
        return dict(self._ask("POST", "/faults/trap", kill)[1])

    def modules(self) -> list[str]:
        """Return what the server has imported by now."""
        return list(self._ask("GET", "/faults/modules")[1])

    # Underneath

    def _send(self, body: Json) -> Heard:
        if self.over == "sse":
            return self._listen("POST", "/api/chat", body)
        return self._talk("send", {"trigger": "submit-message", **body})

    def _talk(self, kind: str, body: Json) -> Heard:
        """Ask over the socket; one that was cut is opened anew by the next who asks."""
        heard = Heard(0)
        try:
            if self._line is None or self._line.port != self.port:
                self.leave()
                self._line = Line(self.port, self.name, _LONGEST)
            for frame in self._line.ask(kind, self.chat, body):
                _hear(frame, heard)
        except TimeoutError as error:
            raise Hung(kind) from error
        except OSError:
            self.leave()
        if self.over == "left":
            self.leave()
        return heard

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        try:
            with self._open(method, path, body) as response:
                return response.status, json.loads(response.read())
        except TimeoutError as error:
            raise Hung(f"{method} {path}") from error
        except (OSError, HTTPException) as error:
            raise Cut(f"{method} {path}") from error

    def _listen(self, method: str, path: str, body: Any = None) -> Heard:
        heard = Heard(0)
        try:
            with self._open(method, path, body) as response:
                for _ in _pieces_of(response, heard):
                    pass
        except TimeoutError as error:
            raise Hung(f"{method} {path}") from error
        except (OSError, HTTPException):
            heard.done = False
        return heard

    def _open(self, method: str, path: str, body: Any) -> HTTPResponse:
        return self._connect(method, path, body).getresponse()

    def _connect(self, method: str, path: str, body: Any) -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_LONGEST)
        headers = {"x-user": self.name, "content-type": "application/json", "connection": "close"}
        connection.request(method, path, json.dumps(body).encode(), headers)
        return connection


def _read(connection: HTTPConnection, heard: Heard) -> Generator[Heard, None, None]:
    with connection.getresponse() as response:
        yield from _pieces_of(response, heard)


def _pieces_of(response: HTTPResponse, heard: Heard) -> Iterator[Heard]:
    """Yield what was heard, as it grows."""
    heard.status = response.status
    yield heard
    if response.status != 200:
        heard.body, heard.done = response.read().decode(), True
        return
    for data in _events(response):
        heard.done = data == "[DONE]"
        if not heard.done:
            heard.chunks.append(json.loads(data))
        yield heard


def _hear(frame: Json, heard: Heard) -> Heard:
    match frame["type"]:
        case "start":
            heard.status = 200
        case "chunk":
            heard.chunks.append(frame["chunk"])
        case "end":
            heard.done = True
        case "no-active":
            heard.status, heard.done = 204, True
        case "error":
            # A socket has no statuses; only what broke has an id.
            heard.status = 500 if "(error " in frame["errorText"] else 409
            heard.body, heard.done = frame["errorText"], True
    return heard


def _events(response: HTTPResponse) -> Iterator[str]:
    due = time.monotonic() + _LONGEST
    for line in response:
        if time.monotonic() > due:
            raise TimeoutError("the reply does not end")
        if line.startswith(b"data: "):
            yield line.decode().removeprefix("data: ").strip()


def _answered(part: Json, verdict: bool) -> Json:
    if part.get("state") != "approval-requested":
        return part
    approval = {**part["approval"], "approved": verdict}
    return {**part, "state": "approval-responded", "approval": approval}
