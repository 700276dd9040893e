"""The WebSocket routes: who may open one, and how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from adk_stream_protocol.errors import TooMany
from adk_stream_protocol.identifiers import ChatId, UserId
from adk_stream_protocol.ports import RunMode
from adk_stream_protocol.server.faults import fault_code, fault_response, fault_text
from adk_stream_protocol.server.routes import Service
from adk_stream_protocol.transports.audio import AudioSocket
from adk_stream_protocol.transports.envelope import EnvelopeSocket
from adk_stream_protocol.transports.framing import SocketLimits
from adk_stream_protocol.transports.lasting import serve_last
from adk_stream_protocol.transports.websocket import ChatSocket
from adk_stream_protocol.wire.dialects import AiSdkDialect, EnvelopeDialect
from adk_stream_protocol.wire.profiles import Audience, Profile
from adk_stream_protocol.wire.requests import parse_chat_id, parse_profile

__all__ = ["socket_routes"]

_DENIAL: Final = "websocket.http.response"
"""The ASGI extension that lets a refusal be a whole response."""
_POLICY: Final = 1008


@dataclass(frozen=True, slots=True)
class _Places:
    """How many sockets each user has open in this process."""

    most: int
    taken: Counter[UserId] = field(default_factory=Counter)

    def take(self, user: UserId) -> None:
        """Take a place, which is to be given back.

        Raises:
            TooMany: the user has none left.
        """
        if self.taken[user] >= self.most:
            raise TooMany(
                f"{self.most} sockets of yours are open already. Close one: a socket serves many "
                "chats."
            )
        self.taken[user] += 1

    def give_back(self, user: UserId) -> None:
        self.taken[user] -= 1
        if not self.taken[user]:
            del self.taken[user]


@dataclass(frozen=True, slots=True)
class _Client:
    """Who opened a socket, and what its address says."""

    user: UserId
    audience: Audience
    chat_id: ChatId | None
    """None: the address names no chat."""


_Serve: TypeAlias = Callable[[WebSocket, _Client], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Door:
    """Lets sockets in, one place each."""

    service: Service
    places: _Places

    async def let_in(self, socket: WebSocket, profile: Profile, serve: _Serve) -> None:
        """Have a socket served until it ends, or refuse it. It is the last that a route does."""
        try:
            user = await self.service.user(socket)
            asked = parse_profile(socket.query_params.get("profile"))
            audience = self.service.audience(asked or profile, socket.query_params.get("sdk"))
            chat = socket.path_params.get("chat_id", socket.query_params.get("chat"))
            client = _Client(user, audience, None if chat is None else parse_chat_id(chat))
        except Exception as error:  # noqa: BLE001  # the edge: a client gets a public text
            await _deny(socket, _denial(error))
            return
        seated = partial(self._seated, socket.scope, client, serve)
        await serve_last(socket.scope, socket.receive, socket.send, serve=seated)

    async def _seated(
        self, scope: Scope, client: _Client, serve: _Serve, receive: Receive, send: Send
    ) -> None:
        socket = WebSocket(scope, receive, send)
        try:
            self.places.take(client.user)
        except TooMany as error:
            await _deny(socket, fault_response(error))
            return
        try:
            # A browser that offered some fails unless it gets one.
            await socket.accept(next(iter(scope.get("subprotocols", [])), None))
            await serve(socket, client)
        finally:
            self.places.give_back(client.user)


def socket_routes(service: Service) -> APIRouter:
    """Return the routes of sockets: chats in either dialect, and the sound beside them."""
    router = APIRouter()
    settings = service.settings
    door = _Door(service, _Places(settings.max_sockets))
    dialect = AiSdkDialect(max_depth=settings.json_depth)
    limits = SocketLimits(frame_bytes=settings.frame_bytes, send_seconds=settings.send_seconds)

    def serve(socket: WebSocket, client: _Client, mode: RunMode) -> Awaitable[None]:
        return ChatSocket(
            socket,
            service.conversations,
            user=client.user,
            audience=client.audience,
            dialect=dialect,
            explain=fault_text,
            meters=service.meters,
            mode=mode,
            limits=limits,
            tape=service.tape(),
        ).serve()

    @router.websocket("/api/chat/ws")
    async def chat_socket(socket: WebSocket) -> None:
        await door.let_in(socket, "ai-sdk", partial(serve, mode="unary"))

    @router.websocket("/api/chat/live")
    async def live_socket(socket: WebSocket) -> None:
        await door.let_in(socket, "ai-sdk", partial(serve, mode="live"))

    @router.websocket("/live")
    async def envelope_socket(socket: WebSocket) -> None:
        await door.let_in(socket, "adk", partial(_serve_envelopes, service, limits))

    @router.websocket("/api/chat/{chat_id}/audio")
    async def audio_socket(socket: WebSocket) -> None:
        await door.let_in(socket, "ai-sdk", partial(_serve_audio, service))

    return router


def _serve_envelopes(
    service: Service, limits: SocketLimits, socket: WebSocket, client: _Client
) -> Awaitable[None]:
    return EnvelopeSocket(
        socket,
        service.conversations,
        user=client.user,
        audience=client.audience,
        dialect=EnvelopeDialect(max_depth=service.settings.json_depth),
        explain=fault_code,
        meters=service.meters,
        chat_id=client.chat_id,
        limits=limits,
        tape=service.tape(),
    ).serve()


def _serve_audio(service: Service, socket: WebSocket, client: _Client) -> Awaitable[None]:
    assert client.chat_id is not None, "the address names it"
    return AudioSocket(
        socket,
        service.conversations,
        user=client.user,
        chat_id=client.chat_id,
        explain=fault_text,
        send_seconds=service.settings.send_seconds,
    ).serve()


def _denial(error: Exception) -> Response:
    if isinstance(error, HTTPException):
        # An `identify` of FastAPI's kind.
        detail = {"detail": error.detail}
        return JSONResponse(detail, error.status_code, headers=error.headers)
    return fault_response(error)


async def _deny(socket: WebSocket, response: Response) -> None:
    if _DENIAL in socket.scope.get("extensions", {}):
        await socket.send_denial_response(response)
    else:
        await socket.close(_POLICY)
