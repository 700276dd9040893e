"""What is said on a WebSocket, free of any spelling: a dialect writes and reads it.

Frames that answer carry the id of the request they answer. A dialect that does not number its
requests leaves it empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from adk_stream_protocol.identifiers import ChatId, RequestId
from adk_stream_protocol.wire.chunks import Chunk
from adk_stream_protocol.wire.requests import ChatRequest
from adk_stream_protocol.wire.values import JsonValue

__all__ = [
    "NOBODY",
    "UNNUMBERED",
    "Abort",
    "Active",
    "Audio",
    "AudioControl",
    "ChatFrame",
    "ChunkFrame",
    "Ended",
    "EnvelopeFrame",
    "Failed",
    "Interrupt",
    "NoActive",
    "Ping",
    "Pong",
    "Refused",
    "Resume",
    "Send",
    "ServerFrame",
    "Started",
    "ToolResult",
]

UNNUMBERED: Final = RequestId("")
"""The request of a dialect that has no numbers."""

NOBODY: Final = RequestId("-")
"""What is not an answer to a request of the client's. A stock client ignores ids it did not give,
before any other check, so this reaches only who looks for it."""


@dataclass(frozen=True, slots=True)
class Send:
    """Do what a chat request asks for, and send its reply."""

    request_id: RequestId
    request: ChatRequest


@dataclass(frozen=True, slots=True)
class Resume:
    """Send the newest reply of a chat, from its beginning."""

    request_id: RequestId
    chat_id: ChatId


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop a request's reply, and send no more of it."""

    request_id: RequestId
    leave: bool = False
    """Whether the reply itself goes on, and is only not listened to any more."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The client's answer to a held call: a decision, or what the browser made of it."""

    call_id: str
    tool_name: str
    """Empty: the client did not say."""
    result: JsonValue


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop the running reply."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Say that you are there."""

    timestamp: float | None = None
    """What the client calls this moment; None: it did not say."""


@dataclass(frozen=True, slots=True)
class Audio:
    """A piece of what the microphone hears, as PCM samples."""

    pcm: bytes
    sample_rate: int
    channels: int
    bit_depth: int


@dataclass(frozen=True, slots=True)
class AudioControl:
    """The microphone was turned on, or off: push-to-talk."""

    action: Literal["start", "stop"]


ChatFrame: TypeAlias = Send | Resume | Abort
"""What a client of the AI SDK says."""

EnvelopeFrame: TypeAlias = Send | ToolResult | Interrupt | Ping | Audio | AudioControl
"""What a client of the envelope says."""


@dataclass(frozen=True, slots=True)
class Started:
    """The request was taken, and its reply follows."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class ChunkFrame:
    """One chunk of a request's reply."""

    request_id: RequestId
    sequence: int
    """From 0 for each request, without gaps: a stock client ends the socket at a gap."""
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Ended:
    """The request's reply was sent to its end."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Failed:
    """The request cannot be done, or no more of its reply can be sent."""

    request_id: RequestId
    text: str


@dataclass(frozen=True, slots=True)
class NoActive:
    """There is no reply to resume."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Active:
    """A reply that this client did not ask for runs in a chat; it can be resumed."""

    chat_id: ChatId


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a ping."""

    timestamp: float | None = None
    """As the ping had it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What the client said is not done; whatever runs or waits goes on."""

    text: str
    code: str = ""
    """Empty: it is not known."""
    call_id: str = ""
    """The call that a refused `ToolResult` names; empty: it was something else."""


ServerFrame: TypeAlias = Started | ChunkFrame | Ended | Failed | NoActive | Active | Pong | Refused
