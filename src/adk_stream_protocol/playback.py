"""What a recording tells: the chats as they were in the end, and their replies in order.

A reply is what answered one request. Nothing here waits, sends or knows a route.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Final

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.recording import Line, Recording
from adk_stream_protocol.wire.assembler import Assembler, StreamBroken
from adk_stream_protocol.wire.chunks import (
    Chunk,
    DataChunk,
    FinishChunk,
    StartChunk,
    ToolApprovalRequestChunk,
    ToolInputAvailableChunk,
    ToolInputStartChunk,
    parse_chunk,
)
from adk_stream_protocol.wire.messages import UIMessage, parse_message, tool_parts
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL, Profile
from adk_stream_protocol.wire.values import JsonObject, as_object, as_text

__all__ = ["Playlist", "RecordedChat", "RecordedReply", "playlist_of"]

_LONGEST_TITLE: Final = 60
_ASKED: Final = frozenset({"send", "resume", "tool_result"})
_TOLD: Final = frozenset({"start", "chunk", "end", "error", "no-active"})


@dataclass(slots=True)
class RecordedReply:
    """What answered one request."""

    asked_at: float
    """When the request was made, or the reply began if nobody here asked for it."""
    resumed: bool = False
    """Whether the request was to resume."""
    chunks: list[tuple[float, Chunk]] = field(default_factory=list)
    """With how many seconds after the request each came."""
    error: str | None = None
    """Why there is no more of it; None: it came to its end."""

    @property
    def profile(self) -> Profile | None:
        """Which profile it is of; None: it looks the same in both."""
        for _, chunk in self.chunks:
            match chunk:
                case ToolInputStartChunk() | ToolInputAvailableChunk():
                    if chunk.tool_name == CONFIRMATION_TOOL:
                        return "adk"
                case ToolApprovalRequestChunk() | DataChunk(name="approval"):
                    return "ai-sdk"
                case _:
                    pass
        return None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.chunks[-1][0] if self.chunks else 0.0

    @property
    def waits(self) -> bool:
        """Whether calls wait for the person when it ends."""
        reasons = [
            chunk.finish_reason for _, chunk in self.chunks if isinstance(chunk, FinishChunk)
        ]
        return reasons[-1:] == ["tool-calls"]


@dataclass(slots=True)
class RecordedChat:
    """One chat, as it was when the recording ended."""

    id: str
    created_at: float
    """In seconds since 1970, as is the next."""
    updated_at: float
    messages: list[UIMessage] = field(default_factory=list)
    replies: list[RecordedReply] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What was said first."""
        said = next((message.text for message in self.messages if message.role == "user"), "")
        return " ".join(said.split())[:_LONGEST_TITLE]


@dataclass(frozen=True, slots=True)
class Playlist:
    """All of a recording."""

    chats: dict[str, RecordedChat]
    replies: list[RecordedReply]
    """Of all chats, in order."""


def playlist_of(recording: Recording) -> Playlist:
    """Read what a recording tells.

    Raises:
        BadRequest: a chunk or a message in it is none; the message says in which line.
    """
    grouping = _Grouping()
    for line in _in_chats(recording.lines):
        grouping.read(line)
    reader = _Reader(_moment(recording.header.started_at))
    for line, reply in grouping.found:
        reader.read(line, reply)
    return Playlist(reader.chats, reader.replies)


class _Grouping:
    """Finds the lines that change a chat; a reply as a whole stands where it began."""

    def __init__(self) -> None:
        self.found: list[tuple[Line, RecordedReply | None]] = []
        # What each request asked, or the first line of a reply that nobody here asked for.
        self._asked: dict[str, Line] = {}
        # The replies that have not ended, by request.
        self._replies: dict[str, RecordedReply] = {}

    def read(self, line: Line) -> None:
        if line.direction == "in" and line.type in _ASKED:
            self._ask(line)
        elif line.direction == "out" and line.type in _TOLD and line.request is not None:
            self._tell(line, line.request)

    def _ask(self, line: Line) -> None:
        if line.type == "tool_result":
            # A client with one stream for a whole turn: what follows in it is the answer.
            for request in [each for each in self._replies if self._asked[each].chat == line.chat]:
                self._asked[request] = line
                del self._replies[request]
        if line.request is not None:
            self._asked[line.request] = line
            self._replies.pop(line.request, None)
        self.found.append((line, None))

    def _tell(self, line: Line, request: str) -> None:
        asked = self._asked.setdefault(request, line)
        if request not in self._replies:
            reply = RecordedReply(asked.at, resumed=asked.type == "resume")
            self._replies[request] = reply
            self.found.append((line, reply))
        _extend(self._replies[request], line)
        if line.type == "end":
            del self._replies[request]


def _in_chats(lines: Sequence[Line]) -> Iterator[Line]:
    # Who names no chat, as older clients do, is told one in the answer.
    named = {line.request: line.chat for line in lines if line.request and line.chat}
    for line in lines:
        yield replace(line, chat=line.chat or named.get(line.request or ""))


def _extend(reply: RecordedReply, line: Line) -> None:
    if line.type == "error":
        reply.error = as_text(line.fields.get("errorText")) or "The reply failed."
    elif line.type == "chunk":
        try:
            chunk = parse_chunk(as_object(line.fields.get("chunk")))
            _check(chunk)
        except BadRequest as error:
            raise _bad(line, error) from None
        reply.chunks.append((max(0.0, line.at - reply.asked_at), chunk))


def _check(chunk: Chunk) -> None:
    """Refuse what a person made of a chunk: it would break whoever reads it."""
    for each in fields(chunk):
        kind, _, optional = str(each.type).partition(" | ")
        value = getattr(chunk, each.name)
        is_text = isinstance(value, str) or (bool(optional) and value is None)
        if kind in {"str", "FinishReason"} and not is_text:
            raise BadRequest(f"{each.name} of the chunk {chunk.type} must be text.")


class _Reader:
    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self.chats: dict[str, RecordedChat] = {}
        self.replies: list[RecordedReply] = []

    def read(self, line: Line, reply: RecordedReply | None) -> None:
        if line.chat is None:
            # Said by an older client that was refused: there is no chat.
            if reply is not None and (reply.chunks or reply.error):
                self.replies.append(reply)
            return
        at = self._started_at + line.at
        chat = self.chats.setdefault(line.chat, RecordedChat(line.chat, at, at))
        chat.updated_at = max(chat.updated_at, at)
        if reply is not None:
            self._answer(chat, reply)
        elif line.type == "send":
            _say(chat, line)

    def _answer(self, chat: RecordedChat, reply: RecordedReply) -> None:
        if not reply.chunks and reply.error is None:
            return
        if reply.resumed and _is_repeat(chat, reply):
            return
        _assemble(chat, reply)
        chat.replies.append(reply)
        self.replies.append(reply)


def _say(chat: RecordedChat, line: Line) -> None:
    try:
        message = _last_message(line)
    except BadRequest as error:
        raise _bad(line, error) from None
    if "parentId" in line.fields:
        _take_back_after(chat, as_text(line.fields["parentId"]))
    named = as_text(line.fields.get("messageId"))
    if line.fields.get("trigger") == "regenerate-message":
        _take_back(chat, named or _last_reply(chat))
        known = {named, *(known.id for known in chat.messages)}
        if message is not None and message.role == "user" and message.id in known:
            # Perhaps with another text.
            _say_at_the_end(chat, message)
    elif message is None:
        return
    elif message.role == "assistant":
        _answer_calls(chat, message)
    else:
        _say_at_the_end(chat, message)


def _say_at_the_end(chat: RecordedChat, message: UIMessage) -> None:
    _take_back(chat, message.id)
    chat.messages.append(message)


def _last_message(line: Line) -> UIMessage | None:
    """Return the newest message of a request; None: it has none, and only names one."""
    sent = line.fields.get("messages")
    if not isinstance(sent, Sequence) or isinstance(sent, str) or not sent:
        return None
    return parse_message(sent[-1])


def _take_back_after(chat: RecordedChat, parent_id: str) -> None:
    """Forget what came after a message; without one, everything."""
    ids = [message.id for message in chat.messages]
    if not parent_id or parent_id in ids:
        del chat.messages[ids.index(parent_id) + 1 if parent_id else 0 :]


def _take_back(chat: RecordedChat, message_id: str) -> None:
    """Forget a message and what came after it, as an edit or another try does."""
    for index, message in enumerate(chat.messages):
        if message_id and message.id == message_id:
            del chat.messages[index:]
            return


def _last_reply(chat: RecordedChat) -> str:
    ids = [message.id for message in chat.messages if message.role == "assistant"]
    return ids[-1] if ids else ""


def _answer_calls(chat: RecordedChat, sent: UIMessage) -> None:
    """Take over what the person answered; nothing else of what a client sends back."""
    answers = {call.call_id: call for call in tool_parts(sent)}
    for message in chat.messages:
        for part in message.parts:
            answer = answers.get(as_text(part.get("toolCallId")))
            if answer is None or part.get("state") not in {"approval-requested", "input-available"}:
                continue
            if answer.approval:
                part |= {"state": "approval-responded", "approval": answer.approval}
            if answer.has_output:
                part |= {"state": "output-available", "output": answer.output}


def _assemble(chat: RecordedChat, reply: RecordedReply) -> None:
    message = _folded(_begun(chat, reply), reply)
    if not message.id and not message.parts:
        return
    for index, known in enumerate(chat.messages):
        if known.id == message.id:
            chat.messages[index] = message
            return
    chat.messages.append(message)


def _begun(chat: RecordedChat, reply: RecordedReply) -> UIMessage | None:
    """Return the message that the reply goes on with; None: it begins one, or tells it anew."""
    if reply.resumed:
        return None
    starts = (chunk.message_id for _, chunk in reply.chunks if isinstance(chunk, StartChunk))
    # Without a start it is the rest of what began before.
    named = next(starts, _last_reply(chat))
    return next((message for message in chat.messages if named and message.id == named), None)


def _folded(message: UIMessage | None, reply: RecordedReply) -> UIMessage:
    assembler = Assembler(message)
    try:
        for _, chunk in reply.chunks:
            assembler.feed(chunk)
    except StreamBroken:
        # It ends there for a client, too.
        pass
    return assembler.message


def _is_repeat(chat: RecordedChat, reply: RecordedReply) -> bool:
    """Whether a reply that was resumed tells nothing that an earlier one had not told.

    One that was cut off is completed by it.
    """
    last = chat.replies[-1] if chat.replies else None
    if last is not None:
        told, again = [chunk for _, chunk in last.chunks], [chunk for _, chunk in reply.chunks]
        if told and again[: len(told)] == told:
            moved = reply.asked_at - last.asked_at
            last.chunks += [(at + moved, chunk) for at, chunk in reply.chunks[len(told) :]]
            last.error = reply.error
            _assemble_anew(chat, reply)
            return True
    message = _folded(None, reply)
    return any(
        known.id == message.id and _shown(known) == _shown(message) for known in chat.messages
    )


def _assemble_anew(chat: RecordedChat, reply: RecordedReply) -> None:
    message = _folded(None, reply)
    chat.messages = [message if known.id == message.id else known for known in chat.messages]


def _shown(message: UIMessage) -> list[JsonObject]:
    """Return what a message shows: who answered what is told differently, and is left out."""
    return [
        {key: item for key, item in part.items() if key != "approval"} for part in message.parts
    ]


def _moment(text: str) -> float:
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def _bad(line: Line, error: BadRequest) -> BadRequest:
    return BadRequest(f"Line {line.number}: {error.message}", code="bad_recording")
