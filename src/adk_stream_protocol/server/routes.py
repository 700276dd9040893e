"""The chat routes: requests in, streams out. Everything they do is done by `Conversations`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, cast

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from starlette.requests import HTTPConnection
from starlette.responses import Response, StreamingResponse

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.engine.sessions import ChatInfo
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.held_calls.policy import Policy
from adk_stream_protocol.identifiers import UserId
from adk_stream_protocol.server.faults import FaultRoute
from adk_stream_protocol.server.guard import check_origin, read_json
from adk_stream_protocol.server.identity import Identify, user_of
from adk_stream_protocol.server.recorder import Recorder, taken
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.shapes import CHAT_BODY, ChatShape, ChatsShape, StoppedShape
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.translation.cards import time_text
from adk_stream_protocol.transports.sse import EventStream
from adk_stream_protocol.transports.taping import Tape
from adk_stream_protocol.wire.frames import UNNUMBERED, Interrupt, NoActive, Resume, Send
from adk_stream_protocol.wire.profiles import Audience, Profile
from adk_stream_protocol.wire.requests import parse_chat_id, parse_request
from adk_stream_protocol.wire.values import JsonValue

__all__ = ["CLI_AGENT", "Service", "chat_routes", "history_routes"]


CLI_AGENT: Final = "adk-stream-cli"
"""What our own command calls itself in `User-Agent`."""


@dataclass(frozen=True, slots=True)
class Service:
    """What every route needs."""

    conversations: Conversations
    policy: Policy
    settings: Settings
    identify: Identify
    meters: Meters
    recorder: Recorder | None = None
    """None: nobody records."""

    async def user(self, request: HTTPConnection) -> UserId:
        """Return who calls, if the request may be made at all."""
        check_origin(request, self.settings)
        return await user_of(request, self.identify)

    def via(self, request: Request, way: str) -> str:
        """Return where a decision comes from, for the audit trail."""
        if request.headers.get("user-agent", "").startswith(CLI_AGENT):
            way = "cli"
        return way if request.client is None else f"{way} {request.client.host}"

    def tape(self) -> Tape | None:
        """Return what takes down one connection; None: nobody records."""
        return None if self.recorder is None else self.recorder.tape()

    def audience(self, profile: Profile, sdk: str | None = None) -> Audience:
        """Return the reader that a route and its query describe."""
        if sdk not in {None, "6", "7"}:
            raise BadRequest('"sdk" must be 6 or 7.', code="bad_sdk")
        return Audience(
            profile,
            sdk=7 if sdk == "7" else 6,
            runs_in_browser=self.policy.runs_at_once_in_browser,
            runs_after_approval=self.policy.runs_in_browser_after_approval,
        )


def chat_routes(service: Service, path: str, profile: Profile) -> APIRouter:
    """Return the routes of one profile: send, resume, stop."""
    router = APIRouter(tags=[f"chat ({profile})"], route_class=FaultRoute)
    streaming = partial(
        EventStream, keep_alive=service.settings.keep_alive_seconds, meters=service.meters
    )

    @router.post(
        path,
        summary="Say something, answer held calls, edit or regenerate",
        response_class=StreamingResponse,
        openapi_extra={"requestBody": CHAT_BODY},
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def send(
        request: Request, sdk: str | None = Query(None), chat: str | None = Query(None)
    ) -> Response:
        user = await service.user(request)
        audience = service.audience(profile, sdk)
        asked = parse_request(await read_json(request, service.settings))
        if asked.chat_id is None and chat is not None:
            asked = dataclasses.replace(asked, chat_id=parse_chat_id(chat))
        tape = service.tape()
        with taken(tape, Send(UNNUMBERED, asked), asked.chat_id):
            via = service.via(request, "chat")
            reply = await service.conversations.submit(asked, user, via=via)
        response = streaming(reply, audience, tape=tape)
        response.headers["x-adk-stream-chat"] = reply.chat_id.encode("utf-8").decode("latin-1")
        return response

    @router.get(
        f"{path}/{{chat_id}}/stream",
        summary="Resume the newest reply from its beginning",
        response_class=StreamingResponse,
        responses={200: {"content": {"text/event-stream": {}}}, 204: {"description": "None"}},
    )
    async def resume(request: Request, chat_id: str, sdk: str | None = Query(None)) -> Response:
        user = await service.user(request)
        audience = service.audience(profile, sdk)
        chat = parse_chat_id(chat_id)
        tape = service.tape()
        with taken(tape, Resume(UNNUMBERED, chat), chat):
            reply = await service.conversations.resume(chat, user)
        if reply is None:
            if tape is not None:
                tape(NoActive(UNNUMBERED), chat)
            return Response(status_code=204)
        return streaming(reply, audience, tape=tape)

    @router.post(
        f"{path}/{{chat_id}}/stop",
        summary="Stop the running reply, or give up what waits",
        response_model=StoppedShape,
    )
    async def stop(request: Request, chat_id: str) -> JSONResponse:
        user = await service.user(request)
        chat = parse_chat_id(chat_id)
        with taken(service.tape(), Interrupt(), chat):
            stopped = await service.conversations.stop(chat, user)
        return JSONResponse({"stopped": stopped})

    return router


def history_routes(service: Service) -> APIRouter:
    """Return the routes of chats and their messages."""
    router = APIRouter(tags=["chats"], route_class=FaultRoute)

    @router.get("/api/chats", summary="List the chats", response_model=ChatsShape)
    async def chats(request: Request) -> JSONResponse:
        user = await service.user(request)
        found = await service.conversations.chats(user)
        return JSONResponse({"chats": [_chat(info) for info in found]})

    @router.get(
        "/api/chats/{chat_id}", summary="Read a chat with its messages", response_model=ChatShape
    )
    async def chat(
        request: Request,
        chat_id: str,
        profile: Literal["ai-sdk", "adk"] = "ai-sdk",
        sdk: str | None = Query(None),
    ) -> JSONResponse:
        user = await service.user(request)
        audience = service.audience(profile, sdk)
        loaded = await service.conversations.messages(parse_chat_id(chat_id), user, audience)
        shown = _chat(loaded.info)
        shown["activeStreamId"] = loaded.active_stream_id
        messages = [item.to_json() for item in loaded.messages]
        shown["messages"] = cast("Sequence[JsonValue]", messages)
        return JSONResponse(shown)

    @router.get(
        "/api/chats/{chat_id}/artifacts/{filename:path}",
        summary="Download a file that the agent saved",
        response_class=StreamingResponse,
    )
    async def artifact(
        request: Request, chat_id: str, filename: str, version: int | None = Query(None, ge=0)
    ) -> Response:
        user = await service.user(request)
        data, kind = await service.conversations.artifact(
            parse_chat_id(chat_id), user, filename=filename, version=version
        )
        # A download, never a page of ours: an agent's file may hold scripts.
        headers = {"content-disposition": "attachment", "x-content-type-options": "nosniff"}
        return Response(data, media_type=kind, headers=headers)

    @router.delete("/api/chats/{chat_id}", summary="Delete a chat", status_code=204)
    async def delete(request: Request, chat_id: str) -> Response:
        user = await service.user(request)
        await service.conversations.delete(parse_chat_id(chat_id), user)
        return Response(status_code=204)

    return router


def _chat(info: ChatInfo) -> dict[str, JsonValue]:
    return {
        "id": info.id,
        "title": info.title,
        "createdAt": time_text(info.created_at),
        "updatedAt": time_text(info.updated_at),
    }
