"""Messages that steer a running turn: they go in front of the next question to the model.

They wait in the stores like any request for a busy chat. A turn that is about to ask the model
again takes them; one that is not leaves them, and each gets a turn of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from google.adk.agents.callback_context import CallbackContext
from google.adk.events.event import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types
from typing_extensions import override

from adk_stream_protocol.errors import ClientFault
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.identifiers import MessageId, ReplyId
from adk_stream_protocol.ports import SteeringMessage, Stores, WaitingRequest, turns_topic
from adk_stream_protocol.translation.contents import ContentLimits, user_content
from adk_stream_protocol.translation.history import steering_stamp
from adk_stream_protocol.wire.requests import parse_request

__all__ = ["Steering", "SteeringPlugin", "message_of"]


@dataclass(frozen=True, slots=True)
class Steering:
    """Takes the messages that wait to steer a turn."""

    stores: Stores
    limits: ContentLimits

    async def take(self, scope: RunScope) -> Sequence[SteeringMessage]:
        """Take what waits to steer the turn of a scope, in order; none if nothing does."""
        scope.may_be_steered = False
        # Before they are taken: whoever is cancelled may have taken some.
        scope.is_steered = True
        taken = await self.stores.waiting.steer(scope.chat_id, scope.holder, carries=scope.carries)
        if taken:
            # Whoever asked learns that the running reply answers.
            self.stores.wake.hint(turns_topic(scope.chat_id))
        return [message for request in taken if (message := self._message(request))]

    async def put_back(self, scope: RunScope, messages: Iterable[SteeringMessage]) -> None:
        """Let messages wait again that the model was not told."""
        names = [message.reply_id for message in messages]
        if names:
            await self.stores.waiting.put_back(scope.carries, names)

    async def heard(
        self, carries: ReplyId, stored: Callable[[], Awaitable[Collection[str]]]
    ) -> list[ReplyId]:
        """Return the requests that steered a turn and whose messages its session has.

        Args:
            carries: the reply under whose name the turn took them.
            stored: reads from the session which messages that are.
        """
        taken = await self.stores.waiting.carried(carries)
        steered = [request for request in taken if request.reply_id != carries]
        names = await stored() if steered else ()
        return [request.reply_id for request in steered if message_of(request) in names]

    def _message(self, request: WaitingRequest) -> SteeringMessage | None:
        said = parse_request(request.request).messages[-1]
        try:
            content = user_content(said, self.limits)
        except ClientFault:
            # It was checked when it came; the limits are others since.
            return None
        return SteeringMessage(request.reply_id, message_of(request), content)


def message_of(request: WaitingRequest) -> MessageId:
    """Return the id of the message that a request brings."""
    said = parse_request(request.request).messages[-1]
    # A client need not name its messages.
    return MessageId(said.id or request.reply_id)


class SteeringPlugin(BasePlugin):
    """Puts the messages that steer a unary run into its session, and before its model."""

    def __init__(self, steering: Steering, sessions: BaseSessionService) -> None:
        super().__init__(name="adk_stream_steering")
        self._steering = steering
        self._sessions = sessions

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        scope = run_scope.get()
        session = callback_context.session
        # An agent that is a tool has a session of its own, and a live run hears messages at once.
        if scope is None or scope.live is not None or session.id != scope.chat_id:
            return None
        again, scope.steering_again = scope.steering_again, []
        llm_request.contents.extend(map(_copy, again))
        if not scope.may_be_steered or scope.stopping:
            return None
        for message in await self._steering.take(scope):
            event = Event(
                author="user",
                invocation_id=callback_context.invocation_id,
                content=message.content,
                custom_metadata=steering_stamp(message.message_id, scope.carries),
            )
            await self._sessions.append_event(session, event)
            llm_request.contents.append(_copy(message.content))
            if scope.steered is not None:
                await scope.steered(event)
        return None


def _copy(content: types.Content) -> types.Content:
    return content.model_copy(deep=True)
