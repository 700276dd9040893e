"""Arguments that an approver changed: what they must look like, and how the model is told.

The schema is the tool's own: the one that the model was given. It is frozen with the call, so that
what an approver is told to fill in is what the answer is checked against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import referencing
import referencing.exceptions
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.wire.values import JsonObject, as_object, dumps, jsonable

__all__ = ["CHANGED_KEY", "check_edit", "schemas_of", "with_changes"]

CHANGED_KEY: Final = "approved_with_changes"
"""Where a result says with which arguments its tool really ran."""

_MOST_PROBLEMS: Final = 10
_LONGEST_PROBLEM: Final = 300


def schemas_of(
    request: LlmRequest, is_editable: Callable[[str], bool]
) -> Iterator[tuple[str, JsonObject]]:
    """Yield what the arguments of each editable tool that the model is offered must look like."""
    for tool in request.config.tools or []:
        declarations = tool.function_declarations if isinstance(tool, types.Tool) else None
        for declared in declarations or []:
            schema = _schema(declared) if is_editable(declared.name or "") else None
            if schema is not None:
                yield declared.name or "", schema


def _schema(declared: types.FunctionDeclaration) -> JsonObject | None:
    if declared.parameters_json_schema is not None:
        plain = as_object(jsonable(declared.parameters_json_schema))
    elif declared.parameters is not None:
        plain = as_object(jsonable(declared.parameters.json_schema))
    else:
        plain = {"type": "object", "properties": {}}
    schema = {**plain, "additionalProperties": False}
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        # Nothing can be checked against it, so nothing can be edited.
        return None
    return schema


def check_edit(call: HeldCall, edited: JsonObject, *, approved: bool, step: int) -> None:
    """Return if the call may run with these arguments instead of those shown.

    Raises:
        BadRequest: it may not; the message says why, field by field.
    """
    if call.schema is None:
        raise BadRequest(
            "This call's arguments cannot be edited: approve or deny it as it is.",
            code="not_editable",
        )
    if not approved:
        raise BadRequest(
            '"input" goes with an approval. Leave it out to deny the call.', code="not_editable"
        )
    if step > 0 and call.state is CallState.PENDING:
        # Else the last approver could let something through that the first has never seen.
        raise BadRequest(
            "Arguments can be edited in the first step only: others have approved them as they "
            "are. Deny the call to have it asked anew.",
            code="not_editable",
        )
    problems = list(_problems(call.schema, edited))
    if problems:
        raise BadRequest(
            f"The arguments do not fit {call.tool_name}: {'; '.join(problems)}.", code="bad_input"
        )


def _problems(schema: JsonObject, edited: JsonObject) -> Iterator[str]:
    # An empty registry: a schema that points elsewhere is not fetched.
    validator = jsonschema.Draft202012Validator(schema, registry=referencing.Registry())
    try:
        for number, problem in enumerate(validator.iter_errors(edited)):
            if number == _MOST_PROBLEMS:
                yield "and more"
                return
            yield f"{problem.json_path}: {problem.message}"[:_LONGEST_PROBLEM]
    except referencing.exceptions.Unresolvable:
        raise BadRequest(
            "This call's arguments cannot be checked, and so not edited: approve or deny it as "
            "it is.",
            code="not_editable",
        ) from None


def with_changes(result: object, edited: JsonObject) -> dict[str, Any]:
    """Return a tool's result that also says with which arguments it ran."""
    if not isinstance(result, dict):
        return {"result": result, CHANGED_KEY: edited}
    if set(result) == {"error"}:
        # Only an object that holds nothing but an error is a failure.
        return {"error": f"{result['error']} (It ran with changed arguments: {dumps(edited)})"}
    return {**result, CHANGED_KEY: edited}
