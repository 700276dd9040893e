"""Every order of events: three deciders, three instances, two crashes, and a process that sleeps.

What holds here holds for each order there is, not for those that a test thought of. The variants
that follow change one rule each, and lose money.
"""

from __future__ import annotations

from functools import cache, partial

import pytest

from adk_stream_protocol.lifecycle import TRANSITIONS, CallEvent
from model.call_model import (
    NEWEST_CLAIM,
    NOTHING_HAPPENED,
    ONE_EFFECT,
    Rules,
    World,
    broken_by,
    broken_in,
    starts,
    steps_of,
)
from model.explorer import Explored, explore

PLAIN = Rules(stalls=2)
IDEMPOTENT = Rules(idempotent=True)
APPROVED = ["a decider sends approve: accepted", "an instance takes the chat", "claim 1"]
RUN_AGAIN = ["an instance takes the chat", "claim 2"]
RELEASED = "the sweeper finds it left running: release"


@cache
def explored(rules: Rules, only: str | None = None) -> Explored[World]:
    return explore(
        starts(rules),
        partial(steps_of, rules=rules),
        broken_in=partial(broken_in, rules=rules, only=only),
        broken_by=broken_by,
    )


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(PLAIN, id="plain tool"),
        pytest.param(IDEMPOTENT, id="idempotent tool"),
        pytest.param(
            Rules(idempotent=True, most_runs=2, sends=1), id="idempotent tool that keeps dying"
        ),
    ],
)
def test_in_every_order_of_events_every_invariant_holds_and_the_call_is_settled(
    rules: Rules, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    found = explored(rules)
    with capsys.disabled():
        kind = request.node.callspec.id
        print(f"\n{kind}: {found.states:,} states, {found.steps:,} steps")  # noqa: T201  # measured
    assert found.violation is None, str(found.violation)
    assert found.comes_to_an_end
    assert all(not TRANSITIONS[end.state] for end in found.ends)


def test_the_model_meets_what_it_is_about() -> None:
    plain, idempotent = explored(PLAIN), explored(IDEMPOTENT)
    for found in (plain, idempotent):
        assert {
            *(f"a decider sends approve: {each}" for each in ("accepted", "repeat", "conflict")),
            *(f"a decider sends deny: {each}" for each in ("accepted", "repeat", "conflict")),
            *(f"an instance that is {each} is killed" for each in ("leased", "claimed", "ran")),
            "an instance may not claim",
            "finish under claim 1 is ignored",
            "its time is over",
            "the chat is stopped: cancel",
        } <= found.happened
    assert "the tool runs under claim 2" not in plain.happened
    assert "a person says what happened: resolve_failed" in plain.happened
    assert f"the sweeper finds it left running: {CallEvent.LAPSE}" not in idempotent.happened
    # Two crashes and a sleep: the call is started a fourth time.
    assert "the tool runs under claim 4" in idempotent.happened


def test_running_a_plain_tool_at_least_once_charges_twice() -> None:
    violation = explored(Rules(at_least_once=True), ONE_EFFECT).violation
    assert violation is not None
    # The shortest of all ways: nobody even died, a process slept for too long.
    assert violation.trace == [
        *APPROVED,
        "the tool runs under claim 1",
        "an instance that is ran sleeps; its lease lapses",
        RELEASED,
        *RUN_AGAIN,
        "the tool runs under claim 2",
    ]


def test_running_a_plain_tool_at_least_once_charges_twice_after_one_crash() -> None:
    violation = explored(Rules(at_least_once=True, stalls=0), ONE_EFFECT).violation
    assert violation is not None
    assert violation.trace == [
        *APPROVED,
        "the tool runs under claim 1",
        "an instance that is ran is killed",
        "the lease of the dead lapses",
        RELEASED,
        *RUN_AGAIN,
        "the tool runs under claim 2",
    ]


def test_without_the_fence_a_process_that_slept_ends_another_ones_run() -> None:
    violation = explored(Rules(idempotent=True, fenced=False)).violation
    assert violation is not None
    assert violation.rule == NEWEST_CLAIM
    assert violation.trace == [
        *APPROVED,
        "an instance that is claimed sleeps; its lease lapses",
        RELEASED,
        *RUN_AGAIN,
        "fail under claim 1",
    ]


def test_a_key_for_each_claim_is_no_key() -> None:
    violation = explored(Rules(idempotent=True, key_per_claim=True)).violation
    assert violation is not None
    assert violation.rule == ONE_EFFECT
    assert violation.trace[-1] == "the tool runs under claim 2"


def test_cancelling_a_call_that_was_released_hides_what_happened() -> None:
    violation = explored(Rules(idempotent=True, cancels_what_began=True)).violation
    assert violation is not None
    assert violation.rule == NOTHING_HAPPENED
    assert violation.trace == [
        *APPROVED,
        "the tool runs under claim 1",
        "an instance that is ran sleeps; its lease lapses",
        RELEASED,
        "the chat is stopped: cancel",
    ]
