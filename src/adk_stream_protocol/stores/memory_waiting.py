"""Requests that wait for their chats, in a list: for tests and demos that may be thrown away."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence

from adk_stream_protocol.identifiers import ChatId, ReplyId
from adk_stream_protocol.ports import WaitingRequest

__all__ = ["MemoryWaiting"]


class MemoryWaiting:
    """The requests that wait, in the order in which they came."""

    def __init__(
        self,
        is_busy: Callable[[ChatId], bool],
        is_running: Callable[[ReplyId], bool],
        note: Callable[[WaitingRequest, ReplyId | None], None],
    ) -> None:
        # Whether a turn runs in a chat, or has lapsed there.
        self._is_busy = is_busy
        # Whether a reply's turn runs.
        self._is_running = is_running
        # Notes which reply answers a request; None: none does.
        self._note = note
        self._requests: dict[ReplyId, WaitingRequest] = {}

    async def get(self, reply_id: ReplyId) -> WaitingRequest | None:
        return self._requests.get(reply_id)

    async def of_chat(self, chat_id: ChatId) -> Sequence[WaitingRequest]:
        return self.that_wait(chat_id)

    async def chats(self) -> Sequence[ChatId]:
        chats = dict.fromkeys(
            request.chat_id for request in self._requests.values() if request.taken_in is None
        )
        return [chat_id for chat_id in chats if not self._is_busy(chat_id)]

    async def steer(
        self, chat_id: ChatId, reply_id: ReplyId, *, carries: ReplyId
    ) -> Sequence[WaitingRequest]:
        taken = [
            dataclasses.replace(request, taken_in=carries)
            for request in self.that_wait(chat_id)
            if _steers(request) and self._is_running(reply_id)
        ]
        self._put(taken)
        for request in taken:
            self._note(request, reply_id)
        return taken

    async def carried(self, reply_id: ReplyId) -> Sequence[WaitingRequest]:
        return [request for request in self._requests.values() if request.taken_in == reply_id]

    async def put_back(self, reply_id: ReplyId, requests: Collection[ReplyId]) -> None:
        self._put_back([one for one in await self.carried(reply_id) if one.reply_id in requests])

    async def stop(self, chat_id: ChatId, *, reply_id: ReplyId | None = None) -> int:
        stopped = [
            request
            for request in self.that_wait(chat_id)
            if not request.stopping and reply_id in {None, request.reply_id}
        ]
        self._put(dataclasses.replace(request, stopping=True) for request in stopped)
        return len(stopped)

    # For the turns

    def steers(self, chat_id: ChatId) -> bool:
        """Whether requests wait to steer a chat's turn."""
        return any(map(_steers, self.that_wait(chat_id)))

    def that_wait(self, chat_id: ChatId) -> list[WaitingRequest]:
        """Return the requests that wait for a chat, in order."""
        return [
            request
            for request in self._requests.values()
            if request.chat_id == chat_id and request.taken_in is None
        ]

    def add(self, request: WaitingRequest) -> None:
        """Let a request wait behind all others; those that it interrupts are stopped."""
        if request.policy == "interrupt":
            self._put(
                dataclasses.replace(other, stopping=True)
                for other in self.that_wait(request.chat_id)
                if other.policy == "interrupt"
            )
        self._requests[request.reply_id] = request

    def take(self, reply_id: ReplyId) -> WaitingRequest | None:
        """Take a request for its own reply; return it, or None if it does not wait."""
        request = self._requests.get(reply_id)
        if request is None or request.taken_in is not None:
            return None
        self._put([dataclasses.replace(request, taken_in=reply_id)])
        return request

    def forget(self, carried: ReplyId, heard: Collection[ReplyId] = ()) -> None:
        """Forget what a reply has taken: its own request and those named; the rest waits again."""
        taken = [request for request in self._requests.values() if request.taken_in == carried]
        over = {carried, *heard}.intersection(request.reply_id for request in taken)
        self._put_back([request for request in taken if request.reply_id not in over])
        self._keep(lambda request: request.reply_id not in over)

    def _put_back(self, requests: Sequence[WaitingRequest]) -> None:
        self._put(dataclasses.replace(request, taken_in=None) for request in requests)
        for request in requests:
            # No reply answers it any more.
            self._note(request, None)

    def forget_chat(self, chat_id: ChatId) -> None:
        """Forget what waits for a chat, or was taken there."""
        self._keep(lambda request: request.chat_id != chat_id)

    def _put(self, requests: Iterable[WaitingRequest]) -> None:
        # A key that is there keeps its place.
        self._requests.update({request.reply_id: request for request in requests})

    def _keep(self, kept: Callable[[WaitingRequest], bool]) -> None:
        self._requests = {name: one for name, one in self._requests.items() if kept(one)}


def _steers(request: WaitingRequest) -> bool:
    return request.policy == "steer" and not request.stopping
