"""The ledger: what was asked, what was answered, and who may run a call.

It stands between the gate and the engine on one side and the rows on the other, and it is the only
place that turns a request of ADK's into a row.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio

from adk_stream_protocol.errors import BadRequest, NotFound, NotYours, trace_of
from adk_stream_protocol.held_calls.deciders import Deciders
from adk_stream_protocol.held_calls.editing import check_edit
from adk_stream_protocol.held_calls.policy import Policy, Reconciled, ToolRule
from adk_stream_protocol.held_calls.reconciling import Pauses, settle_orphans
from adk_stream_protocol.identifiers import ApprovalId, CallId, ChatId, InvocationId, UserId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.ports import Calls, Ruling, Verdict
from adk_stream_protocol.telemetry import Meters, note, spanned
from adk_stream_protocol.translation.instructions import Answer, Decision
from adk_stream_protocol.wire.entries import CallHeld
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, digest, jsonable

__all__ = ["Ledger", "call_ids"]

logger = logging.getLogger(__name__)

_PAUSES: Final = (0.1, 0.5, 2.0, 5.0)
"""How long to wait between tries to record what a tool did."""

_MOST_LOOKED_AT: Final = 1000
"""Among how many waiting calls, the oldest, those for one person are looked for."""

_PAGE: Final = 200
"""How many calls are read at a time."""

_ADK_HINT = "Please approve or reject the tool call"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Held calls under a policy."""

    calls: Calls
    policy: Policy
    deciders: Deciders = field(default_factory=Deciders)
    meters: Meters = field(default_factory=Meters)
    pauses: Pauses = field(default_factory=Pauses)

    @spanned("adk_stream.hold")
    async def open(
        self,
        held: CallHeld,
        *,
        owner: UserId,
        chat_id: ChatId,
        invocation_id: InvocationId,
        lane: str = "",
        schema: JsonObject | None = None,
        rule: ToolRule | None = None,
        patience: float | None = None,
    ) -> HeldCall:
        """Store that a call waits, its arguments frozen; idempotent.

        Args:
            held: the request.
            owner: whose chat it is in.
            chat_id: the chat.
            invocation_id: the turn.
            lane: which agent of the turn asks.
            schema: what the tool's arguments must look like; None: not known.
            rule: the rule of the very tool; None: not known, the one of its name counts.
            patience: how long it waits at most; None: as long as the rule says.
        """
        if rule is None:
            # The name does not tell what a tool in a toolset carries; the gate refuses the call
            # later if that asks for more.
            rule = self.policy.rule(held.tool_name)
        else:
            held = _as_ruled(held, rule)
        held = _never_unasked(held, rule)
        now = await self.calls.now()
        arguments = as_object(held.input)
        expires_in = self.policy.expires_in if rule.expires_in is None else rule.expires_in
        expires_in = expires_in if patience is None else min(expires_in, patience)
        call = await self.calls.open(
            HeldCall(
                approval_id=ApprovalId(held.approval_id),
                call_id=CallId(held.call_id),
                owner=owner,
                chat_id=chat_id,
                invocation_id=invocation_id,
                tool_name=held.tool_name,
                arguments=arguments,
                arguments_hash=digest(arguments),
                created_at=now,
                expires_at=now + expires_in,
                request_id=held.request_id,
                lane=lane,
                kind=CallKind(held.kind),
                approval=held.approval,
                state=CallState.PENDING if held.approval else CallState.APPROVED,
                title=rule.title or held.tool_name,
                hint=_hint(rule, held),
                risk=rule.risk,
                payload=held.payload,
                ui=rule.ui,
                idempotent=rule.idempotent,
                steps=rule.steps if held.approval else (),
                # What the browser runs is what it was shown.
                schema=schema if rule.editable and held.kind == "tool" else None,
                trail=(_opened(owner, now, arguments, rememberable=_is_rememberable(rule, held)),),
            )
        )
        note(**_told(call))
        self.meters.count("calls_held", call.tool_name)
        logger.info("call held", extra=call_ids(call))
        return call

    async def has_room(self, owner: UserId, asking: int = 0) -> bool:
        """Whether one more call may wait for this user, beside those just being asked."""
        return await self.calls.count_pending(owner) + asking < self.policy.max_pending

    async def finish(self, claimed: HeldCall, *, result: JsonValue, error: str | None) -> None:
        """Record how a call ended that was claimed, though the store may be down for a moment.

        Only this process knows it: what is not recorded is not known.
        """
        for pause in _PAUSES:
            try:
                await self._finish(claimed, result, error)
            except Exception as failure:  # noqa: BLE001  # the edge: whatever a store raises
                trace = trace_of(failure)
                logger.error(  # noqa: TRY400
                    "outcome not recorded, trying again: %s", trace, extra=call_ids(claimed)
                )
                await anyio.sleep(pause)
            else:
                return
        await self._finish(claimed, result, error)

    async def _finish(self, claimed: HeldCall, result: JsonValue, error: str | None) -> None:
        await self.calls.finish(claimed.approval_id, claimed.fence, result=result, error=error)

    async def owned(self, approval_id: ApprovalId, owner: UserId) -> HeldCall:
        """Return a call of a user's own chats.

        Raises:
            NotFound: there is none, or it is another user's; a caller cannot tell which.
        """
        call = await self.calls.get(approval_id)
        if call is None or call.owner != owner:
            raise _unknown()
        return call

    async def visible(self, approval_id: ApprovalId, user: UserId) -> HeldCall:
        """Return a call that a user may see: their own, or one that they may have to decide.

        Raises:
            NotFound: there is none, or it is none of theirs; a caller cannot tell which.
        """
        call = await self.calls.get(approval_id)
        if call is None or not await self.deciders.may_see(user, call):
            raise _unknown()
        return call

    async def waiting_for(self, user: UserId) -> Sequence[HeldCall]:
        """Return other users' calls that wait for this one, oldest first."""
        waiting = await self.calls.pending(_MOST_LOOKED_AT)
        return [
            call
            for call in waiting
            if call.owner != user and await self.deciders.may_approve(user, call)
        ]

    @spanned("adk_stream.decision")
    async def answer(
        self, answer: Answer, *, user: UserId, via: str = "chat", decision_id: str | None = None
    ) -> tuple[Ruling, HeldCall]:
        """Record an answer; `conflict` comes with the call as it really is.

        Raises:
            NotFound: the call does not exist for this user.
            NotYours: others decide it.
        """
        if isinstance(answer, Decision):
            ruling, call = await self._decide(answer, user, via=via, decision_id=decision_id)
        else:
            await self.owned(answer.approval_id, user)
            ruling, call = await self.calls.give(
                answer.approval_id, output=answer.output, error=answer.error
            )
        note(**_told(call), verdict=_verdict(answer), ruling=ruling)
        self.meters.count("decisions", _verdict(answer), ruling)
        if ruling == "conflict":
            self.meters.count("answers_refused")
            logger.warning("answer refused", extra=call_ids(call))
        else:
            logger.info("call answered", extra={**call_ids(call), "ruling": ruling})
        return ruling, call

    async def _decide(
        self, decision: Decision, user: UserId, *, via: str, decision_id: str | None
    ) -> tuple[Ruling, HeldCall]:
        call = await self.visible(decision.approval_id, user)
        while True:
            step = await self._step_decided(decision, user, call)
            edited = _edit(decision, call, step)
            _check_remember(decision, call)
            verdict = Verdict(
                decision.approved,
                by=user,
                reason=decision.reason,
                decision_id=decision_id,
                via=via,
                step=step,
                final=step + 1 >= len(call.steps),
                edited=edited,
                edited_hash=None if edited is None else digest(edited),
                shown_hash=decision.shown_hash,
                remember=decision.remember,
            )
            ruling, call = await self.calls.decide(decision.approval_id, verdict)
            moved_on = call.state is CallState.PENDING and call.step > step
            if ruling != "conflict" or not moved_on:
                return ruling, call
            # Another approved the step first. Each round is a step further, so this ends; and if
            # they changed the arguments, it is a conflict: those were not shown.

    async def _step_decided(self, decision: Decision, user: UserId, call: HeldCall) -> int:
        """Return which step the decision is about.

        Raises:
            NotYours: others decide it.
        """
        if call.state is not CallState.PENDING or not call.approval:
            return call.step
        if decision.approved and user in call.step_approvers:
            # Said before: a double click, not an approval of the next step.
            return call.step_approvers.index(user)
        await self.deciders.check(user, call, approved=decision.approved)
        return call.step

    async def seen_by(self, user: UserId) -> AsyncGenerator[HeldCall, None]:
        """Yield every call that a user may see, oldest first."""
        last: HeldCall | None = None
        # Who may see others' calls without being named in them is known only by asking.
        owner = user if self.deciders.may_decide is None else None
        while page := await self.calls.page(last, _PAGE, owner=owner):
            for call in page:
                if await self.deciders.may_see(user, call):
                    yield call
            last = page[-1]

    async def resolve(
        self,
        approval_id: ApprovalId,
        user: UserId,
        known: Reconciled,
        *,
        reason: str | None,
        via: str,
    ) -> tuple[Ruling, HeldCall]:
        """Record what a person found out about a call whose end was not known.

        Raises:
            NotFound: the call does not exist for this user.
            NotYours: others decide it.
        """
        call = await self.visible(approval_id, user)
        if not await self.deciders.may_resolve(user, call):
            raise NotYours("This is not yours to resolve: ask who may decide the call.")
        verdict = Verdict(known.error is None, by=user, reason=reason, via=via)
        ruling, call = await self.calls.resolve(
            approval_id, verdict, result=jsonable(known.result), error=known.error
        )
        if ruling == "accepted":
            logger.info("call resolved", extra=call_ids(call))
        return ruling, call

    async def settle_orphans(self, chat_id: ChatId | None = None) -> Sequence[HeldCall]:
        """Settle the calls whose process died while it ran them; return what changed.

        A tool that can tell what it did is asked, and asked again later if it does not know; else
        nobody knows, and it is not run again.

        Args:
            chat_id: only this chat's; None: all, a few at a time.
        """
        return await settle_orphans(self.calls, self.policy, self.pauses, chat_id)


def _edit(decision: Decision, call: HeldCall, step: int) -> JsonObject | None:
    """Return the arguments to run instead of those shown, if there are any.

    Raises:
        BadRequest: the call may not run with them.
    """
    edited = decision.edited
    if edited is None:
        return None
    check_edit(call, edited, approved=decision.approved, step=step)
    return None if digest(edited) == call.arguments_hash else edited


def _check_remember(decision: Decision, call: HeldCall) -> None:
    if not decision.remember:
        return
    if not decision.approved or decision.edited is not None or not call.rememberable:
        raise BadRequest(
            "Only an approval of the call as it is can count for later calls, and only where the "
            'approval says "rememberable". Leave "remember" out.',
            code="not_rememberable",
        )


def _unknown() -> NotFound:
    return NotFound(
        "No such approval. Send the id that came with the request.", code="unknown_call"
    )


def _as_ruled(held: CallHeld, rule: ToolRule) -> CallHeld:
    """Return the request with who runs the tool as its rule says, whatever the payload says."""
    if held.kind not in {"tool", "browser"}:
        return held
    return dataclasses.replace(held, kind="browser" if rule.browser else "tool")


def _never_unasked(held: CallHeld, rule: ToolRule) -> CallHeld:
    """Return the request so that nothing runs unasked but what a rule lets the browser run."""
    if held.kind not in {"tool", "browser"}:
        return held
    unasked = held.kind == "browser" and rule.browser and not rule.approval
    return held if unasked else dataclasses.replace(held, approval=True)


def _hint(rule: ToolRule, held: CallHeld) -> str:
    # ADK's own words tell a developer what to send; a person needs none of that.
    asked_by_adk = held.hint.startswith(_ADK_HINT)
    return rule.hint or ("" if asked_by_adk else held.hint)


def _is_rememberable(rule: ToolRule, held: CallHeld) -> bool:
    # Only a gate of ADK's own can be opened by a policy.
    return rule.remember and held.kind == "tool" and held.hint.startswith(_ADK_HINT)


def _told(call: HeldCall) -> dict[str, str]:
    """Return what a span says of a call."""
    return {
        "chat": call.chat_id,
        "call": call.call_id,
        "approval": call.approval_id,
        "tool": call.tool_name,
    }


def _verdict(answer: Answer) -> str:
    if isinstance(answer, Decision):
        return "approved" if answer.approved else "denied"
    return "output"


def _opened(owner: UserId, now: float, arguments: JsonObject, *, rememberable: bool) -> JsonObject:
    told: JsonObject = {"at": now, "event": "open", "by": owner, "argumentsHash": digest(arguments)}
    return {**told, "rememberable": True} if rememberable else told


def call_ids(call: HeldCall) -> dict[str, object]:
    """Return what a log line says of a call."""
    return {
        "chat": call.chat_id,
        "call": call.call_id,
        "approval": call.approval_id,
        "tool": call.tool_name,
        "state": call.state.value,
    }
