"""The published JSON Schema of the chunks, as a validator of what a server sends."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types

from adk_stream_protocol.wire.chunk_schema import chunk_schema

__all__ = ["check_chunk", "chunk_errors"]


@functools.cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(chunk_schema())


@functools.cache
def _of_type(kind: str) -> Draft202012Validator | None:
    """Return the validator of the chunks of one type: all of them in a row are slow to try."""
    schema: Any = chunk_schema()
    for name, described in schema["$defs"].items():
        if described.get("properties", {}).get("type", {}).get("const") == kind:
            return Draft202012Validator({**schema, "oneOf": [{"$ref": f"#/$defs/{name}"}]})
    return None


def chunk_errors(chunk: object) -> list[str]:
    """Return what is wrong with a chunk by the whole schema."""
    return [error.message for error in _validator().iter_errors(chunk)]


def check_chunk(chunk: Mapping[str, object]) -> None:
    """Check a chunk by the schema of its type."""
    validator = _of_type(str(chunk.get("type")))
    assert validator is not None, f"no chunk of this type is in the schema: {chunk}"
    validator.validate(chunk)
