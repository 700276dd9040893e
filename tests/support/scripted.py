"""A model that says what a test wrote down for it.

It is stateless: what it says depends on the last user text and on how many model responses have
followed it, so the same script serves many chats, regenerations and edits at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import Field

__all__ = ["Beat", "LiveConnection", "Script", "ScriptedModel", "call", "thought"]

Beat: TypeAlias = str | types.Part | Exception | anyio.Event | Callable[[], Awaitable[None]]
"""Text to stream, a part, an exception to raise, or an event or something else to wait for."""

Script: TypeAlias = Mapping[str, Sequence[Sequence[Beat]]]
"""For each user text: the model's responses, one after another."""


def call(name: str, **arguments: Any) -> types.Part:
    """Return a call of a tool."""
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


def thought(text: str) -> types.Part:
    """Return a thought."""
    return types.Part(text=text, thought=True)


class LiveConnection(BaseLlmConnection):
    """A live connection to a model that is asked: it answers what was said last, turn by turn."""

    def __init__(self, model: BaseLlm, request: LlmRequest, *, ends_calls: bool = False) -> None:
        self._model = model
        self._request = request
        # Whether a turn is said to be complete after each call, as Gemini 2 does.
        self._ends_calls = ends_calls
        self._contents: list[types.Content] = []
        self._closed = False
        self._more = anyio.Event()

    async def send_history(self, history: list[types.Content]) -> None:
        self._contents = list(history)
        self._tell()

    async def send_content(self, content: types.Content) -> None:
        self._contents.append(content)
        self._tell()

    async def send_realtime(self, blob: types.Blob) -> None:
        raise AssertionError("scripted models do not listen")

    async def close(self) -> None:
        self._closed = True
        self._tell()

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        while not self._closed and not self._is_asked():
            await self._more.wait()
        if self._closed:
            return
        request = self._request.model_copy(update={"contents": list(self._contents)})
        # What is said meanwhile is answered next.
        place = len(self._contents)
        calls = False
        async for response in self._model.generate_content_async(request, stream=True):
            parts = (response.content.parts if response.content else None) or []
            if response.partial and any(part.function_call for part in parts):
                # Live models send whole calls; ADK runs what it gets.
                continue
            if not response.partial and response.content is not None:
                self._contents.insert(place, response.content)
                place += 1
                calls = any(part.function_call for part in parts)
            yield response
        if self._ends_calls or not calls:
            yield LlmResponse(turn_complete=True)

    def _is_asked(self) -> bool:
        """Whether it is the model's turn: all results of its calls are there."""
        if not self._contents or self._contents[-1].role == "model":
            return False
        owed = 0
        for content in self._contents:
            for part in content.parts or []:
                owed += part.function_call is not None
                owed -= part.function_response is not None
        return owed <= 0

    def _tell(self) -> None:
        more, self._more = self._more, anyio.Event()
        more.set()


class ScriptedModel(BaseLlm):
    """Streams each beat as a partial response, then the whole."""

    model: str = "scripted"
    script: Any = Field(default_factory=dict)
    """A `Script`; pydantic would copy it."""
    prompts: list[Any] = Field(default_factory=list)
    """The contents of every request, in order."""
    ends_calls: bool = False
    """Whether a live turn is said to be complete after each call, as Gemini 2 does."""

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        """Open a live connection."""
        connection = LiveConnection(self, llm_request, ends_calls=self.ends_calls)
        try:
            yield connection
        finally:
            await connection.close()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Play the next response of the script."""
        self.prompts.append(list(llm_request.contents))
        parts: list[types.Part] = []
        for beat in self._beats(llm_request.contents):
            if isinstance(beat, Exception):
                raise beat
            if isinstance(beat, anyio.Event):
                await beat.wait()
                continue
            if callable(beat):
                await beat()
                continue
            part = types.Part(text=beat) if isinstance(beat, str) else beat.model_copy(deep=True)
            parts.append(part)
            if stream:
                yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=_joined(parts)),
            partial=False,
            model_version=self.model,
            finish_reason=types.FinishReason.STOP,
            usage_metadata=types.GenerateContentResponseUsageMetadata(
                prompt_token_count=7, candidates_token_count=3, total_token_count=10
            ),
        )

    def _beats(self, contents: Sequence[types.Content]) -> Sequence[Beat]:
        since, text = 0, ""
        for content in contents:
            said = "".join(part.text or "" for part in content.parts or [])
            # ADK retells what other agents said as the user's words.
            if content.role == "user" and said and not said.startswith("For context:"):
                since, text = 0, said
            elif content.role == "model":
                since += 1
        responses = self.script.get(text, [[f"No script for {text!r}."]])
        return responses[min(since, len(responses) - 1)]  # type: ignore[no-any-return]  # see above


def _joined(parts: Sequence[types.Part]) -> list[types.Part]:
    """Return the parts with neighbouring text made one, as ADK's own aggregator does."""
    joined: list[types.Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if part.text and last is not None and last.text and last.thought == part.thought:
            joined[-1] = types.Part(text=last.text + part.text, thought=part.thought)
        else:
            joined.append(part.model_copy(deep=True))
    return joined
