"""One chat over one WebSocket, in envelopes of version 1.0: the protocol of the first clients.

What they get is the text of an event stream, and one end for each turn: while calls wait for the
person, the turn is open. What is refused is told beside the stream, not in it: whoever reads a turn
would take an error for its end. Knows nothing of ADK.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable
from typing import Final, assert_never

import anyio
from anyio.abc import TaskGroup
from starlette.websockets import WebSocket

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.engine.reply import Reply
from adk_stream_protocol.errors import BadFrame, Conflict, TooMany
from adk_stream_protocol.identifiers import ChatId, RequestId, UserId
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.telemetry import Meters
from adk_stream_protocol.translation.instructions import (
    Answer,
    Answers,
    Output,
    interpret,
    repeats,
)
from adk_stream_protocol.transports.audio import heard
from adk_stream_protocol.transports.early_outputs import EarlyOutputs
from adk_stream_protocol.transports.following import Following
from adk_stream_protocol.transports.framing import (
    RESTART,
    FrameWriter,
    SocketLimits,
    text_of,
)
from adk_stream_protocol.transports.taping import NumberedTape, Tape
from adk_stream_protocol.wire.dialects import Dialect
from adk_stream_protocol.wire.frames import (
    UNNUMBERED,
    Audio,
    AudioControl,
    ChunkFrame,
    Ended,
    EnvelopeFrame,
    Failed,
    Interrupt,
    Ping,
    Pong,
    Refused,
    Resume,
    Send,
    ServerFrame,
    ToolResult,
)
from adk_stream_protocol.wire.messages import UIMessage
from adk_stream_protocol.wire.profiles import Audience
from adk_stream_protocol.wire.requests import ChatRequest

__all__ = ["EnvelopeSocket"]

_SOUND: Final = (16_000, 1, 16)
"""Samples a second, channels and bits of what a live model hears."""


class EnvelopeSocket:
    """One socket of one user and one chat, from when it is accepted until the client leaves."""

    def __init__(
        self,
        socket: WebSocket,
        conversations: Conversations,
        *,
        user: UserId,
        audience: Audience,
        dialect: Dialect[EnvelopeFrame],
        explain: Callable[[Exception], tuple[str, str]],
        meters: Meters,
        chat_id: ChatId | None = None,
        limits: SocketLimits | None = None,
        tape: Tape | None = None,
    ) -> None:
        self._socket = socket
        self._conversations = conversations
        self._user = user
        self._audience = audience
        self._dialect = dialect
        # Logs a fault and returns what the client may know of it: a code, and a sentence.
        self._explain = explain
        self._meters = meters
        self._limits = limits or SocketLimits()
        self._tape = NumberedTape(tape)
        # The chat that the address names; None: the first message does.
        self._named = chat_id
        # The chat of this socket; None until it is known.
        self._following: Following | None = None
        # How many requests are open.
        self._asked = 0
        self._early = EarlyOutputs(
            conversations.stores.calls,
            conversations.stores.wake,
            user=user,
            look_seconds=self._limits.look_seconds,
        )
        # Requests are carried out in the order they came.
        self._in_order = anyio.Lock()
        # Owns everything that runs for this socket; None before it is served.
        self._tasks: TaskGroup | None = None
        self._writer = FrameWriter(
            socket, send_seconds=self._limits.send_seconds, leave=self._leave
        )

    async def serve(self) -> None:
        """Answer frames until the client leaves, or is dropped because it takes none.

        What was read is carried out, also when the client leaves: only the sending ends. What runs
        goes on, and a socket that is opened for the chat gets it from its beginning.
        """
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            if self._named is not None:
                self._ask(self._named, tasks, Resume(UNNUMBERED, self._named))
            while (message := await self._socket.receive())["type"] != "websocket.disconnect":
                frame: EnvelopeFrame | None = None
                try:
                    text = text_of(message, self._limits, self._dialect.request_of)
                    frame = self._dialect.parse(text)
                    await self._take(frame, tasks)
                except Exception as error:  # noqa: BLE001  # the edge: the socket goes on
                    asks = self._dialect.request_of(message.get("text") or "") is not None
                    await self._refuse(error, frame, ends=asks and not _is_aside(frame))
            tasks.cancel_scope.cancel()

    @property
    def _chat_id(self) -> ChatId | None:
        return self._named if self._following is None else self._following.chat_id

    # What the client says

    async def _take(self, frame: EnvelopeFrame, tasks: TaskGroup) -> None:
        match frame:
            case Send(_, request):
                self._ask(request, tasks, frame)
            case ToolResult():
                self._ask(_answering(frame), tasks, frame)
            case Interrupt():
                self._tape.said(frame, self._chat_id)
                tasks.start_soon(self._stop)
            case Ping(timestamp):
                await self._send(Pong(timestamp))
            case Audio():
                await self._hear(frame)
            case AudioControl(action):
                if action == "stop":
                    self._end_sound()
            case _:
                assert_never(frame)

    def _ask(
        self, asked: ChatRequest | ChatId, tasks: TaskGroup, said: Send | ToolResult | Resume
    ) -> None:
        if self._asked >= self._limits.requests:
            raise TooMany(
                f"{self._limits.requests} requests are open on this socket. Wait for one to end."
            )
        self._asked += 1
        named = asked.chat_id if isinstance(asked, ChatRequest) else asked
        request_id = self._tape.asked(said, named or self._chat_id)
        tasks.start_soon(self._carry_out, asked, said, request_id)

    async def _carry_out(
        self,
        asked: ChatRequest | ChatId,
        said: Send | ToolResult | Resume,
        request_id: RequestId | None,
    ) -> None:
        refusal: Exception | None = None
        try:
            # A tab that is closed does not take back what was said.
            with anyio.CancelScope(shield=True):
                async with self._in_order:
                    if not isinstance(asked, ChatRequest):
                        await self._resume(asked)
                    elif await self._is_kept(said) or not await self._submit(asked):
                        self._tape.settled(request_id)
        except Exception as error:  # noqa: BLE001  # the edge: other requests must not suffer
            refusal = error
        finally:
            self._asked -= 1
        if refusal is not None:
            frame = None if isinstance(said, Resume) else said
            ends = isinstance(said, Send) and not _is_aside(said)
            await self._refuse(refusal, frame, ends=ends, request_id=request_id)

    async def _is_kept(self, said: Send | ToolResult | Resume) -> bool:
        """Whether an output comes before its approval, and is kept until that."""
        if not isinstance(said, ToolResult) or self._following is None:
            return False
        call = await self._early.call_of(said, self._following.chat_id)
        if call is None:
            return False
        assert self._tasks is not None, "frames come while the socket is served"
        if self._early.keep(call):
            self._tasks.start_soon(self._give_when_approved, said, call)
        return True

    async def _give_when_approved(self, said: ToolResult, call: HeldCall) -> None:
        try:
            if not await self._early.until_decided(call):
                return
        except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
            await self._refuse(error, said)
            return
        self._asked += 1
        await self._carry_out(_answering(said), said, None)

    async def _submit(self, request: ChatRequest) -> bool:
        """Do what a request asks for; False: it was done before, and its outcome is coming."""
        request = self._of_this_chat(request)
        following = self._following
        if following is None:
            reply = await self._begun(request)
            following = self._follow(reply.chat_id)
            with following.asking():
                await following.add(reply)
            return True
        with following.asking():
            is_new = await self._is_awaited(request, following)
            if is_new:
                await following.add(await self._begun(request))
            return is_new

    def _of_this_chat(self, request: ChatRequest) -> ChatRequest:
        chat_id = self._chat_id
        if request.chat_id is not None and chat_id not in {None, request.chat_id}:
            raise BadFrame(f"This socket is of the chat {chat_id!r}. Open another for another.")
        return dataclasses.replace(request, chat_id=request.chat_id or chat_id)

    async def _begun(self, request: ChatRequest) -> Reply:
        return await self._conversations.submit(request, self._user, mode="live")

    async def _is_awaited(self, request: ChatRequest, following: Following) -> bool:
        """Whether a request is more than answers that were given before; False: those follow.

        Raises:
            Conflict: it answers what is settled otherwise, or what this reader has the end of.
        """
        calls = await self._conversations.stores.calls.of_chat(following.chat_id)
        rows = {call.approval_id: call for call in calls if call.owner == self._user}
        instruction = interpret(request, calls) if rows else None
        if not isinstance(instruction, Answers):
            return True
        answered = [(answer, rows[answer.approval_id]) for answer in instruction.answers]
        if any(_awaits(call, answer) for answer, call in answered):
            return True
        if all(repeats(answer, call) and following.will_tell(call) for answer, call in answered):
            return False
        _, call = answered[-1]
        raise Conflict(
            f"{call.tool_name} was answered before, and is {call.state.value}. This answer "
            "changes nothing.",
            code="already_answered",
        )

    async def _resume(self, chat_id: ChatId) -> None:
        """Follow a chat from the beginning of its newest reply, if its turn is not over."""
        reply = await self._conversations.resume(chat_id, self._user)
        following = self._follow(chat_id)
        with following.asking():
            turn = await self._conversations.stores.turns.latest(chat_id)
            calls = await self._conversations.stores.calls.of_chat(chat_id)
            goes_on = turn is not None and turn.running
            if reply is not None and (goes_on or any(call.is_open for call in calls)):
                await following.add(reply)
            else:
                await following.begin_after()

    async def _stop(self) -> None:
        try:
            if not await self._stopped() and self._asked:
                # What it is to stop may be about to begin.
                async with self._in_order:
                    await self._stopped()
        except Exception as error:  # noqa: BLE001  # the edge: other requests must not suffer
            await self._refuse(error, Interrupt())

    async def _stopped(self) -> bool:
        chat_id = self._chat_id
        return chat_id is not None and await self._conversations.stop(chat_id, self._user)

    async def _hear(self, sound: Audio) -> None:
        if (sound.sample_rate, sound.channels, sound.bit_depth) != _SOUND:
            raise BadFrame("Send sound as PCM of 16,000 samples a second, one channel, 16 bits.")
        blob = heard(sound.pcm)
        chat_id = self._chat_id
        if chat_id is None:
            raise BadFrame('Name the chat first: "?chat=" in the address, or "id" in a message.')
        live = await self._conversations.hear(chat_id, self._user)
        # None: nobody would hear it, another reply runs in this chat.
        if live is not None:
            live.queue.send_realtime(blob)

    def _end_sound(self) -> None:
        """Let the model know that the microphone is off: no silence follows the last word."""
        chat_id = self._chat_id
        live = None if chat_id is None else self._conversations.lives.of(chat_id)
        if live is not None and live.scope.owner == self._user:
            live.queue.send_audio_stream_end()

    # What it gets

    def _follow(self, chat_id: ChatId) -> Following:
        assert self._tasks is not None, "a chat is followed while the socket is served"
        self._following = Following(
            self._conversations,
            user=self._user,
            chat_id=chat_id,
            look_seconds=self._limits.look_seconds,
        )
        self._tasks.start_soon(self._following.watch)
        self._tasks.start_soon(self._send_turns, self._following)
        return self._following

    async def _send_turns(self, following: Following) -> None:
        while True:
            reply = await following.next()
            try:
                await self._send_reply(reply, following)
            except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
                await self._break_off(error)
            if self._conversations.turns.drain.has_begun and following.is_idle:
                # The client opens another socket, where a server takes it.
                await self._writer.close(RESTART)

    async def _send_reply(self, reply: Reply, following: Following) -> None:
        end = "left"
        self._tape.begins(reply.chat_id)
        with self._meters.sending():
            try:
                await self._send_chunks(reply, following)
                end = "complete"
            finally:
                self._tape.ends(reply.chat_id, complete=end == "complete")
                self._meters.count("replies", self._audience.profile, end)

    async def _send_chunks(self, reply: Reply, following: Following) -> None:
        ended = False
        sequence = 0
        while not ended:
            batch = await reply.next()
            ended = batch.ended
            following.note(batch.entries)
            frames: list[ServerFrame] = []
            for chunk in self._audience.render(batch.entries):
                frame = ChunkFrame(UNNUMBERED, sequence, chunk)
                self._tape.said(frame, reply.chat_id)
                frames.append(frame)
                sequence += 1
            await self._send(*frames)
        reply.delivered()
        if following.ends_turn():
            await self._send(Ended(UNNUMBERED))

    async def _break_off(self, error: Exception) -> None:
        """Say in the stream that no more of a reply can be sent."""
        _, text = self._explain(error)
        failed = Failed(UNNUMBERED, text)
        self._tape.said(failed, self._chat_id)
        await self._send(failed)

    async def _refuse(
        self,
        error: Exception,
        frame: EnvelopeFrame | None,
        *,
        ends: bool = False,
        request_id: RequestId | None = None,
    ) -> None:
        """Say beside the stream why something is not done.

        Args:
            error: why.
            frame: what; None: it could not be read.
            ends: whether a client may have opened a stream for it, which would never end.
            request_id: its number, if somebody records.
        """
        code, text = self._explain(error)
        failed = Failed(UNNUMBERED, text)
        if request_id is None:
            self._tape.said(failed, self._chat_id)
        else:
            self._tape.refused(request_id, failed, self._chat_id)
        call_id = frame.call_id if isinstance(frame, ToolResult) else ""
        await self._send(Refused(text, code, call_id))
        following = self._following
        is_open = self._asked or (following is not None and following.has_open_turn)
        if ends and not is_open:
            await self._send(Ended(UNNUMBERED))

    async def _send(self, *frames: ServerFrame) -> None:
        """Send frames; does not return if the client has left, or takes none for too long."""
        texts = map(self._dialect.render, frames)
        await self._writer.send(*(text for text in texts if text is not None))

    def _leave(self) -> None:
        assert self._tasks is not None, "frames are sent while the socket is served"
        self._tasks.cancel_scope.cancel()


def _is_aside(frame: EnvelopeFrame | None) -> bool:
    """Whether a message only answers, as the first clients do beside the stream of a turn."""
    if not isinstance(frame, Send) or not frame.request.messages:
        return False
    last = frame.request.messages[-1]
    return not last.parts and all(item["type"] == "tool-result" for item in last.content)


def _answering(frame: ToolResult) -> ChatRequest:
    """Return the request that says the same in the older form of messages."""
    result = {
        "type": "tool-result",
        "toolCallId": frame.call_id,
        "toolName": frame.tool_name,
        "result": frame.result,
    }
    message = UIMessage(id=f"answer-{uuid.uuid4()}", role="user", content=(result,))
    return ChatRequest(chat_id=None, messages=(message,))


def _awaits(call: HeldCall, answer: Answer) -> bool:
    """Whether an answer can still make a difference."""
    if isinstance(answer, Output):
        return call.is_open
    return call.state is CallState.PENDING
