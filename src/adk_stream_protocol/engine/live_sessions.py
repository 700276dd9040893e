"""ADK's session service: what live runs store gets the ids of its turn, and titles stay.

ADK stores everything of a live run under one invocation, however many turns it has, and what the
user says without any mark of ours. The rest of the house knows turns by their invocation.
"""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from typing_extensions import override

from adk_stream_protocol.engine.sessions import OWN_STATE, rewind_metadata
from adk_stream_protocol.errors import telling_loss
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.translation.history import reply_of, steering_stamp

__all__ = ["LiveSessions"]


class LiveSessions(BaseSessionService):
    """Hands everything to the service it is given.

    Its database may go away: then each of these raises `StoreLost`.
    """

    def __init__(self, inner: BaseSessionService) -> None:
        self._inner = inner

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        scope = run_scope.get()
        if scope is None or session.id != scope.chat_id:
            return await self._append(session, event)
        _note_live_call(session, event)
        if scope.live is None or reply_of(event) is not None:
            return await self._append(session, event)
        if _is_machinery(event):
            return event
        return await self._append_to_turn(scope, session, event)

    async def _append_to_turn(self, scope: RunScope, session: Session, event: Event) -> Event:
        turn = scope.live
        assert turn is not None, "only live runs have turns of their own"
        event.invocation_id = turn.invocation_id
        is_speech = _is_speech(event)
        steers = is_speech and scope.said is None and bool(scope.unstored)
        marks = turn.stamp
        if steers:
            marks = steering_stamp(scope.unstored[0].message_id, scope.carries)
        event.custom_metadata = {**(event.custom_metadata or {}), **marks}
        stored = await self._append(session, event)
        if steers:
            del scope.unstored[0]
            if scope.steered is not None:
                await scope.steered(event)
        elif is_speech:
            scope.said = None
            if scope.stored is not None:
                await scope.stored()
        return stored

    async def _append(self, session: Session, event: Event) -> Event:
        if event.actions.rewind_before_invocation_id:
            _keep_own_state(event)
            noted = rewind_metadata.get() or {}
            event.custom_metadata = {**(event.custom_metadata or {}), **noted}
        with telling_loss():
            return await self._inner.append_event(session, event)

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        with telling_loss():
            return await self._inner.create_session(
                app_name=app_name, user_id=user_id, state=state, session_id=session_id
            )

    @override
    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        scope = run_scope.get()
        if scope is not None and scope.session is not None and config is None:
            # Read a moment ago, under the lease that the run is made under.
            session, scope.session = scope.session, None
            if (session.app_name, session.user_id, session.id) == (app_name, user_id, session_id):
                return session
        with telling_loss():
            return await self._inner.get_session(
                app_name=app_name, user_id=user_id, session_id=session_id, config=config
            )

    @override
    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        with telling_loss():
            return await self._inner.list_sessions(app_name=app_name, user_id=user_id)

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        with telling_loss():
            await self._inner.delete_session(
                app_name=app_name, user_id=user_id, session_id=session_id
            )

    @override
    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        with telling_loss():
            return await self._inner.get_user_state(app_name=app_name, user_id=user_id)

    @override
    async def flush(self) -> None:
        with telling_loss():
            await self._inner.flush()


def _keep_own_state(rewind: Event) -> None:
    """Let a rewind leave the title as it is.

    ADK takes back all of a session's state that no earlier event has set, also what the session
    was created with; see ADR-0008.
    """
    delta = rewind.actions.state_delta
    rewind.actions.state_delta = {name: delta[name] for name in delta if name not in OWN_STATE}


def _note_live_call(session: Session, event: Event) -> None:
    """Let results of a live connection's calls be known as such, whoever ran them.

    ADK retells such calls in words when a history is sent, and drops results that have no call:
    of a call that was approved later the model would never learn how it ended.
    """
    responses = event.get_function_responses()
    results = {r.id for r in responses} - set(event.actions.requested_tool_confirmations or ())
    if event.live_session_id or not results:
        return
    for past in reversed(session.events):
        if past.live_session_id and results & {call.id for call in past.get_function_calls()}:
            event.live_session_id = past.live_session_id
            return


def _is_speech(event: Event) -> bool:
    """Whether the user typed something."""
    parts = (event.content.parts if event.content else None) or []
    return event.author == "user" and any(part.function_response is None for part in parts)


def _is_machinery(event: Event) -> bool:
    """Whether an event is only about the connection to the model; a handle is nobody's business."""
    return event.live_session_resumption_update is not None or event.voice_activity is not None
