"""One `run_async` of the agent. Only here and in `live_run` does the mode matter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache

from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
    ToolThreadPoolConfig,
)
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.telemetry.context import ContentCapturingMode, TelemetryConfig
from google.genai import types
from typing_extensions import override

from adk_stream_protocol.held_calls.run_scope import RunScope
from adk_stream_protocol.ports import SteeringMessage
from adk_stream_protocol.telemetry import is_heard

__all__ = ["UnaryRun", "unary_config"]


def unary_config(
    *, max_llm_calls: int, tool_threads: int, stamp: dict[str, object] | None = None
) -> RunConfig:
    """Return how ADK runs a turn: streaming, bounded, sync tools off the event loop."""
    own: dict[str, object] = {
        "custom_metadata": stamp,
        # Not shared: an agent's plugin may change it for its run.
        "tool_thread_pool_config": ToolThreadPoolConfig(max_workers=tool_threads),
    }
    if is_heard():
        # It reads the environment when it is made, and so once for a run.
        own["telemetry"] = TelemetryConfig()
    return _common(max_llm_calls).model_copy(update=own)


@cache
def _common(max_llm_calls: int) -> RunConfig:
    """Return what all turns have in common: checking it anew takes longer than the rest of it."""
    return RunConfig(
        streaming_mode=StreamingMode.SSE,
        max_llm_calls=max_llm_calls,
        telemetry=_unheard(),
    )


def _unheard() -> TelemetryConfig:
    """Return what ADK tells OpenTelemetry of each piece of an answer if nobody listens.

    Without it ADK 2.13 reads the environment for every piece.
    """
    return _Unheard(
        # What nobody hears is told in the way whose cost does not grow with the answer.
        genai_semconv_stability_opt_in="stable",
        capture_message_content=ContentCapturingMode.NO_CONTENT,
        adk_experimental_telemetry_opt_in=False,
    )


class _Unheard(TelemetryConfig):
    """The least, answered at once: ADK asks it several times for every piece of an answer.

    With ADK's own properties that takes 11 microseconds for each, with these 5.
    """

    @property
    @override
    def should_use_experimental_genai_semconv(self) -> bool:
        return False

    @property
    @override
    def resolved_content_capturing_mode(self) -> ContentCapturingMode:
        return ContentCapturingMode.NO_CONTENT


class UnaryRun:
    """Runs the agent on one message, or on the answers to its requests."""

    def __init__(
        self, runner: Runner, message: types.Content, *, scope: RunScope, config: RunConfig
    ) -> None:
        self._runner = runner
        self._message = message
        self.scope = scope
        self._config = config
        # ADK takes asyncio's event.
        self._abort = asyncio.Event()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield ADK's events in order; ends soon after `stop`."""
        stream = self._runner.run_async(
            user_id=self.scope.owner,
            session_id=self.scope.chat_id,
            new_message=self._message,
            run_config=self._config,
            abort_signal=self._abort,
        )
        async with aclosing(stream) as events:
            async for event in events:
                yield event
                if self.scope.stopping and not self.scope.is_busy:
                    # A tool that was running when stop came has given its result by now.
                    self._abort.set()

    def hear(self, _message: SteeringMessage) -> bool:
        """Return False: it takes messages only when it is about to ask the model."""
        return False

    def stop(self) -> None:
        """Ask the run to end. A tool that is running is let finish: its result is told."""
        self.scope.stopping = True
        if not self.scope.is_busy:
            self._abort.set()

    def abandon(self) -> None:
        """End the run though a tool still runs: it took too long, and nobody waits any more."""
        self.scope.stopping = True
        self._abort.set()
