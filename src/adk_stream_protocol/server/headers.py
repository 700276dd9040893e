"""The headers of responses that clients read beside a body."""

from __future__ import annotations

from typing import Final

from adk_stream_protocol.identifiers import ChatId

__all__ = [
    "CHAT",
    "ERROR_CODE",
    "ERROR_ID",
    "EXPOSED",
    "RESUMABLE",
    "header_text",
]

CHAT: Final = "x-adk-stream-chat"
"""The chat that a request was made in."""
RESUMABLE: Final = "x-resumable-stream-id"
"""What assistant-ui keeps of a reply, to resume it after a reload: the chat's id."""
ERROR_CODE: Final = "x-adk-stream-error"
ERROR_ID: Final = "x-adk-stream-error-id"

EXPOSED: Final = (CHAT, RESUMABLE, ERROR_CODE, ERROR_ID, "retry-after")
"""What a page of another origin may read: browsers hide all other headers from it."""


def header_text(chat_id: ChatId) -> str:
    """Return a chat's id as a header carries it: its UTF-8 bytes, which ASCII ids are as well."""
    return chat_id.encode("utf-8").decode("latin-1")
