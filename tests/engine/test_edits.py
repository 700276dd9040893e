"""Approval with edited arguments: the edited ones run, and everyone is told so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from adk_stream_protocol import ApprovalStep, ToolRule, create_app
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.stores.sql import sqlite_stores
from adk_stream_protocol.wire.values import digest
from support.conformance import SDK_VERSIONS, SdkVersion, StockChat
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio

RULES = {
    "pay": ToolRule(editable=True),
    "pay_badly": ToolRule(editable=True),
    "book": ToolRule(editable=True),
    "get_location": ToolRule(editable=True),
}


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    sql = request.param == "sqlite"
    stores = sqlite_stores(str(tmp_path / "stores.db")) if sql else None
    async with staged(rules=RULES, stores=stores) as stage:
        yield stage


async def approve(
    stage: Stage, approval_id: str, edited: object, *, user: str = "alice", **more: object
) -> httpx.Response:
    return await stage.http.post(
        f"/api/approvals/{approval_id}",
        json={"approved": True, "input": edited, **more},
        headers={"x-user": user},
    )


async def told(stage: Stage, text: str) -> Answered:
    with anyio.fail_after(10):
        while text not in (reply := Answered.of(await stage.http.get("/api/chat/c/stream"))).text:
            await anyio.lowlevel.checkpoint()
    return reply


async def test_the_edited_arguments_run_and_everyone_is_told(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    (pay,) = asked.approvals
    (card,) = asked.only("data-approval")
    assert card["data"]["editable"] is True
    shown = (await stage.http.get(f"/api/approvals/{pay}")).json()
    assert shown["inputSchema"]["properties"]["amount"]["type"] == "integer"

    approved = await approve(stage, pay, {"amount": 3}, reason="three is enough")
    assert approved.status_code == 200, approved.text
    assert approved.json()["input"] == {"amount": 5}
    assert (approved.json()["editedInput"], approved.json()["editedBy"]) == ({"amount": 3}, "alice")
    assert approved.json()["argumentsHash"] == digest({"amount": 5})
    assert approved.json()["editedArgumentsHash"] == digest({"amount": 3})

    reply = await told(stage, "Result told.")
    assert stage.payments == [3]
    (output,) = reply.only("tool-output-available")
    assert output["output"] == {"paid": 3, "approved_with_changes": {"amount": 3}}
    assert "approved_with_changes" in str(stage.model.prompts[-1])
    (given,) = reply.only("tool-input-available")
    assert given["input"] == {"amount": 5}
    assert reply.only("data-approval")[-1]["data"]["editedInput"] == {"amount": 3}
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    parts = {part["type"]: part for part in messages[1]["parts"]}
    assert (parts["tool-pay"]["input"], parts["tool-pay"]["output"]) == (
        {"amount": 5},
        output["output"],
    )
    assert parts["data-approval"]["data"]["editedBy"] == "alice"


async def test_the_trail_names_both_hashes_and_who_changed_them(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    await approve(stage, pay, {"amount": 3})
    await told(stage, "Result told.")
    answer = await stage.http.get("/api/audit?arguments=true")
    entries = (await stage.http.get(f"/api/approvals/{pay}/trail")).json()["trail"]
    shown, edited = digest({"amount": 5}), digest({"amount": 3})
    assert [(entry["event"], entry["argumentsHash"]) for entry in entries] == [
        ("open", shown),
        ("approve", edited),
        ("claim", edited),
        ("finish", edited),
    ]
    assert [entry.get("edited") for entry in entries] == [None, True, None, None]
    assert '"input":{"amount":5}' in answer.text.splitlines()[0]
    assert '"input":{"amount":3}' in answer.text.splitlines()[1]


@pytest.mark.parametrize("edited", [{"amount": "3"}, {}, {"amount": 3, "to": "me"}, [3], None])
async def test_arguments_that_do_not_fit_are_refused_and_nothing_is_decided(
    stage: Stage, edited: object
) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    refused = await approve(stage, pay, edited)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_input")
    assert (await stage.http.get(f"/api/approvals/{pay}")).json()["status"] == "pending"
    assert stage.payments == []


async def test_a_denial_takes_no_arguments_and_the_same_ones_are_no_edit(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    path = f"/api/approvals/{pay}"
    denied = await stage.http.post(path, json={"approved": False, "input": {"amount": 3}})
    assert (denied.status_code, denied.json()["error"]["code"]) == (400, "not_editable")
    approved = await approve(stage, pay, {"amount": 5})
    assert "editedInput" not in approved.json()
    reply = await told(stage, "Result told.")
    assert reply.only("tool-output-available")[0]["output"] == {"paid": 5}


async def test_the_same_edit_again_is_a_repeat_and_another_conflicts(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    first = await approve(stage, pay, {"amount": 3})
    again = await approve(stage, pay, {"amount": 3})
    other = await approve(stage, pay, {"amount": 4})
    assert [answer.status_code for answer in (first, again, other)] == [200, 200, 409]
    await told(stage, "Result told.")
    assert stage.payments == [3]


async def test_a_tool_that_asks_by_itself_runs_with_the_edited_arguments(stage: Stage) -> None:
    (book,) = (await stage.say("c", "book 3")).approvals
    assert (await approve(stage, book, {"days": 1})).status_code == 200
    await told(stage, "Booking told.")
    assert stage.payments == [-1]


async def test_a_tool_that_fails_with_edited_arguments_says_so_and_is_an_error(
    stage: Stage,
) -> None:
    (pay,) = (await stage.say("c", "pay badly")).approvals
    await approve(stage, pay, {"amount": 3})
    reply = await told(stage, "Badly told.")
    (failed,) = reply.only("tool-output-error")
    assert failed["errorText"].startswith("The tool pay_badly failed. (It ran with changed")


async def test_a_browser_tool_is_not_editable(stage: Stage) -> None:
    asked = await stage.say("c", "where am I")
    refused = await approve(stage, asked.approvals[0], {})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "not_editable")
    assert "editable" not in asked.only("data-approval")[0]["data"]


async def test_without_a_rule_nothing_is_editable() -> None:
    async with staged() as stage:
        (pay,) = (await stage.say("c", "pay 5")).approvals
        refused = await approve(stage, pay, {"amount": 3})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "not_editable")


async def test_only_the_first_step_may_edit_and_the_later_ones_see_it() -> None:
    steps = (ApprovalStep("manager", by=("bob",)), ApprovalStep("finance", by=("carol",)))
    async with staged(rules={"pay": ToolRule(editable=True, steps=steps)}) as stage:
        (pay,) = (await stage.say("c", "pay 5")).approvals
        edited = await approve(stage, pay, {"amount": 3}, user="bob", decisionId="bobs")
        retried = await approve(stage, pay, {"amount": 3}, user="bob", decisionId="bobs")
        assert [answer.status_code for answer in (edited, retried)] == [200, 200]
        assert edited.json()["editedInput"] == {"amount": 3}
        late = await approve(stage, pay, {"amount": 500}, user="carol")
        assert (late.status_code, late.json()["error"]["code"]) == (400, "not_editable")
        path = f"/api/approvals/{pay}"
        shown = (await stage.http.get(path, headers={"x-user": "carol"})).json()
        assert (shown["editedInput"], shown["editedBy"]) == ({"amount": 3}, "bob")
        seen = {"approved": True, "argumentsHash": shown["editedArgumentsHash"]}
        await stage.http.post(path, json=seen, headers={"x-user": "carol"})
        await told(stage, "Result told.")
    assert stage.payments == [3]


EDITED_FIRST = ToolRule(
    editable=True,
    steps=(ApprovalStep("manager", by=("bob",)), ApprovalStep("owner", by=("alice", "carol"))),
)


async def test_a_later_approver_approves_only_what_they_were_shown(tmp_path: Path) -> None:
    stores = sqlite_stores(str(tmp_path / "stores.db"))
    async with staged(rules={"pay": EDITED_FIRST}, stores=stores) as stage:
        (pay,) = (await stage.say("c", "pay 5")).approvals
        path = f"/api/approvals/{pay}"
        await approve(stage, pay, {"amount": 3}, user="bob")
        for blind in ({}, {"argumentsHash": digest({"amount": 5})}):
            refused = await stage.http.post(path, json={"approved": True, **blind})
            assert refused.status_code == 409
            assert (refused.json()["status"], refused.json()["editedInput"]) == (
                "pending",
                {"amount": 3},
            )
        bad = await stage.http.post(path, json={"approved": True, "argumentsHash": 3})
        assert (bad.status_code, bad.json()["error"]["code"]) == (400, "bad_arguments_hash")
        denied = await stage.http.post(path, json={"approved": False})
        assert (denied.status_code, denied.json()["status"]) == (200, "denied")
    assert stage.payments == []


async def test_the_hash_of_what_was_shown_is_right_where_nothing_was_edited(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    path = f"/api/approvals/{pay}"
    other = {"approved": True, "argumentsHash": digest({"amount": 3})}
    assert (await stage.http.post(path, json=other)).status_code == 409
    shown = {"approved": True, "argumentsHash": digest({"amount": 5})}
    assert (await stage.http.post(path, json=shown)).status_code == 200
    await told(stage, "Result told.")
    assert stage.payments == [5]


@pytest.mark.parametrize("sdk", SDK_VERSIONS)
async def test_a_stock_client_that_shows_other_arguments_is_asked_again(sdk: SdkVersion) -> None:
    async with (
        staged(rules={"pay": EDITED_FIRST}) as stage,
        StockChat(f"{stage.url}/api/chat", sdk, chat_id="c") as chat,
    ):
        state = await chat.send("pay 5")
        (pay,) = state.open_approvals
        await approve(stage, pay, {"amount": 3}, user="bob")
        # The page still shows five.
        state = await chat.approve(pay)
        assert (stage.payments, state.open_approvals) == ([], [pay])
        # Now it shows three.
        state = await chat.approve(pay)
        assert (stage.payments, state.status) == ([3], "ready")


async def test_a_decision_that_travels_along_is_about_what_its_card_shows() -> None:
    async with staged(rules={"pay": EDITED_FIRST}) as stage:
        asked = await stage.say("c", "pay 5")
        (pay,) = asked.approvals
        edited = (await approve(stage, pay, {"amount": 3}, user="bob")).json()
        message = asked.approving("c", True)["messages"][0]
        for cards, paid in (
            ([], []),
            ([{"type": "data-approval", "id": pay, "data": edited}], [3]),
        ):
            shown = {**message, "parts": [*message["parts"], *cards]}
            body = {"id": "c", "messages": [shown, user_message("hi")]}
            assert (await stage.post("/api/chat", body)).status == 200
            assert stage.payments == paid


async def test_agreeing_with_what_another_has_changed_is_no_repeat() -> None:
    def anyone(_user: str, _call: HeldCall) -> bool:
        return True

    async with staged(rules=RULES, may_decide=anyone) as stage:
        (pay,) = (await stage.say("c", "pay 5")).approvals
        await approve(stage, pay, {"amount": 3}, user="bob", decisionId="bobs")
        path = f"/api/approvals/{pay}"
        answers = [
            await stage.http.post(path, json={"approved": True, **more}, headers={"x-user": user})
            for user, more in (
                ("alice", {}),
                ("alice", {"decisionId": "bobs"}),
                ("alice", {"argumentsHash": digest({"amount": 3})}),
                ("bob", {}),
            )
        ]
        assert [answer.status_code for answer in answers] == [409, 200, 200, 200]
        await told(stage, "Result told.")
    assert stage.payments == [3]


async def test_the_agents_own_callbacks_see_what_runs_and_are_not_skipped() -> None:
    seen: list[object] = []
    constant = {"paid": "all"}

    def pay(amount: int) -> dict[str, str]:
        """Pay."""
        seen.append(amount)
        return constant

    def before(*, args: dict[str, Any], **_more: object) -> None:
        seen.append(dict(args))

    def after(*, tool_response: dict[str, Any], **_more: object) -> dict[str, Any]:
        return {**tool_response, "redacted": True}

    model = ScriptedModel(script={"go": [[call("pay", amount=5)], ["Done."]]})
    agent = LlmAgent(
        name="root",
        model=model,
        tools=[FunctionTool(pay, require_confirmation=True)],
        before_tool_callback=before,
        after_tool_callback=after,
    )
    app = create_app(agent, tools={"pay": ToolRule(editable=True)})
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        stage = Stage(url, http)
        (approval,) = (await stage.say("c", "go")).approvals
        seen.clear()
        await approve(stage, approval, {"amount": 3})
        reply = await told(stage, "Done.")
    assert seen == [{"amount": 3}, 3]
    assert reply.only("tool-output-available")[0]["output"] == {
        "paid": "all",
        "redacted": True,
        "approved_with_changes": {"amount": 3},
    }
    assert constant == {"paid": "all"}
