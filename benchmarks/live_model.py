"""A live model that needs no network: it floods, or it pays.

Its connection answers what was said last. `text 2000` is answered in 2,000 pieces of text, as fast
as they are taken; `audio 2000` with a thousand pieces of sound and a thousand of what is said;
`pay` with a call of a tool; anything else, such as that call's result, with a word.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import anyio.lowlevel
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from benchmarks.payment_agent import pay

__all__ = ["SOUND", "live_agent", "word"]

SOUND: Final = bytes(4800)
"""A tenth of a second, at 24 kHz and 16 bits."""


def word(number: int) -> str:
    """Return one piece of text."""
    return f"word{number} "


def live_agent() -> LlmAgent:
    """Return the agent; its one tool is asked about."""
    tools = [FunctionTool(pay, require_confirmation=True)]
    return LlmAgent(name="bench", model=_LiveModel(), tools=list(tools))


class _LiveModel(BaseLlm):
    model: str = "bench-live"

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        connection = _Connection()
        try:
            yield connection
        finally:
            await connection.close()

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        raise AssertionError("this model is a live one")
        yield  # A generator needs one.


class _Connection(BaseLlmConnection):
    def __init__(self) -> None:
        # What is to be answered; None: nothing.
        self._asked: types.Content | None = None
        self._closed = False
        self._changed = anyio.Event()

    async def send_history(self, history: list[types.Content]) -> None:
        if history and history[-1].role == "user":
            await self.send_content(history[-1])

    async def send_content(self, content: types.Content) -> None:
        self._asked = content
        self._changed.set()

    async def send_realtime(self, blob: types.Blob) -> None:
        raise AssertionError("this model does not listen")

    async def close(self) -> None:
        self._closed = True
        self._changed.set()

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        while self._asked is None and not self._closed:
            self._changed = anyio.Event()
            await self._changed.wait()
        if self._asked is None:
            return
        asked, self._asked = self._asked, None
        for response in _answer(asked):
            # As from a socket: others get a turn in between.
            await anyio.lowlevel.checkpoint()
            yield response


def _answer(asked: types.Content) -> Iterator[LlmResponse]:
    said = "".join(part.text or "" for part in asked.parts or [])
    kind, _, count = said.partition(" ")
    match kind:
        case "text" if count.isdecimal():
            yield from _written(int(count))
        case "audio" if count.isdecimal():
            yield from _spoken(int(count) // 2)
        case "pay":
            call = types.FunctionCall(id=f"call-{id(asked)}", name="pay", args={"amount": 5})
            yield _of_model(types.Part(function_call=call))
            # The turn is complete when the result has its answer.
            return
        case _:
            yield from _written(1)
    yield LlmResponse(turn_complete=True)


def _written(count: int) -> Iterator[LlmResponse]:
    for number in range(count):
        yield _of_model(types.Part(text=word(number)), partial=True)
    yield _of_model(types.Part(text=_whole(count)), partial=False)


def _spoken(count: int) -> Iterator[LlmResponse]:
    for number in range(count):
        said = types.Transcription(text=word(number), finished=False)
        yield LlmResponse(output_transcription=said, partial=True)
        sound = types.Blob(data=SOUND, mime_type="audio/pcm;rate=24000")
        yield _of_model(types.Part(inline_data=sound))
    said = types.Transcription(text=_whole(count), finished=True)
    yield LlmResponse(output_transcription=said, partial=False)


def _whole(count: int) -> str:
    return "".join(map(word, range(count)))


def _of_model(part: types.Part, *, partial: bool | None = None) -> LlmResponse:
    content = types.Content(role="model", parts=[part])
    return LlmResponse(content=content, partial=partial)
