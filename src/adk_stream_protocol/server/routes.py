"""The chat routes: requests in, streams out. Everything they do is done by `Conversations`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from starlette.requests import HTTPConnection
from starlette.responses import Response, StreamingResponse

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.held_calls.policy import Policy
from adk_stream_protocol.identifiers import UserId
from adk_stream_protocol.server.chat_list import (
    DEFAULT_LIMIT,
    ArchivedFilter,
    chat_json,
    list_json,
    parse_change,
)
from adk_stream_protocol.server.faults import ChatFaultRoute, FaultRoute
from adk_stream_protocol.server.guard import check_origin, read_json
from adk_stream_protocol.server.headers import CHAT, RESUMABLE, header_text
from adk_stream_protocol.server.identity import Identify, user_of
from adk_stream_protocol.server.openapi import (
    FILE,
    REPLY,
    REPLY_HEADERS,
    CallerChat,
    Cursor,
    Limit,
    Sdk,
    ShownProfile,
    Version,
    error_responses,
    json_body,
)
from adk_stream_protocol.server.recorder import Recorder, taken
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.shapes import (
    ChatChangeShape,
    ChatListItem,
    ChatRequestShape,
    ChatShape,
    ChatsShape,
    StoppedShape,
)
from adk_stream_protocol.server.streams import StreamKind, streamed
from adk_stream_protocol.telemetry import Meters
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
    router = APIRouter(tags=[f"chat ({profile})"], route_class=ChatFaultRoute)
    suffix = "" if profile == "ai-sdk" else "Adk"
    streaming = partial(
        streamed, keep_alive=service.settings.keep_alive_seconds, meters=service.meters
    )

    @router.post(
        path,
        name=f"sendMessage{suffix}",
        summary="Say something, answer held calls, edit or regenerate",
        response_class=StreamingResponse,
        openapi_extra=json_body(ChatRequestShape),
        responses={
            200: {"content": REPLY, "headers": REPLY_HEADERS},
            **error_responses(400, 403, 404, 409, 413, 415, 429, 500, 503, plain=True),
        },
    )
    async def send(
        request: Request,
        sdk: Sdk = None,
        chat: CallerChat = None,
        shown: ShownProfile = None,
        stream: StreamKind = "data",
    ) -> Response:
        user = await service.user(request)
        audience = service.audience(shown or profile, sdk)
        asked = parse_request(await read_json(request, service.settings))
        if asked.chat_id is None and chat is not None:
            asked = dataclasses.replace(asked, chat_id=parse_chat_id(chat))
        tape = service.tape()
        with taken(tape, Send(UNNUMBERED, asked), asked.chat_id):
            via = service.via(request, "chat")
            reply = await service.conversations.submit(asked, user, via=via)
        named = dict.fromkeys((CHAT, RESUMABLE), header_text(reply.chat_id))
        return streaming(request, reply, audience, kind=stream, headers=named, tape=tape)

    @router.get(
        f"{path}/{{chat_id}}/stream",
        name=f"resumeReply{suffix}",
        summary="Resume the newest reply from its beginning",
        response_class=StreamingResponse,
        responses={
            200: {"content": REPLY},
            204: {"description": "There is none"},
            **error_responses(400, 403, 404, 409, 500, 503, plain=True),
        },
    )
    async def resume(
        request: Request,
        chat_id: str,
        sdk: Sdk = None,
        shown: ShownProfile = None,
        stream: StreamKind = "data",
    ) -> Response:
        user = await service.user(request)
        audience = service.audience(shown or profile, sdk)
        chat = parse_chat_id(chat_id)
        tape = service.tape()
        with taken(tape, Resume(UNNUMBERED, chat), chat):
            reply = await service.conversations.resume(chat, user)
        if reply is None:
            if tape is not None:
                tape(NoActive(UNNUMBERED), chat)
            return Response(status_code=204)
        return streaming(request, reply, audience, kind=stream, tape=tape)

    @router.post(
        f"{path}/{{chat_id}}/stop",
        name=f"stopReply{suffix}",
        summary="Stop the running reply, or give up what waits",
        response_model=StoppedShape,
        responses=error_responses(400, 403, 404, 500, 503, plain=True),
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

    @router.get(
        "/api/chats",
        name="listChats",
        summary="List the chats, a page at a time, newest first",
        response_model=ChatsShape,
        responses=error_responses(400, 403, 500, 503),
    )
    async def chats(
        request: Request,
        limit: Limit = DEFAULT_LIMIT,
        cursor: Cursor = None,
        archived: ArchivedFilter = "false",
    ) -> JSONResponse:
        user = await service.user(request)
        found = await service.conversations.chats(user)
        return JSONResponse(list_json(found, cursor=cursor, limit=limit, archived=archived))

    @router.get(
        "/api/chats/{chat_id}",
        name="getChat",
        summary="Read a chat with its messages",
        response_model=ChatShape,
        responses=error_responses(400, 403, 404, 500, 503),
    )
    async def chat(
        request: Request,
        chat_id: str,
        profile: Literal["ai-sdk", "adk"] = "ai-sdk",
        sdk: Sdk = None,
    ) -> JSONResponse:
        user = await service.user(request)
        audience = service.audience(profile, sdk)
        loaded = await service.conversations.messages(parse_chat_id(chat_id), user, audience)
        shown = chat_json(loaded.info)
        shown["activeStreamId"] = loaded.active_stream_id
        messages = [item.to_json() for item in loaded.messages]
        shown["messages"] = cast("Sequence[JsonValue]", messages)
        return JSONResponse(shown)

    @router.get(
        "/api/chats/{chat_id}/artifacts/{filename:path}",
        name="getArtifact",
        summary="Download a file that the agent saved",
        response_class=StreamingResponse,
        responses={
            200: {"content": FILE, "description": "The file, with its own content type"},
            **error_responses(400, 403, 404, 500, 503),
        },
    )
    async def artifact(
        request: Request, chat_id: str, filename: str, version: Version = None
    ) -> Response:
        user = await service.user(request)
        data, kind = await service.conversations.artifact(
            parse_chat_id(chat_id), user, filename=filename, version=version
        )
        # A download, never a page of ours: an agent's file may hold scripts.
        headers = {"content-disposition": "attachment", "x-content-type-options": "nosniff"}
        return Response(data, media_type=kind, headers=headers)

    @router.patch(
        "/api/chats/{chat_id}",
        name="changeChat",
        summary="Rename or archive a chat",
        response_model=ChatListItem,
        openapi_extra=json_body(ChatChangeShape),
        responses=error_responses(400, 403, 404, 413, 415, 500, 503),
    )
    async def change(request: Request, chat_id: str) -> JSONResponse:
        user = await service.user(request)
        chat = parse_chat_id(chat_id)
        changed = parse_change(await read_json(request, service.settings))
        return JSONResponse(chat_json(await service.conversations.change(chat, user, changed)))

    @router.delete(
        "/api/chats/{chat_id}",
        name="deleteChat",
        summary="Delete a chat",
        status_code=204,
        responses=error_responses(400, 403, 404, 500, 503),
    )
    async def delete(request: Request, chat_id: str) -> Response:
        user = await service.user(request)
        await service.conversations.delete(parse_chat_id(chat_id), user)
        return Response(status_code=204)

    return router
