"""Asks tools what became of calls whose process died while it ran them.

A tool that does not know yet, or cannot be reached, is asked again, ever more rarely, for a day.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio

from adk_stream_protocol.errors import trace_of
from adk_stream_protocol.held_calls.policy import Policy, Reconciled
from adk_stream_protocol.identifiers import ApprovalId, ChatId
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.ports import Calls, Verdict
from adk_stream_protocol.wire.values import jsonable

__all__ = ["Pauses", "settle_orphans"]

logger = logging.getLogger(__name__)

_LONGEST_ANSWER: Final = 30.0
"""How long a tool may take to tell what a call of it did."""

_MOST_AT_ONCE: Final = 8
"""How many calls are asked about at a time, all at once: others must not wait for them all."""

_FIRST_PAUSE: Final = 5.0
_LONGEST_PAUSE: Final = 600.0
_PATIENCE: Final = 24 * 3600.0
"""How long after its decision a call is asked about again and again."""


@dataclass(slots=True)
class Pauses:
    """When each call may be asked about again. Dies with the process: then all are due."""

    asking: dict[ApprovalId, anyio.Event] = field(default_factory=dict)
    """The calls that are asked about right now; set when that is over."""
    _next: dict[ApprovalId, tuple[float, float]] = field(default_factory=dict)
    # The moment, by the loop's clock, and how long the pause before it is.

    def due(self, calls: Sequence[HeldCall]) -> list[HeldCall]:
        """Return those to ask about now, never asked ones first; the others are forgotten."""
        now = anyio.current_time()
        self._next = {
            call.approval_id: self._next[call.approval_id]
            for call in calls
            if call.approval_id in self._next
        }
        due = [call for call in calls if self._next.get(call.approval_id, (0.0, 0.0))[0] <= now]
        return sorted(due, key=lambda call: call.approval_id in self._next)

    def asked(self, call: HeldCall) -> None:
        """Note that a call is asked about."""
        _, pause = self._next.get(call.approval_id, (0.0, _FIRST_PAUSE / 2))
        pause = min(pause * 2, _LONGEST_PAUSE)
        self._next[call.approval_id] = (anyio.current_time() + pause, pause)


async def settle_orphans(
    calls: Calls, policy: Policy, pauses: Pauses, chat_id: ChatId | None = None
) -> Sequence[HeldCall]:
    """Settle the calls whose process died while it ran them; return what changed, as it stands.

    Args:
        calls: the rows.
        policy: which tools can be asked.
        pauses: when each call was asked about; not looked at for one chat, whose reply waits.
        chat_id: only calls of this chat; None: all.
    """
    lapsed = {call.approval_id: call for call in await calls.lapse_orphans(chat_id)}
    if not any(policy.rule(name).reconcile for name in {*policy.tools, *policy.carried}):
        return list(lapsed.values())
    unknown = {call.approval_id: call for call in await calls.unknown(_PATIENCE, chat_id)}
    unknown |= {name: call for name, call in lapsed.items() if call.state is CallState.UNKNOWN}
    asked = [call for call in unknown.values() if policy.rule(call.tool_name).reconcile]
    if chat_id is None:
        asked = pauses.due(asked)[:_MOST_AT_ONCE]
    changed = dict(lapsed)

    async def ask(call: HeldCall) -> None:
        under_way = pauses.asking.get(call.approval_id)
        if under_way is not None:
            # The sweeper and a chat's recovery may both come to it: whoever asks tells.
            await under_way.wait()
            return
        over = pauses.asking[call.approval_id] = anyio.Event()
        pauses.asked(call)
        try:
            known = await _reconciled(calls, policy, call)
        finally:
            del pauses.asking[call.approval_id]
            over.set()
        if known is not None:
            changed[call.approval_id] = known

    async with anyio.create_task_group() as asking:
        for call in asked:
            asking.start_soon(ask, call)
    return list(changed.values())


async def _reconciled(calls: Calls, policy: Policy, call: HeldCall) -> HeldCall | None:
    """Return the call as its tool knows that it ended; None: it does not, or did not say."""
    reconcile = policy.rule(call.tool_name).reconcile
    assert reconcile is not None
    try:
        with anyio.fail_after(_LONGEST_ANSWER):
            known = await reconcile(call.call_id)
        if known is None:
            return None
        if not isinstance(known, Reconciled):
            raise TypeError(f"reconcile returned {type(known).__name__}")  # noqa: TRY301
        by = Verdict(known.error is None, by="reconcile", via="tool")
        _, resolved = await calls.resolve(
            call.approval_id, by, result=jsonable(known.result), error=known.error
        )
    except Exception as error:  # noqa: BLE001  # the edge: whatever an app's own code raises
        ids = {
            "chat": call.chat_id,
            "call": call.call_id,
            "approval": call.approval_id,
            "tool": call.tool_name,
            "state": call.state.value,
        }
        logger.warning("call not reconciled: %s", trace_of(error), extra=ids)
        return None
    return resolved
