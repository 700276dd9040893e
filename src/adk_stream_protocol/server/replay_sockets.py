"""The WebSockets of a replay, in both dialects."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

import anyio
from anyio.abc import TaskGroup
from fastapi import APIRouter
from starlette.websockets import WebSocket

from adk_stream_protocol.errors import AdkStreamError, BadFrame, ClientFault
from adk_stream_protocol.identifiers import ChatId, RequestId
from adk_stream_protocol.server.faults import fault_response
from adk_stream_protocol.server.guard import check_origin
from adk_stream_protocol.server.player import AS_RECORDED, PlayedReply, Player
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.transports.framing import FrameWriter, SocketLimits, text_of
from adk_stream_protocol.wire.dialects import AiSdkDialect, Dialect, EnvelopeDialect
from adk_stream_protocol.wire.frames import (
    NOBODY,
    UNNUMBERED,
    Abort,
    Audio,
    AudioControl,
    ChatFrame,
    ChunkFrame,
    Ended,
    EnvelopeFrame,
    Failed,
    Interrupt,
    NoActive,
    Ping,
    Pong,
    Refused,
    Resume,
    Send,
    ServerFrame,
    Started,
    ToolResult,
)
from adk_stream_protocol.wire.profiles import Profile
from adk_stream_protocol.wire.requests import parse_chat_id, parse_profile

__all__ = ["replay_sockets"]


def replay_sockets(player: Player, settings: Settings) -> APIRouter:
    """Return the routes of sockets."""
    router = APIRouter()
    limits = SocketLimits(frame_bytes=settings.frame_bytes, send_seconds=settings.send_seconds)

    async def frames(socket: WebSocket) -> None:
        if await _opened(socket, settings):
            await _Frames(socket, player, limits, AiSdkDialect(settings.json_depth)).serve()

    router.add_api_websocket_route("/api/chat/ws", frames)
    router.add_api_websocket_route("/api/chat/live", frames)

    @router.websocket("/live")
    async def envelopes(socket: WebSocket) -> None:
        if await _opened(socket, settings):
            dialect = EnvelopeDialect(settings.json_depth)
            profile = parse_profile(socket.query_params.get("profile")) or "adk"
            await _Envelopes(socket, player, limits, dialect, profile).serve()

    return router


async def _opened(socket: WebSocket, settings: Settings) -> bool:
    try:
        check_origin(socket, settings)
        parse_chat_id(socket.query_params.get("chat", "-"))
        parse_profile(socket.query_params.get("profile"))
    except ClientFault as fault:
        await socket.send_denial_response(fault_response(fault))
        return False
    await socket.accept(next(iter(socket.scope.get("subprotocols", [])), None))
    return True


class _Sending:
    """Sends frames in a dialect."""

    def __init__(self, writer: FrameWriter, render: Callable[[ServerFrame], str | None]) -> None:
        self._writer = writer
        self._render = render

    async def __call__(self, frame: ServerFrame) -> None:
        text = self._render(frame)
        if text is not None:
            await self._writer.send(text)

    async def chunks(self, reply: PlayedReply, request_id: RequestId) -> None:
        ended, sequence = False, 0
        while not ended:
            batch = await reply.next()
            ended = batch.ended
            for chunk in AS_RECORDED.render(batch.entries):
                await self(ChunkFrame(request_id, sequence, chunk))
                sequence += 1


@dataclass(slots=True)
class _Frames:
    """One socket of a client of the AI SDK."""

    socket: WebSocket
    player: Player
    limits: SocketLimits
    dialect: Dialect[ChatFrame]
    open: dict[RequestId, anyio.CancelScope] = field(default_factory=dict)
    """What ends the sending for each request."""

    async def serve(self) -> None:
        async with anyio.create_task_group() as tasks:
            send = _sending(self.socket, self.limits, self.dialect.render, tasks)
            while (message := await self.socket.receive())["type"] != "websocket.disconnect":
                try:
                    text = text_of(message, self.limits, self.dialect.request_of)
                    self._take(self.dialect.parse(text), send, tasks)
                except BadFrame as fault:
                    await send(Failed(RequestId(fault.request_id or NOBODY), fault.message))
            tasks.cancel_scope.cancel()

    def _take(self, frame: ChatFrame, send: _Sending, tasks: TaskGroup) -> None:
        match frame:
            case Send() | Resume():
                if frame.request_id in self.open or len(self.open) >= self.limits.requests:
                    raise BadFrame("Give each request an id of its own, and wait for some to end.")
                self.open[frame.request_id] = scope = anyio.CancelScope()
                tasks.start_soon(self._answer, frame, send, scope)
            case Abort(request_id):
                if request_id in self.open:
                    self.open[request_id].cancel()
            case _:
                assert_never(frame)

    async def _answer(self, frame: Send | Resume, send: _Sending, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                await self._play(frame, send)
        except AdkStreamError as error:
            await send(Failed(frame.request_id, error.public_message))
        finally:
            del self.open[frame.request_id]

    async def _play(self, frame: Send | Resume, send: _Sending) -> None:
        name = frame.request_id
        if isinstance(frame, Send):
            chat_id = frame.request.chat_id or _new_chat()
            reply: PlayedReply | None = self.player.send(chat_id, "ai-sdk")
        else:
            reply = self.player.resume(frame.chat_id, "ai-sdk")
        if reply is None:
            await send(NoActive(name))
            return
        await send(Started(name))
        await send.chunks(reply, name)
        error = reply.recorded.error
        await send(Ended(name) if error is None else Failed(name, error))


@dataclass(slots=True)
class _Envelopes:
    """One socket of a client of the envelope."""

    socket: WebSocket
    player: Player
    limits: SocketLimits
    dialect: Dialect[EnvelopeFrame]
    profile: Profile = "adk"
    in_order: anyio.Lock = field(default_factory=anyio.Lock)
    """Replies come one after another."""
    playing: anyio.CancelScope | None = None
    """Ends the reply on its way; None: there is none."""

    async def serve(self) -> None:
        chat = self.socket.query_params.get("chat")
        chat_id = _new_chat() if chat is None else ChatId(chat)
        async with anyio.create_task_group() as tasks:
            send = _sending(self.socket, self.limits, self.dialect.render, tasks)
            while (message := await self.socket.receive())["type"] != "websocket.disconnect":
                try:
                    text = text_of(message, self.limits, self.dialect.request_of)
                    frame = self.dialect.parse(text)
                except BadFrame as fault:
                    await send(Refused(fault.message, fault.code))
                    continue
                if isinstance(frame, Send) and frame.request.chat_id is not None:
                    chat_id = frame.request.chat_id
                await self._take(frame, chat_id, send, tasks)
            tasks.cancel_scope.cancel()

    async def _take(
        self, frame: EnvelopeFrame, chat_id: ChatId, send: _Sending, tasks: TaskGroup
    ) -> None:
        match frame:
            case Send() | ToolResult():
                tasks.start_soon(self._answer, chat_id, send)
            case Interrupt():
                if self.playing is not None:
                    self.playing.cancel()
            case Ping(timestamp):
                await send(Pong(timestamp))
            case Audio() | AudioControl():
                return
            case _:
                assert_never(frame)

    async def _answer(self, chat_id: ChatId, send: _Sending) -> None:
        async with self.in_order:
            try:
                reply = self.player.send(chat_id, self.profile)
            except AdkStreamError as error:
                await send(Refused(error.public_message, error.code))
                return
            with anyio.CancelScope() as self.playing:
                await send.chunks(reply, UNNUMBERED)
            self.playing = None
            error_text = reply.recorded.error
            if error_text is not None and not reply.recorded.chunks:
                await send(Refused(error_text))
            elif error_text is not None:
                await send(Failed(UNNUMBERED, error_text))
            elif not reply.recorded.waits:
                await send(Ended(UNNUMBERED))


def _sending(
    socket: WebSocket,
    limits: SocketLimits,
    render: Callable[[ServerFrame], str | None],
    tasks: TaskGroup,
) -> _Sending:
    leave = tasks.cancel_scope.cancel
    return _Sending(FrameWriter(socket, send_seconds=limits.send_seconds, leave=leave), render)


def _new_chat() -> ChatId:
    return ChatId(f"chat-{uuid.uuid4()}")
