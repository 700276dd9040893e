"""Which recorded reply a request gets, and when its chunks are due."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import anyio

from adk_stream_protocol.engine.reply import Reply
from adk_stream_protocol.errors import Conflict
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.playback import Playlist, RecordedReply
from adk_stream_protocol.ports import Batch
from adk_stream_protocol.wire.chunks import ErrorChunk
from adk_stream_protocol.wire.profiles import Audience, Profile

__all__ = ["AS_RECORDED", "Pace", "PlayedReply", "Player"]

Pace: TypeAlias = Literal["recorded", "at-once"]

AS_RECORDED = Audience("ai-sdk", sdk=7)
"""Renders chunks as they are, whatever profile they were recorded in."""


@dataclass(slots=True)
class PlayedReply(Reply):
    """A recorded reply, read at the pace it had."""

    chat_id: ChatId
    recorded: RecordedReply
    began: float
    """By the event loop's clock."""
    _sent: int = 0

    async def next(self) -> Batch:
        chunks = self.recorded.chunks
        if self._sent < len(chunks):
            await anyio.sleep_until(self.began + chunks[self._sent][0])
        now = anyio.current_time()
        due = [chunk for at, chunk in chunks[self._sent :] if self.began + at <= now]
        self._sent += len(due)
        return Batch(due, ended=self._sent == len(chunks))


@dataclass(slots=True)
class _Place:
    """How far one chat has come."""

    next: int = 0
    reply: PlayedReply | None = None
    """What it got last; None: nothing yet."""


@dataclass(slots=True)
class Player:
    """Gives each chat its replies in order: the n-th request gets the n-th."""

    playlist: Playlist
    pace: Pace
    _places: dict[ChatId, _Place] = field(default_factory=dict)

    def send(self, chat_id: ChatId, profile: Profile) -> PlayedReply:
        """Return the next reply of a chat, or one that says that there are no more.

        Raises:
            Conflict: it was recorded in the other profile.
        """
        replies = self._replies(chat_id)
        place = self._places.setdefault(chat_id, _Place())
        if place.next >= len(replies):
            told = f"The recording is over: replies that it has for this chat: {len(replies)}."
            over = RecordedReply(0.0, chunks=[(0.0, ErrorChunk(told))])
            return PlayedReply(chat_id, over, anyio.current_time())
        recorded = replies[place.next]
        _check(recorded, profile)
        place.next += 1
        place.reply = self._played(chat_id, recorded)
        return place.reply

    def resume(self, chat_id: ChatId, profile: Profile) -> PlayedReply | None:
        """Return what the chat has not seen the end of; None: there is nothing.

        Raises:
            Conflict: it was recorded in the other profile.
        """
        replies = self._replies(chat_id)
        place = self._places.setdefault(chat_id, _Place())
        running = place.reply
        if running is not None and running.began + running.recorded.seconds > anyio.current_time():
            return PlayedReply(chat_id, running.recorded, running.began)
        if place.next < len(replies) and replies[place.next].resumed and place.next > 0:
            # A reply that began elsewhere, and was only ever resumed.
            return self.send(chat_id, profile)
        return None

    def _replies(self, chat_id: ChatId) -> list[RecordedReply]:
        chat = self.playlist.chats.get(chat_id)
        return self.playlist.replies if chat is None else chat.replies

    def _played(self, chat_id: ChatId, recorded: RecordedReply) -> PlayedReply:
        now = anyio.current_time()
        return PlayedReply(
            chat_id, recorded, now if self.pace == "recorded" else now - recorded.seconds
        )


def _check(recorded: RecordedReply, profile: Profile) -> None:
    if recorded.profile in {None, profile}:
        return
    routes = "/stream and /live" if recorded.profile == "adk" else "/api/chat and its sockets"
    raise Conflict(
        f"The next reply of this recording is of the profile {recorded.profile}. Ask on {routes}.",
        code="other_profile",
    )
