"""How the routes describe themselves in OpenAPI: operation ids, errors, bodies, streams.

The routes bring it along, so that their description is the same inside anyone's app.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from fastapi import Query
from fastapi.routing import APIRoute
from pydantic import BaseModel, WithJsonSchema

from adk_stream_protocol.server.chat_list import LARGEST_LIMIT
from adk_stream_protocol.server.shapes import ErrorShape
from adk_stream_protocol.wire.chunk_schema import SCHEMA_ID
from adk_stream_protocol.wire.data_parts import ApprovalStatus

__all__ = [
    "CHUNK_SCHEMA_PATH",
    "FILE",
    "REPLY",
    "REPLY_HEADERS",
    "CallerChat",
    "Cursor",
    "Limit",
    "OperationId",
    "Responses",
    "Sdk",
    "ShownProfile",
    "Since",
    "Status",
    "Version",
    "error_responses",
    "json_body",
    "json_lines",
    "with_errors",
]

Responses: TypeAlias = dict[int | str, dict[str, Any]]
"""What FastAPI takes as `responses=`."""

CHUNK_SCHEMA_PATH: Final = "/api/schema/chunks.json"

_ERRORS: Final[Mapping[int | str, str]] = {
    400: "The request cannot be understood",
    403: "Not from here, or not for the caller",
    404: "There is no such thing, or it is another user's",
    409: "It contradicts what is already so",
    413: "Over a size limit",
    415: "Not JSON, or a file of a type that is not allowed",
    429: "Over a limit of the user",
    500: "The server failed",
    503: "The server is starting or ending, or its database cannot be reached",
    "default": "Any other error",
}


def _header(about: str, kind: str = "string") -> dict[str, Any]:
    return {"description": about, "schema": {"type": kind}}


_ERROR_HEADERS: Final = {
    "x-adk-stream-error": _header("The error's code, whatever the body's type"),
    "x-adk-stream-error-id": _header("The error's id, whatever the body's type"),
}
_RETRY: Final = {"retry-after": _header("Seconds until the same request may succeed", "integer")}
_SENTENCE: Final = {
    "schema": {
        "type": "string",
        "description": "What was wrong, for a person: unless the client asks for JSON",
    }
}


@dataclass(frozen=True, slots=True)
class OperationId:
    """Names a route's operation: by the route's name, and the prefix that it was included with.

    `sendMessage` under `/support` is `supportSendMessage`, so that an app can serve two agents.
    """

    path: str
    """The route's path without a prefix."""

    def __call__(self, route: APIRoute) -> str:
        """Return the id of a route that has this path below its prefix."""
        prefix = str(route.path).removesuffix(self.path)
        words: list[str] = [*re.findall(r"[^\W_]+", prefix), route.name]
        return words[0] + "".join(word[0].upper() + word[1:] for word in words[1:])


def error_responses(*statuses: int, plain: bool = False) -> Responses:
    """Return the descriptions of the errors that a route gives.

    Args:
        statuses: each that the route can give.
        plain: whether they are a plain sentence to clients that do not ask for JSON.
    """
    # FastAPI adds a 422 of its own to a route without a default, and no request ever gets that.
    described: tuple[int | str, ...] = (*statuses, "default")
    return {status: _error(status, plain=plain) for status in described}


def _error(status: int | str, *, plain: bool) -> dict[str, Any]:
    return {
        "model": ErrorShape,
        "description": _ERRORS[status],
        "headers": {**_ERROR_HEADERS, **(_RETRY if status == 503 else {})},
        # JSON first: a generator that knows only one type per status takes the first. FastAPI
        # fills in the model there.
        "content": {"application/json": {}, **({"text/plain": _SENTENCE} if plain else {})},
    }


def with_errors(responses: Responses | None) -> Responses:
    """Return the responses of a route, with a default error if they have none."""
    given = responses or {}
    return given if "default" in given else {**given, **error_responses()}


def json_body(model: type[BaseModel]) -> dict[str, Any]:
    """Return the `requestBody` of a route that reads its body itself, for `openapi_extra=`."""
    schema = model.model_json_schema()
    named = schema.pop("$defs", {})
    content = {"application/json": {"schema": _inlined(schema, named)}}
    return {"requestBody": {"required": True, "content": content}}


def _inlined(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return a schema without references and titles.

    FastAPI adds no components for a body that it does not parse, and openapi-python-client drops
    an operation whose schemas have the same title twice.
    """
    if isinstance(schema, list):
        return [_inlined(item, named) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(named[schema["$ref"].rpartition("/")[2]], named)
    return {
        key: _inlined(item, named)
        for key, item in schema.items()
        if key != "title" or not isinstance(item, str)
    }


REPLY: Final[Mapping[str, Any]] = {
    "text/event-stream": {
        "schema": {
            "type": "string",
            "description": (
                "Server-sent events. The data of each is one chunk, as JSON; the last is `[DONE]`. "
                f"The JSON Schema of a chunk, `{SCHEMA_ID}`, is at `{CHUNK_SCHEMA_PATH}`."
            ),
        },
        # As FastAPI describes its own streams, and OpenAPI since 3.2. Not a `$ref`: generators
        # would try to fetch it, also for a description that was saved in a file.
        "itemSchema": {
            "type": "object",
            "required": ["data"],
            "properties": {
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": {"$comment": f"{SCHEMA_ID}, at {CHUNK_SCHEMA_PATH}"},
                }
            },
        },
    },
    "text/plain": {
        "schema": {"type": "string", "description": "With `?stream=text`: the reply's text alone"}
    },
}
"""A reply, as it is streamed."""

REPLY_HEADERS: Final = {
    "x-adk-stream-chat": _header("The chat's id, for a client that named none"),
    "x-resumable-stream-id": _header("What assistant-ui resumes the reply by"),
}

_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
FILE: Final = {"application/octet-stream": _BINARY, "*/*": _BINARY}
"""A file of any type. Generators take the first for bytes."""


def json_lines(model: type[BaseModel]) -> dict[str, Any]:
    """Return the content of a response with one JSON object a line."""
    about = "JSON, one object a line; `itemSchema` describes a line."
    line = _inlined(model.model_json_schema(), {})
    schema = {"type": "string", "description": about}
    return {"application/x-ndjson": {"schema": schema, "itemSchema": line}}


# Parameters are texts here: the routes check them, and refuse them with codes of their own.

Sdk: TypeAlias = Annotated[
    str | None,
    Query(description="The line of the AI SDK that the client has; 6 also fits 7"),
    # Generators make no good names of digits.
    WithJsonSchema({"type": "string", "enum": ["6", "7"], "x-enum-varnames": ["AI6", "AI7"]}),
]
CallerChat: TypeAlias = Annotated[
    str | None,
    Query(description="The chat, if the body does not name one"),
    WithJsonSchema({"type": "string"}),
]
ShownProfile: TypeAlias = Annotated[
    Literal["ai-sdk", "adk"] | None,
    Query(alias="profile", description="How held calls are shown; by default as the route does"),
    WithJsonSchema({"type": "string", "enum": ["ai-sdk", "adk"]}),
]
Limit: TypeAlias = Annotated[
    int, Query(ge=1, le=LARGEST_LIMIT, description="How many chats a page has at most")
]
Cursor: TypeAlias = Annotated[
    str | None,
    Query(description="The nextCursor of the page before; by default the first page"),
    WithJsonSchema({"type": "string"}),
]
Status: TypeAlias = Annotated[
    str | None,
    Query(description="Only those with this status"),
    WithJsonSchema({"type": "string", "enum": list(get_args(ApprovalStatus))}),
]
Since: TypeAlias = Annotated[
    str | None,
    Query(description="A day or a moment in ISO 8601: only what happened since"),
    WithJsonSchema({"type": "string"}),
]
Version: TypeAlias = Annotated[
    int | None,
    Query(ge=0, description="Which version of the file; by default the newest"),
    WithJsonSchema({"type": "integer", "minimum": 0}),
]
