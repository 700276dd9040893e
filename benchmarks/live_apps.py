"""Servers of one live agent: ADK's own and ours; and ADK's loop with no server around it."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Final

import httpx
from fastapi import FastAPI
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
)
from google.adk.apps.app import App
from google.adk.cli.fast_api import get_fast_api_app
from google.adk.cli.utils.base_agent_loader import BaseAgentLoader
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from benchmarks.live_model import live_agent
from benchmarks.served import opened
from benchmarks.setting import Setting
from benchmarks.talkers import APP, USER

__all__ = ["BareLoop", "bare_turn", "live_app"]

_BARE: Final = "/bench/bare"


@asynccontextmanager
async def live_app(variant: str, setting: Setting) -> AsyncIterator[FastAPI]:
    """Yield the server that a variant names, with a route that runs ADK's loop alone."""
    if variant == "adk":
        app = get_fast_api_app(
            agents_dir=setting.folder,
            agent_loader=_OneAgent(),
            session_service_uri="memory://",
            artifact_service_uri="memory://",
            web=False,
        )
        _add_bare(app, InMemorySessionService())
        yield app
        return
    async with opened(variant, setting) as database:
        app = create_app(
            live_agent(),
            settings=Settings(),
            services=Services(sessions=database.sessions),
            stores=database.stores,
        )
        _add_bare(app, database.sessions)
        yield app


async def bare_turn(http: httpx.AsyncClient, text: str) -> tuple[float, float]:
    """Let a server's process run ADK's loop alone; return its seconds, and those of CPU time."""
    response = await http.get(_BARE, params={"text": text})
    seconds, cpu = response.raise_for_status().json()
    return float(seconds), float(cpu)


class _OneAgent(BaseAgentLoader):
    """Loads the same agent by its name."""

    def load_agent(self, agent_name: str) -> BaseAgent | App:
        return live_agent()

    def list_agents(self) -> list[str]:
        return [APP]


class BareLoop:
    """ADK's loop over a live run and nothing else; its events are dropped."""

    def __init__(self, sessions: BaseSessionService) -> None:
        self._sessions = sessions
        app = App(name=APP, root_agent=live_agent())
        self._runner = Runner(app=app, session_service=sessions)

    async def turn(self, text: str) -> tuple[float, float]:
        """Have a turn of a new run; return the seconds it took, and those of CPU time."""
        chat = f"bare-{uuid.uuid4()}"
        await self._sessions.create_session(app_name=APP, user_id=USER, session_id=chat)
        wall, cpu = time.perf_counter(), time.process_time()
        await self._run(chat, text)
        return time.perf_counter() - wall, time.process_time() - cpu

    async def _run(self, chat: str, text: str) -> None:
        queue = LiveRequestQueue()
        queue.send_content(types.Content(role="user", parts=[types.Part(text=text)]))
        modality = types.Modality.AUDIO if text.startswith("audio") else types.Modality.TEXT
        events = self._runner.run_live(
            user_id=USER,
            session_id=chat,
            live_request_queue=queue,
            run_config=RunConfig(streaming_mode=StreamingMode.BIDI, response_modalities=[modality]),
        )
        async with aclosing(events):
            async for event in events:
                if event.turn_complete:
                    return


def _add_bare(app: FastAPI, sessions: BaseSessionService) -> None:
    loop = BareLoop(sessions)

    @app.get(_BARE)
    async def bare(text: str) -> tuple[float, float]:
        return await loop.turn(text)
