"""Approvals away from the chat: an inbox, another device, the command line."""

from __future__ import annotations

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.identifiers import ApprovalId
from adk_stream_protocol.lifecycle import CallState
from adk_stream_protocol.server.faults import FaultRoute
from adk_stream_protocol.server.guard import read_json
from adk_stream_protocol.server.routes import Service
from adk_stream_protocol.server.shapes import DECISION_BODY, ApprovalShape, ApprovalsShape
from adk_stream_protocol.translation.cards import approval_json
from adk_stream_protocol.translation.instructions import Decision, check_reason
from adk_stream_protocol.wire.values import JsonValue, as_object

__all__ = ["approval_routes"]


def approval_routes(service: Service) -> APIRouter:
    """Return the routes that list, show and decide held calls."""
    router = APIRouter(tags=["approvals"], route_class=FaultRoute)
    conversations = service.conversations

    @router.get("/api/approvals", summary="List approvals", response_model=ApprovalsShape)
    async def approvals(request: Request, status: str | None = Query(None)) -> JSONResponse:
        user = await service.user(request)
        found = await conversations.approvals(user, _state(status))
        return JSONResponse({"approvals": [approval_json(call) for call in found]})

    @router.get(
        "/api/approvals/{approval_id:path}",
        summary="Show an approval",
        response_model=ApprovalShape,
    )
    async def approval(request: Request, approval_id: str) -> JSONResponse:
        user = await service.user(request)
        return JSONResponse(
            approval_json(await conversations.approval(ApprovalId(approval_id), user))
        )

    @router.post(
        "/api/approvals/{approval_id:path}",
        summary="Approve or deny; the chat continues by itself",
        response_model=ApprovalShape,
        openapi_extra={"requestBody": DECISION_BODY},
        responses={409: {"model": ApprovalShape, "description": "Settled otherwise before"}},
    )
    async def decide(request: Request, approval_id: str) -> JSONResponse:
        user = await service.user(request)
        body = as_object(await read_json(request, service.settings))
        if "input" in body:
            raise BadRequest(
                "This tool's arguments cannot be edited: approve or deny the call as it is.",
                code="not_editable",
            )
        approved = body.get("approved")
        if not isinstance(approved, bool):
            raise BadRequest(
                '"approved" must be the JSON boolean true or false.', code="not_a_boolean"
            )
        decision = Decision(ApprovalId(approval_id), approved, check_reason(body.get("reason")))
        ruling, call = await conversations.decide(
            decision,
            user,
            via=service.via(request, "api"),
            decision_id=_decision_id(body.get("decisionId")),
        )
        return JSONResponse(approval_json(call), status_code=409 if ruling == "conflict" else 200)

    return router


def _state(status: str | None) -> CallState | None:
    if status is None:
        return None
    try:
        return CallState(status)
    except ValueError:
        states = ", ".join(state.value for state in CallState)
        raise BadRequest(f'"status" must be one of {states}.', code="bad_status") from None


def _decision_id(value: JsonValue) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= 128:
        raise BadRequest(
            '"decisionId" must be text of 1 to 128 characters.', code="bad_decision_id"
        )
    return value
