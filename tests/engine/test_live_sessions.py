"""What live runs store: how it is told to models later."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.genai import types

from adk_stream_protocol.engine.live_sessions import LiveSessions
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId

pytestmark = pytest.mark.anyio


@pytest.fixture
def sessions() -> LiveSessions:
    return LiveSessions(InMemorySessionService())


@pytest.fixture
async def session(sessions: LiveSessions) -> AsyncIterator[Session]:
    """A session with a call that came by a live connection, seen by a run that is not live."""
    session = await sessions.create_session(app_name="chat", user_id="user", session_id="c")
    call = types.Part(function_call=types.FunctionCall(id="call-1", name="pay", args={}))
    content = types.Content(role="model", parts=[call])
    await sessions.append_event(
        session, Event(author="root", content=content, live_session_id="live-1")
    )
    token = run_scope.set(RunScope(UserId("user"), ChatId("c"), holder=ReplyId("r")))
    yield session
    run_scope.reset(token)


def result(call_id: str, actions: EventActions | None = None) -> Event:
    response = types.FunctionResponse(id=call_id, name="pay", response={"paid": 5})
    part = types.Part(function_response=response)
    content = types.Content(role="user", parts=[part])
    return Event(author="root", content=content, actions=actions or EventActions())


async def test_a_rewind_takes_back_all_but_the_title() -> None:
    sessions = LiveSessions(InMemorySessionService())
    state = {"adk_stream_title": "Hi", "adk_stream_created": 1.0, "agents": "own"}
    made = await sessions.create_session(app_name="chat", user_id="user", state=state)
    for rewound, title in (("e-1", "Hi"), (None, None)):
        delta = dict.fromkeys(state)
        actions = EventActions(rewind_before_invocation_id=rewound, state_delta=delta)
        await sessions.append_event(made, Event(author="user", actions=actions))
        found = await sessions.get_session(app_name="chat", user_id="user", session_id=made.id)
        assert found is not None
        assert (found.state.get("adk_stream_title"), found.state.get("agents")) == (title, None)


async def test_the_result_of_a_live_call_is_known_as_live_in_every_run(
    sessions: LiveSessions, session: Session
) -> None:
    stored = await sessions.append_event(session, result("call-1"))
    assert stored.live_session_id == "live-1"


async def test_results_of_other_calls_are_stored_as_they_are(
    sessions: LiveSessions, session: Session
) -> None:
    stored = await sessions.append_event(session, result("call-2"))
    assert stored.live_session_id is None


async def test_a_result_that_only_says_to_wait_is_not_told_to_models(
    sessions: LiveSessions, session: Session
) -> None:
    waiting = EventActions(requested_tool_confirmations={"call-1": ToolConfirmation()})
    stored = await sessions.append_event(session, result("call-1", waiting))
    assert stored.live_session_id is None
