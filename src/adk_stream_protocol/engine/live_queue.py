"""What is sent to the model of a live run: bounded, and aware of lost connections."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping

import anyio
from google.adk.agents.live_request_queue import LiveRequest, LiveRequestQueue
from google.genai import types
from typing_extensions import override

from adk_stream_protocol.errors import TooMany

__all__ = ["LiveQueue"]


class LiveQueue(LiveRequestQueue):
    """ADK's own queue has no bound, and nobody can see from it that ADK connects anew."""

    def __init__(self, bound: int, lost: Callable[[], None], names: Mapping[str, str]) -> None:
        super().__init__()
        self._bound = bound
        # Tells that ADK has made another connection.
        self._lost = lost
        self._requests: deque[LiveRequest] = deque()
        self._more = anyio.Event()
        self._is_closed = False
        # ADK reads in a task of each connection; None before the first.
        self._reader: object = None
        # The model's own names of calls that had to be renamed.
        self._names = names

    @property
    @override
    def closed(self) -> bool:
        return self._is_closed

    @override
    def close(self) -> None:
        self._is_closed = True
        self._put(LiveRequest(close=True))

    @override
    def send(self, req: LiveRequest) -> None:
        if req.close:
            self._is_closed = True
        self._put(req)

    @override
    def send_content(self, content: types.Content, partial: bool = False) -> None:
        self._put(LiveRequest(content=self._named(content), partial=partial))

    @override
    def send_realtime(self, blob: types.Blob) -> None:
        """Send a piece of sound; the oldest that waits is dropped if there are too many."""
        self._put(LiveRequest(blob=blob))

    @override
    def send_activity_start(self) -> None:
        self._put(LiveRequest(activity_start=types.ActivityStart()))

    @override
    def send_activity_end(self) -> None:
        self._put(LiveRequest(activity_end=types.ActivityEnd()))

    @override
    def send_audio_stream_end(self) -> None:
        self._put(LiveRequest(audio_stream_end=True))

    @override
    async def get(self) -> LiveRequest:
        last, self._reader = self._reader, asyncio.current_task()
        if last is not None and last is not self._reader:
            self._lost()
        while not self._requests:
            await self._more.wait()
        return self._requests.popleft()

    def _put(self, request: LiveRequest) -> None:
        if len(self._requests) >= self._bound:
            self._drop_sound()
        # ADK itself sends the results of tools, and breaks if it cannot.
        is_result = request.content is not None and _is_response(request.content)
        if len(self._requests) >= self._bound and not request.close and not is_result:
            raise TooMany("The model takes no more right now. Wait a moment, then send again.")
        self._requests.append(request)
        more, self._more = self._more, anyio.Event()
        more.set()

    def _drop_sound(self) -> None:
        for index, request in enumerate(self._requests):
            if request.blob is not None:
                del self._requests[index]
                return

    def _named(self, content: types.Content) -> types.Content:
        """Return results under the names that the model itself gave to its calls."""
        parts = content.parts or []
        if not self._names or not _is_response(content):
            return content
        return types.Content(role=content.role, parts=[self._renamed(part) for part in parts])

    def _renamed(self, part: types.Part) -> types.Part:
        response = part.function_response
        name = None if response is None else self._names.get(response.id or "")
        if response is None or name is None:
            return part
        return part.model_copy(
            update={"function_response": response.model_copy(update={"id": name})}
        )


def _is_response(content: types.Content) -> bool:
    return any(part.function_response is not None for part in content.parts or [])
