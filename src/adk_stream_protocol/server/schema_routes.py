"""The JSON Schema of the chunks, for clients and generators that want to fetch it."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from adk_stream_protocol.server.faults import FaultRoute
from adk_stream_protocol.server.openapi import CHUNK_SCHEMA_PATH
from adk_stream_protocol.wire.chunk_schema import chunk_schema_text

__all__ = ["schema_routes"]

_KIND = "application/schema+json"


def schema_routes() -> APIRouter:
    """Return the route of the schema. It is the same for everyone, and no secret."""
    router = APIRouter(tags=["schema"], route_class=FaultRoute)
    body = chunk_schema_text().encode()

    @router.get(
        CHUNK_SCHEMA_PATH,
        name="getChunkSchema",
        summary="The JSON Schema of every chunk and data part",
        response_class=Response,
        responses={200: {"content": {_KIND: {"schema": {"type": "object"}}}}},
    )
    async def chunks() -> Response:
        return Response(body, media_type=_KIND)

    return router
