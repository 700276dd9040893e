"""A model with no network and no key, for the demo and for tests.

It holds a small conversation in English and Japanese and calls the demo's tools. It is not
intelligent: it decides by rules, from the contents of each request and nothing else.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import Field

from adk_stream_protocol.demo.offline_live import OfflineConnection
from adk_stream_protocol.demo.rules import answer_to, count_usage

__all__ = ["OfflineModel"]


class OfflineModel(BaseLlm):
    """Answers by rules: the same contents and tools always give the same response.

    A call is made at most once per user message, so an agent with this model cannot loop. A live
    run tells the same story as a unary one, by the same rules.
    """

    model: str = "offline"
    delay: float = Field(default=0.0, ge=0.0)
    """Seconds between two pieces of streamed text."""
    speech_pace: float = Field(default=0.0, ge=0.0)
    """Seconds that a second of speech takes to come: 0 is at once, 1 is as fast as it plays."""
    heard: tuple[str, ...] = Field(
        default=(
            "What is the weather in Tokyo?",
            "Send 50 dollars to Hanako",
            "Where am I?",
            "Play some jazz",
        ),
        min_length=1,
    )
    """What it takes spoken words for, one after another; it cannot really understand them."""
    calls_end_turn: bool = False
    """Whether a live turn ends right after its calls, as with Gemini 2.x; 3.x waits for results."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the response; with `stream`, its text in small pieces before it.

        Safe to cancel between any two pieces.
        """
        answer = answer_to(llm_request.contents, tools=set(llm_request.tools_dict))
        if stream:
            for part in answer.parts:
                for piece in answer.pieces(part):
                    await anyio.sleep(self.delay)
                    delta = types.Part(text=piece, thought=part.thought)
                    yield LlmResponse(
                        content=types.Content(role="model", parts=[delta]),
                        partial=True,
                        model_version=self.model,
                    )
        yield LlmResponse(
            content=types.Content(role="model", parts=answer.parts),
            partial=False,
            model_version=self.model,
            finish_reason=types.FinishReason.STOP,
            usage_metadata=count_usage(llm_request, llm_request.contents, answer.parts),
        )

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[BaseLlmConnection]:
        """Open a live conversation; leaving the context closes it."""
        connection = OfflineConnection(
            llm_request,
            delay=self.delay,
            speech_pace=self.speech_pace,
            heard=self.heard,
            calls_end_turn=self.calls_end_turn,
        )
        try:
            yield connection
        finally:
            await connection.close()
