"""The names of things, as types, so that one id cannot be passed where another is meant."""

from __future__ import annotations

from typing import NewType

__all__ = [
    "ApprovalId",
    "CallId",
    "ChatId",
    "InvocationId",
    "MessageId",
    "ReplyId",
    "RequestId",
    "UserId",
]

ChatId = NewType("ChatId", str)
"""One conversation, named by `useChat`'s id; also the id of its ADK session."""

UserId = NewType("UserId", str)
"""Who `identify` said the caller is. Never taken from a request body."""

MessageId = NewType("MessageId", str)
"""One UIMessage: the client's own id for a user message, ours for an assistant message."""

ReplyId = NewType("ReplyId", str)
"""One stream of chunks in the log."""

CallId = NewType("CallId", str)
"""One tool call, as ADK named it; `toolCallId` on the wire."""

ApprovalId = NewType("ApprovalId", str)
"""One request to the client for a held call: the id of ADK's `adk_request_confirmation` call."""

InvocationId = NewType("InvocationId", str)
"""One ADK invocation; everything that produces one assistant message shares it."""

RequestId = NewType("RequestId", str)
"""One request on a WebSocket, as the client named it; unique on its socket while it is open."""
