"""Whether the process lives, and whether it should get requests."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.server.faults import FaultRoute
from adk_stream_protocol.server.probes import Probe
from adk_stream_protocol.server.shapes import HealthShape, ReadinessShape

__all__ = ["health_routes"]


def health_routes(turns: ChatTurns, stores: Probe[float]) -> APIRouter:
    """Return the routes that a load balancer or an orchestrator asks."""
    router = APIRouter(tags=["health"], route_class=FaultRoute)

    @router.get(
        "/healthz", name="getHealth", summary="The process is alive", response_model=HealthShape
    )
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @router.get(
        "/readyz",
        name="getReadiness",
        summary="The server takes requests",
        response_model=ReadinessShape,
        responses={
            503: {
                "model": ReadinessShape,
                "description": "It does not; the body says which part is not ready",
            }
        },
    )
    async def readyz() -> JSONResponse:
        if not turns.is_serving:
            return _not_ready("lifespan")
        if turns.drain.has_begun:
            return JSONResponse({"status": "draining"}, status_code=503)
        if await stores.answer() is None:
            return _not_ready("stores")
        return JSONResponse({"status": "ready"})

    return router


def _not_ready(part: str) -> JSONResponse:
    return JSONResponse({"status": "not ready", "part": part}, status_code=503)
