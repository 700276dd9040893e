"""Files an agent gives: inline bytes as data URLs, stored ones by their address."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from google.genai import types

from adk_stream_protocol.wire.chunks import FileChunk

__all__ = ["is_media", "media", "response_media"]

_BINARY = "application/octet-stream"


def is_media(part: types.Part) -> bool:
    """Whether the part is a file."""
    return part.inline_data is not None or part.file_data is not None


def media(part: types.Part) -> Iterator[FileChunk]:
    """Yield the file of a part."""
    blob, stored = part.inline_data, part.file_data
    if blob is not None and blob.data is not None:
        yield _inline(blob.data, blob.mime_type)
    elif stored is not None and stored.file_uri:
        yield FileChunk(stored.file_uri, stored.mime_type or _BINARY)


def response_media(part: types.FunctionResponsePart) -> Iterator[FileChunk]:
    """Yield the file that a tool gave beside its result."""
    blob, stored = part.inline_data, part.file_data
    if blob is not None and blob.data is not None:
        yield _inline(blob.data, blob.mime_type)
    elif stored is not None and stored.file_uri:
        yield FileChunk(stored.file_uri, stored.mime_type or _BINARY)


def _inline(data: bytes, mime_type: str | None) -> FileChunk:
    kind = mime_type or _BINARY
    return FileChunk(f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}", kind)
