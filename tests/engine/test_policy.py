"""Decisions by policy: by the arguments, or "always for this chat". No person is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import ApprovalStep, BrowserTool, Settings, ToolRule, create_app
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.server.wiring import Services
from adk_stream_protocol.stores.opening import SqliteFile
from adk_stream_protocol.stores.sql import sqlite_stores
from adk_stream_protocol.wire.values import JsonObject
from support.conformance import SDK_VERSIONS, SdkVersion, StockChat
from support.scripted import call
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio


def by_amount(arguments: JsonObject) -> bool | None:
    """Let small amounts through, refuse large ones, ask for the rest."""
    amount = arguments["amount"]
    assert isinstance(amount, int)
    return True if amount < 2 else False if amount > 5 else None


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    sql = request.param == "sqlite"
    stores = sqlite_stores(str(tmp_path / "stores.db")) if sql else None
    rules = {"pay": ToolRule(decide=by_amount, remember=True, title="Payment")}
    async with staged(rules=rules, stores=stores) as stage:
        yield stage


async def history(stage: Stage, chat: str = "c") -> list[dict[str, Any]]:
    messages = (await stage.http.get(f"/api/chats/{chat}")).json()["messages"]
    parts: list[dict[str, Any]] = messages[-1]["parts"]
    return parts


async def told(stage: Stage, text: str) -> Answered:
    """Return the newest reply once it has said something, to its end."""
    with anyio.fail_after(15):
        while text not in (reply := Answered.of(await stage.http.get("/api/chat/c/stream"))).text:
            await anyio.lowlevel.checkpoint()
    return reply


def ruling(verdict: bool | None) -> dict[str, ToolRule]:
    return {"pay": ToolRule(decide=lambda _: verdict)}


async def test_small_amounts_run_at_once_and_others_are_asked_for(stage: Stage) -> None:
    asked = await stage.say("c", "pay both")
    assert stage.payments == [1]
    assert len(asked.approvals) == 1
    cards = {card["data"]["toolCallId"]: card["data"] for card in asked.only("data-approval")}
    first, second = (cards[call_id] for call_id in asked.calls)
    assert (first["automatic"], first["status"], first["decidedBy"]) == (True, "done", "policy")
    assert first["title"] == "Payment"
    assert ("automatic" in second, second["status"]) == (False, "pending")
    answered = await stage.post("/api/chat", asked.approving("c", True))
    assert answered.text == "Both told."
    assert stage.payments == [1, 2]


async def test_what_the_policy_refuses_never_runs_and_no_user_is_blamed(stage: Stage) -> None:
    answered = await stage.say("c", "pay and add")
    # The five is asked for, the six refused, and the sum needs no approval.
    assert len(answered.approvals) == 1
    assert len(answered.only("tool-output-error")) == 1
    assert stage.payments == []
    answered = await stage.post("/api/chat", answered.approving("c", False))
    prompt = str(stage.model.prompts[-1])
    assert "Denied by policy; no person was asked." in prompt
    assert prompt.count("User denied execution") == 1


async def test_an_automatic_decision_is_in_the_history_and_the_audit_trail(stage: Stage) -> None:
    await stage.say("c", "pay both")
    parts = await history(stage)
    pay = next(part for part in parts if part.get("state") == "output-available")
    assert (pay["approval"]["approved"], pay["approval"]["isAutomatic"]) == (True, True)
    (card,) = [part["data"] for part in parts if part.get("id") == pay["approval"]["id"]]
    assert (card["automatic"], card["status"]) == (True, "done")

    done = (await stage.http.get("/api/approvals?status=done")).json()["approvals"]
    assert [approval["id"] for approval in done] == [pay["approval"]["id"]]
    path = f"/api/approvals/{pay['approval']['id']}"
    trail = (await stage.http.get(f"{path}/trail")).json()["trail"]
    assert [entry["event"] for entry in trail] == ["open", "approve", "claim", "finish"]
    assert (trail[1]["by"], trail[1]["via"], trail[1]["automatic"]) == ("policy", "policy", True)
    late = await stage.http.post(path, json={"approved": False})
    assert (late.status_code, late.json()["status"]) == (409, "done")


async def test_always_for_this_chat_counts_for_later_calls_of_the_tool_there(
    stage: Stage,
) -> None:
    asked = await stage.say("c", "pay 5")
    assert asked.only("data-approval")[0]["data"]["rememberable"] is True
    path = f"/api/approvals/{asked.approvals[0]}"
    decided = await stage.http.post(path, json={"approved": True, "remember": True})
    assert decided.json()["remembered"] is True
    assert "rememberable" not in decided.json()
    await told(stage, "Result told.")
    assert stage.payments == [5]

    again = await stage.say("c", "pay 5")
    assert again.approvals == []
    cards = [card["data"] for card in again.only("data-approval")]
    assert {card["decidedBy"] for card in cards} == {"policy (always, alice)"}
    assert [(card["automatic"], card["status"]) for card in cards] == [
        (True, "approved"),
        (True, "done"),
    ]
    assert stage.payments == [5, 5]
    elsewhere = await stage.say("other", "pay 5")
    other_tool = await stage.say("c", "pay slowly")
    assert [len(answer.approvals) for answer in (elsewhere, other_tool)] == [1, 1]


async def test_a_new_chat_of_the_same_id_asks_again(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    await stage.http.post(
        f"/api/approvals/{asked.approvals[0]}", json={"approved": True, "remember": True}
    )
    await told(stage, "Result told.")
    assert (await stage.http.delete("/api/chats/c")).status_code == 204
    assert len((await stage.say("c", "pay 5")).approvals) == 1


async def test_always_counts_only_for_what_its_approver_may_approve(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def may_decide(user: str, call: HeldCall) -> bool:
        amount = call.arguments["amount"]
        assert isinstance(amount, int)
        if amount == 13:
            raise RuntimeError("SECRET 4711")
        return user == "ann" and amount <= 100

    async with staged(rules={"pay": ToolRule(remember=True)}, may_decide=may_decide) as stage:
        stage.model.script = {
            f"pay {amount}": [[call("pay", amount=amount)], [f"{amount} told."]]
            for amount in (5, 13, 100, 101)
        }
        (pay,) = (await stage.say("c", "pay 5")).approvals
        await stage.http.post(
            f"/api/approvals/{pay}",
            json={"approved": True, "remember": True},
            headers={"x-user": "ann"},
        )
        await told(stage, "5 told.")
        assert (await stage.say("c", "pay 100")).text == "100 told."
        over = await stage.say("c", "pay 101")
        unsure = await stage.say("c", "pay 13")
        assert [len(asked.approvals) for asked in (over, unsure)] == [1, 1]
        assert stage.payments == [5, 100]
    assert "policy failed, a person is asked: RuntimeError" in caplog.text
    assert "SECRET" not in caplog.text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"approved": False, "remember": True}, "not_rememberable"),
        ({"approved": True, "remember": "yes"}, "not_a_boolean"),
    ],
)
async def test_only_an_approval_is_remembered(
    stage: Stage, body: Mapping[str, object], code: str
) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    refused = await stage.http.post(f"/api/approvals/{pay}", json=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)


@pytest.mark.parametrize("said", ["pay 5", "book 3"])
async def test_what_is_not_rememberable_is_not_remembered(said: str) -> None:
    # A tool that asks by itself cannot be let through by a policy.
    async with staged(rules={"book": ToolRule(remember=True)}) as stage:
        (held,) = (await stage.say("c", said)).approvals
        refused = await stage.http.post(
            f"/api/approvals/{held}", json={"approved": True, "remember": True}
        )
        assert refused.json()["error"]["code"] == "not_rememberable"


async def test_a_policy_that_fails_or_says_something_else_asks_a_person(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(_arguments: JsonObject) -> bool:
        raise RuntimeError("SECRET 4711")

    def careless(_arguments: JsonObject) -> bool:
        return "yes"  # type: ignore[return-value]  # what careless code returns

    rules = {"pay": ToolRule(decide=fails), "pay_slowly": ToolRule(decide=careless)}
    async with staged(rules=rules) as stage:
        first, second = await stage.say("c", "pay 5"), await stage.say("d", "pay slowly")
    assert [len(asked.approvals) for asked in (first, second)] == [1, 1]
    assert "policy failed, a person is asked: RuntimeError" in caplog.text
    assert "SECRET" not in caplog.text


CLIENTS = [
    *((sdk, "/api/chat") for sdk in SDK_VERSIONS),
    *((sdk, "/api/chat?sdk=7") for sdk in SDK_VERSIONS if sdk.startswith("ai7")),
]


@pytest.mark.parametrize(("sdk", "path"), CLIENTS)
@pytest.mark.parametrize("verdict", [True, False])
async def test_a_stock_client_shows_what_was_decided_and_asks_nobody(
    sdk: SdkVersion, path: str, verdict: bool
) -> None:
    async with (
        staged(rules=ruling(verdict)) as stage,
        StockChat(f"{stage.url}{path}", sdk, chat_id="c") as chat,
    ):
        state = await chat.send("pay 5")
        assert (state.status, state.requests, state.error) == ("ready", 1, None)
        (part,) = state.tool_parts
        # ai 6 cannot be told of a verdict: denied without one, its part would be invalid.
        denied = "output-denied" if path.endswith("7") else "output-error"
        assert part["state"] == ("output-available" if verdict else denied)
        assert state.text == "Paying. Result told."
        (card,) = [part for part in state.last["parts"] if part["type"] == "data-approval"]
        shown: Any = card["data"]
        assert (shown["automatic"], shown["decidedBy"]) == (True, "policy")
        if path.endswith("7"):
            assert part["approval"]["isAutomatic"] is True
            assert part["approval"]["approved"] is verdict
        else:
            kinds = {chunk["type"] for chunk in state.chunks[0]}
            assert not kinds & {"tool-approval-request", "tool-approval-response"}
        loaded = await chat.reload((await stage.http.get("/api/chats/c")).json()["messages"])
        again = await chat.send("hi")
    stored = "output-available" if verdict else "output-denied"
    assert [part["state"] for part in loaded.tool_parts] == [stored]
    assert (again.status, again.text) == ("ready", "Hello.")
    assert stage.payments == ([5] if verdict else [])


@pytest.mark.parametrize("sdk", SDK_VERSIONS)
@pytest.mark.parametrize("verdict", [True, False])
async def test_the_confirmation_profile_shows_just_the_outcome(
    sdk: SdkVersion, verdict: bool
) -> None:
    async with (
        staged(rules=ruling(verdict)) as stage,
        StockChat(f"{stage.url}/stream", sdk, auto="tools") as chat,
    ):
        state = await chat.send("pay 5")
    assert (state.status, state.requests) == ("ready", 1)
    (part,) = state.tool_parts
    assert part["state"] == ("output-available" if verdict else "output-error")
    assert part.get("errorText") in {None, "Denied by policy; no person was asked."}


async def test_a_tool_that_a_policy_let_run_and_that_is_given_up_is_unknown() -> None:
    settings = dataclasses.replace(Settings(), tool_seconds=0.2)
    rules = {"pay_slowly": ToolRule(decide=lambda _: True)}
    async with staged(rules=rules, settings=settings) as stage:
        answered = await stage.say("c", "pay slowly")
        assert answered.types[-1] == "abort"
        assert answered.only("data-approval")[0]["data"]["automatic"] is True
        approvals = (await stage.http.get("/api/approvals")).json()["approvals"]
        assert [approval["status"] for approval in approvals] == ["unknown"]
        parts = await history(stage)
        assert [part["state"] for part in parts if part["type"] == "tool-pay_slowly"] == [
            "output-error"
        ]
        stage.tool_may_end.set()


async def test_a_call_that_was_running_when_the_server_died_is_told_as_unknown(
    tmp_path: Path,
) -> None:
    file = SqliteFile(tmp_path / "chats.db")
    rules = {"pay_slowly": ToolRule(decide=lambda _: True, idempotent=True)}
    async with open_database(file) as opened:
        services = Services(sessions=opened.sessions)
        async with staged(
            rules=rules, services=services, stores=opened.stores, cut_off=True
        ) as stage:
            body = {"id": "c", "messages": [{"id": "u", "role": "user", "content": "pay slowly"}]}
            async with stage.http.stream("POST", "/api/chat", json=body) as response:
                async for text in response.aiter_text():
                    if "tool-input-available" in text:
                        break
            await anyio.to_thread.run_sync(stage.tool_started.wait, 10)
    async with open_database(file) as opened:
        services = Services(sessions=opened.sessions)
        async with staged(rules=rules, services=services, stores=opened.stores) as stage:
            with anyio.fail_after(15):
                while (
                    "Slowly told."
                    not in (reply := Answered.of(await stage.http.get("/api/chat/c/stream"))).text
                ):
                    await anyio.lowlevel.checkpoint()
            approvals = (await stage.http.get("/api/approvals")).json()["approvals"]
            assert [approval["status"] for approval in approvals] == ["unknown"]
            assert reply.only("data-approval")[0]["data"]["automatic"] is True
            (failed,) = reply.only("tool-output-error")
            assert "not known" in failed["errorText"]
            assert "not known" in str(stage.model.prompts[-1])
    assert stage.payments == []


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (ToolRule(remember=True, steps=(ApprovalStep("boss", by=("bob",)),)), "in steps"),
        (ToolRule(browser=True, decide=lambda _: True), "The browser runs pay"),
    ],
)
def test_rules_that_make_no_sense_together_are_refused(rule: ToolRule, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        create_app(LlmAgent(name="root"), tools={"pay": rule})


def test_a_browser_tool_carries_its_rule_and_is_checked_too() -> None:
    def locate() -> None:
        """Locate."""

    tool = BrowserTool(locate, True, rule=ToolRule(remember=True))
    with pytest.raises(ValueError, match="The browser runs locate"):
        create_app(LlmAgent(name="root", tools=[tool]))
