from __future__ import annotations

import dataclasses
from collections.abc import Awaitable

import pytest

from adk_stream_protocol.errors import NotYours
from adk_stream_protocol.held_calls.deciders import Deciders, check_steps
from adk_stream_protocol.identifiers import UserId
from adk_stream_protocol.lifecycle import ApprovalStep, HeldCall
from translation.builders import held_call

pytestmark = pytest.mark.anyio

ANN, BOB, CAROL, DAVE = map(UserId, ("ann", "bob", "carol", "dave"))
MANAGER = ApprovalStep("manager", by=("bob", "dave"))
FINANCE = ApprovalStep("finance", by=("carol", "ann"), four_eyes=True)


def stepped(*steps: ApprovalStep, approved_by: tuple[str, ...] = ()) -> HeldCall:
    """Return ann's call, some of its steps approved."""
    trail = tuple({"event": "step", "by": name} for name in approved_by)
    return dataclasses.replace(held_call(), steps=steps, step=len(approved_by), trail=trail)


async def approvers(deciders: Deciders, call: HeldCall) -> set[str]:
    return {user for user in (ANN, BOB, CAROL, DAVE) if await deciders.may_approve(user, call)}


async def seers(deciders: Deciders, call: HeldCall) -> set[str]:
    return {user for user in (ANN, BOB, CAROL, DAVE) if await deciders.may_see(user, call)}


async def test_a_plain_call_is_its_owners_alone() -> None:
    assert await approvers(Deciders(), held_call()) == {"ann"}
    assert await seers(Deciders(), held_call()) == {"ann"}


async def test_any_of_those_named_may_approve_a_step_and_nobody_else() -> None:
    call = stepped(MANAGER, FINANCE)
    assert await approvers(Deciders(), call) == {"bob", "dave"}
    assert await seers(Deciders(), call) == {"ann", "bob", "carol", "dave"}


async def test_four_eyes_keep_the_owner_out_though_named() -> None:
    assert await approvers(Deciders(), stepped(FINANCE)) == {"carol"}


async def test_each_step_is_for_another_person() -> None:
    again = ApprovalStep("again", by=("bob", "dave"))
    call = stepped(MANAGER, again, approved_by=("bob",))
    assert await approvers(Deciders(), call) == {"dave"}


async def test_a_step_that_names_nobody_is_the_owners() -> None:
    assert await approvers(Deciders(), stepped(ApprovalStep("own"))) == {"ann"}


async def test_may_decide_opens_a_call_to_others_within_its_steps() -> None:
    def carol_or_bob(user: str, call: HeldCall) -> bool:
        return user in {"carol", "bob"} and call.tool_name == "pay"

    deciders = Deciders(carol_or_bob)
    assert await approvers(deciders, held_call()) == {"bob", "carol"}
    assert await seers(deciders, held_call()) == {"ann", "bob", "carol"}
    assert await approvers(deciders, stepped(MANAGER)) == {"bob"}
    assert await approvers(deciders, stepped(ApprovalStep("other", four_eyes=True))) == {
        "bob",
        "carol",
    }


async def test_may_decide_may_be_awaited_and_only_true_counts() -> None:
    async def awaited(user: str, _call: HeldCall) -> bool:
        return user == "dave"

    def found(_user: str, _call: HeldCall) -> bool | Awaitable[bool]:
        return "a row"  # type: ignore[return-value]  # what careless code returns

    assert await approvers(Deciders(awaited), held_call()) == {"dave"}
    assert await approvers(Deciders(found), held_call()) == set()


async def test_the_owner_and_who_approved_a_step_may_always_deny() -> None:
    call = stepped(MANAGER, FINANCE, approved_by=("bob",))
    deniers = {user for user in (ANN, BOB, CAROL, DAVE) if await Deciders().may_deny(user, call)}
    assert deniers == {"ann", "bob", "carol"}


OWN = ApprovalStep("own")
OTHERS = ApprovalStep("others", four_eyes=True)


@pytest.mark.parametrize(
    ("steps", "alone", "with_dave"),
    [
        ((), {"ann"}, {"dave"}),
        ((MANAGER,), {"bob", "dave"}, {"dave"}),
        # Ann is named, and another person had to agree to what she asked for.
        ((MANAGER, FINANCE), {"bob", "carol", "dave"}, {"dave"}),
        ((OWN, FINANCE), {"carol"}, {"dave"}),
        ((OWN, MANAGER), {"ann", "bob", "dave"}, {"dave"}),
        ((OTHERS,), set(), {"dave"}),
        ((ApprovalStep("finance", by=("carol",)),), {"carol"}, set()),
    ],
)
async def test_a_call_of_unknown_end_is_resolved_by_who_might_have_approved_it(
    steps: tuple[ApprovalStep, ...], alone: set[str], with_dave: set[str]
) -> None:
    call = stepped(*steps, approved_by=("bob",) * bool(steps))

    async def may(deciders: Deciders) -> set[str]:
        return {one for one in (ANN, BOB, CAROL, DAVE) if await deciders.may_resolve(one, call)}

    assert await may(Deciders()) == alone
    assert await may(Deciders(lambda user, _: user == "dave")) == with_dave
    assert ANN not in await may(Deciders(lambda *_: True)) or not any(s.four_eyes for s in steps)


@pytest.mark.parametrize(
    ("user", "call", "told"),
    [
        (CAROL, stepped(MANAGER), "the step 'manager' of pay needs the approval of bob or dave"),
        (ANN, stepped(FINANCE), "You asked for it yourself"),
        (BOB, stepped(MANAGER, FINANCE, approved_by=("bob",)), "'finance' of pay needs another"),
        (BOB, held_call(), "ask who may approve pay"),
    ],
)
async def test_who_may_not_is_told_who_may(user: UserId, call: HeldCall, told: str) -> None:
    with pytest.raises(NotYours, match=told):
        await Deciders().check(user, call, approved=True)


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (ApprovalStep("own"),),
        (MANAGER, FINANCE),
        (ApprovalStep("one", by=("bob",)), ApprovalStep("other", by=("bob", "dave"))),
        (ApprovalStep("one", by=("bob", "dave")), ApprovalStep("other", by=("bob",))),
    ],
)
def test_steps_that_different_people_can_approve_are_taken(steps: tuple[ApprovalStep, ...]) -> None:
    check_steps("pay", steps, open_to_others=False)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((ApprovalStep("other", four_eyes=True),), "Nobody could approve the step 'other' of pay"),
        ((ApprovalStep("a"), ApprovalStep("b")), "need 2 different people"),
        ((ApprovalStep("a", by=("bob",)), ApprovalStep("b", by=("bob",))), "need 2 different"),
    ],
)
def test_steps_that_nobody_could_approve_are_refused_unless_the_app_lets_others_in(
    steps: tuple[ApprovalStep, ...], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        check_steps("pay", steps, open_to_others=False)
    check_steps("pay", steps, open_to_others=True)
