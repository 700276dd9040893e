"""Two ways to have a turn: with ADK's runner alone, and with us around it."""

from __future__ import annotations

import uuid
from contextlib import aclosing
from typing import Final, Protocol

from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
)
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.engine.reply import Reply
from adk_stream_protocol.identifiers import UserId
from adk_stream_protocol.wire.chunks import StartChunk
from adk_stream_protocol.wire.entries import CallHeld, Entry
from adk_stream_protocol.wire.requests import ChatRequest, parse_request
from adk_stream_protocol.wire.values import JsonObject
from benchmarks.payment_agent import payment_agent

__all__ = ["APP", "USER", "BareTalker", "OurTalker", "Talker", "whole", "words"]

APP: Final = "bench"
USER: Final = UserId("ann")


class Talker(Protocol):
    """Has turns in chats."""

    async def say(self, chat: str, text: str) -> None:
        """Have a turn, the approval of a tool call included if the model makes such a call."""
        ...


class BareTalker:
    """ADK's runner and nothing else: no leases, no ledger, no log, no chunks."""

    def __init__(self, sessions: BaseSessionService) -> None:
        self._sessions = sessions
        app = App(name=APP, root_agent=payment_agent())
        self._runner = Runner(app=app, session_service=sessions)

    async def say(self, chat: str, text: str) -> None:
        find, make = self._sessions.get_session, self._sessions.create_session
        if await find(app_name=APP, user_id=USER, session_id=chat) is None:
            await make(app_name=APP, user_id=USER, session_id=chat)
        asked = await self._run(chat, types.Part(text=text))
        if asked is not None:
            answer = types.FunctionResponse(
                id=asked, name="adk_request_confirmation", response={"confirmed": True}
            )
            assert await self._run(chat, types.Part(function_response=answer)) is None

    async def _run(self, chat: str, part: types.Part) -> str | None:
        """Return ADK's request for a confirmation, if it made one."""
        asked: str | None = None
        events = self._runner.run_async(
            user_id=USER,
            session_id=chat,
            new_message=types.Content(role="user", parts=[part]),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )
        async with aclosing(events) as stream:
            async for event in stream:
                asked = _request_of(event) or asked
        return asked


class OurTalker:
    """The engine, asked as its routes ask it; the reply is read to its end."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    async def say(self, chat: str, text: str) -> None:
        entries = await self._reply(words(chat, text))
        held = [entry for entry in entries if isinstance(entry, CallHeld)]
        for entry in held:
            start = entries[0]
            assert isinstance(start, StartChunk)
            assert start.message_id is not None
            answer: JsonObject = {
                "type": f"tool-{entry.tool_name}",
                "toolCallId": entry.call_id,
                "state": "approval-responded",
                "approval": {"id": entry.approval_id, "approved": True},
            }
            told = await self._reply(_request(chat, start.message_id, "assistant", answer))
            assert not any(isinstance(each, CallHeld) for each in told)

    async def _reply(self, request: ChatRequest) -> list[Entry]:
        return await whole(await self._conversations.submit(request, USER))


def words(chat: str, text: str) -> ChatRequest:
    """Return what a client sends when its user has typed something."""
    part: JsonObject = {"type": "text", "text": text}
    return _request(chat, f"user-{uuid.uuid4()}", "user", part)


async def whole(reply: Reply) -> list[Entry]:
    """Read a reply to its end."""
    entries: list[Entry] = []
    ended = False
    while not ended:
        batch = await reply.next()
        entries += batch.entries
        ended = batch.ended
    return entries


def _request(chat: str, message: str, role: str, part: JsonObject) -> ChatRequest:
    return parse_request({"id": chat, "messages": [{"id": message, "role": role, "parts": [part]}]})


def _request_of(event: Event) -> str | None:
    for call in event.get_function_calls():
        if call.name == "adk_request_confirmation":
            return call.id
    return None
