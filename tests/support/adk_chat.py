"""A chat with an agent through ADK's own runner, without any of our server."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
)
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

__all__ = ["AdkChat", "Call", "Turn"]

_CONFIRMATION = "adk_request_confirmation"


@dataclass(frozen=True)
class Call:
    """A function call of the model."""

    name: str
    args: dict[str, Any]
    call_id: str


@dataclass(frozen=True)
class Turn:
    """What one request to the runner yielded."""

    events: list[Event]

    @property
    def text(self) -> str:
        """The complete answer, without thoughts and without the deltas that built it."""
        return "".join(part.text or "" for part in self._parts() if not part.thought)

    @property
    def thought(self) -> str:
        return "".join(part.text or "" for part in self._parts() if part.thought)

    @property
    def deltas(self) -> list[types.Part]:
        return [part for part in self._parts(partial=True) if part.text]

    @property
    def steps(self) -> list[list[Call]]:
        """The calls of the model, one list for each of its responses that had any."""
        steps = [[call for call in calls if call.name != _CONFIRMATION] for calls in self._calls()]
        return [step for step in steps if step]

    @property
    def confirmations(self) -> dict[str, str]:
        """The recipient or name of each call that asks for approval -> the id to answer."""
        asked = [call for calls in self._calls() for call in calls if call.name == _CONFIRMATION]
        originals = [(call.args["originalFunctionCall"], call.call_id) for call in asked]
        return {
            original["args"].get("recipient", original["name"]): call_id
            for original, call_id in originals
        }

    @property
    def results(self) -> list[dict[str, Any]]:
        return [
            part.function_response.response or {}
            for part in self._parts()
            if part.function_response
        ]

    def _calls(self) -> list[list[Call]]:
        return [
            [Call(c.name or "", c.args or {}, c.id or "") for c in event.get_function_calls()]
            for event in self.events
            if not event.partial
        ]

    def _parts(self, *, partial: bool = False) -> Iterable[types.Part]:
        for event in self.events:
            if bool(event.partial) == partial and event.content:
                yield from event.content.parts or []


class AdkChat:
    """One session of an agent; `streaming=False` asks the model for whole responses."""

    def __init__(self, agent: LlmAgent, *, streaming: bool = True) -> None:
        self._sessions = InMemorySessionService()
        self._runner = Runner(app_name="chat", agent=agent, session_service=self._sessions)
        self._mode = StreamingMode.SSE if streaming else StreamingMode.NONE
        # None until the first message.
        self._session_id: str | None = None
        # What the newest request has yielded; also when it failed half way.
        self.last_turn = Turn([])

    async def say(self, text: str = "", files: Sequence[tuple[str, bytes]] = ()) -> Turn:
        """Send a message with files of (media type, bytes)."""
        parts = [
            types.Part(inline_data=types.Blob(mime_type=media_type, data=data))
            for media_type, data in files
        ]
        return await self.send([types.Part(text=text)] * bool(text) + parts)

    async def decide(self, decisions: Mapping[str, bool]) -> Turn:
        """Approve or deny calls by the ids of their confirmations, all in one request."""
        return await self.send(
            [
                _response(_CONFIRMATION, call_id, {"confirmed": approved})
                for call_id, approved in decisions.items()
            ]
        )

    async def output(self, call: Call, response: dict[str, Any]) -> Turn:
        """Give the result of a call that runs somewhere else."""
        return await self.send([_response(call.name, call.call_id, response)])

    async def send(self, parts: list[types.Part]) -> Turn:
        self.last_turn = Turn([])
        async for event in self._runner.run_async(
            user_id="user",
            session_id=await self._open(),
            new_message=types.Content(role="user", parts=parts),
            run_config=RunConfig(streaming_mode=self._mode),
        ):
            self.last_turn.events.append(event)
        return self.last_turn

    async def _open(self) -> str:
        if self._session_id is None:
            session = await self._sessions.create_session(app_name="chat", user_id="user")
            self._session_id = session.id
        return self._session_id


def _response(name: str, call_id: str, response: dict[str, Any]) -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(id=call_id, name=name, response=response)
    )
