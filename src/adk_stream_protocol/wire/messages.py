"""A UIMessage and its parts: as the browser sends them, and as history gives them back.

Parts are kept as the JSON objects the AI SDK uses; this module only knows how to look into them.
It reads leniently, because a client's message list is never the truth: what is not understood is
carried along and ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.wire.values import (
    JsonObject,
    JsonValue,
    as_object,
    as_text,
    check_storable,
)

__all__ = ["Part", "Role", "ToolPart", "UIMessage", "parse_message", "tool_name_of", "tool_parts"]

Role: TypeAlias = Literal["system", "user", "assistant"]
Part: TypeAlias = dict[str, JsonValue]

_LONGEST_ID = 128
_ROLES = ("system", "user", "assistant")


@dataclass(slots=True)
class UIMessage:
    """One message of a chat."""

    id: str
    role: Role
    parts: list[Part] = field(default_factory=list)
    metadata: JsonValue = None
    """None: the message has no metadata."""
    content: tuple[JsonObject, ...] = ()
    """The older form: items of a `content` list, `text` or `tool-result`."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the message as `useChat({messages})` takes it."""
        written: dict[str, JsonValue] = {"id": self.id, "role": self.role}
        if self.metadata is not None:
            written["metadata"] = self.metadata
        written["parts"] = cast("JsonValue", self.parts)
        if self.content:
            written["content"] = self.content
        return written

    @property
    def text(self) -> str:
        """All text of the message, joined."""
        return "".join(as_text(part.get("text")) for part in self.parts if part["type"] == "text")


@dataclass(frozen=True, slots=True)
class ToolPart:
    """What we look at in a tool part of a client's message."""

    name: str
    call_id: str
    state: str
    output: JsonValue
    error_text: str
    approval: JsonObject
    has_output: bool


def parse_message(value: JsonValue) -> UIMessage:
    """Read one message of a request, in the AI SDK's form or the older `content` form.

    Raises:
        BadRequest: it is not an object, its role is unknown, or its id cannot be stored.
    """
    raw = as_object(value)
    role = as_text(raw.get("role"))
    if role not in _ROLES:
        raise BadRequest(
            'Each message needs a "role": "user", "assistant" or "system".', code="bad_message"
        )
    message_id = as_text(raw.get("id"))
    if len(message_id) > _LONGEST_ID:
        raise BadRequest(f"A message id has at most {_LONGEST_ID} characters.", code="bad_message")
    check_storable(message_id, "The id of a message")
    content = raw.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    return UIMessage(
        id=message_id,
        role=cast("Role", role),
        parts=[dict(part) for part in _objects(raw.get("parts"))],
        metadata=raw.get("metadata"),
        content=tuple(_objects(content)),
    )


def _objects(value: JsonValue) -> Iterator[JsonObject]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            found = as_object(item)
            if as_text(found.get("type")):
                yield found


def tool_name_of(part: JsonObject) -> str:
    """Return the tool's name if the part is a tool call, else the empty string."""
    kind = as_text(part.get("type"))
    if kind == "dynamic-tool":
        return as_text(part.get("toolName"))
    return kind.removeprefix("tool-") if kind.startswith("tool-") else ""


def tool_parts(message: UIMessage) -> Iterator[ToolPart]:
    """Yield the tool calls of a message, in order."""
    for part in message.parts:
        name = tool_name_of(part)
        if name:
            yield ToolPart(
                name=name,
                call_id=as_text(part.get("toolCallId")),
                state=as_text(part.get("state")),
                output=part.get("output"),
                error_text=as_text(part.get("errorText")),
                approval=as_object(part.get("approval")),
                has_output="output" in part,
            )
