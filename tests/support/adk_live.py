"""A live chat with an agent through ADK's own runner, without any of our server."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio
from google.adk.agents import LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
)
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

__all__ = ["AdkLive", "adk_live", "live_config"]

# Longer than anything here takes on a busy machine.
_PATIENCE = 10


class AdkLive:
    """A `run_live` of one session; it begins when the first event is asked for."""

    def __init__(self, queue: LiveRequestQueue, events: AsyncIterator[Event]) -> None:
        self._events = events
        self.queue = queue

    def say(self, words: str) -> None:
        content = types.Content(role="user", parts=[types.Part(text=words)])
        self.queue.send_content(content)

    async def turn(self) -> list[Event]:
        """Return the events up to the next end of a turn."""
        return await self.until(lambda event: bool(event.turn_complete))

    async def until(self, last: Callable[[Event], bool]) -> list[Event]:
        """Return the events up to the first that fits."""
        events: list[Event] = []
        with anyio.fail_after(_PATIENCE):
            async for event in self._events:
                events.append(event)
                if last(event):
                    return events
        raise AssertionError(f"the run ended after {events}")

    async def rest(self) -> list[Event]:
        """Return the events up to the end of the run."""
        with anyio.fail_after(_PATIENCE):
            return [event async for event in self._events]


def live_config(
    *, resumption: bool = False, audio: bool = False, manual_activity: bool = False
) -> RunConfig:
    """Return a configuration of the run: with text unless `audio`."""
    return RunConfig(
        streaming_mode=StreamingMode.BIDI,
        response_modalities=[types.Modality.AUDIO if audio else types.Modality.TEXT],
        session_resumption=types.SessionResumptionConfig() if resumption else None,
        realtime_input_config=types.RealtimeInputConfig(
            automatic_activity_detection=types.AutomaticActivityDetection(disabled=True)
        )
        if manual_activity
        else None,
    )


@asynccontextmanager
async def adk_live(
    agent: LlmAgent,
    config: RunConfig | None = None,
    *,
    history: Sequence[types.Content] = (),
    sessions: InMemorySessionService | None = None,
) -> AsyncIterator[AdkLive]:
    """Open a session that holds the history already, and a run of it.

    With the same `sessions` it is the same session again.
    """
    sessions = sessions or InMemorySessionService()
    runner = Runner(app_name="chat", agent=agent, session_service=sessions)
    session = await sessions.get_session(app_name="chat", user_id="user", session_id="chat")
    if session is None:
        session = await sessions.create_session(app_name="chat", user_id="user", session_id="chat")
    for content in history:
        author = "user" if content.role == "user" else agent.name
        await sessions.append_event(session, Event(author=author, content=content))
    queue = LiveRequestQueue()
    run = runner.run_live(
        user_id="user",
        session_id=session.id,
        live_request_queue=queue,
        run_config=config or live_config(),
    )
    async with aclosing(run) as events:
        yield AdkLive(queue, events)
