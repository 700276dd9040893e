"""How ADK asks the client for something, read from the function call that carries the question.

Three calls of ADK hold a run until the client answers: `adk_request_confirmation`,
`adk_request_input` and `adk_request_credential`. The gate uses the first also to hand a tool to
the browser, marked by the payload of `browser_payload`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.wire.entries import CallHeld
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, as_text, jsonable

__all__ = [
    "CREDENTIAL_TOOL",
    "INPUT_TOOL",
    "WORKFLOW_PREFIX",
    "authorization_uri",
    "browser_payload",
    "held_request",
    "inner_mark",
    "is_inner",
    "is_request",
]

INPUT_TOOL: Final = "adk_request_input"
CREDENTIAL_TOOL: Final = "adk_request_credential"
WORKFLOW_PREFIX: Final = "wf_tool_confirmation:"
_MARK: Final = "adkStreamBrowser"
_INNER: Final = "adk_stream_inner"


def browser_payload(*, approval: bool) -> dict[str, JsonValue]:
    """Return the payload that marks a confirmation as `the browser runs this`."""
    return {_MARK: {"approval": approval}}


def inner_mark() -> dict[str, bool]:
    """Return the custom metadata of a request that an agent makes which is a tool of another."""
    return {_INNER: True}


def is_inner(event: Event) -> bool:
    """Whether an agent asks that is a tool of another: the calls that run wait for it."""
    return _INNER in (event.custom_metadata or {})


def is_request(name: str | None) -> bool:
    """Whether a function call of this name asks the client, and is no tool call."""
    return name in {CONFIRMATION_TOOL, INPUT_TOOL, CREDENTIAL_TOOL}


def held_request(call: types.FunctionCall, *, invocation_id: str) -> CallHeld | None:
    """Return the held call that ADK's request stands for, or None if it is malformed."""
    arguments = as_object(jsonable(call.args or {}))
    request_id = call.id or ""
    approval_id = _unique(request_id, invocation_id)
    match call.name:
        case "adk_request_confirmation":
            return _confirmation(arguments, approval_id, request_id)
        case "adk_request_input":
            return _input(arguments, approval_id, request_id)
        case "adk_request_credential":
            return CallHeld(
                approval_id=approval_id,
                call_id=approval_id,
                tool_name=CREDENTIAL_TOOL,
                input=arguments,
                hint="Sign in to continue.",
                approval=False,
                kind="credential",
                request_id=request_id,
            )
        case _:
            return None


def _unique(request_id: str, invocation_id: str) -> str:
    # ADK's own ids are UUIDs; a workflow names its questions itself, the same in every chat.
    return request_id if request_id.startswith("adk-") else f"{request_id}@{invocation_id}"


def _confirmation(arguments: JsonObject, approval_id: str, request_id: str) -> CallHeld | None:
    original = as_object(arguments.get("originalFunctionCall"))
    confirmation = as_object(arguments.get("toolConfirmation"))
    call_id = as_text(original.get("id"))
    if not call_id:
        return None
    payload = confirmation.get("payload")
    mark = payload.get(_MARK) if isinstance(payload, Mapping) else None
    browser = isinstance(mark, Mapping)
    return CallHeld(
        approval_id=approval_id,
        call_id=call_id,
        tool_name=as_text(original.get("name")),
        input=original.get("args") or {},
        hint=as_text(confirmation.get("hint")),
        payload=None if browser else payload,
        approval=not browser or as_object(mark).get("approval") is True,
        kind="browser" if browser else "tool",
        request_id=request_id,
    )


def _input(arguments: JsonObject, approval_id: str, request_id: str) -> CallHeld:
    schema = as_object(arguments.get("response_schema"))
    payload = as_object(arguments.get("payload"))
    message = as_text(arguments.get("message"))
    if schema.get("title") == "ToolConfirmation" and payload.get("tool_name"):
        # A workflow's gated tool node asks this way and never shows a function call.
        return CallHeld(
            approval_id=approval_id,
            call_id=f"{approval_id}#call",
            tool_name=as_text(payload.get("tool_name")),
            input=payload.get("args") or {},
            hint=message,
            request_id=request_id,
        )
    return CallHeld(
        approval_id=approval_id,
        call_id=approval_id,
        tool_name=INPUT_TOOL,
        input=arguments,
        hint=message,
        approval=False,
        kind="input",
        request_id=request_id,
    )


def authorization_uri(held: CallHeld) -> str:
    """Return where a credential request sends the person: all of it that may leave the server."""
    config = as_object(as_object(held.input).get("authConfig"))
    exchanged = as_object(config.get("exchangedAuthCredential"))
    return as_text(as_object(exchanged.get("oauth2")).get("authUri"))
