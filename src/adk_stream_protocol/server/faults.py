"""Faults as responses: a public text, a code, and an id that the log line has too.

Chat clients show the body of an error to people as it is, so on their routes it is the sentence
itself, and the code and the id are in headers. Programs ask for JSON and get all three in the body.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from fastapi import Request
from fastapi.datastructures import DefaultPlaceholder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, Response
from typing_extensions import override

from adk_stream_protocol.errors import (
    AdkStreamError,
    BadRequest,
    ClientFault,
    Draining,
    ReplyFailed,
    trace_of,
)
from adk_stream_protocol.server.headers import ERROR_CODE, ERROR_ID
from adk_stream_protocol.server.openapi import OperationId, Responses, with_errors

__all__ = [
    "ChatFaultRoute",
    "FaultRoute",
    "fault_code",
    "fault_response",
    "fault_text",
    "prefers_text",
]

logger = logging.getLogger(__name__)

_INTERNAL: Final = "internal"


class FaultRoute(APIRoute):
    """A route that answers every fault with `{"error": {"code", "message", "id"}}`.

    Who accepts nothing but text gets the message alone. The routes bring it along, so that they
    work the same inside anyone's app. In OpenAPI it has the schema of errors, and its name as the
    operation id.
    """

    text_by_default: ClassVar[bool] = False
    """Whether who does not ask for JSON gets text."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[..., Any],
        *,
        responses: Responses | None = None,
        generate_unique_id_function: Callable[[APIRoute], str] | DefaultPlaceholder | None = None,
        **options: Any,
    ) -> None:
        # Older versions of FastAPI make a route anew for each router that it is included in.
        named = generate_unique_id_function
        super().__init__(
            path,
            endpoint,
            responses=with_errors(responses),
            generate_unique_id_function=(
                named if isinstance(named, OperationId) else OperationId(path)
            ),
            **options,
        )

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handle(request)
            except HTTPException:
                raise
            except ClientDisconnect:
                # Nobody reads this; the code is nginx's for a client that has left.
                return Response(status_code=499)
            except RequestValidationError as error:
                fault: Exception = _bad_parameters(error)
            except Exception as error:  # noqa: BLE001  # the edge: a client gets a public text
                fault = error
            as_text = prefers_text(request, by_default=self.text_by_default)
            return fault_response(fault, as_text=as_text)

        return guarded


class ChatFaultRoute(FaultRoute):
    """A route of chat clients: it answers a fault with its message, unless JSON is asked for."""

    text_by_default = True


def prefers_text(request: Request, *, by_default: bool) -> bool:
    """Whether the body of an error should be its message alone.

    Args:
        request: what is answered; its `Accept` decides.
        by_default: whether who does not ask for JSON gets text; else who accepts only text does.
    """
    accepted = list(_accepted(request))
    return not any(map(_is_json, accepted)) and (by_default or _is_text_only(accepted))


def _accepted(request: Request) -> Iterator[str]:
    """Yield the media types that a request accepts, without their parameters."""
    for item in ",".join(request.headers.getlist("accept")).split(","):
        kind, *parameters = (each.strip().lower() for each in item.split(";"))
        if kind and not any(_is_zero(parameter) for parameter in parameters):
            yield kind


def _is_zero(parameter: str) -> bool:
    """Whether a parameter says that its media type is not accepted, such as `q=0`."""
    name, _, weight = parameter.partition("=")
    return name.strip() == "q" and not weight.strip().strip("0.")


def _is_json(kind: str) -> bool:
    return kind == "application/*" or kind.endswith(("/json", "+json"))


def _is_text_only(kinds: list[str]) -> bool:
    return bool(kinds) and all(kind.startswith("text/") for kind in kinds)


def _bad_parameters(error: RequestValidationError) -> BadRequest:
    """Return which parameter was wrong; its value is not repeated."""
    names = sorted({str(problem["loc"][-1]) for problem in error.errors()})
    return BadRequest(f"Check the parameter {', '.join(names)}: see /docs.", code="bad_parameter")


def fault_response(error: Exception, *, as_text: bool = False) -> Response:
    """Return what the client may know of a fault; the rest goes to the log.

    Args:
        error: the fault.
        as_text: whether the body is the message alone, without code and id.
    """
    told = _told(error)
    headers = {ERROR_CODE: told.code, ERROR_ID: told.error_id, "vary": "accept"}
    if told.retry_after is not None:
        headers["retry-after"] = str(told.retry_after)
    if as_text:
        # A message may quote the request, which no browser shall take for a page.
        headers["x-content-type-options"] = "nosniff"
        return PlainTextResponse(told.sentence, status_code=told.status, headers=headers)
    body = {"error": {"code": told.code, "message": told.message, "id": told.error_id}}
    return JSONResponse(body, status_code=told.status, headers=headers)


def fault_text(error: Exception) -> str:
    """Return what the client may know of a fault, in one sentence; the rest goes to the log."""
    return _told(error).sentence


def fault_code(error: Exception) -> tuple[str, str]:
    """Return the code of a fault, and the sentence of `fault_text`; the rest goes to the log."""
    told = _told(error)
    return told.code, told.sentence


@dataclass(frozen=True, slots=True)
class _Told:
    error_id: str
    status: int = 500
    code: str = _INTERNAL
    message: str = "The server failed. Please try again."
    retry_after: int | None = None

    @property
    def sentence(self) -> str:
        # Whoever asks for help with it needs the id; a client's own fault explains itself.
        is_ours = self.code == _INTERNAL
        return f"{self.message} (error {self.error_id})" if is_ours else self.message


def _told(error: Exception) -> _Told:
    told = _Told(error_id=uuid.uuid4().hex[:12])
    if isinstance(error, AdkStreamError):
        told = _Told(
            told.error_id, error.status, error.code, error.public_message, error.retry_after
        )
    if isinstance(error, ClientFault | Draining | ReplyFailed):
        # Nobody broke anything: a server that drains says no to new turns on purpose. Or it is
        # logged already.
        logger.warning("request refused", extra={"code": told.code, "error": told.error_id})
    else:
        logger.error("request failed: %s", trace_of(error), extra={"error": told.error_id})
    return told
