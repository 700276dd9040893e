"""Chats over one WebSocket: several requests at once, each with a reply of its own.

Knows frames, and a dialect that spells them; knows nothing of ADK or of held calls. Only text
frames are sent: a stock client ends the socket at a binary one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import anyio
from anyio.abc import TaskGroup
from starlette.websockets import WebSocket

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.engine.reply import LoggedReply, Reply, WaitingReply
from adk_stream_protocol.errors import BadFrame, ClientFault, TooMany, trace_of
from adk_stream_protocol.identifiers import ChatId, ReplyId, RequestId, UserId
from adk_stream_protocol.ports import RunMode, turns_topic
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.transports.framing import (
    RESTART,
    FrameWriter,
    SocketLimits,
    text_of,
)
from adk_stream_protocol.transports.taping import Tape
from adk_stream_protocol.wire.chunks import StartChunk
from adk_stream_protocol.wire.dialects import Dialect
from adk_stream_protocol.wire.frames import (
    NOBODY,
    Abort,
    Active,
    ChatFrame,
    ChunkFrame,
    Ended,
    Failed,
    NoActive,
    Pong,
    Refused,
    Resume,
    Send,
    ServerFrame,
    Started,
)
from adk_stream_protocol.wire.profiles import Audience

__all__ = ["ChatSocket"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Asked:
    """A request that is being answered."""

    chat_id: ChatId | None
    """None: the client named no chat."""
    scope: anyio.CancelScope
    """Ends the sending of its reply."""
    reply: Reply | None = None
    """What is sent; None: it has not begun."""
    is_aborted: bool = False
    """The client has stopped it."""


class ChatSocket:
    """One socket of one user, from when it is accepted until the client leaves."""

    def __init__(
        self,
        socket: WebSocket,
        conversations: Conversations,
        *,
        user: UserId,
        audience: Audience,
        dialect: Dialect[ChatFrame],
        explain: Callable[[Exception], str],
        meters: Meters,
        mode: RunMode = "unary",
        limits: SocketLimits | None = None,
        tape: Tape | None = None,
    ) -> None:
        self._socket = socket
        self._conversations = conversations
        self._user = user
        self._audience = audience
        self._dialect = dialect
        # Logs a fault and returns what the client may know of it.
        self._explain = explain
        self._meters = meters
        self._mode = mode
        self._limits = limits or SocketLimits()
        # None: nobody records.
        self._tape = tape
        # Owns everything that runs for this socket; None before it is served.
        self._tasks: TaskGroup | None = None
        # The open requests, by the names the client gave them.
        self._asked: dict[RequestId, _Asked] = {}
        # What ends the watching of each chat that this socket used, the one used last at the end.
        self._watched: dict[ChatId, anyio.CancelScope] = {}
        # The newest reply of each watched chat that the client has or was told of.
        self._known: dict[ChatId, ReplyId] = {}
        self._writer = FrameWriter(
            socket, send_seconds=self._limits.send_seconds, leave=self._leave
        )

    async def serve(self) -> None:
        """Answer frames until the client leaves, or is dropped because it takes none.

        A request that was read is carried out, also when the client leaves: only the sending of
        its reply ends. What runs goes on and can be resumed.
        """
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while (message := await self._socket.receive())["type"] != "websocket.disconnect":
                try:
                    text = text_of(message, self._limits, self._dialect.request_of)
                    self._take(self._dialect.parse(text), tasks)
                except ClientFault as fault:
                    await self._refuse(fault)
            tasks.cancel_scope.cancel()

    # What the client says

    def _take(self, frame: ChatFrame, tasks: TaskGroup) -> None:
        match frame:
            case Send() | Resume():
                asked = self._open(frame)
                self._note(frame)
                tasks.start_soon(self._answer, frame, asked)
            case Abort(request_id, leave):
                # One that has ended meanwhile, or never was, is as well.
                if request_id in self._asked:
                    self._note(frame)
                    asked = self._asked[request_id]
                    asked.is_aborted = not leave
                    asked.scope.cancel()
            case _:
                assert_never(frame)

    def _open(self, frame: Send | Resume) -> _Asked:
        if frame.request_id in self._asked:
            raise BadFrame("A request with this id is open. Give each request an id of its own.")
        if len(self._asked) >= self._limits.requests:
            raise BadFrame(
                f"{self._limits.requests} requests are open on this socket. Wait for one to end.",
                request_id=frame.request_id,
                code=TooMany.default_code,
            )
        chat_id = frame.request.chat_id if isinstance(frame, Send) else frame.chat_id
        asked = _Asked(chat_id, anyio.CancelScope())
        # At once: the next frame may abort it.
        self._asked[frame.request_id] = asked
        return asked

    async def _refuse(self, fault: ClientFault) -> None:
        request_id = NOBODY
        if isinstance(fault, BadFrame) and fault.request_id is not None:
            named = RequestId(fault.request_id)
            # A running reply does not fail because another frame took its name.
            request_id = NOBODY if named in self._asked else named
        await self._send(Failed(request_id, self._explain(fault)))

    # What it gets

    async def _answer(self, frame: Send | Resume, asked: _Asked) -> None:
        try:
            with asked.scope:
                await self._reply_to(frame, asked)
            if asked.is_aborted and asked.reply is not None:
                await self._stop(asked.reply)
        finally:
            del self._asked[frame.request_id]
        if self._conversations.turns.drain.has_begun and not self._asked:
            # The next request opens another socket, where a server takes it.
            await self._writer.close(RESTART)
        elif asked.chat_id is not None and asked.chat_id in self._watched:
            # What began meanwhile was not told: it might have been this request's own.
            await self._look(asked.chat_id)

    async def _stop(self, reply: Reply) -> None:
        """Stop a reply whose reader aborted it: a tab that is closed does not say so."""
        try:
            await self._conversations.stop_reply(reply, self._user)
        except Exception as error:  # noqa: BLE001  # the edge: other requests must not suffer
            logger.error("reply not stopped: %s", trace_of(error))  # noqa: TRY400

    async def _reply_to(self, frame: Send | Resume, asked: _Asked) -> None:
        try:
            # An abort, or a tab that is closed, does not take back what was said.
            with anyio.CancelScope(shield=True):
                asked.reply = reply = await self._begun(frame)
            if reply is None:
                await self._send(NoActive(frame.request_id))
            else:
                await self._send_reply(frame.request_id, reply)
        except Exception as error:  # noqa: BLE001  # the edge: other requests must not suffer
            await self._send(Failed(frame.request_id, self._explain(error)))

    async def _begun(self, frame: Send | Resume) -> Reply | None:
        match frame:
            case Send(_, request):
                reply: Reply | None = await self._conversations.submit(
                    request, self._user, mode=self._mode
                )
            case Resume(_, chat_id):
                reply = await self._conversations.resume(chat_id, self._user)
            case _:
                assert_never(frame)
        if reply is not None:
            await self._watch(reply.chat_id, reply)
        elif isinstance(frame, Resume):
            await self._watch(frame.chat_id, None)
        return reply

    async def _send_reply(self, request_id: RequestId, reply: Reply) -> None:
        end = "left"
        with self._meters.sending():
            try:
                await self._send_chunks(request_id, reply)
                end = "complete"
            finally:
                self._meters.count("replies", self._audience.profile, end)

    async def _send_chunks(self, request_id: RequestId, reply: Reply) -> None:
        await self._send(Started(request_id))
        sequence = 0
        begun: str | None = None
        ended = False
        while not ended:
            batch = await reply.next()
            ended = batch.ended
            frames: list[ServerFrame] = []
            for chunk in self._audience.render(batch.entries):
                if isinstance(chunk, StartChunk):
                    # A replay begins its message once: at each start, ai 7.0.135 to 7.0.137 drop
                    # what they have of it.
                    if sequence and chunk.message_id == begun:
                        continue
                    begun = chunk.message_id
                frames.append(ChunkFrame(request_id, sequence, chunk))
                sequence += 1
            await self._send(*frames)
        reply.delivered()
        await self._send(Ended(request_id))

    async def _send(self, *frames: ServerFrame) -> None:
        """Send frames; does not return if the client has left, or takes none for too long."""
        texts: list[str] = []
        for frame in frames:
            text = self._dialect.render(frame)
            if text is not None:
                self._note(frame)
                texts.append(text)
        await self._writer.send(*texts)

    def _note(self, frame: ChatFrame | ServerFrame) -> None:
        if self._tape is None:
            return
        match frame:
            case Active(chat_id):
                self._tape(frame, chat_id, None)
            case Pong() | Refused():
                return
            case _:
                asked = self._asked.get(frame.request_id)
                request = None if frame.request_id == NOBODY else frame.request_id
                self._tape(frame, None if asked is None else asked.chat_id, request)

    def _leave(self) -> None:
        assert self._tasks is not None, "frames are sent while the socket is served"
        self._tasks.cancel_scope.cancel()

    # What begins elsewhere

    async def _watch(self, chat_id: ChatId, reply: Reply | None) -> None:
        """Tell the client of turns in a chat that it did not ask for, from now on."""
        if isinstance(reply, LoggedReply | WaitingReply):
            self._known[chat_id] = reply.reply_id
        elif chat_id not in self._known:
            turn = await self._conversations.stores.turns.latest(chat_id)
            if turn is not None:
                self._known.setdefault(chat_id, turn.reply_id)
        is_new = chat_id not in self._watched
        scope = self._watched.pop(chat_id, None) or anyio.CancelScope()
        self._watched[chat_id] = scope
        if len(self._watched) > self._limits.chats:
            oldest = next(iter(self._watched))
            self._watched.pop(oldest).cancel()
            self._known.pop(oldest, None)
        if is_new and self._tasks is not None:
            self._tasks.start_soon(self._hear, chat_id, scope)

    async def _hear(self, chat_id: ChatId, scope: anyio.CancelScope) -> None:
        wake = self._conversations.stores.wake
        # A live run goes on while someone has its chat open.
        with scope, self._conversations.lives.present(chat_id):
            while True:
                await wake.wait(turns_topic(chat_id), self._limits.look_seconds)
                await self._look(chat_id)

    async def _look(self, chat_id: ChatId) -> None:
        """Tell the client of the chat's newest turn, unless it knows or is about to."""
        if any(asked.chat_id == chat_id for asked in self._asked.values()):
            return
        try:
            turn = await self._conversations.stores.turns.latest(chat_id)
        except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
            logger.error("chat not watched: %s", trace_of(error), extra={"chat": chat_id})  # noqa: TRY400
            return
        if turn is None or turn.owner != self._user or turn.reply_id == self._known.get(chat_id):
            return
        self._known[chat_id] = turn.reply_id
        await self._send(Active(chat_id))
