"""The list of chats in pages, and what may be changed of a chat."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from adk_stream_protocol.engine.sessions import ChatInfo
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.ports import ChatChange
from adk_stream_protocol.translation.cards import time_text
from adk_stream_protocol.wire.values import JsonValue, check_storable

__all__ = [
    "DEFAULT_LIMIT",
    "LARGEST_LIMIT",
    "ArchivedFilter",
    "chat_json",
    "list_json",
    "page_of",
    "parse_change",
    "parse_cursor",
]

DEFAULT_LIMIT: Final = 50
LARGEST_LIMIT: Final = 200
LONGEST_TITLE: Final = 200

ArchivedFilter: TypeAlias = Literal["false", "true", "all"]
"""Which chats are listed: those that are not archived, those that are, or both."""

Place: TypeAlias = tuple[float, str]
"""Where a chat stands in the list: when it changed, and its id for those that changed together."""


def chat_json(chat: ChatInfo) -> dict[str, JsonValue]:
    """Return a chat as the list shows it."""
    return {
        "id": chat.id,
        "title": chat.title,
        "createdAt": time_text(chat.created_at),
        "updatedAt": time_text(chat.updated_at),
        "archived": chat.archived,
    }


def list_json(
    chats: Sequence[ChatInfo], *, cursor: str | None, limit: int, archived: ArchivedFilter
) -> dict[str, JsonValue]:
    """Return a page of a list as it is answered.

    Args:
        chats: the whole list, newest first.
        cursor: the cursor of the page; None: it is the first.
        limit: how many at most.
        archived: which of them.

    Raises:
        BadRequest: the cursor is none of ours.
    """
    after = None if cursor is None else parse_cursor(cursor)
    page, following = page_of(chats, after=after, limit=limit, archived=archived)
    shown: dict[str, JsonValue] = {"chats": [chat_json(chat) for chat in page]}
    return shown if following is None else {**shown, "nextCursor": following}


def page_of(
    chats: Sequence[ChatInfo], *, after: Place | None, limit: int, archived: ArchivedFilter
) -> tuple[Sequence[ChatInfo], str | None]:
    """Return a page of a list, and the cursor of the next one; None: it is the last.

    A page begins below a place, not at a number. So a chat that is new, or that goes to the top
    because something was said in it, shifts no other chat into a page twice.

    Args:
        chats: the whole list, newest first.
        after: the place of the last chat of the page before; None: from the first.
        limit: how many at most.
        archived: which of them.
    """
    wanted = {"false": (False,), "true": (True,), "all": (False, True)}[archived]
    found = [
        chat
        for chat in chats
        if chat.archived in wanted and (after is None or _place(chat) < after)
    ]
    page = found[:limit]
    return page, _cursor(page[-1]) if len(found) > limit else None


def _place(chat: ChatInfo) -> Place:
    return chat.updated_at, chat.id


def _cursor(chat: ChatInfo) -> str:
    text = json.dumps(_place(chat))
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii").rstrip("=")


def parse_cursor(cursor: str) -> Place:
    """Return the place that a cursor of ours names.

    Raises:
        BadRequest: it is none.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("utf-8")
        updated_at, chat_id = json.loads(text)
        if isinstance(chat_id, str) and math.isfinite(float(updated_at)):
            return float(updated_at), chat_id
    except (binascii.Error, ValueError, TypeError, OverflowError, RecursionError):
        pass
    raise BadRequest(
        '"cursor" must be the nextCursor of the page before, as it came.', code="bad_cursor"
    )


def parse_change(body: JsonValue) -> ChatChange:
    """Return what a request changes of a chat.

    Raises:
        BadRequest: it changes nothing, or a field is not what it must be.
    """
    if not isinstance(body, Mapping) or not body.keys() & {"title", "archived"}:
        raise BadRequest(
            'The body must be an object with "title", "archived" or both.', code="nothing_to_change"
        )
    archived = body.get("archived")
    if "archived" in body and not isinstance(archived, bool):
        raise BadRequest('"archived" must be the JSON boolean true or false.', code="bad_archived")
    return ChatChange(
        title=_title(body["title"]) if "title" in body else None,
        archived=archived if isinstance(archived, bool) else None,
    )


def _title(value: JsonValue) -> str:
    """Return a title on one line; empty: the chat's own."""
    if value is None:
        return ""
    check_storable(value, "The title")
    title = " ".join(value.split()) if isinstance(value, str) else ""
    if not 0 < len(title) <= LONGEST_TITLE:
        raise BadRequest(
            f'"title" must be a text of 1 to {LONGEST_TITLE} characters, or null for the title '
            "that the chat began with.",
            code="bad_title",
        )
    return title
