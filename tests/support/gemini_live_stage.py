"""Our whole server, with an agent on the Live emulator: the real google-genai client throughout."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import create_app
from adk_stream_protocol.server.settings import Settings
from support.conformance import ChatState
from support.gemini_live import GEMINI_2, GeminiLive, LiveConnection, Script, gemini_live
from support.serving import serving
from support.stage import Stage
from support.stored_chats import check_chats

__all__ = ["GeminiStage", "on_gemini", "shown"]

# Longer than anything here takes on a busy machine.
_PATIENCE = 15


@dataclass
class GeminiStage(Stage):
    """A stage whose model is behind the emulator."""

    servers: list[GeminiLive] = field(default_factory=list)

    @property
    def gemini(self) -> GeminiLive:
        return self.servers[0]

    async def connection(self, number: int) -> LiveConnection:
        """Return a connection to the model, once it is set up; 1 is the first."""
        with anyio.fail_after(_PATIENCE):
            return await self.gemini.connection(number)

    async def loaded(self, state: ChatState) -> list[dict[str, Any]]:
        """Return the messages of a client's chat, as a page that loads shows them."""
        loaded = await self.http.get(f"/api/chats/{state.chat_id}")
        messages: list[dict[str, Any]] = loaded.json()["messages"]
        for message in messages:
            if message["role"] == "user":
                # A page does not know when the server took what it sent.
                assert message.pop("metadata").keys() == {"createdAt"}
        return _without_cards(messages)


def shown(state: ChatState) -> list[dict[str, Any]]:
    """Return the messages that a client shows."""
    return _without_cards(state.messages)


@asynccontextmanager
async def on_gemini(
    *scripts: Script,
    then: Script | None = None,
    model: str = GEMINI_2,
    settings: Settings | None = None,
    **socket: Any,
) -> AsyncIterator[GeminiStage]:
    """Serve a stage whose model plays the scripts, one for each of its connections."""
    async with gemini_live(*scripts, then=then) as gemini:
        stage = GeminiStage(servers=[gemini])
        agent = LlmAgent(name="root", model=gemini.model(model, **socket), tools=[*stage.tools()])
        settings = settings or dataclasses.replace(Settings(), drain_seconds=1.0)
        app = create_app(agent, settings=settings)
        async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
            stage.url, stage.http = url, http
            try:
                yield stage
                await check_chats(http)
            finally:
                stage.go_on()


def _without_cards(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the cards of approvals: a page that loads sees what became of the call since."""
    return [
        {**message, "parts": [p for p in message["parts"] if p["type"] != "data-approval"]}
        for message in messages
    ]
