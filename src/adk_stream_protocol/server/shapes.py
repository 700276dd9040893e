"""The JSON shapes of the API, for the OpenAPI page; the routes themselves build plain objects."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CHAT_BODY",
    "DECISION_BODY",
    "RESOLUTION_BODY",
    "ApprovalShape",
    "ApprovalsShape",
    "ChatShape",
    "ChatsShape",
    "ErrorShape",
    "StoppedShape",
    "TrailShape",
]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow")


class ErrorDetail(_Shape):
    code: str
    message: str
    id: str


class ErrorShape(_Shape):
    error: ErrorDetail


class StoppedShape(_Shape):
    stopped: bool


class ChatListItem(_Shape):
    id: str
    title: str
    createdAt: str  # noqa: N815  # as on the wire
    updatedAt: str  # noqa: N815


class ChatsShape(_Shape):
    chats: list[ChatListItem]


class ChatShape(ChatListItem):
    activeStreamId: str | None = Field(  # noqa: N815
        description="Not null while a reply runs, which can then be resumed"
    )
    messages: list[dict[str, Any]] = Field(description="UIMessages, ready for useChat({messages})")


class StepShape(_Shape):
    n: int
    of: int
    name: str
    by: list[str] | None = None
    fourEyes: bool | None = None  # noqa: N815


class ResolutionShape(_Shape):
    at: str
    by: str | None = None
    reason: str | None = None


class ApprovalShape(_Shape):
    id: str
    chatId: str  # noqa: N815
    owner: str
    toolCallId: str  # noqa: N815
    toolName: str  # noqa: N815
    input: dict[str, Any]
    status: Literal[
        "pending",
        "approved",
        "denied",
        "expired",
        "cancelled",
        "running",
        "done",
        "failed",
        "unknown",
    ]
    title: str
    hint: str
    risk: str
    createdAt: str  # noqa: N815
    expiresAt: str  # noqa: N815
    decidedAt: str | None = None  # noqa: N815
    decidedBy: str | None = None  # noqa: N815
    reason: str | None = None
    argumentsHash: str  # noqa: N815
    automatic: bool | None = None
    rememberable: bool | None = None
    remembered: bool | None = None
    inputSchema: dict[str, Any] | None = None  # noqa: N815
    editable: bool | None = None
    editedInput: dict[str, Any] | None = None  # noqa: N815
    editedBy: str | None = None  # noqa: N815
    editedArgumentsHash: str | None = None  # noqa: N815
    step: StepShape | None = None
    approvedBy: list[str] | None = None  # noqa: N815
    resolved: ResolutionShape | None = None


class TrailEntryShape(_Shape):
    at: str
    event: str
    approvalId: str  # noqa: N815
    chatId: str  # noqa: N815
    toolCallId: str  # noqa: N815
    toolName: str  # noqa: N815
    owner: str
    argumentsHash: str  # noqa: N815
    by: str | None = None
    via: str | None = None
    reason: str | None = None


class TrailShape(_Shape):
    id: str
    trail: list[TrailEntryShape]


class ApprovalsShape(_Shape):
    approvals: list[ApprovalShape]


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


CHAT_BODY: Final = _body(
    {
        "type": "object",
        "required": ["messages"],
        "properties": {
            "id": {"type": "string", "description": "The chat's id"},
            "messages": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "object"},
                "description": "UIMessages; only the newest one and answers are read",
            },
            "trigger": {"enum": ["submit-message", "regenerate-message"]},
            "messageId": {
                "type": "string",
                "description": "The message to continue, edit or regenerate",
            },
        },
    }
)

DECISION_BODY: Final = _body(
    {
        "type": "object",
        "required": ["approved"],
        "properties": {
            "approved": {"type": "boolean"},
            "reason": {"type": "string", "maxLength": 500},
            "decisionId": {"type": "string", "description": "Makes a retry recognisable"},
            "remember": {
                "type": "boolean",
                "description": "Also for later calls of the tool in this chat, where allowed",
            },
            "argumentsHash": {
                "type": "string",
                "description": "Of the arguments that were shown; needed once they were edited",
            },
            "input": {
                "type": "object",
                "description": "The arguments to run instead, where the approval is editable",
            },
        },
    }
)

RESOLUTION_BODY: Final = _body(
    {
        "type": "object",
        "required": ["outcome"],
        "properties": {
            "outcome": {"enum": ["done", "failed"]},
            "result": {"description": "What the tool would have returned; only if it is done"},
            "reason": {"type": "string", "maxLength": 500},
        },
    }
)
