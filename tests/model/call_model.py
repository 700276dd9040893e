"""One held call, the people who decide it and the instances that run it, as a model.

Everything that the stores do in one statement is one step here; everything else, such as a tool's
effect and the record of it, are two, and anything can happen in between. Where a step leads comes
from the lifecycle's own table, and what a decider is told from the stores' own rulings.

People and instances of equal standing are interchangeable, so they are kept sorted: states that
differ only in who is who count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from adk_stream_protocol.identifiers import ApprovalId, CallId, ChatId, InvocationId, UserId
from adk_stream_protocol.lifecycle import (
    CallEvent,
    CallState,
    HeldCall,
    next_state,
)
from adk_stream_protocol.ports import Ruling, Verdict
from adk_stream_protocol.stores.rulings import MOST_RUNS, verdict_ruling

__all__ = [
    "NEWEST_CLAIM",
    "NOTHING_HAPPENED",
    "ONE_EFFECT",
    "Decider",
    "Rules",
    "Worker",
    "World",
    "broken_by",
    "broken_in",
    "starts",
    "steps_of",
]

_T = TypeVar("_T", "Decider", "Worker")
Place: TypeAlias = Literal["idle", "leased", "claimed", "ran"]


@dataclass(frozen=True)
class Rules:
    """How the model plays; the defaults are ours."""

    idempotent: bool = False
    """The tool's effect under a key it has seen is none."""
    at_least_once: bool = False
    """A plain tool whose process died runs again."""
    fenced: bool = True
    """A result counts only under the newest claim."""
    key_per_claim: bool = False
    """An idempotent tool gets a new key each time it runs, instead of its call's id."""
    cancels_what_began: bool = False
    """Stop also cancels a call that was released to run again."""
    most_runs: int = MOST_RUNS
    """How often an idempotent call is started at most."""
    deciders: int = 3
    sends: int = 2
    """How often each decider sends the decision, as a client that repeats a request."""
    workers: int = 3
    crashes: int = 2
    stalls: int = 1
    """How often a living process loses its lease, because it was paused for too long."""


class Decider(NamedTuple):
    """A person, or a client that repeats itself."""

    approves: bool
    told: tuple[Ruling, ...] = ()
    """What came of each time that the decision was sent; all carry the same decision id."""


class Worker(NamedTuple):
    """An instance of the server."""

    place: Place = "idle"
    fence: int = 0
    """Of its claim; 0 without one."""
    leased: bool = False
    """The chat is its own. A dead or paused process keeps that until the lease lapses."""
    alive: bool = True

    @property
    def in_window(self) -> bool:
        """Whether it has claimed the call and not said how it ended."""
        return self.place in {"claimed", "ran"}


class World(NamedTuple):
    """One state of the model; the last fields only remember, for the invariants."""

    deciders: tuple[Decider, ...]
    workers: tuple[Worker, ...]
    state: CallState = CallState.PENDING
    fence: int = 0
    crashes: int = 0
    stalls: int = 0
    verdict: bool | None = None
    """None until decided."""
    claims: int = 0
    effects: frozenset[int] = frozenset()
    """The keys under which the effect happened; a plain tool's every run has its own."""
    runs: int = 0
    ended_under: int = 0
    """The fence of the claim whose result was recorded; 0 until then."""
    settled_by_person: bool = False


def starts(rules: Rules) -> list[World]:
    """Return a world for each way in which the deciders may be minded."""
    minds = combinations_with_replacement((False, True), rules.deciders)
    workers = (Worker(),) * rules.workers
    return [World(tuple(Decider(mind) for mind in each), workers) for each in minds]


# What can happen


def steps_of(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Yield everything that can happen next."""
    yield from _decisions(world, rules)
    yield from _settlings(world, rules)
    seen: set[Worker] = set()
    for worker in world.workers:
        if worker not in seen:
            seen.add(worker)
            yield from _work(world, rules, worker)
            yield from _failures(world, rules, worker)


def _decisions(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    for decider in dict.fromkeys(world.deciders):
        if len(decider.told) == rules.sends:
            continue
        event = CallEvent.APPROVE if decider.approves else CallEvent.DENY
        if world.state is CallState.PENDING:
            ruling: Ruling = "accepted"
            after = _after(world, event, verdict=decider.approves)
        else:
            ruling = _ruling(world.state, decider.approves, "accepted" in decider.told)
            after = world
        told = decider._replace(told=(*decider.told, ruling))
        others = _swapped(after.deciders, decider, told)
        yield f"a decider sends {event}: {ruling}", after._replace(deciders=others)


def _settlings(world: World, rules: Rules) -> Iterator[tuple[str, World]]:
    """Yield what time, the chat's owner, the sweeper and a person who knows do to the call."""
    if world.state is CallState.PENDING:
        yield "its time is over", _after(world, CallEvent.EXPIRE)
    if world.state in {CallState.PENDING, CallState.APPROVED}:
        began = world.fence > 0 and not rules.cancels_what_began
        event = CallEvent.LAPSE if began else CallEvent.CANCEL
        yield f"the chat is stopped: {event}", _after(world, event)
    if world.state is CallState.RUNNING and not _holder(world).leased:
        again = rules.idempotent and world.fence < rules.most_runs
        event = CallEvent.RELEASE if again or rules.at_least_once else CallEvent.LAPSE
        yield f"the sweeper finds it left running: {event}", _after(world, event)
    if world.state is CallState.UNKNOWN:
        # Whoever resolves it has looked at what really happened.
        event = CallEvent.RESOLVE_DONE if world.effects else CallEvent.RESOLVE_FAILED
        yield f"a person says what happened: {event}", _after(world, event, settled_by_person=True)


def _work(world: World, rules: Rules, worker: Worker) -> Iterator[tuple[str, World]]:
    if not worker.alive:
        return
    match worker.place:
        case "idle":
            free = not any(other.leased for other in world.workers)
            if free and world.state is CallState.APPROVED:
                taken = worker._replace(place="leased", leased=True)
                yield "an instance takes the chat", _with(world, worker, taken)
        case "leased":
            yield _claim(world, worker)
        case "claimed":
            # A key is an effect; running again under the same one changes nothing.
            by_call = rules.idempotent and not rules.key_per_claim
            keys = world.effects | {0 if by_call else world.runs + 1}
            ran = world._replace(effects=keys, runs=world.runs + 1)
            step = _with(ran, worker, worker._replace(place="ran"))
            yield f"the tool runs under claim {worker.fence}", step
            yield _end(world, rules, worker, CallEvent.FAIL)
        case "ran":
            yield _end(world, rules, worker, CallEvent.FINISH)
            yield _end(world, rules, worker, CallEvent.FAIL)


def _failures(world: World, rules: Rules, worker: Worker) -> Iterator[tuple[str, World]]:
    if worker.alive and world.crashes < rules.crashes:
        killed = world._replace(crashes=world.crashes + 1)
        label = f"an instance that is {worker.place} is killed"
        yield label, _with(killed, worker, worker._replace(alive=False))
    if not worker.leased:
        return
    lost = worker._replace(leased=False)
    if not worker.alive:
        yield "the lease of the dead lapses", _with(world, worker, lost)
    elif world.stalls < rules.stalls:
        stalled = world._replace(stalls=world.stalls + 1)
        label = f"an instance that is {worker.place} sleeps; its lease lapses"
        yield label, _with(stalled, worker, lost)


def _claim(world: World, worker: Worker) -> tuple[str, World]:
    if world.state is not CallState.APPROVED or not worker.leased:
        return "an instance may not claim", _with(world, worker, Worker())
    fence = world.fence + 1
    claimed = _after(world, CallEvent.CLAIM, fence=fence, claims=world.claims + 1)
    return f"claim {fence}", _with(claimed, worker, worker._replace(place="claimed", fence=fence))


def _end(world: World, rules: Rules, worker: Worker, event: CallEvent) -> tuple[str, World]:
    current = world.fence == worker.fence or not rules.fenced
    idle = _with(world, worker, Worker())
    if world.state is not CallState.RUNNING or not current:
        return f"{event} under claim {worker.fence} is ignored", idle
    ended = _after(idle, event, ended_under=worker.fence)
    return f"{event} under claim {worker.fence}", ended


def _holder(world: World) -> Worker:
    """Return who has the newest claim; one that went on to something else has no lease for it."""
    for worker in world.workers:
        if worker.in_window and worker.fence == world.fence:
            return worker
    return Worker()


def _after(world: World, event: CallEvent, **more: object) -> World:
    return world._replace(state=next_state(world.state, event), **more)  # type: ignore[arg-type]  # fields of the world


def _with(world: World, worker: Worker, changed: Worker) -> World:
    return world._replace(workers=_swapped(world.workers, worker, changed))


def _swapped(among: tuple[_T, ...], old: _T, new: _T) -> tuple[_T, ...]:
    left = list(among)
    left[left.index(old)] = new
    return tuple(sorted(left))


@cache
def _ruling(state: CallState, approves: bool, is_mine: bool) -> Ruling:
    """Return what the stores answer to a decision on a call that is decided."""
    call = HeldCall(
        approval_id=ApprovalId("a"),
        call_id=CallId("c"),
        owner=UserId("ann"),
        chat_id=ChatId("chat"),
        invocation_id=InvocationId("e-1"),
        tool_name="pay",
        arguments={},
        arguments_hash="",
        created_at=0.0,
        expires_at=1.0,
        state=state,
        decision_id="mine" if is_mine else "another",
    )
    return verdict_ruling(call, Verdict(approves, by="ann", decision_id="mine"))


# What must hold


Invariant: TypeAlias = Callable[[World, Rules], bool]

_NEVER_RAN = {CallState.PENDING, CallState.DENIED, CallState.EXPIRED, CallState.CANCELLED}


def _one_effect(world: World, _rules: Rules) -> bool:
    return len(world.effects) <= 1


def _effect_of_what_was_approved(world: World, _rules: Rules) -> bool:
    return not world.effects or world.verdict is True


def _no_effect_without_a_run(world: World, _rules: Rules) -> bool:
    return not (world.state in _NEVER_RAN and world.effects)


def _one_claim_per_fence(world: World, _rules: Rules) -> bool:
    fences = [worker.fence for worker in world.workers if worker.in_window]
    return world.claims == world.fence and len(fences) == len(set(fences))


def _ended_under_the_newest_claim(world: World, _rules: Rules) -> bool:
    return world.ended_under in {0, world.fence}


def _done_means_that_it_happened(world: World, _rules: Rules) -> bool:
    return world.state is not CallState.DONE or len(world.effects) == 1


def _what_died_in_the_window_is_unknown(world: World, rules: Rules) -> bool:
    """A plain call whose runner died waits for the sweeper or is unknown, until a person says."""
    if rules.idempotent or world.settled_by_person:
        return True
    dead = any(worker.in_window and not worker.alive for worker in world.workers)
    return not dead or world.state in {CallState.RUNNING, CallState.UNKNOWN}


def _one_decision_counts(world: World, _rules: Rules) -> bool:
    told = [ruling for decider in world.deciders for ruling in decider.told]
    return told.count("accepted") == (world.verdict is not None)


def _nobody_is_told_a_lie(world: World, _rules: Rules) -> bool:
    """Who hears `accepted` or `repeat` wanted what was decided; the same id again is a repeat."""
    for decider in world.deciders:
        agrees = decider.approves is world.verdict
        if not agrees and {"accepted", "repeat"} & set(decider.told):
            return False
        if "accepted" in decider.told and decider.told[1:] not in {(), ("repeat",)}:
            return False
    return True


ONE_EFFECT = "there is at most one effect"
NOTHING_HAPPENED = "denied, expired or cancelled means that nothing happened"
NEWEST_CLAIM = "a result counts only under the newest claim"
INVARIANTS: dict[str, Invariant] = {
    ONE_EFFECT: _one_effect,
    "only what was approved has an effect": _effect_of_what_was_approved,
    NOTHING_HAPPENED: _no_effect_without_a_run,
    "there is one claim for each fence": _one_claim_per_fence,
    NEWEST_CLAIM: _ended_under_the_newest_claim,
    "done means that it happened, once": _done_means_that_it_happened,
    "what died in the window is unknown": _what_died_in_the_window_is_unknown,
    "one decision counts": _one_decision_counts,
    "nobody is told a lie": _nobody_is_told_a_lie,
}
VERDICT_STAYS = "a verdict does not change"


def broken_in(world: World, rules: Rules, only: str | None = None) -> str | None:
    """Return the first rule that does not hold, or None; looks at one only if it is named."""
    for rule, holds in INVARIANTS.items():
        if only in {None, rule} and not holds(world, rules):
            return rule
    return None


def broken_by(before: World, after: World) -> str | None:
    """Return the rule that a step breaks, or None."""
    changed = before.verdict is not None and after.verdict is not before.verdict
    return VERDICT_STAYS if changed else None
