"""A chat's ADK session: found, made, read, rewound, deleted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session
from google.genai import types

from adk_stream_protocol.errors import NotFound
from adk_stream_protocol.identifiers import ChatId, InvocationId, UserId
from adk_stream_protocol.ports import ChatLabel

__all__ = ["OWN_STATE", "ChatInfo", "Sessions", "rewind_metadata"]

_TITLE: Final = "adk_stream_title"
_CREATED: Final = "adk_stream_created"
_LONGEST_TITLE: Final = 80

OWN_STATE: Final = frozenset({_TITLE, _CREATED})
"""What a chat's session holds beside the agent's state; a rewind must not take it back."""

rewind_metadata: ContextVar[Mapping[str, object] | None] = ContextVar(
    "rewind_metadata", default=None
)
"""The custom metadata of the event that rewinds a session. ADK makes that event itself; our session
service adds this as it is stored, so that both are stored or neither. None: nothing rewinds."""


@dataclass(frozen=True, slots=True)
class ChatInfo:
    """What a list of chats shows."""

    id: ChatId
    title: str
    created_at: float
    updated_at: float
    archived: bool = False

    def labelled(self, label: ChatLabel) -> ChatInfo:
        """Return the chat as a person has labelled it."""
        return replace(self, title=label.title or self.title, archived=label.archived)


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of one runner's app."""

    runner: Runner

    async def get(self, chat_id: ChatId, owner: UserId) -> Session | None:
        """Return the chat's session, events and all, or None."""
        return await self.runner.session_service.get_session(
            app_name=self.runner.app_name, user_id=owner, session_id=chat_id
        )

    async def events(self, chat_id: ChatId, owner: UserId) -> Sequence[Event]:
        """Return the chat's events; none if it does not exist."""
        session = await self.get(chat_id, owner)
        return [] if session is None else session.events

    async def make(self, chat_id: ChatId, owner: UserId, *, said: types.Content) -> Session | None:
        """Make the chat's session, titled after what was said first; return it.

        None: it was just made by someone else, such as whoever speaks in the chat.
        """
        # By the same clock as the times of ADK's events, which tell when a chat changed last.
        state: dict[str, object] = {_TITLE: _title(said), _CREATED: time.time()}
        try:
            return await self.runner.session_service.create_session(
                app_name=self.runner.app_name, user_id=owner, session_id=chat_id, state=state
            )
        except AlreadyExistsError:
            return None

    async def describe(self, chat_id: ChatId, owner: UserId) -> tuple[ChatInfo, Sequence[Event]]:
        """Return the chat and its events.

        Raises:
            NotFound: there is no such chat of this user's.
        """
        session = await self.get(chat_id, owner)
        if session is None:
            raise NotFound("No such chat.", code="unknown_chat")
        return _info(session), session.events

    async def info(self, chat_id: ChatId, owner: UserId) -> ChatInfo:
        """Return the chat, without reading its events.

        Raises:
            NotFound: there is no such chat of this user's.
        """
        session = await self.runner.session_service.get_session(
            app_name=self.runner.app_name,
            user_id=owner,
            session_id=chat_id,
            config=GetSessionConfig(num_recent_events=0),
        )
        if session is None:
            raise NotFound("No such chat.", code="unknown_chat")
        return _info(session)

    async def all_of(self, owner: UserId) -> list[ChatInfo]:
        """Return a user's chats, newest first, and in the same order each time."""
        found = await self.runner.session_service.list_sessions(
            app_name=self.runner.app_name, user_id=owner
        )
        infos = [_info(session) for session in found.sessions]
        return sorted(infos, key=lambda info: (info.updated_at, info.id), reverse=True)

    async def rewind(
        self,
        chat_id: ChatId,
        owner: UserId,
        before: InvocationId,
        *,
        metadata: Mapping[str, object],
    ) -> None:
        """Take back an invocation and all since; the events stay, marked as rewound.

        Args:
            chat_id: the chat.
            owner: whose it is.
            before: the invocation.
            metadata: the custom metadata of the event that is stored.
        """
        token = rewind_metadata.set(metadata)
        try:
            await self.runner.rewind_async(
                user_id=owner, session_id=chat_id, rewind_before_invocation_id=before
            )
        finally:
            rewind_metadata.reset(token)

    async def append(self, chat_id: ChatId, owner: UserId, event: Event) -> None:
        """Store an event in the chat's session, if there is one."""
        session = await self.get(chat_id, owner)
        if session is not None:
            await self.runner.session_service.append_event(session, event)

    async def keep_text(
        self, chat_id: ChatId, owner: UserId, *, like: Event, text: str, stamp: dict[str, object]
    ) -> None:
        """Store text that was shown but whose response ADK never completed."""
        await self.append(
            chat_id,
            owner,
            Event(
                author=like.author,
                invocation_id=like.invocation_id,
                branch=like.branch,
                content=types.Content(role="model", parts=[types.Part(text=text)]),
                interrupted=like.interrupted,
                model_version=like.model_version,
                custom_metadata=dict(stamp),
            ),
        )

    async def artifact(
        self, chat_id: ChatId, owner: UserId, *, filename: str, version: int | None
    ) -> types.Part | None:
        """Return a file that the agent saved in the chat, or None."""
        service = self.runner.artifact_service
        if service is None:
            return None
        return await service.load_artifact(
            app_name=self.runner.app_name,
            user_id=owner,
            session_id=chat_id,
            filename=filename,
            version=version,
        )

    async def delete(self, chat_id: ChatId, owner: UserId) -> None:
        """Delete the chat's session."""
        await self.runner.session_service.delete_session(
            app_name=self.runner.app_name, user_id=owner, session_id=chat_id
        )


def _info(session: Session) -> ChatInfo:
    """Return what a list shows of a session; one made elsewhere has no title."""
    created = session.state.get(_CREATED, session.last_update_time)
    return ChatInfo(
        id=ChatId(session.id),
        title=str(session.state.get(_TITLE, "")),
        created_at=float(created),
        updated_at=session.last_update_time,
    )


def _title(said: types.Content) -> str:
    text = " ".join(part.text for part in said.parts or [] if part.text)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"
