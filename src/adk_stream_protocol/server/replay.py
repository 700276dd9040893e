"""Serves a recording back to any client, on the routes it was made on. No agent, no database."""

from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Annotated, Final

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import JSONResponse
from starlette.responses import Response

from adk_stream_protocol.engine.sessions import ChatInfo
from adk_stream_protocol.errors import NotFound
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.playback import Playlist, RecordedChat
from adk_stream_protocol.server.chat_list import (
    DEFAULT_LIMIT,
    ArchivedFilter,
    chat_json,
    list_json,
)
from adk_stream_protocol.server.faults import ChatFaultRoute, FaultRoute
from adk_stream_protocol.server.guard import check_origin, read_json
from adk_stream_protocol.server.openapi import Cursor, Limit
from adk_stream_protocol.server.page import page_routes
from adk_stream_protocol.server.player import AS_RECORDED, Pace, PlayedReply, Player
from adk_stream_protocol.server.replay_sockets import replay_sockets
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.streams import StreamKind, streamed
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.wire.chunks import ErrorChunk
from adk_stream_protocol.wire.profiles import Profile
from adk_stream_protocol.wire.requests import parse_chat_id, parse_request

__all__ = ["create_replay"]

_PROFILES: Final[tuple[tuple[str, Profile], ...]] = (("/api/chat", "ai-sdk"), ("/stream", "adk"))


def create_replay(
    playlist: Playlist, *, pace: Pace = "recorded", settings: Settings | None = None
) -> FastAPI:
    """Return an app that answers as the recorded server did, with its page at `/`."""
    settings = settings or Settings.from_environment()
    app = FastAPI(title="adk-stream replay", version=version("adk-stream-protocol"))
    player = Player(playlist, pace)
    for path, profile in _PROFILES:
        app.include_router(_chat_routes(player, settings, path, profile))
    app.include_router(replay_sockets(player, settings))
    app.include_router(_history_routes(playlist, settings))
    app.include_router(page_routes())
    return app


def _chat_routes(player: Player, settings: Settings, path: str, profile: Profile) -> APIRouter:
    router = APIRouter(route_class=ChatFaultRoute)
    suffix = "" if profile == "ai-sdk" else "Adk"
    streaming = partial(
        streamed, audience=AS_RECORDED, keep_alive=settings.keep_alive_seconds, meters=Meters()
    )

    def played(request: Request, reply: PlayedReply, kind: StreamKind) -> Response:
        error = reply.recorded.error
        if error is not None:
            # What was a status then is the end of a stream now: the client shows either.
            chunks = [*reply.recorded.chunks, (reply.recorded.seconds, ErrorChunk(error))]
            reply.recorded = replace(reply.recorded, chunks=chunks)
        return streaming(request, reply, kind=kind)

    @router.post(path, name=f"sendMessage{suffix}")
    async def send(
        request: Request,
        chat: str | None = Query(None),
        shown: Annotated[Profile, Query(alias="profile")] = profile,
        stream: StreamKind = "data",
    ) -> Response:
        check_origin(request, settings)
        asked = parse_request(await read_json(request, settings))
        named = asked.chat_id or (parse_chat_id(chat) if chat is not None else None)
        reply = player.send(named or ChatId(f"chat-{uuid.uuid4()}"), shown)
        return played(request, reply, stream)

    @router.get(f"{path}/{{chat_id}}/stream", name=f"resumeReply{suffix}")
    async def resume(
        request: Request,
        chat_id: str,
        shown: Annotated[Profile, Query(alias="profile")] = profile,
        stream: StreamKind = "data",
    ) -> Response:
        check_origin(request, settings)
        reply = player.resume(parse_chat_id(chat_id), shown)
        return Response(status_code=204) if reply is None else played(request, reply, stream)

    @router.post(f"{path}/{{chat_id}}/stop", name=f"stopReply{suffix}")
    async def stop(request: Request, chat_id: str) -> JSONResponse:
        check_origin(request, settings)
        parse_chat_id(chat_id)
        # Who stops reads no more; a recording does not change by that.
        return JSONResponse({"stopped": False})

    return router


def _history_routes(playlist: Playlist, settings: Settings) -> APIRouter:
    router = APIRouter(route_class=FaultRoute)

    @router.get("/api/chats", name="listChats")
    async def chats(
        request: Request,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
        archived: ArchivedFilter = "false",
    ) -> JSONResponse:
        check_origin(request, settings)
        infos = map(_info, playlist.chats.values())
        newest = sorted(infos, key=lambda info: (info.updated_at, info.id), reverse=True)
        return JSONResponse(list_json(newest, cursor=cursor, limit=limit, archived=archived))

    @router.get("/api/chats/{chat_id}", name="getChat")
    async def chat(request: Request, chat_id: str) -> JSONResponse:
        check_origin(request, settings)
        found = playlist.chats.get(chat_id)
        if found is None:
            raise NotFound("The recording has no such chat.", code="unknown_chat")
        messages = [message.to_json() for message in found.messages]
        shown = chat_json(_info(found))
        return JSONResponse({**shown, "activeStreamId": None, "messages": messages})

    # What the page asks for as well.
    @router.get("/api/approvals", name="listApprovals")
    async def approvals(request: Request) -> JSONResponse:
        check_origin(request, settings)
        return JSONResponse({"approvals": []})

    @router.get("/healthz", name="getHealth")
    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @router.get("/readyz", name="getReadiness")
    async def readyz() -> JSONResponse:
        return JSONResponse({"status": "ready"})

    return router


def _info(chat: RecordedChat) -> ChatInfo:
    return ChatInfo(ChatId(chat.id), chat.title, chat.created_at, chat.updated_at)
