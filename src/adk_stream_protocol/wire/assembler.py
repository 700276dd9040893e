"""Folds chunks into the UIMessage that a client holds after it has read them.

The rules are those of the AI SDK's own client, `ui/process-ui-message-stream.ts` of ai 6.0.326;
chunks and fields that only v7 knows follow ai 7.0.169. Parts are the JSON objects the client
holds, and what is `undefined` there is absent here. Nothing here knows why a chunk was sent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from adk_stream_protocol.wire.chunks import (
    AbortChunk,
    Chunk,
    CustomChunk,
    DataChunk,
    ErrorChunk,
    FileChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningFileChunk,
    ReasoningStartChunk,
    ResetStepChunk,
    SourceDocumentChunk,
    SourceUrlChunk,
    StartChunk,
    StartStepChunk,
    SteeringMessageChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
    to_json,
)
from adk_stream_protocol.wire.messages import Part, UIMessage, tool_name_of
from adk_stream_protocol.wire.partial_json import input_in
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, as_text

__all__ = ["Assembler", "StreamBroken", "StreamFailed", "assemble"]

_BlockStart: TypeAlias = TextStartChunk | ReasoningStartChunk
_BlockMore: TypeAlias = TextDeltaChunk | ReasoningDeltaChunk | TextEndChunk | ReasoningEndChunk
_Input: TypeAlias = (
    ToolInputStartChunk | ToolInputDeltaChunk | ToolInputAvailableChunk | ToolInputErrorChunk
)
_Outcome: TypeAlias = (
    ToolApprovalRequestChunk
    | ToolApprovalResponseChunk
    | ToolOutputAvailableChunk
    | ToolOutputErrorChunk
    | ToolOutputDeniedChunk
)
_Frame: TypeAlias = (
    StartChunk
    | FinishChunk
    | AbortChunk
    | ErrorChunk
    | MessageMetadataChunk
    | StartStepChunk
    | FinishStepChunk
    | ResetStepChunk
)

_OF_ONE_STATE = ("input", "rawInput", "inputEncoding", "output", "preliminary", "errorText")
"""What a tool part does not take along into its next state."""


class StreamBroken(ValueError):
    """The chunks do not fit together: a client would stop reading at this one."""


class StreamFailed(StreamBroken):
    """The stream says itself that it failed, with an `error` chunk."""

    def __init__(self, error_text: str) -> None:
        super().__init__(error_text)
        self.error_text = error_text


@dataclass(slots=True)
class _OpenBlock:
    """Text or reasoning that has not ended."""

    part: Part
    texts: list[str] = field(default_factory=list)
    """The deltas so far, joined only when someone looks."""

    def settle(self) -> None:
        self.part["text"] = text = "".join(self.texts)
        self.texts = [text]


@dataclass(slots=True)
class _OpenInput:
    """Tool input that came, or may yet come, as pieces of JSON text."""

    tool_name: str
    dynamic: bool
    title: str | None
    texts: list[str] = field(default_factory=list)
    """The deltas so far, joined and read only when someone looks."""
    part: Part | None = None
    """The part that shows these texts; None while another chunk had the last word on it."""

    def settle(self) -> None:
        if self.part is not None:
            text = "".join(self.texts)
            self.texts = [text]
            self.part.pop("input", None)
            self.part.update(input_in(text), rawInput=text)


class Assembler:
    """Folds chunks, one at a time, into one assistant message.

    After `StreamBroken` the message holds what came before the bad chunk, as it does in a client.
    """

    def __init__(self, message: UIMessage | None = None) -> None:
        """Continue a copy of `message` if it is an assistant's, else start an empty one."""
        if message is None or message.role != "assistant":
            message = UIMessage(id="", role="assistant")
        # Values inside a part are replaced and never changed, so each part is copied one deep.
        self._message = dataclasses.replace(message, parts=[dict(part) for part in message.parts])
        self._finish_reason: FinishReason | None = None
        # Text and reasoning that deltas may extend, by kind and id.
        self._blocks: dict[tuple[str, str], _OpenBlock] = {}
        # Every call whose input started, by call id. It stays: a late delta still counts.
        self._inputs: dict[str, _OpenInput] = {}
        # Index of the first part of the current step.
        self._step = 0
        for index, part in enumerate(self._message.parts):
            if part.get("type") == "step-start":
                self._step = index + 1
        self._reopen_inputs()

    def _reopen_inputs(self) -> None:
        for part in filter(_is_tool, self._step_parts()):
            if part.get("state") == "input-streaming":
                self._inputs[as_text(part.get("toolCallId"))] = _OpenInput(
                    tool_name=tool_name_of(part),
                    dynamic=_is_dynamic(part),
                    title=as_text(part.get("title")) or None,
                    texts=[as_text(part.get("rawInput"))],
                )

    @property
    def message(self) -> UIMessage:
        """The message so far: always the same object, which grows with each `feed`."""
        self._settle()
        return self._message

    @property
    def finish_reason(self) -> FinishReason | None:
        """What `finish` said last; None before it, or if it gave no reason."""
        return self._finish_reason

    def feed(self, chunk: Chunk) -> None:
        """Fold one more chunk into the message.

        Raises:
            StreamFailed: it is an `error` chunk.
            StreamBroken: it refers to a block or a call that is not there.
        """
        match chunk:
            case TextDeltaChunk() | ReasoningDeltaChunk() | TextEndChunk() | ReasoningEndChunk():
                self._extend_block(chunk)
            case TextStartChunk() | ReasoningStartChunk():
                self._open_block(chunk)
            case (
                ToolInputStartChunk()
                | ToolInputDeltaChunk()
                | ToolInputAvailableChunk()
                | ToolInputErrorChunk()
            ):
                self._feed_input(chunk)
            case (
                ToolApprovalRequestChunk()
                | ToolApprovalResponseChunk()
                | ToolOutputAvailableChunk()
                | ToolOutputErrorChunk()
                | ToolOutputDeniedChunk()
            ):
                self._feed_outcome(chunk)
            case DataChunk():
                self._feed_data(chunk)
            case (
                FileChunk()
                | ReasoningFileChunk()
                | SourceUrlChunk()
                | SourceDocumentChunk()
                | CustomChunk()
                | SteeringMessageChunk()
            ):
                # For these a client's part has the very fields of the chunk.
                self._message.parts.append(to_json(chunk))
            case _:
                self._feed_frame(chunk)

    def _feed_frame(self, chunk: _Frame) -> None:
        match chunk:
            case StartStepChunk() | FinishStepChunk() | ResetStepChunk():
                self._feed_step(chunk)
            case StartChunk():
                if chunk.message_id is not None:
                    self._message.id = chunk.message_id
                self._merge_metadata(chunk.message_metadata)
            case FinishChunk():
                self._finish_reason = chunk.finish_reason or self._finish_reason
                self._merge_metadata(chunk.message_metadata)
            case MessageMetadataChunk():
                self._merge_metadata(chunk.message_metadata)
            case ErrorChunk():
                raise StreamFailed(chunk.error_text)
            case AbortChunk():
                # A client keeps reading, and leaves open what is open.
                return
            case _:
                assert_never(chunk)

    def _merge_metadata(self, metadata: JsonValue) -> None:
        if metadata is not None:
            known = self._message.metadata
            self._message.metadata = metadata if known is None else _merged(known, metadata)

    def _feed_step(self, chunk: StartStepChunk | FinishStepChunk | ResetStepChunk) -> None:
        self._settle()
        match chunk:
            case StartStepChunk():
                self._message.parts.append({"type": "step-start"})
                self._step = len(self._message.parts)
                # A call is looked up in its step, so a delta from here on opens another part.
                for call in self._inputs.values():
                    call.part = None
            case FinishStepChunk():
                # v6 forgets open text here, v7 does not; a v6 client is the stricter reader.
                self._blocks.clear()
            case ResetStepChunk():
                self._blocks.clear()
                self._inputs.clear()
                del self._message.parts[self._step :]
            case _:
                assert_never(chunk)

    def _settle(self) -> None:
        for block in self._blocks.values():
            block.settle()
        for call in self._inputs.values():
            call.settle()

    def _open_block(self, chunk: _BlockStart) -> None:
        key = _block_key(chunk)
        if key in self._blocks:
            # The same id opens again: the first block stays as it is, never done.
            self._blocks[key].settle()
        part: Part = {"type": key[0], "text": "", "state": "streaming"}
        if isinstance(chunk, ReasoningStartChunk):
            part["id"] = chunk.id
        if chunk.provider_metadata is not None:
            part["providerMetadata"] = chunk.provider_metadata
        self._message.parts.append(part)
        self._blocks[key] = _OpenBlock(part)

    def _extend_block(self, chunk: _BlockMore) -> None:
        key = _block_key(chunk)
        block = self._blocks.get(key)
        if block is None:
            raise StreamBroken(f"{chunk.type} for {key[0]} {chunk.id!r}, which is not open.")
        if chunk.provider_metadata is not None:
            block.part["providerMetadata"] = chunk.provider_metadata
        if isinstance(chunk, (TextDeltaChunk, ReasoningDeltaChunk)):
            block.texts.append(chunk.delta)
            return
        block.settle()
        block.part["state"] = "done"
        if isinstance(chunk, TextEndChunk) and chunk.citations is not None:
            block.part["citations"] = chunk.citations
        del self._blocks[key]

    def _feed_data(self, chunk: DataChunk) -> None:
        if chunk.transient:
            return
        for part in self._message.parts if chunk.id is not None else ():
            if part.get("type") == chunk.type and part.get("id") == chunk.id:
                part["data"] = chunk.data
                return
        self._message.parts.append(to_json(chunk))

    def _feed_input(self, chunk: _Input) -> None:
        if isinstance(chunk, ToolInputDeltaChunk):
            self._extend_input(chunk)
            return
        self._release(chunk.tool_call_id)
        dynamic = bool(chunk.dynamic)
        title = chunk.title
        match chunk:
            case ToolInputStartChunk():
                state, fields = "input-streaming", {}
                self._inputs[chunk.tool_call_id] = _OpenInput(chunk.tool_name, dynamic, title)
            case ToolInputAvailableChunk():
                state, fields = "input-available", {"input": chunk.input}
            case ToolInputErrorChunk():
                known = _first_call(self._step_parts(), chunk.tool_call_id)
                dynamic = dynamic if known is None else _is_dynamic(known)
                state = "output-error"
                # v6 keeps input that did not fit the tool's schema apart; v7 has it in `input`.
                fields = {"input" if dynamic else "rawInput": chunk.input}
                fields["errorText"] = chunk.error_text
                title = None
            case _:
                assert_never(chunk)
        part = self._part_in_step(chunk.tool_call_id, chunk.tool_name, dynamic=dynamic)
        _enter(part, state, fields, executed=chunk.provider_executed)
        if title is not None:
            part["title"] = title

    def _extend_input(self, chunk: ToolInputDeltaChunk) -> None:
        call_id = chunk.tool_call_id
        call = self._inputs.get(call_id)
        if call is None:
            raise StreamBroken(f"Input for call {call_id!r}, which never started.")
        call.texts.append(chunk.input_text_delta)
        if call.part is not None:
            return
        count = len(self._message.parts)
        part = self._part_in_step(call_id, call.tool_name, dynamic=call.dynamic)
        _enter(part, "input-streaming", {})
        if call.title is not None:
            part["title"] = call.title
        if call.dynamic and len(self._message.parts) > count:
            # A part that a delta had to make shows its text from the next delta on.
            part.update(input_in("".join(call.texts)))
        else:
            call.part = part

    def _release(self, call_id: str) -> None:
        """Let another chunk than a delta have the next word on the call's part."""
        call = self._inputs.get(call_id)
        if call is not None:
            call.settle()
            call.part = None

    def _part_in_step(self, call_id: str, tool_name: str, *, dynamic: bool) -> Part:
        """Return the call's part in the current step, a new one if it has none of this kind."""
        same_kind = (part for part in self._step_parts() if _is_dynamic(part) is dynamic)
        part = _first_call(same_kind, call_id)
        if part is None:
            part = {"type": "", "toolCallId": call_id}
            self._message.parts.append(part)
        if dynamic:
            part.update(type="dynamic-tool", toolName=tool_name)
        else:
            part["type"] = f"tool-{tool_name}"
        return part

    def _feed_outcome(self, chunk: _Outcome) -> None:
        if isinstance(chunk, ToolApprovalResponseChunk):
            self._respond(chunk)
            return
        part = self._part_of(chunk.tool_call_id)
        match chunk:
            case ToolApprovalRequestChunk():
                part["state"] = "approval-requested"
                part["approval"] = _approval(chunk)
            case ToolOutputDeniedChunk():
                part["state"] = "output-denied"
            case ToolOutputAvailableChunk():
                fields = _kept(part, "input")
                fields["output"] = chunk.output
                if chunk.preliminary is not None:
                    fields["preliminary"] = chunk.preliminary
                _enter(part, "output-available", fields, executed=chunk.provider_executed)
            case ToolOutputErrorChunk():
                raw = () if _is_dynamic(part) else ("rawInput",)
                fields = _kept(part, "input", *raw)
                fields["errorText"] = chunk.error_text
                _enter(part, "output-error", fields, executed=chunk.provider_executed)
            case _:
                assert_never(chunk)

    def _respond(self, chunk: ToolApprovalResponseChunk) -> None:
        for part in filter(_is_tool, self._message.parts):
            approval = as_object(part.get("approval"))
            if approval.get("id") == chunk.approval_id:
                break
        else:
            raise StreamBroken(f"No call waits for approval {chunk.approval_id!r}.")
        self._release(as_text(part.get("toolCallId")))
        reason: JsonObject = {} if chunk.reason is None else {"reason": chunk.reason}
        part["state"] = "approval-responded"
        part["approval"] = {**approval, "approved": chunk.approved, **reason}

    def _part_of(self, call_id: str) -> Part:
        """Return the call's first part in this step, else its last part in the message."""
        self._release(call_id)
        part = _first_call(self._step_parts(), call_id)
        if part is None:
            part = _first_call(reversed(self._message.parts), call_id)
        if part is None:
            raise StreamBroken(f"No tool invocation found for call {call_id!r}.")
        return part

    def _step_parts(self) -> Iterable[Part]:
        return self._message.parts[self._step :]


def assemble(chunks: Iterable[Chunk], message: UIMessage | None = None) -> UIMessage:
    """Return the message a client holds after the chunks, continuing a copy of `message`.

    Raises:
        StreamBroken: a client would have stopped reading with an error.
    """
    assembler = Assembler(message)
    for chunk in chunks:
        assembler.feed(chunk)
    return assembler.message


def _block_key(chunk: _BlockStart | _BlockMore) -> tuple[str, str]:
    return chunk.type.partition("-")[0], chunk.id


def _is_dynamic(part: Part) -> bool:
    return part.get("type") == "dynamic-tool"


def _is_tool(part: Part) -> bool:
    return _is_dynamic(part) or as_text(part.get("type")).startswith("tool-")


def _first_call(parts: Iterable[Part], call_id: str) -> Part | None:
    calls = (part for part in parts if _is_tool(part) and part.get("toolCallId") == call_id)
    return next(calls, None)


def _kept(part: Part, *keys: str) -> Part:
    return {key: part[key] for key in keys if key in part}


def _enter(part: Part, state: str, fields: Part, *, executed: bool | None = None) -> None:
    """Bring a tool part into a state, with these fields and none left of the state before."""
    for key in _OF_ONE_STATE:
        part.pop(key, None)
    part.update(fields, state=state)
    if executed is not None:
        part["providerExecuted"] = executed


def _approval(chunk: ToolApprovalRequestChunk) -> JsonObject:
    approval: dict[str, JsonValue] = {"id": chunk.approval_id}
    if chunk.reason is not None:
        approval["requestReason"] = chunk.reason
    if chunk.is_automatic:
        approval["isAutomatic"] = True
    return approval


def _merged(known: JsonValue, newer: JsonValue) -> JsonValue:
    """Return the metadata merged key by key; whatever is not an object is replaced."""
    if not isinstance(known, Mapping) or not isinstance(newer, Mapping):
        return newer
    result = dict(known)
    for key, value in newer.items():
        # A client never merges these, lest they reach a prototype.
        if key not in {"__proto__", "constructor", "prototype"}:
            result[key] = _merged(known[key], value) if key in known else value
    return result
