"""Approvals in steps and by others: who sees a call, who may decide it, what the chat shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import ApprovalStep, ToolRule, create_app
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.stores.sql import sqlite_stores
from support.conformance import SDK_VERSIONS, SdkVersion, StockChat
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio

STEPS = (
    ApprovalStep("manager", by=("bob", "dave")),
    ApprovalStep("finance", by=("carol", "bob", "alice"), four_eyes=True),
)
RULE = ToolRule(steps=STEPS)


@asynccontextmanager
async def two_steps(kind: str, folder: Path, **more: Any) -> AsyncIterator[Stage]:
    stores = None if kind == "memory" else sqlite_stores(str(folder / "stores.db"))
    async with staged(rules={"pay": RULE}, stores=stores, **more) as stage:
        yield stage


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    async with two_steps(request.param, tmp_path) as stage:
        yield stage


async def decide(
    stage: Stage, approval_id: str, user: str, approved: bool = True, **more: object
) -> httpx.Response:
    return await stage.http.post(
        f"/api/approvals/{approval_id}",
        json={"approved": approved, **more},
        headers={"x-user": user},
    )


async def listed(stage: Stage, user: str, query: str = "?status=pending") -> list[str]:
    answer = await stage.http.get(f"/api/approvals{query}", headers={"x-user": user})
    return [approval["id"] for approval in answer.json()["approvals"]]


async def told(stage: Stage, text: str) -> Answered:
    """Return the newest reply once it has said something."""
    with anyio.fail_after(10):
        while text not in (reply := Answered.of(await stage.http.get("/api/chat/c/stream"))).text:
            await anyio.lowlevel.checkpoint()
    return reply


async def test_the_tool_runs_when_each_step_is_approved_by_another_person(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    (pay,) = asked.approvals
    (card,) = asked.only("data-approval")
    assert card["data"]["step"] == {"n": 1, "of": 2, "name": "manager", "by": ["bob", "dave"]}
    assert "approvedBy" not in card["data"]

    first = await decide(stage, pay, "bob", reason="fits the budget")
    assert (first.status_code, first.json()["status"]) == (200, "pending")
    assert first.json()["step"] == {
        "n": 2, "of": 2, "name": "finance", "by": ["carol", "bob", "alice"], "fourEyes": True,
    }  # fmt: skip
    assert first.json()["approvedBy"] == ["bob"]
    assert stage.payments == []

    second = await decide(stage, pay, "carol")
    assert (second.status_code, second.json()["status"]) == (200, "approved")
    assert second.json()["approvedBy"] == ["bob", "carol"]
    assert second.json()["decidedBy"] == "carol"
    await told(stage, "Result told.")
    assert stage.payments == [5]


async def test_an_inbox_holds_what_waits_for_its_owner_now(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    assert await listed(stage, "alice") == [pay]
    assert (await listed(stage, "bob"), await listed(stage, "carol")) == ([pay], [])
    await decide(stage, pay, "bob")
    assert (await listed(stage, "bob"), await listed(stage, "carol")) == ([], [pay])
    assert await listed(stage, "carol", "?status=done") == []
    assert await listed(stage, "mallory") == []


async def test_who_is_not_named_does_not_know_the_call_and_who_is_may_have_to_wait(
    stage: Stage,
) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    foreign = await decide(stage, pay, "mallory")
    unknown = await decide(stage, "adk-none", "mallory")
    assert (foreign.status_code, unknown.status_code) == (404, 404)
    assert foreign.json()["error"]["message"] == unknown.json()["error"]["message"]
    for user in ("alice", "carol"):
        refused = await decide(stage, pay, user)
        assert refused.status_code == 403
        assert refused.json()["error"]["code"] == "not_yours"
        assert "the approval of bob or dave" in refused.json()["error"]["message"]
    await decide(stage, pay, "bob")
    for user, why in (("alice", "You asked for it yourself"), ("dave", "of carol or bob")):
        refused = await decide(stage, pay, user)
        assert refused.status_code == 403
        assert why in refused.json()["error"]["message"]
    assert stage.payments == []


async def test_the_same_person_cannot_take_two_steps_and_a_double_click_is_a_repeat(
    stage: Stage,
) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    for _ in range(3):
        again = await decide(stage, pay, "bob", decisionId="bobs")
        assert (again.status_code, again.json()["status"]) == (200, "pending")
        assert again.json()["approvedBy"] == ["bob"]
    assert stage.payments == []


async def test_only_one_of_two_who_approve_a_step_at_once_counts(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    answers: dict[str, httpx.Response] = {}

    async def approve(user: str) -> None:
        answers[user] = await decide(stage, pay, user)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(approve, "bob")
        tasks.start_soon(approve, "dave")
    # Bob is named in both steps: if dave was first, his approval is of the second.
    shown = (await stage.http.get(f"/api/approvals/{pay}")).json()
    if answers["dave"].status_code == 200:
        assert shown["approvedBy"] == ["dave", "bob"]
    else:
        assert (answers["dave"].status_code, shown["approvedBy"]) == (403, ["bob"])


async def test_the_owner_may_withdraw_and_a_step_may_be_denied(stage: Stage) -> None:
    both = (await stage.say("c", "pay both")).approvals
    await decide(stage, both[0], "bob")
    withdrawn = await decide(stage, both[0], "alice", approved=False, reason="changed my mind")
    denied = await decide(stage, both[1], "dave", approved=False)
    assert [answer.json()["status"] for answer in (withdrawn, denied)] == ["denied", "denied"]
    assert withdrawn.json()["decidedBy"] == "alice"
    assert "approvedBy" in withdrawn.json()
    await told(stage, "Both told.")
    resumed = Answered.of(await stage.http.get("/api/chat/c/stream?sdk=7"))
    assert len(resumed.only("tool-output-denied")) == 2
    assert stage.payments == []


async def test_a_step_approved_elsewhere_changes_the_card_on_reload_and_resume(
    stage: Stage,
) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    await decide(stage, pay, "bob")
    resumed = Answered.of(await stage.http.get("/api/chat/c/stream"))
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    (loaded,) = [part for part in messages[1]["parts"] if part["type"] == "data-approval"]
    for card in (resumed.only("data-approval")[-1]["data"], loaded["data"]):
        assert (card["status"], card["step"]["name"]) == ("pending", "finance")
        assert card["approvedBy"] == ["bob"]


CLIENTS = [
    *((sdk, "/api/chat") for sdk in SDK_VERSIONS),
    *((sdk, "/api/chat?sdk=7") for sdk in SDK_VERSIONS if sdk.startswith("ai7")),
]


@pytest.mark.parametrize(("sdk", "path"), CLIENTS)
async def test_a_stock_client_that_approves_what_others_decide_is_asked_again(
    tmp_path: Path, sdk: SdkVersion, path: str
) -> None:
    async with (
        two_steps("memory", tmp_path) as stage,
        StockChat(f"{stage.url}{path}", sdk, chat_id="c") as chat,
    ):
        asked = await chat.send("pay 5")
        (pay,) = asked.open_approvals
        refused = await chat.approve(pay)
        assert (refused.status, refused.requests) == ("ready", 2)
        assert refused.open_approvals == [pay]
        await decide(stage, pay, "bob")
        again = await chat.approve(pay)
        assert (again.status, again.requests) == ("ready", 3)
        assert again.open_approvals == [pay]
        (card,) = [part for part in again.last["parts"] if part["type"] == "data-approval"]
        shown: Any = card["data"]
        assert (shown["step"]["name"], shown["approvedBy"]) == ("finance", ["bob"])
        assert stage.payments == []
        await decide(stage, pay, "carol")
        await told(stage, "Result told.")
        state = await chat.approve(pay)
    assert [part["state"] for part in state.tool_parts] == ["output-available"]
    assert state.text == "Paying. Result told."
    assert (state.status, state.requests) == ("ready", 4)
    assert stage.payments == [5]


@pytest.mark.parametrize("sdk", SDK_VERSIONS)
async def test_a_stock_client_may_be_one_of_those_who_approve(sdk: SdkVersion) -> None:
    steps = (ApprovalStep("own"), ApprovalStep("manager", by=("bob",)))
    async with (
        staged(rules={"pay": ToolRule(steps=steps)}) as stage,
        StockChat(f"{stage.url}/api/chat", sdk, chat_id="c") as chat,
    ):
        asked = await chat.send("pay 5")
        (pay,) = asked.open_approvals
        mine = await chat.approve(pay)
        assert (mine.open_approvals, mine.requests) == ([pay], 2)
        shown = (await stage.http.get(f"/api/approvals/{pay}")).json()
        assert (shown["approvedBy"], shown["step"]["n"]) == (["alice"], 2)
        assert (await decide(stage, pay, "bob")).json()["status"] == "approved"
        await told(stage, "Result told.")
    assert stage.payments == [5]


@pytest.mark.parametrize("sdk", SDK_VERSIONS)
async def test_a_confirmation_tool_is_asked_again_too(tmp_path: Path, sdk: SdkVersion) -> None:
    async with (
        two_steps("memory", tmp_path) as stage,
        StockChat(f"{stage.url}/stream", sdk, auto="tools", chat_id="c") as chat,
    ):
        asked = await chat.send("pay 5")
        confirmation = asked.tool_parts[-1]["toolCallId"]
        refused = await chat.output(
            "adk_request_confirmation", confirmation, output={"confirmed": True}
        )
        assert (refused.status, refused.requests) == ("ready", 2)
        assert refused.tool_parts[-1]["state"] == "input-available"
        assert stage.payments == []


async def test_one_call_that_waits_for_others_holds_back_its_sibling(tmp_path: Path) -> None:
    async with (
        two_steps("memory", tmp_path) as stage,
        StockChat(f"{stage.url}/api/chat", auto="both", chat_id="c") as chat,
    ):
        asked = await chat.send("pay and play")
        call_id = asked.tool_parts[1]["toolCallId"]
        await chat.output("change_bgm", call_id, output={"playing": "rock"})
        state = await chat.approve(asked.open_approvals[0])
        assert (state.status, state.requests) == ("ready", 2)
        assert [part["state"] for part in state.tool_parts] == [
            "approval-requested",
            "output-available",
        ]
        await decide(stage, asked.open_approvals[0], "bob")
        await decide(stage, asked.open_approvals[0], "carol")
        await told(stage, "Mixed told.")
    assert stage.payments == [7]


async def test_may_decide_lets_others_in_and_the_owner_out() -> None:
    def managers(user: str, call: HeldCall) -> bool:
        return user == "bob" and call.owner == "alice"

    async with staged(may_decide=managers) as stage:
        (pay,) = (await stage.say("c", "pay 5")).approvals
        own = await decide(stage, pay, "alice")
        assert (own.status_code, own.json()["error"]["code"]) == (403, "not_yours")
        assert (await decide(stage, pay, "carol")).status_code == 404
        assert await listed(stage, "bob") == [pay]
        assert (await decide(stage, pay, "bob")).json()["decidedBy"] == "bob"
        await told(stage, "Result told.")
    assert stage.payments == [5]


def test_a_step_that_nobody_could_approve_is_refused_when_the_app_is_made() -> None:
    alone = ToolRule(steps=(ApprovalStep("second pair of eyes", four_eyes=True),))
    with pytest.raises(ValueError, match=r"Give the step `by=\(\.\.\.\)`, or the app `may_decide"):
        create_app(LlmAgent(name="root"), tools={"pay": alone})
    create_app(LlmAgent(name="root"), tools={"pay": alone}, may_decide=lambda _user, _call: True)
