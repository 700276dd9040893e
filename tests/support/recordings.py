"""Recordings, written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from adk_stream_protocol.playback import Playlist, playlist_of
from adk_stream_protocol.recording import read_recording

__all__ = ["HEADER", "line", "playlist", "reply", "said", "text_chunks"]

HEADER = {"recording": 1, "by": "adk-stream-client", "startedAt": "2026-11-16T09:00:00.000Z"}

Lines = list[dict[str, Any]]


def line(kind: str, direction: str = "out", **fields: Any) -> dict[str, Any]:
    """Return a line of the chat `c`."""
    return {"at": 0.0, "direction": direction, "chat": "c", "type": kind, **fields}


def said(text: str, request: str, message_id: str = "u1", **fields: Any) -> dict[str, Any]:
    """Return what a person said."""
    message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}
    return line("send", "in", request=request, messages=[message], **fields)


def text_chunks(text: str, message_id: str = "m1") -> Lines:
    """Return the chunks of a reply that says something."""
    return [
        {"type": "start", "messageId": message_id},
        {"type": "text-start", "id": "1"},
        {"type": "text-delta", "id": "1", "delta": text},
        {"type": "text-end", "id": "1"},
        {"type": "finish", "finishReason": "stop"},
    ]


def reply(
    chunks: Iterable[dict[str, Any]], request: str, *, ended: bool = True, **fields: Any
) -> Lines:
    """Return the lines of a reply."""
    lines = [line("chunk", request=request, chunk=chunk, **fields) for chunk in chunks]
    end = [line("end", request=request, **fields)] if ended else []
    return [line("start", request=request, **fields), *lines, *end]


def playlist(*lines: dict[str, Any]) -> Playlist:
    """Return what the lines tell."""
    return playlist_of(read_recording([json.dumps(each) for each in (HEADER, *lines)]))
