"""Makes runs of the agent, in the mode that a route picked, or that the turn had before."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from google.adk.sessions.session import Session
from google.genai import types

from adk_stream_protocol.engine.draft import Draft
from adk_stream_protocol.engine.live_runs import LiveRuns
from adk_stream_protocol.engine.sessions import Sessions
from adk_stream_protocol.engine.turn_names import TurnNames
from adk_stream_protocol.engine.unary_run import UnaryRun, unary_config
from adk_stream_protocol.held_calls.run_scope import RunScope
from adk_stream_protocol.identifiers import InvocationId
from adk_stream_protocol.ports import AgentRun
from adk_stream_protocol.translation.history import PastTurn, stamp

__all__ = ["Modes"]


@dataclass(frozen=True, slots=True)
class Modes:
    """The one place that knows that there are two."""

    sessions: Sessions
    lives: LiveRuns
    max_llm_calls: int = 25
    tool_threads: int = 8

    async def runs(
        self,
        draft: Draft,
        past: PastTurn,
        contents: Sequence[types.Content],
        *,
        session: Session | None = None,
    ) -> tuple[RunScope, Sequence[AgentRun]]:
        """Return the runs that give contents to ADK, one after another, and their scope.

        Args:
            draft: the turn that was asked for.
            past: the turn that goes on, or the names of a new one.
            contents: what the user said, or the answers of each agent that asked; none: the turn
                only tells something.
            session: the chat's session as it is, if it was read for this turn.
        """
        live = past.live if draft.mode is None else draft.mode == "live"
        # ADK reads the answers of one agent when a live run begins.
        if live and len(contents) == 1:
            names = _names(draft, past)
            return await self.lives.turn(
                draft.owner, draft.chat_id, names, contents[0], previous=draft.previous
            )
        # What a live run knows of the session is outdated from here on, and it may have left more.
        if await self.lives.end(draft.chat_id):
            session = None
        scope = RunScope(
            draft.owner,
            draft.chat_id,
            holder=draft.reply_id,
            origin=draft.origin,
            session=session,
        )
        return scope, [self._unary(scope, content, past, draft) for content in contents]

    def _unary(
        self, scope: RunScope, content: types.Content, past: PastTurn, draft: Draft
    ) -> UnaryRun:
        return UnaryRun(
            self.sessions.runner,
            content,
            scope=scope,
            config=unary_config(
                max_llm_calls=self.max_llm_calls,
                tool_threads=self.tool_threads,
                stamp=stamp(
                    user_message=past.user_message_id,
                    message=past.message_id,
                    # Of all that make up for one reply: what is stored is the request's.
                    reply=draft.origin or draft.reply_id,
                    created_at=past.began_at,
                ),
            ),
        )


def _names(draft: Draft, past: PastTurn) -> TurnNames:
    return TurnNames(
        reply_id=draft.reply_id,
        message_id=past.message_id,
        user_message_id=past.user_message_id,
        invocation_id=past.invocation_id or InvocationId(f"e-{uuid.uuid4()}"),
        origin=draft.origin,
        created_at=past.began_at,
    )
