"""What a chat request asks for. Pure: the same request and held calls give the same instruction.

A client's message list is never the truth. Only the newest user message is read from it, and
answers to calls that the ledger holds: an id, a JSON boolean, a reason, and which edited arguments
its card shows; or a browser's output. Everything else in it is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from adk_stream_protocol.errors import BadRequest, NotFound
from adk_stream_protocol.identifiers import ApprovalId, CallId, MessageId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.wire.messages import ToolPart, UIMessage, tool_name_of, tool_parts
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL
from adk_stream_protocol.wire.requests import ChatRequest
from adk_stream_protocol.wire.values import (
    JsonObject,
    JsonValue,
    as_object,
    as_text,
    check_storable,
)

__all__ = [
    "Answer",
    "Answers",
    "Decision",
    "Instruction",
    "Output",
    "Regenerate",
    "Say",
    "check_reason",
    "interpret",
    "may_answer",
    "repeats",
]

_LONGEST_REASON = 500
_CARD = "data-approval"
_RESULT = "tool-result"
_OUTPUT_STATES = frozenset({"output-available", "output-error"})


@dataclass(frozen=True, slots=True)
class Decision:
    """Approve or deny one held call."""

    approval_id: ApprovalId
    approved: bool
    reason: str | None = None
    edited: JsonObject | None = None
    """The arguments to run instead of those shown; None: those shown. Never from a chat."""
    remember: bool = False
    """It counts for later calls of the tool in this chat, too. Never from a chat."""
    shown_hash: str | None = None
    """Of the arguments that were shown; None: those that the model wrote."""


@dataclass(frozen=True, slots=True)
class Output:
    """What the browser made of a call it ran: an output, or why it failed."""

    approval_id: ApprovalId
    output: JsonValue = None
    error: str | None = None
    """None: it went well."""
    is_shown: bool = field(default=False, compare=False)
    """Whether the client's own message shows it, as `addToolOutput` leaves it."""


Answer: TypeAlias = Decision | Output


@dataclass(frozen=True, slots=True)
class Say:
    """The user says something: anew, or instead of an earlier message."""

    message: UIMessage
    edits: bool = False
    """The request names the message itself, to replace it."""
    answers: tuple[Answer, ...] = ()
    """Decisions that travelled along; they come first."""
    replaces: MessageId | None = None
    """Another message that the request names: the answer to this one, if it is to be replaced."""
    parent_id: MessageId | None = None
    """The message after which this one comes, or `BEGINNING`; None: the chat's last."""
    is_bare: bool = False
    """Whether the request says nothing but the message, so that it does not tell whether the
    message is sent, or sent again because the user wants another answer."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The client answers held calls."""

    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Regenerate:
    """Give another answer to the user's message."""

    message_id: MessageId | None
    """The assistant message to replace, or the user message to answer; None: the last."""
    message: UIMessage | None
    """The user message the client holds: the server may never have seen it, or with other text."""
    parent_id: MessageId | None = None
    """The message after which the answer's message comes, or `BEGINNING`; None: not said."""


Instruction: TypeAlias = Say | Answers | Regenerate


def interpret(request: ChatRequest, held: Sequence[HeldCall]) -> Instruction:
    """Return what the request asks for, given the calls the chat's ledger knows.

    Raises:
        BadRequest: it asks for nothing, or an answer is malformed; the message says what to send.
        NotFound: it answers a call that does not exist.
    """
    if request.trigger == "regenerate-message":
        users = [message for message in request.messages if message.role == "user"]
        return Regenerate(request.message_id, users[-1] if users else None, request.parent_id)
    last = request.messages[-1]
    reader = _AnswerReader(held)
    if last.role == "user":
        continued = _continued(request)
        if continued is not None:
            return _answers(reader.parts(continued))
        return _said(request, last, reader)
    if last.role == "assistant":
        return _answers(reader.parts(_continued(request) or last))
    raise BadRequest("The last message must be the user's or the assistant's.", code="bad_message")


def may_answer(request: ChatRequest) -> bool:
    """Whether a request may hold answers; if not, `interpret` needs no held calls to read it."""
    return any(
        any(True for _ in tool_parts(message))
        or any(item["type"] == _RESULT for item in message.content)
        for message in request.messages
    )


def repeats(answer: Answer, call: HeldCall) -> bool:
    """Whether an answer to a call that was answered says the same again."""
    if isinstance(answer, Output):
        return call.done_at is not None and (call.result, call.error) == (
            answer.output,
            answer.error,
        )
    return call.approved if answer.approved else call.state is CallState.DENIED


def _continued(request: ChatRequest) -> UIMessage | None:
    """Return the assistant message that the request names as the one to continue."""
    for message in request.messages:
        if message.role == "assistant" and message.id == request.message_id:
            return message
    return None


def _said(request: ChatRequest, last: UIMessage, reader: _AnswerReader) -> Say | Answers:
    answers = tuple(reader.said_in(last))
    has_words = any(item["type"] == "text" for item in last.content) or not all(
        map(tool_name_of, last.parts)
    )
    if not has_words and (answers or last.parts):
        return _answers(answers)
    travelled = tuple(reader.travelled(request.messages[:-1]))
    edits = bool(last.id) and last.id == request.message_id
    return Say(
        last,
        edits=edits,
        answers=(*answers, *travelled),
        replaces=None if edits else request.message_id,
        parent_id=request.parent_id,
        is_bare=not request.has_trigger
        and request.message_id is None
        and request.parent_id is None,
    )


def _answers(found: Iterable[Answer]) -> Answers:
    answers = tuple(found)
    if not answers:
        raise BadRequest(
            "There is nothing to answer: the message holds no approval or output for a waiting "
            "call. Send a new user message instead.",
            code="nothing_to_answer",
        )
    return Answers(answers)


class _AnswerReader:
    """Finds answers in messages, by the calls the ledger holds."""

    def __init__(self, held: Sequence[HeldCall]) -> None:
        self._by_approval = {call.approval_id: call for call in held}
        # The newest request for a call wins, should ADK ever ask twice.
        self._by_call = {call.call_id: call for call in held}

    def said_in(self, message: UIMessage) -> Iterator[Answer]:
        """Yield the answers in a user's message; decisions come before outputs."""
        answers = list(self.parts(message))
        results = [part for part in message.parts if part["type"] == _RESULT]
        answers += self.contents([*message.content, *results], _decisions(answers))
        yield from _decisions(answers)
        yield from (answer for answer in answers if isinstance(answer, Output))

    def parts(self, message: UIMessage) -> Iterator[Answer]:
        """Yield the answers in the parts of a message; decisions come before outputs."""
        newest = _newest_step(message)
        shown = _shown(message)
        decisions: list[Decision] = []
        for part in tool_parts(message):
            if part.name == CONFIRMATION_TOOL:
                decisions += self._confirmation_part(part, newest=part.call_id in newest)
            elif part.state == "approval-responded":
                decisions.append(self._decision_part(part, shown))
        yield from decisions
        for part in tool_parts(message):
            if part.name != CONFIRMATION_TOOL and part.state in _OUTPUT_STATES:
                yield from self._output_part(part, decisions, is_shown=message.role == "assistant")

    def travelled(self, messages: Sequence[UIMessage]) -> Iterator[Answer]:
        """Yield decisions on open calls that came along with something else."""
        for message in messages:
            shown = _shown(message)
            for part in tool_parts(message):
                if part.name == CONFIRMATION_TOOL:
                    if self._is_pending(part.call_id):
                        yield from self._confirmation_part(part, newest=False)
                elif part.state == "approval-responded" and self._is_pending(
                    as_text(part.approval.get("id"))
                ):
                    yield self._decision_part(part, shown)
                elif self._is_awaited_output(part):
                    yield from self._output_part(part, (), is_shown=True)

    def _is_awaited_output(self, part: ToolPart) -> bool:
        call = self._by_call.get(CallId(part.call_id))
        if call is None or not call.is_open or call.kind is CallKind.TOOL:
            return False
        may_run = call.state is CallState.APPROVED or part.approval.get("approved") is True
        return may_run and part.state in _OUTPUT_STATES

    def contents(
        self, items: Sequence[JsonObject], decided: Sequence[Decision]
    ) -> Iterator[Answer]:
        """Yield the answers in the older `content` form; decisions come before outputs.

        Args:
            items: the content.
            decided: the decisions that came beside it.
        """
        answers = [
            self._result(
                as_text(item.get("toolCallId")), as_text(item.get("toolName")), item.get("result")
            )
            for item in items
            if item["type"] == _RESULT
        ]
        decisions = _decisions(answers)
        yield from decisions
        for answer in answers:
            if isinstance(answer, Output):
                call = self._by_approval[answer.approval_id]
                if call.state is CallState.PENDING and not _approves((*decided, *decisions), call):
                    raise _not_approved(call)
                yield answer

    def _is_pending(self, approval_id: str) -> bool:
        call = self._by_approval.get(ApprovalId(approval_id))
        return call is not None and call.state is CallState.PENDING

    def _decision_part(self, part: ToolPart, shown: Mapping[str, str]) -> Decision:
        approval_id = as_text(part.approval.get("id"))
        if ApprovalId(approval_id) not in self._by_approval:
            raise _unknown(approval_id)
        approved = _strict(part.approval.get("approved"), "approval.approved")
        return Decision(
            ApprovalId(approval_id),
            approved,
            check_reason(part.approval.get("reason")),
            shown_hash=shown.get(approval_id),
        )

    def _confirmation_part(self, part: ToolPart, *, newest: bool) -> Iterator[Decision]:
        told = as_object(part.output) if part.has_output else {}
        field, value = "output.confirmed", told.get("confirmed")
        if "approved" in part.approval:
            field, value = "approval.approved", part.approval["approved"]
        elif not part.has_output:
            return
        call = self._confirmed_call(part.call_id, newest=newest)
        if call is not None:
            reason = check_reason(told.get("reason") or part.approval.get("reason"))
            yield Decision(call.approval_id, _strict(value, field), reason)

    def _confirmed_call(self, approval_id: str, *, newest: bool = True) -> HeldCall | None:
        call = self._by_approval.get(ApprovalId(approval_id))
        if call is not None:
            return call
        mistaken = self._by_call.get(approval_id)  # type: ignore[call-overload]  # a CallId by mistake
        if mistaken is not None:
            raise BadRequest(
                f"{approval_id!r} is the id of the {mistaken.tool_name} call. Send the result of "
                f"{CONFIRMATION_TOOL} with its own id, {mistaken.approval_id!r}.",
                code="mixed_ids",
            )
        if newest:
            raise _unknown(approval_id)
        # An earlier step's confirmation, settled before the ledger's memory begins.
        return None

    def _output_part(
        self, part: ToolPart, decisions: Sequence[Decision], *, is_shown: bool
    ) -> Iterator[Answer]:
        call = self._by_call.get(CallId(part.call_id))
        if call is None or not call.is_open:
            return
        if call.kind is CallKind.TOOL:
            raise _made_up(call)
        if call.state is CallState.PENDING and not _approves(decisions, call):
            if part.approval.get("approved") is not True:
                raise _not_approved(call)
            yield Decision(
                call.approval_id, approved=True, reason=check_reason(part.approval.get("reason"))
            )
        check_storable([part.output, part.error_text], "The output")
        if part.state == "output-error":
            error = part.error_text or "The browser reported an error."
            yield Output(call.approval_id, error=error, is_shown=is_shown)
        else:
            yield Output(call.approval_id, part.output, is_shown=is_shown)

    def _result(self, call_id: str, name: str, result: JsonValue) -> Answer:
        if name == CONFIRMATION_TOOL:
            call = self._confirmed_call(call_id)
            assert call is not None  # the newest step: unknown ids have raised
            told = as_object(result)
            confirmed = _strict(told.get("confirmed"), "result.confirmed")
            return Decision(call.approval_id, confirmed, check_reason(told.get("reason")))
        held = self._by_call.get(call_id)  # type: ignore[call-overload]  # plain text from a client
        if held is None:
            return self._result_by_approval(call_id, name, result)
        told = as_object(result)
        decides = held.kind is CallKind.TOOL or held.state is CallState.PENDING
        if "approved" in told and decides:
            reason = check_reason(told.get("user_message"))
            approved = _strict(told["approved"], "result.approved")
            return Decision(held.approval_id, approved, reason if not approved else None)
        if held.kind is CallKind.TOOL:
            raise _made_up(held)
        check_storable(result, "The output")
        return Output(held.approval_id, result)

    def _result_by_approval(self, approval_id: str, name: str, result: JsonValue) -> Answer:
        call = self._by_approval.get(ApprovalId(approval_id))
        if call is None:
            raise _unknown(approval_id)
        told = as_object(result)
        if not name and "confirmed" in told:
            # A `tool_result` frame need not name the tool.
            confirmed = _strict(told["confirmed"], "result.confirmed")
            return Decision(call.approval_id, confirmed, check_reason(told.get("reason")))
        raise BadRequest(
            f"{approval_id!r} is the id of a confirmation. Send it with toolName "
            f'{CONFIRMATION_TOOL!r} and result {{"confirmed": true}} or {{"confirmed": false}}.',
            code="mixed_ids",
        )


def _shown(message: UIMessage) -> dict[str, str]:
    """Return the hash of the edited arguments that each card shows, as this client has it."""
    # A stock client sends its cards back as it last got them, and nothing else tells what the
    # person saw: the tool part's input stays what the model wrote.
    cards = [part for part in message.parts if part["type"] == _CARD]
    hashes = {
        as_text(part.get("id")): as_text(as_object(part.get("data")).get("editedArgumentsHash"))
        for part in cards
    }
    return {approval_id: edited for approval_id, edited in hashes.items() if edited}


def _newest_step(message: UIMessage) -> set[str]:
    """Return the ids of the tool calls after the last step boundary that has any."""
    step: set[str] = set()
    fresh: set[str] = set()
    for part in message.parts:
        if part["type"] == "step-start":
            step, fresh = fresh or step, set()
        else:
            call_id = as_text(part.get("toolCallId"))
            if call_id:
                fresh.add(call_id)
    return fresh or step


def _strict(value: JsonValue, field: str) -> bool:
    if not isinstance(value, bool):
        raise BadRequest(
            f"{field!r} must be the JSON boolean true or false, nothing else.", code="not_a_boolean"
        )
    return value


def check_reason(value: JsonValue) -> str | None:
    """Return a reason fit to be recorded, or None if there is none.

    Raises:
        BadRequest: it is not text, too long, or cannot be stored.
    """
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST_REASON:
        raise BadRequest(
            f"A reason is text of at most {_LONGEST_REASON} characters.", code="bad_reason"
        )
    check_storable(value, "The reason")
    return value


def _decisions(answers: Iterable[Answer]) -> list[Decision]:
    return [answer for answer in answers if isinstance(answer, Decision)]


def _approves(decisions: Iterable[Decision], call: HeldCall) -> bool:
    return any(one.approved and one.approval_id == call.approval_id for one in decisions)


def _not_approved(call: HeldCall) -> BadRequest:
    return BadRequest(
        f"{call.tool_name} needs approval before its output counts. Approve "
        f"{call.approval_id!r} first, or send both in one request.",
        code="not_approved",
    )


def _unknown(approval_id: str) -> NotFound:
    return NotFound(
        f"No call waits under the id {approval_id!r} in this chat. Send the id that came with the "
        "request, unchanged.",
        code="unknown_call",
    )


def _made_up(call: HeldCall) -> BadRequest:
    return BadRequest(
        f"{call.tool_name} runs on the server; a result for it is not accepted. Send the result of "
        f'{CONFIRMATION_TOOL} with id {call.approval_id!r} and {{"confirmed": true}} or '
        f'{{"confirmed": false}}, or the approval response for that id.',
        code="made_up_result",
    )
