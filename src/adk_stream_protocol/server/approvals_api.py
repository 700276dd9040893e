"""Approvals away from the chat: an inbox, another device, the command line."""

from __future__ import annotations

import datetime
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response, StreamingResponse

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.held_calls.policy import Reconciled
from adk_stream_protocol.identifiers import ApprovalId, UserId
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.ports import Ruling
from adk_stream_protocol.recording import Decided
from adk_stream_protocol.server.faults import FaultRoute
from adk_stream_protocol.server.guard import read_json
from adk_stream_protocol.server.openapi import (
    Since,
    Status,
    error_responses,
    json_body,
    json_lines,
)
from adk_stream_protocol.server.routes import Service
from adk_stream_protocol.server.shapes import (
    ApprovalShape,
    ApprovalsShape,
    AuditShape,
    DecisionShape,
    ResolutionRequestShape,
    TrailEntryShape,
    TrailShape,
)
from adk_stream_protocol.translation.audit import trail_json
from adk_stream_protocol.translation.cards import approval_json
from adk_stream_protocol.translation.instructions import Decision, check_reason
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, check_storable, dumps

__all__ = ["approval_routes", "audit_routes"]

_FAILED: Final = "A person found that it did not take effect."


def approval_routes(service: Service) -> APIRouter:
    """Return the routes that list, show and decide held calls."""
    router = APIRouter(tags=["approvals"], route_class=FaultRoute)
    conversations = service.conversations

    @router.get(
        "/api/approvals",
        name="listApprovals",
        summary="List approvals",
        response_model=ApprovalsShape,
        responses=error_responses(400, 403, 500, 503),
    )
    async def approvals(request: Request, status: Status = None) -> JSONResponse:
        user = await service.user(request)
        found = await conversations.approvals(user, _state(status))
        return JSONResponse({"approvals": [approval_json(call) for call in found]})

    # Before the routes below: an id may hold slashes.
    @router.get(
        "/api/approvals/{approval_id:path}/trail",
        name="getApprovalTrail",
        summary="Show all that happened to an approval",
        response_model=TrailShape,
        responses=error_responses(400, 403, 404, 500, 503),
    )
    async def trail(request: Request, approval_id: str) -> JSONResponse:
        user = await service.user(request)
        call = await conversations.approval(_named(approval_id), user)
        return JSONResponse({"id": call.approval_id, "trail": list(trail_json(call))})

    @router.get(
        "/api/approvals/{approval_id:path}",
        name="getApproval",
        summary="Show an approval",
        response_model=ApprovalShape,
        responses=error_responses(400, 403, 404, 500, 503),
    )
    async def approval(request: Request, approval_id: str) -> JSONResponse:
        user = await service.user(request)
        return JSONResponse(approval_json(await conversations.approval(_named(approval_id), user)))

    @router.post(
        "/api/approvals/{approval_id:path}/resolve",
        name="resolveApproval",
        summary="Say how a call ended of which nobody knows",
        response_model=ApprovalShape,
        openapi_extra=json_body(ResolutionRequestShape),
        responses={
            409: {"model": ApprovalShape, "description": "Its end is known"},
            **error_responses(400, 403, 404, 413, 415, 500, 503),
        },
    )
    async def resolve(request: Request, approval_id: str) -> JSONResponse:
        user = await service.user(request)
        body = as_object(await read_json(request, service.settings))
        reason = check_reason(body.get("reason"))
        ruling, call = await conversations.resolve(
            _named(approval_id),
            user,
            _resolution(body, reason),
            reason=reason,
            via=service.via(request, "api"),
        )
        return _answer(ruling, call)

    @router.post(
        "/api/approvals/{approval_id:path}",
        name="decideApproval",
        summary="Approve or deny; the chat continues by itself",
        response_model=ApprovalShape,
        openapi_extra=json_body(DecisionShape),
        responses={
            409: {
                "model": ApprovalShape,
                "description": "Settled otherwise before, or its arguments were edited",
            },
            **error_responses(400, 403, 404, 413, 415, 500, 503),
        },
    )
    async def decide(request: Request, approval_id: str) -> JSONResponse:
        user = await service.user(request)
        body = as_object(await read_json(request, service.settings))
        approved = body.get("approved")
        if not isinstance(approved, bool):
            raise BadRequest(
                '"approved" must be the JSON boolean true or false.', code="not_a_boolean"
            )
        decision = Decision(
            _named(approval_id),
            approved,
            check_reason(body.get("reason")),
            edited=_edited(body),
            remember=_remember(body),
            shown_hash=_shown_hash(body.get("argumentsHash")),
        )
        ruling, call = await conversations.decide(
            decision,
            user,
            via=service.via(request, "api"),
            decision_id=_decision_id(body.get("decisionId")),
        )
        tape = service.tape()
        if tape is not None:
            tape(Decided({**body, "approvalId": approval_id}), call.chat_id)
        return _answer(ruling, call)

    return router


def audit_routes(service: Service) -> APIRouter:
    """Return the route that exports the audit trail."""
    router = APIRouter(tags=["approvals"], route_class=FaultRoute)

    @router.get(
        "/api/audit",
        name="exportAudit",
        summary="Export all that happened to the approvals you may see",
        response_class=StreamingResponse,
        responses={
            200: {
                "description": "JSON lines; or one object, for a client that asks for JSON",
                "model": AuditShape,
                # JSON first: FastAPI fills it in.
                "content": {"application/json": {}, **json_lines(TrailEntryShape)},
            },
            **error_responses(400, 403, 500, 503),
        },
    )
    async def audit(request: Request, since: Since = None, arguments: bool = False) -> Response:
        user = await service.user(request)
        lines = _lines(service, user, since=_moment(since), arguments=arguments)
        if _asks_for_json(request):
            return StreamingResponse(_as_object(lines), media_type="application/json")
        pieces = _as_lines(lines)
        return StreamingResponse(pieces, media_type="application/x-ndjson")

    return router


async def _lines(
    service: Service, user: UserId, *, since: float, arguments: bool
) -> AsyncGenerator[list[str], None]:
    """Yield the lines of one call after another."""
    async with aclosing(service.conversations.audit(user)) as calls:
        async for call in calls:
            lines = [dumps(line) for line in trail_json(call, since=since, arguments=arguments)]
            if lines:
                yield lines


async def _as_lines(trails: AsyncGenerator[list[str], None]) -> AsyncGenerator[str, None]:
    async with aclosing(trails):
        async for lines in trails:
            yield "".join(f"{line}\n" for line in lines)


async def _as_object(trails: AsyncGenerator[list[str], None]) -> AsyncGenerator[str, None]:
    before = '{"trail":['
    async with aclosing(trails):
        async for lines in trails:
            yield before + ",".join(lines)
            before = ","
    yield "]}" if before == "," else '{"trail":[]}'


def _asks_for_json(request: Request) -> bool:
    """Whether the client names JSON among what it accepts; `*/*` names nothing."""
    kinds = (kind.partition(";")[0] for kind in request.headers.get("accept", "").split(","))
    return "application/json" in {kind.strip().lower() for kind in kinds}


def _moment(since: str | None) -> float:
    if since is None:
        return 0.0
    try:
        moment = datetime.datetime.fromisoformat(since)
    except ValueError:
        raise BadRequest(
            '"since" must be a day or a moment in ISO 8601, such as 2026-11-01 or '
            "2026-11-01T12:00:00Z.",
            code="bad_since",
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def _answer(ruling: Ruling, call: HeldCall) -> JSONResponse:
    return JSONResponse(approval_json(call), status_code=409 if ruling == "conflict" else 200)


def _resolution(body: JsonObject, reason: str | None) -> Reconciled:
    match body.get("outcome"):
        case "done":
            return Reconciled(result=body.get("result"))
        case "failed" if "result" not in body:
            return Reconciled(error=reason or _FAILED)
        case "failed":
            raise BadRequest(
                'A call that failed has no "result": say why in "reason".', code="bad_outcome"
            )
        case _:
            raise BadRequest('"outcome" must be "done" or "failed".', code="bad_outcome")


def _named(approval_id: str) -> ApprovalId:
    check_storable(approval_id, "The id of the approval")
    return ApprovalId(approval_id)


def _state(status: str | None) -> CallState | None:
    if status is None:
        return None
    try:
        return CallState(status)
    except ValueError:
        states = ", ".join(state.value for state in CallState)
        raise BadRequest(f'"status" must be one of {states}.', code="bad_status") from None


def _edited(body: JsonObject) -> JsonObject | None:
    edited = body.get("input")
    if "input" in body and not isinstance(edited, Mapping):
        raise BadRequest(
            '"input" must be an object: all arguments, changed or not.', code="bad_input"
        )
    check_storable(edited, '"input"')
    return edited if isinstance(edited, Mapping) else None


def _remember(body: JsonObject) -> bool:
    remember = body.get("remember", False)
    if not isinstance(remember, bool):
        raise BadRequest('"remember" must be the JSON boolean true or false.', code="not_a_boolean")
    return remember


def _shown_hash(value: JsonValue) -> str | None:
    if value is not None and not isinstance(value, str):
        raise BadRequest(
            '"argumentsHash" must be text: the approval\'s "editedArgumentsHash" if it has one, '
            'else its "argumentsHash".',
            code="bad_arguments_hash",
        )
    check_storable(value, '"argumentsHash"')
    return value


def _decision_id(value: JsonValue) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= 128:
        raise BadRequest(
            '"decisionId" must be text of 1 to 128 characters.', code="bad_decision_id"
        )
    check_storable(value, '"decisionId"')
    return value
