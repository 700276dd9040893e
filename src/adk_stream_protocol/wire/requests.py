"""The body of a chat request, as `useChat`'s transports and the older clients send it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, get_args

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.identifiers import ChatId, MessageId
from adk_stream_protocol.wire.messages import UIMessage, parse_message
from adk_stream_protocol.wire.profiles import Profile
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_text

__all__ = [
    "BEGINNING",
    "BusyPolicy",
    "ChatRequest",
    "Trigger",
    "parse_busy",
    "parse_chat_id",
    "parse_profile",
    "parse_request",
]

Trigger: TypeAlias = Literal["submit-message", "regenerate-message"]

BusyPolicy: TypeAlias = Literal["interrupt", "queue", "steer", "reject"]
"""What a request does to a reply that runs in its chat.

`interrupt` stops it, `queue` waits for its end, `steer` joins it if it can and waits if it cannot,
and `reject` is refused.
"""

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
    busy: BusyPolicy | None = None
    """What it does to a reply that runs in its chat; None: what the settings say."""

    def to_json(self) -> JsonObject:
        """Return what `parse_request` reads the same request from, with its newest message only.

        That is all that a request needs which says something or asks for another answer: what the
        user said last, or, if it has nothing of the user's, any.
        """
        written: dict[str, JsonValue] = {}
        if self.has_trigger:
            written["trigger"] = self.trigger
        if self.chat_id is not None:
            written["id"] = self.chat_id
        if self.message_id is not None:
            written["messageId"] = self.message_id
        if self.parent_id is not None:
            written["parentId"] = self.parent_id or None
        users = [message for message in self.messages if message.role == "user"]
        kept = (users or self.messages)[-1:]
        written["messages"] = [message.to_json() for message in kept]
        return written


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


def parse_profile(value: str | None) -> Profile | None:
    """Return the profile that an address names; None: it names none.

    Raises:
        BadRequest: there is no such profile.
    """
    match value:
        case None | "ai-sdk" | "adk":
            return value
        case _:
            raise BadRequest('"profile" must be "ai-sdk" or "adk".', code="bad_parameter")


def parse_request(body: JsonValue) -> ChatRequest:
    """Read a chat request.

    `useCompletion` and `useObject` send a prompt instead of messages: an object with `prompt`, or
    just a string.

    Raises:
        BadRequest: it has no message though it needs one, or a field is not what it must be.
    """
    if isinstance(body, str):
        body = {"prompt": body}
    if not isinstance(body, Mapping):
        raise BadRequest(
            'The body must be an object with "messages", "message" or "prompt".',
            code="bad_request",
        )
    trigger = body.get("trigger", "submit-message")
    if trigger != "submit-message" and trigger != "regenerate-message":
        raise BadRequest(
            '"trigger" must be "submit-message" or "regenerate-message".', code="bad_trigger"
        )
    messages = _messages(body)
    if not messages and (trigger != "regenerate-message" or body.get("messages")):
        raise BadRequest(
            'The body needs "messages", a list with at least one message, or "message", or a text '
            'as "prompt". Only a request with "trigger": "regenerate-message" can do without.',
            code="no_messages",
        )
    chat_id = body.get("id")
    if chat_id is not None and not isinstance(chat_id, str):
        raise BadRequest('"id" must be a string: the chat\'s id.', code="bad_chat_id")
    message_id = as_text(body.get("messageId"))
    busy = body.get("busy")
    return ChatRequest(
        chat_id=None if chat_id is None else parse_chat_id(chat_id),
        messages=tuple(parse_message(message) for message in messages),
        trigger=trigger,
        has_trigger="trigger" in body,
        message_id=MessageId(message_id) if message_id else None,
        parent_id=_parent_id(body),
        busy=None if busy is None else parse_busy(busy),
    )


def parse_busy(value: JsonValue) -> BusyPolicy:
    """Return what a request does to a reply that runs.

    Raises:
        BadRequest: there is no such policy.
    """
    if value not in get_args(BusyPolicy):
        raise BadRequest(
            '"busy" must be "interrupt", "queue", "steer" or "reject".', code="bad_busy"
        )
    return cast("BusyPolicy", value)


def _messages(body: JsonObject) -> Sequence[JsonValue]:
    """Return the messages of a body; none if it has none, or what it has is no list."""
    messages = body.get("messages")
    if isinstance(messages, Sequence) and not isinstance(messages, str) and messages:
        return messages
    # What the AI SDK's documentation shows for servers that keep the history, as this one does.
    message = body.get("message")
    if message is None and messages is None and "prompt" in body:
        message = _prompted(body["prompt"])
    return [] if message is None else [message]


def _prompted(prompt: JsonValue) -> JsonValue:
    """Return a prompt as a user's message; it has no id, so it is a new one each time."""
    if not isinstance(prompt, str):
        raise BadRequest('"prompt" must be a string.', code="bad_prompt")
    return {"role": "user", "parts": [{"type": "text", "text": prompt}]}


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
