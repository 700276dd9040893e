"""The body of a chat request, as `useChat`'s transports and the older clients send it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.identifiers import ChatId, MessageId
from adk_stream_protocol.wire.messages import UIMessage, parse_message
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_text

__all__ = ["BEGINNING", "ChatRequest", "Trigger", "parse_chat_id", "parse_request"]

Trigger: TypeAlias = Literal["submit-message", "regenerate-message"]

BEGINNING: Final = MessageId("")
"""The parent of a message that begins its chat."""

_LONGEST_ID = 128


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a client asked for: its message list is only read for the newest message and answers."""

    chat_id: ChatId | None
    """None: the older clients name no chat."""
    messages: tuple[UIMessage, ...]
    """Empty only if the chat's own message is to be answered again."""
    trigger: Trigger = "submit-message"
    has_trigger: bool = True
    """False: the client did not say, as those that were told to send only a message do not."""
    message_id: MessageId | None = None
    """The message to continue, edit or regenerate; None for a new one."""
    parent_id: MessageId | None = None
    """The message after which the chat goes on, or `BEGINNING`; None: after its last."""


def parse_chat_id(value: str) -> ChatId:
    """Return a chat id that is fit to name an ADK session.

    Raises:
        BadRequest: it is empty, too long, or has control characters or slashes.
    """
    if not 0 < len(value) <= _LONGEST_ID or not value.isprintable() or "/" in value:
        raise BadRequest(
            f"A chat id is 1 to {_LONGEST_ID} printable characters without '/'.", code="bad_chat_id"
        )
    return ChatId(value)


def parse_request(body: JsonValue) -> ChatRequest:
    """Read a chat request.

    Raises:
        BadRequest: it has no message though it needs one, or a field is not what it must be.
    """
    if not isinstance(body, Mapping):
        raise BadRequest(
            'The body must be an object with "messages" or "message".', code="bad_request"
        )
    trigger = body.get("trigger", "submit-message")
    if trigger != "submit-message" and trigger != "regenerate-message":
        raise BadRequest(
            '"trigger" must be "submit-message" or "regenerate-message".', code="bad_trigger"
        )
    messages = _messages(body)
    if not messages and (trigger != "regenerate-message" or body.get("messages")):
        raise BadRequest(
            'The body needs "messages", a list with at least one message, or "message". Only a '
            'request with "trigger": "regenerate-message" can do without.',
            code="no_messages",
        )
    chat_id = body.get("id")
    if chat_id is not None and not isinstance(chat_id, str):
        raise BadRequest('"id" must be a string: the chat\'s id.', code="bad_chat_id")
    message_id = as_text(body.get("messageId"))
    return ChatRequest(
        chat_id=None if chat_id is None else parse_chat_id(chat_id),
        messages=tuple(parse_message(message) for message in messages),
        trigger=trigger,
        has_trigger="trigger" in body,
        message_id=MessageId(message_id) if message_id else None,
        parent_id=_parent_id(body),
    )


def _messages(body: JsonObject) -> Sequence[JsonValue]:
    """Return the messages of a body; none if it has none, or what it has is no list."""
    messages = body.get("messages")
    if isinstance(messages, Sequence) and not isinstance(messages, str) and messages:
        return messages
    # What the AI SDK's documentation shows for servers that keep the history, as this one does.
    message = body.get("message")
    return [] if message is None else [message]


def _parent_id(body: JsonObject) -> MessageId | None:
    if "parentId" not in body:
        return None
    parent_id = body["parentId"]
    if parent_id is None:
        return BEGINNING
    if not isinstance(parent_id, str) or not 0 < len(parent_id) <= _LONGEST_ID:
        raise BadRequest(
            '"parentId" must be the id of a message, or null for the beginning of the chat.',
            code="bad_parent_id",
        )
    return MessageId(parent_id)
