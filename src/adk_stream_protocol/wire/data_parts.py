"""One type per `data-*` part that is sent, and how its data is written.

A part's data is a value, like a chunk: optional fields that are `None` are absent on the wire.
Which parts there are, and when each is sent: docs/reference/chunks.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from adk_stream_protocol.wire.chunks import DataChunk, wire_name
from adk_stream_protocol.wire.values import JsonObject, JsonValue

__all__ = [
    "FREE_FORM",
    "IDENTIFIED",
    "AgentData",
    "ApprovalData",
    "ApprovalStatus",
    "ApprovalStepData",
    "ArtifactData",
    "CredentialData",
    "DataPart",
    "ErrorData",
    "GroundingData",
    "ObjectData",
    "OutputData",
    "ResolutionData",
    "StateData",
    "SteeredData",
    "SteeringData",
    "Timestamp",
    "TranscriptionData",
    "TranscriptionSide",
    "WidgetData",
    "data_chunk",
    "data_json",
]

ApprovalStatus: TypeAlias = Literal[
    "pending",
    "approved",
    "denied",
    "expired",
    "cancelled",
    "running",
    "done",
    "failed",
    "unknown",
]
TranscriptionSide: TypeAlias = Literal["input"]
Timestamp: TypeAlias = str
"""A moment as ISO 8601 in UTC."""


@dataclass(frozen=True, slots=True)
class ApprovalStepData:
    """The step of an approval that waits, or the last one."""

    n: int
    of: int
    name: str
    by: Sequence[str] | None = None
    four_eyes: bool | None = None


@dataclass(frozen=True, slots=True)
class ResolutionData:
    """Who found out how a call ended, where nobody knew."""

    at: Timestamp
    by: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalData:
    """What a client needs to show an approval, beside the call itself; its id is the approval's."""

    name: ClassVar[str] = "approval"
    tool_call_id: str
    tool_name: str
    status: ApprovalStatus
    title: str
    hint: str
    risk: str
    created_at: Timestamp
    expires_at: Timestamp
    payload: JsonValue | None = None
    ui: JsonObject | None = None
    automatic: bool | None = None
    rememberable: bool | None = None
    remembered: bool | None = None
    editable: bool | None = None
    edited_input: JsonObject | None = None
    edited_by: str | None = None
    edited_arguments_hash: str | None = None
    step: ApprovalStepData | None = None
    approved_by: Sequence[str] | None = None
    decided_at: Timestamp | None = None
    decided_by: str | None = None
    reason: str | None = None
    resolved: ResolutionData | None = None


@dataclass(frozen=True, slots=True)
class AgentData:
    """Another agent speaks now."""

    name: ClassVar[str] = "adk-agent"
    agent: str


@dataclass(frozen=True, slots=True)
class CredentialData:
    """A tool wants the person to sign in at `authUri`; answer it under `id`."""

    name: ClassVar[str] = "adk-credential"
    id: str
    auth_uri: str


@dataclass(frozen=True, slots=True)
class ArtifactData:
    """The agent saved a file; its id is the file's name."""

    name: ClassVar[str] = "adk-artifact"
    filename: str
    version: int


@dataclass(frozen=True, slots=True)
class StateData:
    """Keys of the session's state that changed, of those that the server's options name."""

    name: ClassVar[str] = "adk-state"
    value: JsonObject


@dataclass(frozen=True, slots=True)
class WidgetData:
    """A widget that a tool asked to render, as ADK writes it; its id is the widget's."""

    name: ClassVar[str] = "adk-widget"
    value: JsonObject


@dataclass(frozen=True, slots=True)
class ObjectData:
    """The object that an agent with an `output_schema` and tools answered with."""

    name: ClassVar[str] = "adk-object"
    value: JsonValue


@dataclass(frozen=True, slots=True)
class OutputData:
    """The output of a workflow node that is not the reply's text; its id is the node's path."""

    name: ClassVar[str] = "adk-output"
    value: JsonValue


@dataclass(frozen=True, slots=True)
class GroundingData:
    """Which words rest on which source, and what the model searched for, as Gemini writes it."""

    name: ClassVar[str] = "adk-grounding"
    grounding_supports: Sequence[JsonObject] | None = None
    search_entry_point: JsonObject | None = None
    web_search_queries: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class TranscriptionData:
    """What was understood of the user's voice: piece by piece, then whole (`final`)."""

    name: ClassVar[str] = "adk-transcription"
    side: TranscriptionSide
    text: str
    final: bool


@dataclass(frozen=True, slots=True)
class SteeringData:
    """What the user sent into the running reply; its id is the message's."""

    name: ClassVar[str] = "adk-steering"
    parts: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class SteeredData:
    """The message of this request went into the running reply that makes the named message."""

    name: ClassVar[str] = "adk-steered"
    message_id: str


@dataclass(frozen=True, slots=True)
class ErrorData:
    """The reply ended with an error; only in a chat that is read from its history."""

    name: ClassVar[str] = "adk-error"
    message: str


DataPart: TypeAlias = (
    ApprovalData
    | AgentData
    | CredentialData
    | ArtifactData
    | StateData
    | WidgetData
    | ObjectData
    | OutputData
    | GroundingData
    | TranscriptionData
    | SteeringData
    | SteeredData
    | ErrorData
)

FREE_FORM: Final = (StateData, WidgetData, ObjectData, OutputData)
"""The parts whose data is somebody else's: their one field is the data itself."""

IDENTIFIED: Final = (ApprovalData, CredentialData, ArtifactData, WidgetData, SteeringData)
"""The parts whose chunks always have an id, so that a later one replaces the earlier."""


def data_json(part: DataPart | ApprovalStepData | ResolutionData) -> dict[str, JsonValue]:
    """Return the fields of a part as a client reads them."""
    written: dict[str, JsonValue] = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if value is None and field.default is None:
            continue
        nested = isinstance(value, ApprovalStepData | ResolutionData)
        written[wire_name(field.name)] = data_json(value) if nested else value
    return written


def data_chunk(
    part: DataPart, *, part_id: str | None = None, transient: bool | None = None
) -> DataChunk:
    """Return the chunk that carries a part."""
    data = part.value if isinstance(part, FREE_FORM) else data_json(part)
    return DataChunk(part.name, data, id=part_id, transient=transient)
