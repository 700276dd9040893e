"""The JSON shapes of the API, for OpenAPI; the routes themselves read and build plain objects.

To add a field, add it to its shape. A field with `| None = None` may be absent, and is never null.
One that may be null has its JSON Schema beside it: see `ChatRequestShape.parentId`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from adk_stream_protocol.wire.data_parts import ApprovalStatus
from adk_stream_protocol.wire.messages import Role
from adk_stream_protocol.wire.requests import Trigger

__all__ = [
    "ApprovalShape",
    "ApprovalsShape",
    "AuditShape",
    "ChatChangeShape",
    "ChatListItem",
    "ChatRequestShape",
    "ChatShape",
    "ChatsShape",
    "DecisionShape",
    "ErrorShape",
    "HealthShape",
    "ReadinessShape",
    "ResolutionRequestShape",
    "StoppedShape",
    "TrailEntryShape",
    "TrailShape",
]


def _as_on_the_wire(schema: dict[str, Any]) -> None:
    """Make optional properties what they are on the wire: absent, never null."""
    for described in schema.get("properties", {}).values():
        # Pydantic's are the names again; generators would name types by them.
        described.pop("title", None)
        if "default" in described and described["default"] is None:
            del described["default"]
        choices = [item for item in described.pop("anyOf", ()) if item != {"type": "null"}]
        described.update(choices[0] if len(choices) == 1 else {"anyOf": choices} if choices else {})


class _Shape(BaseModel):
    # Any object may have more fields than are listed. With an explicit `additionalProperties`,
    # openapi-typescript adds an index signature: then a wrong name is no error any more, unions
    # cannot be narrowed, and no interface fits, such as the AI SDK's `UIMessage`.
    model_config = ConfigDict(json_schema_extra=_as_on_the_wire)


class _OpenShape(_Shape):
    """An object whose other fields matter to whoever sent it."""

    model_config = ConfigDict(extra="allow")


Time: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]


class ErrorDetail(_Shape):
    code: str = Field(description="What a program can tell errors apart by")
    message: str = Field(description="What was wrong and what to do, for a person")
    id: str = Field(description="The same as in the server's log")


class ErrorShape(_Shape):
    error: ErrorDetail


class StoppedShape(_Shape):
    stopped: bool


class ChatListItem(_Shape):
    id: str
    title: str
    createdAt: Time  # noqa: N815  # as on the wire
    updatedAt: Time  # noqa: N815
    archived: bool


class ChatsShape(_Shape):
    chats: list[ChatListItem]
    nextCursor: str | None = Field(  # noqa: N815
        None, description="The cursor of the next page; absent on the last one"
    )


class PartShape(_OpenShape):
    type: str = Field(description="Such as `text`, `file`, `tool-NAME` or `data-NAME`")


class UIMessageShape(_Shape):
    id: str
    role: Role
    parts: list[PartShape]
    metadata: Any = Field(None, description="Of any kind; absent if there is none")


class ChatShape(ChatListItem):
    activeStreamId: Annotated[  # noqa: N815
        str | None,
        WithJsonSchema({"type": ["string", "null"]}),
        Field(description="Not null while a reply runs, which can then be resumed"),
    ]
    messages: list[UIMessageShape] = Field(description="Ready for `useChat({ messages })`")


class StepShape(_Shape):
    n: int
    of: int
    name: str
    by: list[str] | None = None
    fourEyes: bool | None = None  # noqa: N815


class ResolutionShape(_Shape):
    at: Time
    by: str | None = None
    reason: str | None = None


class ApprovalShape(_Shape):
    id: str
    chatId: str  # noqa: N815
    owner: str
    toolCallId: str  # noqa: N815
    toolName: str  # noqa: N815
    input: dict[str, Any]
    status: ApprovalStatus
    title: str
    hint: str
    risk: str
    createdAt: Time  # noqa: N815
    expiresAt: Time  # noqa: N815
    decidedAt: Time | None = None  # noqa: N815
    decidedBy: str | None = None  # noqa: N815
    reason: str | None = None
    argumentsHash: str  # noqa: N815
    automatic: bool | None = None
    rememberable: bool | None = None
    remembered: bool | None = None
    payload: Any = Field(None, description="What a tool that asks by itself gave with it")
    ui: dict[str, Any] | None = None
    inputSchema: dict[str, Any] | None = None  # noqa: N815
    editable: bool | None = None
    editedInput: dict[str, Any] | None = None  # noqa: N815
    editedBy: str | None = None  # noqa: N815
    editedArgumentsHash: str | None = None  # noqa: N815
    step: StepShape | None = None
    approvedBy: list[str] | None = None  # noqa: N815
    resolved: ResolutionShape | None = None


class ApprovalsShape(_Shape):
    approvals: list[ApprovalShape]


class TrailEntryShape(_Shape):
    at: Time
    event: str
    approvalId: str  # noqa: N815
    chatId: str  # noqa: N815
    toolCallId: str  # noqa: N815
    toolName: str  # noqa: N815
    owner: str
    argumentsHash: str  # noqa: N815
    input: dict[str, Any] | None = Field(None, description="Only with `?arguments=true`")
    by: str | None = None
    via: str | None = None
    reason: str | None = None
    decisionId: str | None = None  # noqa: N815
    step: int | None = None
    edited: bool | None = None
    automatic: bool | None = None
    remember: bool | None = None
    rememberable: bool | None = None


class TrailShape(_Shape):
    id: str
    trail: list[TrailEntryShape]


class AuditShape(_Shape):
    trail: list[TrailEntryShape]


class HealthShape(_Shape):
    status: Literal["ok"]


class ReadinessShape(_Shape):
    status: Literal["ready", "draining", "not ready"]
    part: str | None = Field(None, description="Which part is not ready")


# What clients send


class MessageShape(_Shape):
    """A UIMessage; in the older form its `content` stands in place of `parts`."""

    role: Role
    id: str | None = Field(None, max_length=128)
    parts: list[PartShape] | None = None
    content: str | list[PartShape] | None = Field(
        None, description="The older form: a text, or items of type `text` and `tool-result`"
    )
    metadata: Any = None


class ChatRequestShape(_OpenShape):
    """What `useChat` sends. One of `messages`, `message` and `prompt`; a regeneration needs none.

    Fields that are not listed here are ignored.
    """

    id: str | None = Field(
        None,
        min_length=1,
        max_length=128,
        description="The chat's id; by default a new chat, or that of the call that is answered",
    )
    messages: list[MessageShape] | None = Field(
        None,
        min_length=1,
        description="The chat as the client has it; only the newest message and answers are read",
    )
    message: MessageShape | None = Field(
        None, description="The newest message alone, in place of `messages`"
    )
    prompt: str | None = Field(
        None, description="A text to say, in place of `messages`, as `useCompletion` sends it"
    )
    trigger: Trigger | None = None
    messageId: str | None = Field(  # noqa: N815
        None, description="The message to continue, edit or regenerate"
    )
    parentId: Annotated[  # noqa: N815
        str | None,
        WithJsonSchema({"type": ["string", "null"]}),
        Field(description="Rewind to after this message first; null: to the beginning"),
    ] = None
    busy: Literal["interrupt", "queue", "steer", "reject"] | None = Field(
        None, description="What becomes of a reply that runs in the chat; default: the setting"
    )


class ChatChangeShape(_Shape):
    """What a person sets for a chat; at least one of the two."""

    title: Annotated[
        str | None,
        WithJsonSchema({"type": ["string", "null"], "minLength": 1, "maxLength": 200}),
        Field(description="null: the title that the chat began with"),
    ] = None
    archived: bool | None = None


class DecisionShape(_Shape):
    """A decision on an approval."""

    approved: bool
    reason: str | None = Field(None, max_length=500)
    decisionId: str | None = Field(  # noqa: N815
        None, min_length=1, max_length=128, description="Makes a retry recognisable"
    )
    remember: bool | None = Field(
        None, description="Also for later calls of the tool in this chat, where allowed"
    )
    argumentsHash: str | None = Field(  # noqa: N815
        None, description="Of the arguments that were shown; needed once they were edited"
    )
    input: dict[str, Any] | None = Field(
        None, description="The arguments to run instead, where the approval is editable"
    )


class ResolutionRequestShape(_Shape):
    """How a call ended of which nobody knows."""

    outcome: Literal["done", "failed"]
    result: Any = Field(None, description="What the tool would have returned; only if it is done")
    reason: str | None = Field(None, max_length=500)
