"""Outputs of browser tools that come before a person has approved the call.

The first clients run a tool as soon as they see it. What it gave is nobody's business before the
approval: it is stored nowhere, and kept by the connection that brought it until the decision.
"""

from __future__ import annotations

from collections.abc import Mapping

from adk_stream_protocol.identifiers import ApprovalId, ChatId, UserId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.ports import Calls, Wake
from adk_stream_protocol.wire.frames import ToolResult

__all__ = ["EarlyOutputs"]


class EarlyOutputs:
    """What one connection brought too early: one output for each call that waits."""

    def __init__(self, calls: Calls, wake: Wake, *, user: UserId, look_seconds: float) -> None:
        self._calls = calls
        self._wake = wake
        self._user = user
        # How often a call is looked at without a hint: hints may be lost.
        self._look_seconds = look_seconds
        self._kept: set[ApprovalId] = set()

    async def call_of(self, result: ToolResult, chat_id: ChatId) -> HeldCall | None:
        """Return the call whose output comes before its approval; None: it is something else."""
        for call in reversed(await self._calls.of_chat(chat_id)):
            if call.call_id == result.call_id and call.owner == self._user:
                return call if _awaits_approval(call) and not _decides(result) else None
        return None

    def keep(self, call: HeldCall) -> bool:
        """Note that the output of a call is kept; False: one is already."""
        if call.approval_id in self._kept:
            return False
        self._kept.add(call.approval_id)
        return True

    async def until_decided(self, call: HeldCall) -> bool:
        """Wait for the decision on a call; return whether it was approved."""
        found: HeldCall | None = call
        while found is not None and found.state is CallState.PENDING:
            await self._wake.wait(call.approval_id, self._look_seconds)
            found = await self._calls.get(call.approval_id)
        self._kept.discard(call.approval_id)
        return found is not None and found.state is CallState.APPROVED


def _awaits_approval(call: HeldCall) -> bool:
    return call.kind is CallKind.BROWSER and call.state is CallState.PENDING


def _decides(result: ToolResult) -> bool:
    return isinstance(result.result, Mapping) and "approved" in result.result
