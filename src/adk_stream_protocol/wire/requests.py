"""The body of a chat request, as `useChat`'s transports and the older clients send it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.identifiers import ChatId, MessageId
from adk_stream_protocol.wire.messages import UIMessage, parse_message
from adk_stream_protocol.wire.profiles import Profile
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_text

__all__ = [
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

_LONGEST_ID = 128


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a client asked for: its message list is only read for the newest message and answers."""

    chat_id: ChatId | None
    """None: the older clients name no chat."""
    messages: tuple[UIMessage, ...]
    trigger: Trigger = "submit-message"
    message_id: MessageId | None = None
    """The message to continue, edit or regenerate; None for a new one."""
    busy: BusyPolicy | None = None
    """What it does to a reply that runs in its chat; None: what the settings say."""

    def to_json(self) -> JsonObject:
        """Return what `parse_request` reads the same request from, with its newest message only.

        That is all that a request needs which says something or asks for another answer.
        """
        written: dict[str, JsonValue] = {"trigger": self.trigger}
        if self.chat_id is not None:
            written["id"] = self.chat_id
        if self.message_id is not None:
            written["messageId"] = self.message_id
        users = [message for message in self.messages if message.role == "user"]
        written["messages"] = [message.to_json() for message in users[-1:]]
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
        BadRequest: there are no messages, or a field is not what it must be.
    """
    if isinstance(body, str):
        body = {"prompt": body}
    if not isinstance(body, Mapping):
        raise BadRequest(
            'The body must be an object with "messages" or "prompt".', code="bad_request"
        )
    messages = body.get("messages")
    if messages is None and "prompt" in body:
        messages = [_prompted(body["prompt"])]
    if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
        raise BadRequest(
            'The body needs "messages", a list with at least one message; or "prompt", a text.',
            code="no_messages",
        )
    trigger = body.get("trigger", "submit-message")
    if trigger != "submit-message" and trigger != "regenerate-message":
        raise BadRequest(
            '"trigger" must be "submit-message" or "regenerate-message".', code="bad_trigger"
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
        message_id=MessageId(message_id) if message_id else None,
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


def _prompted(prompt: JsonValue) -> JsonValue:
    """Return a prompt as a user's message; it has no id, so it is a new one each time."""
    if not isinstance(prompt, str):
        raise BadRequest('"prompt" must be a string.', code="bad_prompt")
    return {"role": "user", "parts": [{"type": "text", "text": prompt}]}
