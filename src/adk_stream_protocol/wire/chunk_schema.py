"""A JSON Schema of every chunk and data part, for clients that are not written in TypeScript.

It is made from the types of `wire.chunks` and `wire.data_parts`: a field that is added there is in
the schema, and one whose type this module cannot describe fails the tests.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Final, TypeAlias, cast, get_args

from adk_stream_protocol.wire.chunks import Chunk, DataChunk, FinishReason, wire_name
from adk_stream_protocol.wire.data_parts import (
    FREE_FORM,
    IDENTIFIED,
    ApprovalStatus,
    ApprovalStepData,
    DataPart,
    ResolutionData,
    TranscriptionSide,
)
from adk_stream_protocol.wire.values import JsonValue

__all__ = ["SCHEMA_ID", "chunk_schema", "chunk_schema_text"]

SCHEMA_ID: Final = "urn:adk-stream-protocol:chunks"

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_Schema: TypeAlias = dict[str, JsonValue]
_Shaped: TypeAlias = Chunk | DataPart | ApprovalStepData | ResolutionData
"""What has fields to describe."""

_ANY: Final[_Schema] = {}
_NOT_NULL: Final[_Schema] = {"not": {"type": "null"}}
_OBJECT: Final[_Schema] = {"type": "object"}


def _one_of(*values: str) -> _Schema:
    return {"type": "string", "enum": list(values)}


def _named(value: str) -> _Schema:
    return {"type": "string", "const": value}


def _defined(name: str) -> _Schema:
    return {"$ref": f"#/$defs/{name}"}


_TYPES: Final[Mapping[str, _Schema]] = {
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "Timestamp": {"type": "string", "format": "date-time"},
    "JsonValue": _ANY,
    "JsonObject": _OBJECT,
    "Sequence[str]": {"type": "array", "items": {"type": "string"}},
    "Sequence[JsonObject]": {"type": "array", "items": _OBJECT},
    "ProviderMetadata": {"type": "object", "additionalProperties": _OBJECT},
    "FinishReason": _one_of(*get_args(FinishReason)),
    "ApprovalStatus": _one_of(*get_args(ApprovalStatus)),
    "TranscriptionSide": _one_of(*get_args(TranscriptionSide)),
    "ApprovalStepData": _defined("ApprovalStepData"),
    "ResolutionData": _defined("ResolutionData"),
}
"""The schema of each type of a field, by how it is written: annotations are texts there."""


def chunk_schema() -> _Schema:
    """Return the JSON Schema (draft 2020-12) of one chunk, as any route may send it.

    Each kind of chunk and each data part is an entry of `$defs`; the `type` of a chunk says which.
    """
    chunks = {kind.__name__: _chunk(kind) for kind in get_args(Chunk) if kind is not DataChunk} | {
        f"{_stem(part)}Chunk": _data_chunk(part) for part in get_args(DataPart)
    }
    shapes = (ApprovalStepData, ResolutionData, *get_args(DataPart))
    data = {kind.__name__: _data(kind) for kind in shapes}
    return {
        "$schema": _DIALECT,
        "$id": SCHEMA_ID,
        "title": "Chunk",
        "description": (
            "One chunk of a reply: the JSON of one `data:` line of an event stream, or of `chunk` "
            "in a frame of a WebSocket. `[DONE]`, which ends an event stream, is no chunk. A later "
            "version may send more: ignore fields and types that you do not know."
        ),
        "oneOf": [_defined(name) for name in chunks],
        "$defs": chunks | data,
    }


def chunk_schema_text() -> str:
    """Return the schema as the text that is published."""
    return f"{json.dumps(chunk_schema(), indent=2)}\n"


def _chunk(kind: type[Chunk]) -> _Schema:
    return _object(kind, {"type": _named(cast("str", kind.type))})


def _stem(part: type[DataPart]) -> str:
    """Return `DataApproval` for `ApprovalData`: the part's name on the wire comes last."""
    return f"Data{part.__name__.removesuffix('Data')}"


def _data_chunk(part: type[DataPart]) -> _Schema:
    own: _Schema = {"type": _named(f"data-{part.name}"), "data": _defined(part.__name__)}
    written = _object(DataChunk, own)
    if issubclass(part, IDENTIFIED):
        required = cast("list[JsonValue]", written["required"])
        required.append("id")
    return written | {"description": _about(part)}


def _data(part: type[_Shaped]) -> _Schema:
    if not issubclass(part, FREE_FORM):
        return _object(part, {})
    (field,) = dataclasses.fields(part)
    return {"description": _about(part), **_TYPES[str(field.type)]}


def _object(kind: type[_Shaped], own: _Schema) -> _Schema:
    """Return the schema of an object: its own properties, and one for each other field."""
    properties, required = dict(own), list(own)
    for field in dataclasses.fields(kind):
        name = wire_name(field.name)
        if name in own or (kind is DataChunk and name == "name"):
            continue
        properties[name] = _field(str(field.type))
        if field.default is dataclasses.MISSING:
            required.append(name)
    return {
        "description": _about(kind),
        "type": "object",
        "properties": properties,
        "required": cast("JsonValue", required),
        "additionalProperties": False,
    }


def _field(annotation: str) -> _Schema:
    name, _, optional = annotation.partition(" | ")
    # A field without a value is absent, never null.
    return _NOT_NULL if optional and name == "JsonValue" else _TYPES[name]


def _about(kind: type[_Shaped]) -> str:
    return " ".join((kind.__doc__ or "").split())
