"""Visits every state that a model can reach, the nearest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Explored", "Violation", "explore"]

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Violation:
    """The first rule that was broken, and the shortest way there."""

    rule: str
    trace: Sequence[str]

    def __str__(self) -> str:
        return "\n".join([f"broken: {self.rule}", *self.trace])


@dataclass(frozen=True)
class Explored(Generic[State]):
    """What was found; up to the first violation if there is one."""

    states: int
    steps: int
    ends: Sequence[State]
    """The states in which nothing more can happen."""
    happened: frozenset[str]
    """Everything that can happen, somewhere."""
    comes_to_an_end: bool
    """No state can be reached again from itself, so every path ends in one of `ends`."""
    violation: Violation | None


def explore(
    starts: Iterable[State],
    steps_of: Callable[[State], Iterable[tuple[str, State]]],
    *,
    broken_in: Callable[[State], str | None],
    broken_by: Callable[[State, State], str | None],
) -> Explored[State]:
    """Visit every reachable state and step, breadth first, up to the first violation.

    Args:
        starts: the states to begin in.
        steps_of: all that can happen next in a state: what, and where it leads.
        broken_in: the rule that a state breaks, or None.
        broken_by: the rule that a step from one state to another breaks, or None.
    """
    # How each state was first reached; None for a start.
    came_by: dict[State, tuple[State, str] | None] = dict.fromkeys(starts)
    leads_to: dict[State, list[State]] = {}
    happened: set[str] = set()
    violation = next((Violation(rule, []) for start in came_by if (rule := broken_in(start))), None)
    waiting = deque(came_by)
    while waiting and violation is None:
        state = waiting.popleft()
        leads_to[state] = []
        for label, following in steps_of(state):
            leads_to[state].append(following)
            happened.add(label)
            rule = broken_by(state, following)
            if following not in came_by:
                came_by[following] = (state, label)
                waiting.append(following)
                rule = rule or broken_in(following)
            if rule is not None and violation is None:
                violation = Violation(rule, [*_trace(came_by, state), label])
    return Explored(
        states=len(came_by),
        steps=sum(map(len, leads_to.values())),
        ends=[state for state, following in leads_to.items() if not following],
        happened=frozenset(happened),
        comes_to_an_end=violation is None and _has_no_circle(leads_to),
        violation=violation,
    )


def _trace(came_by: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    labels: list[str] = []
    while (came := came_by[state]) is not None:
        state, label = came
        labels.append(label)
    return labels[::-1]


def _has_no_circle(leads_to: dict[State, list[State]]) -> bool:
    """Whether the states can all be taken away, each after those that lead to it."""
    leading = dict.fromkeys(leads_to, 0)
    for following in leads_to.values():
        for state in following:
            leading[state] += 1
    free = [state for state, count in leading.items() if not count]
    taken = 0
    while free:
        taken += 1
        for state in leads_to[free.pop()]:
            leading[state] -= 1
            if not leading[state]:
                free.append(state)
    return taken == len(leads_to)
