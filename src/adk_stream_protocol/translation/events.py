"""ADK events in, entries of a reply out.

One `EventTranslator` makes one assistant message, over as many replies as it takes. It is fed the
events of an invocation in order, from a running agent or from a stored session: the same events
give the same entries, which is how history, replay and the first delivery agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.translation.held import (
    WORKFLOW_PREFIX,
    authorization_uri,
    held_request,
    is_inner,
    is_request,
)
from adk_stream_protocol.translation.media import is_media, media, response_media
from adk_stream_protocol.translation.metadata import (
    ABORTED,
    Sources,
    Usage,
    created_metadata,
    finish_reason_of,
    is_failure,
)
from adk_stream_protocol.translation.plain_text import plain_text
from adk_stream_protocol.translation.text_blocks import BlockKind, Lane, TextBlocks
from adk_stream_protocol.translation.tool_calls import ToolCalls, is_code
from adk_stream_protocol.wire.chunks import (
    AbortChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningStartChunk,
    StartChunk,
    StartStepChunk,
    SteeringMessageChunk,
    TextStartChunk,
)
from adk_stream_protocol.wire.data_parts import (
    AgentData,
    ArtifactData,
    CredentialData,
    ObjectData,
    OutputData,
    StateData,
    TranscriptionData,
    WidgetData,
    data_chunk,
)
from adk_stream_protocol.wire.entries import CallAnswered, CallHeld, Entry
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, as_text, jsonable

__all__ = ["EventTranslator", "TranslationOptions"]

_TRANSFER = "transfer_to_agent"
_SET_RESPONSE = "set_model_response"
_STOPPED = "Stopped before a result came."
_NO_RESULT = "The run ended before this tool gave a result."


@dataclass(frozen=True, slots=True)
class TranslationOptions:
    """What of an agent's inner life a client may see beyond text and tools."""

    hold_text: bool = False
    """True: send text only when it is final, for agents whose callbacks redact."""
    state_keys: frozenset[str] = frozenset()
    """Session state keys that are sent as `data-adk-state`."""
    metadata_keys: frozenset[str] = frozenset()
    """Keys of an event's custom metadata that are merged into the message's."""
    show_transfers: bool = False
    """True: show `transfer_to_agent` as a tool call too, not just the change of agent."""
    show_model: bool = True
    """True: the message's metadata names the model that answered, if the model says its name."""


@dataclass(slots=True)
class _Response:
    """What of one model response was already sent from partial events, per lane."""

    parts_sent: int = 0
    """Non-text parts; as many are skipped in the complete event."""


@dataclass(slots=True)
class EventTranslator:
    """Makes the entries of one assistant message."""

    message_id: str
    options: TranslationOptions = field(default_factory=TranslationOptions)
    created_at: int | None = None
    """When the message began, in milliseconds since the epoch; None: not known."""
    usage: Usage = field(default_factory=Usage)
    aborted: bool = False
    """ADK says the run was stopped."""
    failed: bool = False
    """An event reported that the run broke."""
    interrupted: bool = False
    """The user spoke while the model did."""
    model: str | None = None
    """The model that answered last; None: none has, or it does not say its name."""
    _blocks: TextBlocks = field(default_factory=TextBlocks)
    _sources: Sources = field(default_factory=Sources)
    _tools: ToolCalls = field(default_factory=ToolCalls)
    _steered: set[str] = field(default_factory=set)
    """The messages that the user sent into the turn."""
    _decided: dict[str, CallAnswered] = field(default_factory=dict)
    """What a policy decided and is told with the call's result, by call id."""
    _signing_in: dict[str, str] = field(default_factory=dict)
    """The calls that wait for a sign-in, by the sign-in's id."""
    _responses: dict[Lane, _Response] = field(default_factory=dict)
    _reason: FinishReason | None = None
    _metadata: dict[str, JsonValue] = field(default_factory=dict)
    _agent: str = ""
    """The author last heard; empty before the first."""
    _step_open: bool = False
    _step_calls: set[str] = field(default_factory=set)
    """The calls shown in the open step."""
    _step_over: bool = False
    """The open step's model response is complete; the next output starts a new step."""
    _step_owed: bool = False
    """A held call was answered and no step has begun since."""
    _spoke: bool = False
    """The agent said or did something; a workflow's plain output is then data, not text."""

    def begin(self) -> Iterator[Entry]:
        """Yield the start of a reply: the first, or one that continues the message."""
        yield StartChunk(self.message_id, created_metadata(self.created_at))

    def feed(self, event: Event) -> Iterable[Entry]:
        """Return what an event adds to the message; what the user says is only shown, not kept."""
        said = plain_text(event)
        more = None if said is None else self.more(event, *said)
        return self._feed(event) if more is None else (more,)

    def more(self, event: Event, kind: BlockKind, text: str) -> Entry | None:
        """Return what another piece of text adds that an event brings, and nothing else.

        Nearly all there is to tell are such; None: it is not that simple, and must be fed.
        """
        if self._step_over or self.options.hold_text or self.options.metadata_keys:
            return None
        fields = vars(event)
        author: str = fields["author"]
        if author != self._agent and fields["output_transcription"] is None:
            return None
        return self._blocks.more((author, fields["branch"] or ""), kind, text)

    def _feed(self, event: Event) -> Iterator[Entry]:
        if event.author == "user":
            yield from self._heard(event)
            return
        lane: Lane = (event.author, event.branch or "")
        self._note(event)
        if event.author != self._agent:
            yield from self._agent_change(event)
        for part in (event.content.parts if event.content else None) or []:
            yield from self._part(part, event, lane)
        if event.output_transcription is not None:
            yield from self._spoken(event, lane)
        for chunk in self._sources.of(event):
            yield from self._step()
            yield chunk
        if not event.partial:
            yield from self._complete(event, lane)

    def hold(self, held: CallHeld, *, inner: bool = False) -> Iterator[Entry]:
        """Yield that a call waits, after the call itself if it was not shown.

        Args:
            held: the request.
            inner: an agent makes it that is a tool of another.
        """
        if held.call_id not in self._tools:
            if inner and not self._blocks.is_open():
                # The client's helper only looks at the last step, and would wait for the result
                # of the agent for ever.
                for call_id in self._step_calls:
                    self._tools.hold_open(call_id)
                yield from self._close_step()
            yield from self._step()
            self._step_calls.add(held.call_id)
            yield from self._tools.show(held.call_id, held.tool_name, _shown(held))
        self._tools.hold(held.call_id)
        yield held

    def answer(self, answered: CallAnswered) -> Iterator[Entry]:
        """Yield the end of a held call's wait; a call that may not run is settled by it."""
        self._step_owed = True
        self._tools.release(answered.call_id, settled=answered.outcome != "approved")
        if answered.kind == "credential":
            # A sign-in is no call on the wire; the call that wanted it goes on, or fails, itself.
            self._tools.release(self._signing_in.get(answered.call_id, ""), settled=False)
            return
        yield answered
        if answered.kind == "input" and answered.outcome == "approved":
            # A question is no tool: no result will follow the person's reply.
            yield from self.give(answered.call_id, answered.output, answered.error)

    def decided(self, answered: CallAnswered) -> None:
        """Note what a policy decided; it is told just before the call's result."""
        self._decided[answered.call_id] = answered

    def give(self, call_id: str, output: JsonValue, error: str | None) -> Iterator[Entry]:
        """Yield how a call ended that the client ran, before ADK tells it."""
        yield from self._tools.give(call_id, output=output, error=error)

    def respond(self, response: types.FunctionResponse) -> Iterator[Entry]:
        """Yield a result that was given from outside, for a call that has none."""
        call_id = response.id or ""
        yield from self._tell_decided(call_id)
        if self._tools.owes_result(call_id):
            yield from self._tools.result(call_id, as_object(jsonable(response.response or {})))

    def wait_on(self, call_id: str) -> None:
        """Note that an approved call still waits: for its siblings' answers, or for the browser."""
        self._tools.hold(call_id)

    def show(self, chunk: Chunk) -> Iterator[Entry]:
        """Yield a chunk of our own in a step of its own."""
        yield from self._close_step()
        yield from self._step()
        yield chunk
        self._step_over = True

    def steer(self, message: SteeringMessageChunk) -> Iterator[Entry]:
        """Yield what the user said into the turn, before the step that answers it.

        Once: the model may have to be told again, after it was cut off.
        """
        if message.id in self._steered:
            return
        self._steered.add(message.id)
        if not self._blocks.is_open():
            # Else a live model was speaking, and what it says goes on around it.
            yield from self._close_step()
        yield message

    def close(self) -> Iterator[Entry]:
        """Yield the ends of what is open, so that the reply may end or pause here."""
        yield from self._blocks.close_all()
        self._blocks.forget()
        self._responses.clear()
        yield from self._close_step()

    def finish(self) -> Iterator[Entry]:
        """Yield the end of a reply that went well, or that waits for the client."""
        yield from self._tell_all_decided()
        yield from self._tools.settle_open(_NO_RESULT, spare_long_running=True)
        yield from self.close()
        yield from self._last_step()
        yield FinishChunk(self._finish_reason(), self._finish_metadata())

    def fail(self, public_text: str) -> Iterator[Entry]:
        """Yield the end of a reply that broke: open tools first, a client reads no further."""
        yield from self._tell_all_decided()
        yield from self._tools.settle_open(_NO_RESULT)
        yield from self.close()
        yield ErrorChunk(public_text)

    def stop(self) -> Iterator[Entry]:
        """Yield the end of a reply that was stopped."""
        yield from self._tell_all_decided()
        yield from self._tools.settle_open(_STOPPED)
        yield from self.close()
        yield from self._last_step()
        yield AbortChunk()

    @property
    def is_waiting(self) -> bool:
        """Whether the reply ends because a call waits for the client."""
        return self._tools.is_waiting

    @property
    def unfinished_text(self) -> str:
        """Text that was sent but that ADK has not persisted, because its response is incomplete."""
        return self._blocks.unfinished_text()

    # Events

    def _note(self, event: Event) -> None:
        if self._step_over and event.content and event.content.parts:
            # A new model response begins; why the last one ended no longer matters.
            self._reason = None
        reason = finish_reason_of(event)
        if reason is not None and self._reason != "content-filter":
            self._reason = reason
        if event.error_code == ABORTED:
            self.aborted = True
        if event.interrupted:
            self.interrupted = True
            self._metadata["interrupted"] = True
        self.failed = self.failed or is_failure(event)
        if not event.partial and event.usage_metadata is not None:
            self.usage.add(event.usage_metadata)
        self.model = event.model_version or self.model
        told = event.custom_metadata or {}
        for key in self.options.metadata_keys & told.keys():
            self._metadata[key] = jsonable(told[key])

    def _agent_change(self, event: Event) -> Iterator[Entry]:
        if not event.content or not event.content.parts:
            return
        first, self._agent = not self._agent, event.author
        if not first and not event.branch:
            yield from self._step()
            yield data_chunk(AgentData(event.author))

    def _part(self, part: types.Part, event: Event, lane: Lane) -> Iterator[Entry]:
        if part.function_call is not None:
            if not event.partial:
                yield from self._call(part.function_call, event, lane)
        elif part.function_response is not None:
            if not event.partial:
                yield from self._response(part.function_response, event)
        elif part.text is not None:
            yield from self._text(part.text, event, lane, thought=bool(part.thought))
        else:
            yield from self._other(part, event, lane)

    def _text(
        self, text: str, event: Event, lane: Lane, *, thought: bool = False
    ) -> Iterator[Entry]:
        if not text or (event.partial and self.options.hold_text):
            return
        self._spoke = True
        kind: BlockKind = "reasoning" if thought else "text"
        send = self._blocks.delta if event.partial else self._blocks.complete
        for chunk in send(lane, kind, text):
            if isinstance(chunk, TextStartChunk | ReasoningStartChunk):
                yield from self._step(starting=lane)
            yield chunk

    def _heard(self, event: Event) -> Iterator[Entry]:
        """Yield what was understood of the user's voice so far."""
        heard = event.input_transcription
        if heard is not None and heard.text:
            part = TranscriptionData("input", heard.text, final=not event.partial)
            yield data_chunk(part, transient=True)

    def _spoken(self, event: Event, lane: Lane) -> Iterator[Entry]:
        """Yield the words of what the model says aloud: they are the answer's text."""
        said = event.output_transcription
        if said is None or not said.text:
            return
        yield from self._text(said.text, event, lane)
        if not event.partial:
            yield from self._blocks.end_response(lane)
            self._step_over = self._step_open

    def _other(self, part: types.Part, event: Event, lane: Lane) -> Iterator[Entry]:
        if not is_media(part) and not is_code(part):
            return
        response = self._responses.setdefault(lane, _Response())
        if event.partial:
            response.parts_sent += 1
        elif response.parts_sent:
            response.parts_sent -= 1
            return
        chunks = list(media(part)) if is_media(part) else self._tools.code(part)
        if chunks:
            self._spoke = True
            yield from self._blocks.pause(lane)
            yield from self._step()
            yield from chunks

    def _complete(self, event: Event, lane: Lane) -> Iterator[Entry]:
        parts = (event.content.parts if event.content else None) or []
        if any(map(_is_model_output, parts)):
            yield from self._blocks.end_response(lane)
            self._responses.pop(lane, None)
        if parts and self._step_open:
            self._step_over = True
        yield from self._actions(event)
        if event.output is not None:
            yield from self._output(event, lane)

    # Steps

    def _step(self, *, starting: Lane | None = None) -> Iterator[Entry]:
        """Yield the step boundary that model output needs; a lane may be about to start a block."""
        # v6 forgets open blocks at `finish-step`; the next delta of one would be fatal. And the
        # client's helpers only look at the last step: parallel agents must ask in the same one.
        busy = self._blocks.is_open(besides=starting) or self._tools.any_open(self._step_calls)
        if self._step_over and not busy:
            yield from self._close_step()
        if not self._step_open:
            self._step_open, self._step_owed = True, False
            yield StartStepChunk()

    def _close_step(self) -> Iterator[Entry]:
        if self._step_open:
            self._step_open = self._step_over = False
            self._step_calls.clear()
            yield FinishStepChunk()

    def _last_step(self) -> Iterator[Entry]:
        """Yield an empty step if the agent said nothing to the answers, and none is awaited."""
        # The stock helpers look at the last step. One that holds nothing but answered calls, they
        # send again, for ever.
        if self._step_owed and not self.is_waiting:
            yield from self._step()
            # A client sees that a step began only with the next chunk that changes the message.
            yield MessageMetadataChunk({})
            yield from self._close_step()

    # Tools

    def _call(self, call: types.FunctionCall, event: Event, lane: Lane) -> Iterator[Entry]:
        call_id, name = call.id or "", call.name or ""
        if is_request(name) and call_id in (event.long_running_tool_ids or ()):
            yield from self._request(call, event, lane)
        elif is_request(name):
            # Made by the model: ADK marks its own as long-running. Nobody is asked anything.
            self._tools.hide(call_id)
        elif name == _SET_RESPONSE or (name == _TRANSFER and not self.options.show_transfers):
            self._tools.hide(call_id)
        else:
            self._spoke = True
            yield from self._blocks.pause(lane)
            yield from self._step()
            self._step_calls.add(call_id)
            yield from self._tools.show(
                call_id,
                name,
                as_object(jsonable(call.args or {})),
                long_running=call_id in (event.long_running_tool_ids or ()),
            )

    def _request(self, call: types.FunctionCall, event: Event, lane: Lane) -> Iterator[Entry]:
        held = held_request(call, invocation_id=event.invocation_id)
        if held is None:
            return
        if held.kind == "credential":
            request = CredentialData(held.approval_id, authorization_uri(held))
            yield data_chunk(request, part_id=held.approval_id)
            waiting = as_text(as_object(held.input).get("functionCallId"))
            self._signing_in[held.call_id] = waiting
            self._tools.hide(held.call_id)
            self._tools.hold(waiting)
            self._tools.hold(held.call_id)
            yield held
        else:
            if held.call_id not in self._tools:
                yield from self._blocks.pause(lane)
            yield from self.hold(held, inner=is_inner(event))

    def _response(self, response: types.FunctionResponse, event: Event) -> Iterator[Entry]:
        call_id = response.id or ""
        if self._decided:
            yield from self._tell_decided(call_id)
        if self._tools.is_settled(call_id) or _is_placeholder(call_id, event):
            return
        yield from self._tools.result(call_id, as_object(jsonable(response.response or {})))
        for part in response.parts or []:
            yield from response_media(part)

    def _tell_decided(self, call_id: str) -> Iterator[Entry]:
        answered = self._decided.pop(call_id, None)
        if answered is not None and call_id in self._tools:
            self._tools.release(call_id, settled=answered.outcome != "approved")
            yield answered

    def _tell_all_decided(self) -> Iterator[Entry]:
        for call_id in list(self._decided):
            yield from self._tell_decided(call_id)

    # Everything else

    def _actions(self, event: Event) -> Iterator[Entry]:
        actions = event.actions
        for filename, version in (actions.artifact_delta or {}).items():
            yield data_chunk(ArtifactData(filename, version), part_id=filename)
        told = actions.state_delta or {}
        state = {key: told[key] for key in self.options.state_keys & told.keys()}
        if state:
            yield data_chunk(StateData(as_object(jsonable(state))))
        for widget in actions.render_ui_widgets or []:
            yield data_chunk(WidgetData(as_object(jsonable(widget))), part_id=widget.id)
        if actions.set_model_response is not None:
            yield data_chunk(ObjectData(jsonable(actions.set_model_response)))

    def _output(self, event: Event, lane: Lane) -> Iterator[Entry]:
        path = event.node_info.path
        gated = f"{WORKFLOW_PREFIX}{path}@{event.invocation_id}#call"
        if gated in self._tools:
            if not self._tools.is_settled(gated):
                yield from self._tools.result(gated, _as_result(event.output))
            return
        if isinstance(event.output, str) and not self._spoke and _is_last_word(event):
            self._spoke = True
            yield from self._step()
            yield from self._blocks.complete(lane, "text", event.output)
            yield from self._blocks.end_response(lane)
            return
        yield data_chunk(OutputData(jsonable(event.output)), part_id=path or None)

    def _finish_reason(self) -> FinishReason:
        return "tool-calls" if self.is_waiting else self._reason or "stop"

    def _finish_metadata(self) -> JsonValue:
        metadata: dict[str, JsonValue] = {}
        if self.options.show_model and self.model:
            metadata["model"] = self.model
        metadata |= self._metadata
        if self.usage.known:
            metadata["usage"] = self.usage.to_json()
        return metadata or None


def _shown(held: CallHeld) -> JsonObject:
    """Return the input to show; a question's interrupt id is ADK's own business."""
    return {key: item for key, item in as_object(held.input).items() if key != "interruptId"}


def _is_model_output(part: types.Part) -> bool:
    """Whether the part belongs to a model response, and not to what ADK made of one."""
    call = part.function_call
    return part.function_response is None and not (call is not None and is_request(call.name))


def _is_last_word(event: Event) -> bool:
    """Whether an output is the whole workflow's, and not just what one node hands to the next."""
    outputs = event.node_info.output_for
    return not outputs or any("/" not in path for path in outputs)


def _is_placeholder(call_id: str, event: Event) -> bool:
    """Whether the response only says that the call waits for a person."""
    actions = event.actions
    return call_id in (actions.requested_tool_confirmations or {}) or call_id in (
        actions.requested_auth_configs or {}
    )


def _as_result(output: object) -> JsonObject:
    plain = jsonable(output)
    return plain if isinstance(plain, dict) else {"result": plain}
