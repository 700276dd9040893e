"""Faults as responses: a public text, a code, and an id that the log line has too."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from typing_extensions import override

from adk_stream_protocol.errors import (
    AdkStreamError,
    BadRequest,
    ClientFault,
    Draining,
    trace_of,
)

__all__ = ["FaultRoute", "fault_code", "fault_response", "fault_text"]

logger = logging.getLogger(__name__)

_BROKEN: Final = 500


class FaultRoute(APIRoute):
    """A route that answers every fault with `{"error": {"code", "message", "id"}}`.

    The routes bring it along, so that they work the same inside anyone's app.
    """

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
                return fault_response(_bad_parameters(error))
            except Exception as error:  # noqa: BLE001  # the edge: a client gets a public text
                return fault_response(error)

        return guarded


def _bad_parameters(error: RequestValidationError) -> BadRequest:
    """Return which parameter was wrong; its value is not repeated."""
    names = sorted({str(problem["loc"][-1]) for problem in error.errors()})
    return BadRequest(f"Check the parameter {', '.join(names)}: see /docs.", code="bad_parameter")


def fault_response(error: Exception) -> JSONResponse:
    """Return what the client may know of a fault; the rest goes to the log."""
    told = _told(error)
    headers = {} if told.retry_after is None else {"retry-after": str(told.retry_after)}
    body = {"error": {"code": told.code, "message": told.message, "id": told.error_id}}
    return JSONResponse(body, status_code=told.status, headers=headers)


def fault_text(error: Exception) -> str:
    """Return what the client may know of a fault, in one sentence; the rest goes to the log."""
    _, text = fault_code(error)
    return text


def fault_code(error: Exception) -> tuple[str, str]:
    """Return the code of a fault, and the sentence of `fault_text`; the rest goes to the log."""
    told = _told(error)
    if told.status != _BROKEN:
        return told.code, told.message
    # Whoever asks for help with it needs the id; a client's own fault explains itself.
    return told.code, f"{told.message} (error {told.error_id})"


@dataclass(frozen=True, slots=True)
class _Told:
    error_id: str
    status: int = _BROKEN
    code: str = "internal"
    message: str = "The server failed. Please try again."
    retry_after: int | None = None


def _told(error: Exception) -> _Told:
    told = _Told(error_id=uuid.uuid4().hex[:12])
    if isinstance(error, AdkStreamError):
        told = _Told(
            told.error_id, error.status, error.code, error.public_message, error.retry_after
        )
    if isinstance(error, ClientFault | Draining):
        # Nobody broke anything: a server that drains says no to new turns on purpose.
        logger.warning("request refused", extra={"code": told.code, "error": told.error_id})
    else:
        logger.error("request failed: %s", trace_of(error), extra={"error": told.error_id})
    return told
