"""A live chat's socket, from the person's side: frames as `WebSocketChatTransport` writes them.

Blocking, on a plain socket: see `faults.user`.
"""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

__all__ = ["Line"]

_LAST: Final = frozenset({"end", "error", "no-active"})


class Line:
    """An open socket to one server."""

    def __init__(self, port: int, user: str, patience: float) -> None:
        self.port = port
        self._patience = patience
        self._numbers = itertools.count(1)
        self._protocol = ClientProtocol(
            parse_uri(f"ws://127.0.0.1:{port}/api/chat/live"), max_size=None
        )
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=patience)
        request = self._protocol.connect()
        request.headers["x-user"] = user
        self._protocol.send_request(request)
        self._write()
        opened = next(self._events())
        assert isinstance(opened, Response)
        assert opened.status_code == 101, opened

    def ask(self, kind: str, chat: str, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request and yield its frames, the last one included.

        Raises:
            TimeoutError: they do not end.
            OSError: the socket was cut.
        """
        return self.frames(self.send(kind, chat, body))

    def send(self, kind: str, chat: str, body: Mapping[str, Any]) -> str:
        """Send a request; return its name."""
        name = f"request-{next(self._numbers)}"
        asked = {"type": kind, "requestId": name, "id": chat, **body}
        self._protocol.send_text(json.dumps(asked).encode())
        self._write()
        return name

    def frames(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield the frames of a request, the last one included; raises as `ask` does."""
        due = time.monotonic() + self._patience
        for event in self._events():
            if time.monotonic() > due:
                raise TimeoutError("the reply does not end")
            assert isinstance(event, Frame)
            if event.opcode is not Opcode.TEXT:
                continue
            frame = json.loads(bytes(event.data))
            if frame["requestId"] == name:
                yield frame
                if frame["type"] in _LAST:
                    return

    def close(self) -> None:
        """Leave, as a closed tab does."""
        self._socket.close()

    def _events(self) -> Iterator[object]:
        while True:
            yield from self._protocol.events_received()
            data = self._socket.recv(65536)
            if not data:
                raise ConnectionResetError("the socket was cut")
            self._protocol.receive_data(data)
            # An answer to a ping.
            self._write()

    def _write(self) -> None:
        for data in self._protocol.data_to_send():
            self._socket.sendall(data)
