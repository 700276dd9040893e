"""Who may see a held call, and who may decide it.

A call belongs to the person whose chat it is. Others come in by name, in one of its steps, or by
the app's own `may_decide`. Nothing is changed here.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adk_stream_protocol.errors import NotYours
from adk_stream_protocol.identifiers import UserId
from adk_stream_protocol.lifecycle import ApprovalStep, HeldCall

__all__ = ["Deciders", "MayDecide", "check_steps"]

MayDecide: TypeAlias = Callable[[str, HeldCall], "bool | Awaitable[bool]"]
"""Says whether a user may decide a call; asked on top of what the call's steps say."""


@dataclass(frozen=True, slots=True)
class Deciders:
    """The rules of who decides."""

    may_decide: MayDecide | None = None
    """The app's own; None: the owner, and who is named in a step."""

    async def may_see(self, user: UserId, call: HeldCall) -> bool:
        """Whether the call exists for this user."""
        if user == call.owner or any(user in step.by for step in call.steps):
            return True
        return self.may_decide is not None and await self._says(user, call)

    async def may_approve(self, user: UserId, call: HeldCall) -> bool:
        """Whether the user may approve what the call waits for now."""
        step = waiting_step(call)
        if user in call.step_approvers or (step.four_eyes and user == call.owner):
            return False
        if step.by and user not in step.by:
            return False
        if self.may_decide is not None:
            return await self._says(user, call)
        return bool(step.by) or user == call.owner

    async def may_deny(self, user: UserId, call: HeldCall) -> bool:
        """Whether the user may deny it: its owner, who approved a step of it, who may approve."""
        # Taking back is always safe; only letting through is not.
        if user == call.owner or user in call.step_approvers:
            return True
        return await self.may_approve(user, call)

    async def may_resolve(self, user: UserId, call: HeldCall) -> bool:
        """Whether the user may say how a call ended of which nobody knows.

        Whoever might have approved it, or a step of it; not its owner if another person had to.
        """
        steps = call.steps or (_ANYONE,)
        if user == call.owner and any(step.four_eyes for step in steps):
            return False
        if all(step.by and user not in step.by for step in steps):
            return False
        if self.may_decide is not None:
            return await self._says(user, call)
        return any(user in step.by or (not step.by and user == call.owner) for step in steps)

    async def check(self, user: UserId, call: HeldCall, *, approved: bool) -> None:
        """Return if the user may decide so.

        Raises:
            NotYours: they may not; the message says who may.
        """
        may = self.may_approve if approved else self.may_deny
        if not await may(user, call):
            raise NotYours(self._who_may(user, call))

    async def _says(self, user: UserId, call: HeldCall) -> bool:
        assert self.may_decide is not None
        said = self.may_decide(user, call)
        # Nothing but True lets through: an app's function may return what it found.
        return (await said if inspect.isawaitable(said) else said) is True

    def _who_may(self, user: UserId, call: HeldCall) -> str:
        step = waiting_step(call)
        what = f"the step {step.name!r} of {call.tool_name}" if step.name else call.tool_name
        if user in call.step_approvers:
            return f"You approved a step of {call.tool_name} before; {what} needs another person."
        if step.four_eyes and user == call.owner:
            return f"You asked for it yourself; {what} needs another person's approval{_of(step)}."
        if step.by and user not in step.by:
            return f"This is not yours to decide: {what} needs the approval{_of(step)}."
        return f"This is not yours to decide: ask who may approve {what}."


def waiting_step(call: HeldCall) -> ApprovalStep:
    """Return the step that the call waits for, or else the last."""
    if not call.steps:
        return _ANYONE
    return call.steps[min(call.step, len(call.steps) - 1)]


_ANYONE = ApprovalStep("")


def _of(step: ApprovalStep) -> str:
    return f" of {' or '.join(step.by)}" if step.by else ""


def check_steps(tool_name: str, steps: Sequence[ApprovalStep], *, open_to_others: bool) -> None:
    """Return if there can be somebody for each step.

    Args:
        tool_name: the tool, for the error.
        steps: its steps.
        open_to_others: whether the app says who else may decide.

    Raises:
        ValueError: a step could never be approved.
    """
    if open_to_others:
        return
    for step in steps:
        if step.four_eyes and not step.by:
            raise ValueError(
                f"Nobody could approve the step {step.name!r} of {tool_name}: it is not for the "
                "person whose chat it is, and names nobody else. Give the step `by=(...)`, or the "
                "app `may_decide=`."
            )
    people = [step.by or (_OWNER,) for step in steps]
    if not _each_by_another(people, frozenset()):
        raise ValueError(
            f"The steps of {tool_name} need {len(steps)} different people and name fewer. Name "
            "more in `by=(...)`, or give the app `may_decide=`."
        )


_OWNER = "\0the person whose chat it is"


def _each_by_another(people: Sequence[Sequence[str]], taken: frozenset[str]) -> bool:
    if not people:
        return True
    free = (person for person in people[0] if person not in taken)
    return any(_each_by_another(people[1:], taken | {person}) for person in free)
