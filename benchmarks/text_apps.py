"""Servers of one agent that talks: ADK's own, the least that can be written, and ours."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

import anyio
from fastapi import FastAPI
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
)
from google.adk.apps.app import App
from google.adk.cli.fast_api import get_fast_api_app
from google.adk.cli.utils.base_agent_loader import BaseAgentLoader
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from starlette.requests import Request
from starlette.responses import StreamingResponse

from adk_stream_protocol.server.identity import LOCAL_USER
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from benchmarks.served import opened
from benchmarks.setting import Setting
from benchmarks.talkers import APP, USER
from benchmarks.text_model import text_agent

__all__ = ["BARE", "FILL", "OURS", "past", "text_app"]

BARE: Final = "/bench/bare"
"""Runs ADK's loop alone: `text` in as many `clients` at once."""

FILL: Final = "/bench/fill"
"""Makes a `chat` in which something was said before, in as many `events`."""

OURS: Final = ("memory", "memory-adk", "memory-ws", "sqlite", "postgres")

_MANY: Final = 10_000


@asynccontextmanager
async def text_app(variant: str, setting: Setting) -> AsyncIterator[FastAPI]:
    """Yield the server that a variant names."""
    if variant == "bare":
        yield _bare()
    elif variant == "minimal":
        yield _minimal()
    elif variant == "adk":
        yield get_fast_api_app(
            agents_dir=setting.folder,
            agent_loader=_OneAgent(),
            session_service_uri="memory://",
            artifact_service_uri="memory://",
            web=False,
        )
    else:
        async with opened(variant, setting) as database:
            app = create_app(
                text_agent(),
                settings=Settings(max_turns=_MANY, max_sockets=_MANY),
                services=Services(sessions=database.sessions),
                stores=database.stores,
            )
            _add_fill(app, database.sessions, LOCAL_USER)
            yield app


def past(count: int) -> list[Event]:
    """Return what was said in a chat: a line of the user's, a line of the model's, and so on."""
    events: list[Event] = []
    for number in range(count):
        is_model = number % 2 == 1
        part = types.Part(text=f"line {number}")
        content = types.Content(role="model" if is_model else "user", parts=[part])
        author, turn = APP if is_model else "user", f"turn-{number // 2}"
        events.append(Event(author=author, invocation_id=turn, content=content))
    return events


def _add_fill(app: FastAPI, sessions: BaseSessionService, user: str) -> None:
    @app.get(FILL)
    async def fill(chat: str, events: int) -> None:
        session = await sessions.create_session(app_name=APP, user_id=user, session_id=chat)
        for event in past(events):
            await sessions.append_event(session, event)


class _OneAgent(BaseAgentLoader):
    """Loads the same agent by its name."""

    def load_agent(self, agent_name: str) -> BaseAgent | App:
        return text_agent()

    def list_agents(self) -> list[str]:
        return [APP]


class _Loop:
    """`async for event in runner.run_async(...)`, with ADK's defaults."""

    def __init__(self) -> None:
        self.sessions = InMemorySessionService()
        self._runner = Runner(
            app=App(name=APP, root_agent=text_agent()), session_service=self.sessions
        )

    async def texts(self, chat: str, said: str) -> AsyncGenerator[str, None]:
        """Have a turn, an approval included; yield the text of each event, which may be none."""
        find, make = self.sessions.get_session, self.sessions.create_session
        if await find(app_name=APP, user_id=USER, session_id=chat) is None:
            await make(app_name=APP, user_id=USER, session_id=chat)
        part: types.Part | None = types.Part(text=said)
        while part is not None:
            stream = self._runner.run_async(
                user_id=USER,
                session_id=chat,
                new_message=types.Content(role="user", parts=[part]),
                run_config=RunConfig(streaming_mode=StreamingMode.SSE),
            )
            part = None
            async with aclosing(stream) as events:
                async for event in events:
                    part = _approval_of(event) or part
                    parts = (event.content.parts if event.content else None) or []
                    yield (parts[0].text or "") if event.partial and parts else ""


def _approval_of(event: Event) -> types.Part | None:
    """Return the answer to ADK's request for a confirmation, if the event holds one."""
    for call in event.get_function_calls():
        if call.name == "adk_request_confirmation":
            answer = {"id": call.id, "name": call.name, "response": {"confirmed": True}}
            return types.Part(function_response=types.FunctionResponse.model_validate(answer))
    return None


def _bare() -> FastAPI:
    app, loop = FastAPI(), _Loop()
    _add_fill(app, loop.sessions, USER)

    async def one(said: str, chat: str) -> None:
        async with aclosing(loop.texts(chat, said)) as texts:
            async for _ in texts:
                pass

    @app.get(BARE)
    async def bare(text: str, clients: int, chat: str = "") -> tuple[float, float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        first = 0.0
        if clients == 1:
            async with aclosing(loop.texts(chat or uuid.uuid4().hex, text)) as texts:
                async for _ in texts:
                    first = first or time.perf_counter() - wall
        else:
            async with anyio.create_task_group() as tasks:
                for _ in range(clients):
                    tasks.start_soon(one, text, uuid.uuid4().hex)
        return time.perf_counter() - wall, time.process_time() - cpu, first

    return app


def _minimal() -> FastAPI:
    """Return what one would write in an hour: a delta per event, and nothing kept."""
    app, loop = FastAPI(), _Loop()

    @app.post("/api/chat")
    async def chat(request: Request) -> StreamingResponse:
        body = await request.json()
        said = body["messages"][-1]["parts"][0]["text"]

        async def lines() -> AsyncIterator[str]:
            yield 'data: {"type":"start"}\n\ndata: {"type":"text-start","id":"1"}\n\n'
            async with aclosing(loop.texts(body["id"], said)) as texts:
                async for text in texts:
                    if text:
                        delta = {"type": "text-delta", "id": "1", "delta": text}
                        yield f"data: {json.dumps(delta)}\n\n"
            yield 'data: {"type":"text-end","id":"1"}\n\ndata: {"type":"finish"}\n\n'
            yield "data: [DONE]\n\n"

        return StreamingResponse(lines(), media_type="text/event-stream")

    return app
