"""One type per chunk of the AI SDK UI message stream, and how each is written.

A chunk is a value. Optional fields that are `None` are absent on the wire, never null, because
every client rejects null there; `input`, `output` and `data` are always present and may be null.
Which client knows which chunk: `fit`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, cast, get_args

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_text, dumps, quoted

__all__ = [
    "EVERYBODYS",
    "AbortChunk",
    "Chunk",
    "CustomChunk",
    "DataChunk",
    "ErrorChunk",
    "FileChunk",
    "FinishChunk",
    "FinishReason",
    "FinishStepChunk",
    "MessageMetadataChunk",
    "ReasoningDeltaChunk",
    "ReasoningEndChunk",
    "ReasoningFileChunk",
    "ReasoningStartChunk",
    "ResetStepChunk",
    "SdkVersion",
    "SourceDocumentChunk",
    "SourceUrlChunk",
    "StartChunk",
    "StartStepChunk",
    "SteeringMessageChunk",
    "TextDeltaChunk",
    "TextEndChunk",
    "TextStartChunk",
    "ToolApprovalRequestChunk",
    "ToolApprovalResponseChunk",
    "ToolInputAvailableChunk",
    "ToolInputDeltaChunk",
    "ToolInputErrorChunk",
    "ToolInputStartChunk",
    "ToolOutputAvailableChunk",
    "ToolOutputDeniedChunk",
    "ToolOutputErrorChunk",
    "encode",
    "fit",
    "parse_chunk",
    "to_json",
    "wire_name",
]

FinishReason: TypeAlias = Literal[
    "stop", "length", "content-filter", "tool-calls", "error", "other", "interrupted"
]
SdkVersion: TypeAlias = Literal[6, 7]
ProviderMetadata: TypeAlias = Mapping[str, JsonObject]


@dataclass(frozen=True, slots=True)
class StartChunk:
    """The reply begins; the same message id again continues that message."""

    type: ClassVar[str] = "start"
    message_id: str | None = None
    message_metadata: JsonValue | None = None


@dataclass(frozen=True, slots=True)
class FinishChunk:
    """The reply is complete. The end of the stream, not this chunk, ends the client's turn."""

    type: ClassVar[str] = "finish"
    finish_reason: FinishReason | None = None
    message_metadata: JsonValue | None = None


@dataclass(frozen=True, slots=True)
class AbortChunk:
    """The reply was stopped. `reason` is newer than 6.0.0 and not sent to v6."""

    type: ClassVar[str] = "abort"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ErrorChunk:
    """The reply failed; a client reads nothing after this."""

    type: ClassVar[str] = "error"
    error_text: str


@dataclass(frozen=True, slots=True)
class MessageMetadataChunk:
    """Metadata to merge into the message."""

    type: ClassVar[str] = "message-metadata"
    message_metadata: JsonValue


@dataclass(frozen=True, slots=True)
class StartStepChunk:
    """One call of the model begins to show."""

    type: ClassVar[str] = "start-step"


@dataclass(frozen=True, slots=True)
class FinishStepChunk:
    """One call of the model, and the tools it asked for, are shown. v6 forgets open text here."""

    type: ClassVar[str] = "finish-step"


@dataclass(frozen=True, slots=True)
class ResetStepChunk:
    """Forget the parts of this step (v7 only)."""

    type: ClassVar[str] = "reset-step"


@dataclass(frozen=True, slots=True)
class TextStartChunk:
    """A block of text opens."""

    type: ClassVar[str] = "text-start"
    id: str
    provider_metadata: ProviderMetadata | None = None


# As frozen in use as the others: but those take twice as long to be made, and of this one there
# are most.
@dataclass(slots=True, unsafe_hash=True)
class TextDeltaChunk:
    """More text for an open block."""

    type: ClassVar[str] = "text-delta"
    id: str
    delta: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class TextEndChunk:
    """A block of text is complete."""

    type: ClassVar[str] = "text-end"
    id: str
    provider_metadata: ProviderMetadata | None = None
    citations: JsonValue | None = None


@dataclass(frozen=True, slots=True)
class ReasoningStartChunk:
    """A block of the model's thoughts opens."""

    type: ClassVar[str] = "reasoning-start"
    id: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDeltaChunk:
    """More thoughts for an open block."""

    type: ClassVar[str] = "reasoning-delta"
    id: str
    delta: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class ReasoningEndChunk:
    """A block of thoughts is complete."""

    type: ClassVar[str] = "reasoning-end"
    id: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class ReasoningFileChunk:
    """A file among the thoughts (v7 only)."""

    type: ClassVar[str] = "reasoning-file"
    url: str
    media_type: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class FileChunk:
    """A file, as a data URL or an address."""

    type: ClassVar[str] = "file"
    url: str
    media_type: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class SourceUrlChunk:
    """A web source the answer rests on."""

    type: ClassVar[str] = "source-url"
    source_id: str
    url: str
    title: str | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class SourceDocumentChunk:
    """A document the answer rests on; the title really is required."""

    type: ClassVar[str] = "source-document"
    source_id: str
    media_type: str
    title: str
    filename: str | None = None
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class CustomChunk:
    """A provider's own kind of part (v7 only)."""

    type: ClassVar[str] = "custom"
    kind: str
    provider_metadata: ProviderMetadata | None = None


@dataclass(frozen=True, slots=True)
class DataChunk:
    """A `data-NAME` part; the same name and id again replaces it, transient ones leave no part."""

    name: str
    data: JsonValue
    id: str | None = None
    transient: bool | None = None

    @property
    def type(self) -> str:
        return f"data-{self.name}"


@dataclass(frozen=True, slots=True)
class SteeringMessageChunk:
    """What the user said into a running turn (v7 only, experimental)."""

    type: ClassVar[str] = "steering-message"
    id: str
    parts: JsonValue


@dataclass(frozen=True, slots=True)
class ToolInputStartChunk:
    """A tool call begins to show."""

    type: ClassVar[str] = "tool-input-start"
    tool_call_id: str
    tool_name: str
    dynamic: bool | None = None
    title: str | None = None
    provider_executed: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolInputDeltaChunk:
    """More of the call's input, as JSON text."""

    type: ClassVar[str] = "tool-input-delta"
    tool_call_id: str
    input_text_delta: str


@dataclass(frozen=True, slots=True)
class ToolInputAvailableChunk:
    """The call's input is complete. Sent once per call, ever: again it would undo an approval."""

    type: ClassVar[str] = "tool-input-available"
    tool_call_id: str
    tool_name: str
    input: JsonValue
    dynamic: bool | None = None
    title: str | None = None
    provider_executed: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolInputErrorChunk:
    """The call's input was not acceptable."""

    type: ClassVar[str] = "tool-input-error"
    tool_call_id: str
    tool_name: str
    input: JsonValue
    error_text: str
    dynamic: bool | None = None
    title: str | None = None
    provider_executed: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolApprovalRequestChunk:
    """The call waits for a person. The reason, and that it was automatic, only v7 is told."""

    type: ClassVar[str] = "tool-approval-request"
    approval_id: str
    tool_call_id: str
    reason: str | None = None
    is_automatic: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolApprovalResponseChunk:
    """The person's answer (v7 only; fatal for a v6 client)."""

    type: ClassVar[str] = "tool-approval-response"
    approval_id: str
    approved: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ToolOutputAvailableChunk:
    """The call's result; `preliminary` says that another will follow."""

    type: ClassVar[str] = "tool-output-available"
    tool_call_id: str
    output: JsonValue
    preliminary: bool | None = None
    dynamic: bool | None = None
    provider_executed: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolOutputErrorChunk:
    """The call failed."""

    type: ClassVar[str] = "tool-output-error"
    tool_call_id: str
    error_text: str
    dynamic: bool | None = None
    provider_executed: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolOutputDeniedChunk:
    """The person denied the call."""

    type: ClassVar[str] = "tool-output-denied"
    tool_call_id: str


Chunk: TypeAlias = (
    StartChunk
    | FinishChunk
    | AbortChunk
    | ErrorChunk
    | MessageMetadataChunk
    | StartStepChunk
    | FinishStepChunk
    | ResetStepChunk
    | TextStartChunk
    | TextDeltaChunk
    | TextEndChunk
    | ReasoningStartChunk
    | ReasoningDeltaChunk
    | ReasoningEndChunk
    | ReasoningFileChunk
    | FileChunk
    | SourceUrlChunk
    | SourceDocumentChunk
    | CustomChunk
    | DataChunk
    | SteeringMessageChunk
    | ToolInputStartChunk
    | ToolInputDeltaChunk
    | ToolInputAvailableChunk
    | ToolInputErrorChunk
    | ToolApprovalRequestChunk
    | ToolApprovalResponseChunk
    | ToolOutputAvailableChunk
    | ToolOutputErrorChunk
    | ToolOutputDeniedChunk
)


@dataclass(frozen=True, slots=True)
class _Field:
    """How one field is written: its attribute, its name on the wire, whether it must be there."""

    attribute: str
    key: str
    required: bool
    lead: str
    """What stands before its value in JSON."""


def wire_name(name: str) -> str:
    """Return the name under which a field of a chunk or of a data part is written."""
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _fields_of(kind: type[Chunk]) -> tuple[_Field, ...]:
    return tuple(
        _Field(field.name, key, field.default is dataclasses.MISSING, lead=f',"{key}":')
        for field in dataclasses.fields(kind)
        for key in [wire_name(field.name)]
        if not (kind is DataChunk and field.name == "name")
    )


_FIELDS: dict[type[Chunk], tuple[_Field, ...]] = {
    kind: _fields_of(kind) for kind in get_args(Chunk)
}
_WRITTEN: Final = {
    kind: tuple((field.attribute, field.required, field.lead) for field in fields)
    for kind, fields in _FIELDS.items()
}
"""What `encode` looks at for each value."""
_HEADS: dict[type[Chunk], str] = {
    kind: f'{{"type":{quoted(cast("str", kind.type))}'
    for kind in get_args(Chunk)
    if kind is not DataChunk
}
"""How each begins on the wire."""
_KINDS: dict[str, type[Chunk]] = {
    cast("str", kind.type): kind for kind in get_args(Chunk) if kind is not DataChunk
}


def to_json(chunk: Chunk) -> dict[str, JsonValue]:
    """Return the chunk as the object a client reads."""
    written: dict[str, JsonValue] = {"type": chunk.type}
    for field in _FIELDS[type(chunk)]:
        value = getattr(chunk, field.attribute)
        if value is not None or field.required:
            written[field.key] = value
    return written


def encode(chunk: Chunk) -> str:
    """Return the chunk as JSON text.

    Raises:
        ValueError: a value inside is not plain JSON; it should have gone through `jsonable`.
    """
    # By hand, since there are many, of this one most: only what nests is the encoder's.
    if type(chunk) is TextDeltaChunk and chunk.provider_metadata is None:
        return f'{{"type":"text-delta","id":{quoted(chunk.id)},"delta":{quoted(chunk.delta)}}}'
    kind = type(chunk)
    text = _HEADS.get(kind) or f'{{"type":{quoted(chunk.type)}'
    for attribute, required, lead in _WRITTEN[kind]:
        value = getattr(chunk, attribute)
        if value is None and not required:
            continue
        text += f"{lead}{quoted(value) if type(value) is str else dumps(value)}"
    return f"{text}}}"


def parse_chunk(value: JsonObject) -> Chunk:
    """Return the chunk that `to_json` wrote.

    Raises:
        BadRequest: the type is unknown or a required field is missing.
    """
    name = as_text(value.get("type"))
    kind = DataChunk if name.startswith("data-") else _KINDS.get(name)
    if kind is None:
        raise BadRequest(f"Unknown chunk type {name!r}.", code="unknown_chunk")
    arguments: dict[str, JsonValue] = (
        {"name": name.removeprefix("data-")} if kind is DataChunk else {}
    )
    for field in _FIELDS[kind]:
        if field.key in value:
            arguments[field.attribute] = value[field.key]
        elif field.required:
            raise BadRequest(f"Chunk {name!r} has no {field.key!r}.", code="bad_chunk")
    # Field by field the values are JSON, as the constructors expect; the types cannot say so.
    return cast("Callable[..., Chunk]", kind)(**arguments)


_ONLY_V7 = (ResetStepChunk, CustomChunk, ToolApprovalResponseChunk)

EVERYBODYS: Final = frozenset(get_args(Chunk)) - {
    *_ONLY_V7,
    *(
        SteeringMessageChunk,
        ReasoningFileChunk,
        AbortChunk,
        FinishChunk,
        TextEndChunk,
        ToolApprovalRequestChunk,
    ),
}
"""The kinds that every client accepts as they are."""


def fit(chunk: Chunk, sdk: SdkVersion) -> Chunk | None:
    """Return the chunk as every client of that SDK line accepts it, or None if none does.

    For 6 the result is in the subset that every v6 and every v7 client validates, the strict ones
    included. For 7 it may use what current v7 clients know.
    """
    if sdk == 7 or type(chunk) in EVERYBODYS:
        return chunk
    return None if isinstance(chunk, _ONLY_V7) else _fit_for_all(chunk)


def _fit_for_all(chunk: Chunk) -> Chunk:
    """Return a chunk that not every client accepts in the form that all do."""
    match chunk:
        case SteeringMessageChunk():
            # v6 has no word for it.
            return DataChunk("adk-steering", {"parts": chunk.parts}, id=chunk.id)
        case ReasoningFileChunk(url=url, media_type=media_type):
            return FileChunk(url=url, media_type=media_type)
        case AbortChunk():
            return AbortChunk()
        case FinishChunk(finish_reason="interrupted"):
            return dataclasses.replace(chunk, finish_reason="other")
        case TextEndChunk():
            return dataclasses.replace(chunk, citations=None)
        case ToolApprovalRequestChunk():
            return ToolApprovalRequestChunk(chunk.approval_id, chunk.tool_call_id)
    return chunk
