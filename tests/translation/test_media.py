from __future__ import annotations

import pytest
from google.genai import types

from adk_stream_protocol.translation.media import is_media, media, response_media
from adk_stream_protocol.wire.chunks import FileChunk
from translation.builders import text

INLINE = [
    (types.Blob(data=b"png", mime_type="image/png"), "image/png"),
    (types.Blob(data=b"png"), "application/octet-stream"),
]
STORED = [
    (types.FileData(file_uri="gs://x/a.pdf", mime_type="application/pdf"), "application/pdf"),
    (types.FileData(file_uri="gs://x/a.pdf"), "application/octet-stream"),
]


@pytest.mark.parametrize(("blob", "kind"), INLINE)
def test_inline_bytes_are_a_data_url(blob: types.Blob, kind: str) -> None:
    part = types.Part(inline_data=blob)
    assert is_media(part)
    assert list(media(part)) == [FileChunk(f"data:{kind};base64,cG5n", kind)]


@pytest.mark.parametrize(("stored", "kind"), STORED)
def test_stored_file_is_its_address(stored: types.FileData, kind: str) -> None:
    part = types.Part(file_data=stored)
    assert is_media(part)
    assert list(media(part)) == [FileChunk("gs://x/a.pdf", kind)]


def test_file_without_content_is_nothing() -> None:
    assert list(media(types.Part(inline_data=types.Blob()))) == []
    assert list(media(types.Part(file_data=types.FileData()))) == []


def test_text_is_no_file() -> None:
    assert not is_media(text("hi"))


def test_tool_gives_files_inline_or_stored() -> None:
    inline = types.FunctionResponsePart(
        inline_data=types.FunctionResponseBlob(data=b"png", mime_type="image/png")
    )
    stored = types.FunctionResponsePart(
        file_data=types.FunctionResponseFileData(file_uri="gs://x/a.pdf")
    )
    assert [*response_media(inline), *response_media(stored)] == [
        FileChunk("data:image/png;base64,cG5n", "image/png"),
        FileChunk("gs://x/a.pdf", "application/octet-stream"),
    ]
    assert list(response_media(types.FunctionResponsePart())) == []
