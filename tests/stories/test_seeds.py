"""The seeds' protocol on `POST /stream` and `WS /live`: the confirmation as a call of its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from adk_stream_protocol import ApprovalStep, ToolRule
from stories.seed_routes import ROUTES, SeedChat, answering, talking, tool_result
from support.envelope import CONFIRM
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


@pytest.fixture(params=ROUTES)
async def chat(request: pytest.FixtureRequest, stage: Stage) -> AsyncIterator[SeedChat]:
    async with talking(stage, request.param) as chat:
        yield chat


def confirmations(asked: Answered) -> list[dict[str, Any]]:
    return [c for c in asked.only("tool-input-available") if c["toolName"] == CONFIRM]


def originals(asked: Answered) -> list[dict[str, Any]]:
    return [c for c in asked.only("tool-input-available") if c["toolName"] != CONFIRM]


@pytest.mark.parametrize("confirmed", [True, False])
async def test_the_nine_steps_of_the_native_flow(
    stage: Stage, chat: SeedChat, confirmed: bool
) -> None:
    said = "花子さんに50ドル送金してください"
    asked = await chat.say(said)
    original, confirmation = originals(asked)[0], confirmations(asked)[0]
    assert asked.types == [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "tool-input-start",
        "tool-input-available",
        "tool-input-start",
        "tool-input-available",
        "finish-step",
        "finish",
    ]
    assert original == {
        "type": "tool-input-available",
        "toolCallId": original["toolCallId"],
        "toolName": "pay",
        "input": {"amount": 50},
        "providerExecuted": True,
    }
    assert re.fullmatch(r"adk-[0-9a-f-]{36}", confirmation["toolCallId"])
    assert confirmation["input"]["originalFunctionCall"] == {
        "id": original["toolCallId"],
        "name": "pay",
        "args": {"amount": 50},
    }
    assert confirmation["input"]["toolConfirmation"]["confirmed"] is False
    assert confirmation["input"]["toolConfirmation"]["hint"]
    assert "providerExecuted" not in confirmation

    item = tool_result(confirmation["toolCallId"], CONFIRM, {"confirmed": confirmed})
    answered = await chat.answer(item)
    assert answered.types == [
        "start",
        "tool-output-available",
        "tool-output-available" if confirmed else "tool-output-error",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert answered.message_id == asked.message_id
    assert answered.chunks[1] == {
        "type": "tool-output-available",
        "toolCallId": confirmation["toolCallId"],
        "output": {"confirmed": confirmed},
    }
    settled = answered.chunks[2]
    assert settled["toolCallId"] == original["toolCallId"]
    if confirmed:
        assert settled["output"] == {"paid": 50}
        assert answered.text == "花子さんに50ドルを送金しました。"
    else:
        assert settled["errorText"] == "User denied execution"
    assert stage.payments == ([50] if confirmed else [])


async def test_a_client_that_names_no_chat_is_found_by_its_answer(
    stage: Stage, chat: SeedChat
) -> None:
    asked = await chat.send({"messages": [{"role": "user", "content": "pay 5"}]})
    confirmation = confirmations(asked)[0]["toolCallId"]
    item = tool_result(confirmation, CONFIRM, {"confirmed": True})
    answered = await chat.send(answering(item, chat=None))
    assert answered.status == 200
    assert stage.payments == [5]


async def test_two_payments_are_asked_together_and_answered_in_one_request(
    stage: Stage, chat: SeedChat
) -> None:
    asked = await chat.say("pay both")
    first, second = confirmations(asked)
    assert [c["toolCallId"] for c in originals(asked)] == [
        c["input"]["originalFunctionCall"]["id"] for c in (first, second)
    ]
    assert "text-delta" not in asked.types
    answered = await chat.answer(
        tool_result(first["toolCallId"], CONFIRM, {"confirmed": True}),
        tool_result(second["toolCallId"], CONFIRM, {"confirmed": False}),
    )
    assert stage.payments == [1]
    assert answered.text == "Both told."


async def test_one_answer_of_two_waits_for_the_other(stage: Stage, chat: SeedChat) -> None:
    asked = await chat.say("pay both")
    first, second = confirmations(asked)
    one = await chat.answer(tool_result(first["toolCallId"], CONFIRM, {"confirmed": True}))
    assert one.types == ["start", "tool-output-available", "finish"]
    assert stage.payments == []
    two = await chat.answer(tool_result(second["toolCallId"], CONFIRM, {"confirmed": True}))
    assert stage.payments == [1, 2]
    assert two.text == "Both told."


async def test_a_reason_reaches_the_client_and_the_model(stage: Stage, chat: SeedChat) -> None:
    asked = await chat.say("pay 5")
    result = {"confirmed": False, "reason": "too much"}
    item = tool_result(confirmations(asked)[0]["toolCallId"], CONFIRM, result)
    answered = await chat.answer(item)
    assert answered.only("tool-output-error")[0]["errorText"] == "User denied execution: too much"
    assert "too much" in str(stage.model.prompts[-1])


# Answers: all of these mean the same, on every route.


Send = Callable[[dict[str, Any]], Awaitable[Answered]]


@asynccontextmanager
async def sending(stage: Stage, path: str) -> AsyncIterator[Send]:
    """Return how requests are sent on a route."""
    if path == "/live":
        async with talking(stage, "live") as chat:
            yield chat.send
    else:
        yield partial(stage.post, path)


@pytest.mark.parametrize("path", ["/api/chat", "/stream", "/live"])
@pytest.mark.parametrize(
    "form",
    [
        "approval",
        "dynamic",
        "confirmation",
        "adr-0010",
        "adr-0010 by the user",
        "native",
        "adr-0003",
        "rest",
    ],
)
async def test_every_form_of_an_answer_approves(stage: Stage, path: str, form: str) -> None:
    async with sending(stage, path) as send:
        await send({"id": "c", "messages": [user_message("pay 5")]})
        await approve(stage, send, form)
    assert stage.payments == [5]


async def approve(stage: Stage, send: Send, form: str) -> None:
    approval = (await stage.http.get("/api/approvals?status=pending")).json()["approvals"][0]
    approval_id, call_id = approval["id"], approval["toolCallId"]
    if form == "rest":
        decided = await stage.http.post(f"/api/approvals/{approval_id}", json={"approved": True})
        assert decided.status_code == 200
        await stage.http.get("/api/chat/c/stream")
        return
    answered_part = {
        "state": "approval-responded",
        "approval": {"id": approval_id, "approved": True},
    }
    parts: dict[str, dict[str, Any]] = {
        "approval": {"type": "tool-pay", "toolCallId": call_id, **answered_part},
        "dynamic": {
            "type": "dynamic-tool",
            "toolName": "pay",
            "toolCallId": call_id,
            **answered_part,
        },
        "confirmation": {
            "type": f"tool-{CONFIRM}",
            "toolCallId": approval_id,
            "state": "output-available",
            "output": {"confirmed": True},
        },
        "adr-0010": {
            "type": f"tool-{CONFIRM}",
            "toolCallId": approval_id,
            "approval": {"approved": True},
        },
    }
    contents = {
        "native": tool_result(approval_id, CONFIRM, {"confirmed": True}),
        "adr-0003": tool_result(
            call_id, "pay", {"approved": True, "user_message": "User approved"}
        ),
    }
    if form.removesuffix(" by the user") in parts:
        part = parts[form.removesuffix(" by the user")]
        role = "user" if form.endswith(" by the user") else "assistant"
        message = {"id": "m", "role": role, "parts": [part]}
        body: dict[str, Any] = {"id": "c", "messages": [message]}
    else:
        body = answering(contents[form])
    answered = await send(body)
    assert answered.status == 200, answered.error
    assert answered.text == "Result told."


async def test_the_address_may_ask_for_approvals_of_the_ai_sdk(stage: Stage) -> None:
    body = {"id": "c", "messages": [user_message("pay 5")]}
    asked = await stage.post("/stream?profile=ai-sdk", body)
    assert asked.types[-4:-2] == ["tool-approval-request", "data-approval"]
    resumed = Answered.of(await stage.http.get("/stream/c/stream?profile=ai-sdk"))
    assert resumed.chunks == asked.chunks
    told = await stage.post("/stream?profile=ai-sdk", asked.approving("c", True))
    assert told.only("data-approval")[0]["data"]["status"] == "approved"
    assert stage.payments == [5]
    other = await stage.post("/stream?profile=other", body)
    assert (other.status, other.error["code"]) == (400, "bad_parameter")


# Common mistakes are refused with what to send, and nothing is lost.


@pytest.mark.parametrize(
    ("mistake", "code"),
    [
        ("mixed", "mixed_ids"),
        ("swapped", "mixed_ids"),
        ("unknown", "unknown_call"),
        ("made up", "made_up_result"),
        ("yes", "not_a_boolean"),
        ("empty", "not_a_boolean"),
    ],
)
async def test_a_common_mistake_is_refused_and_the_right_answer_still_counts(
    stage: Stage,
    chat: SeedChat,
    caplog: pytest.LogCaptureFixture,
    mistake: str,
    code: str,
) -> None:
    asked = await chat.say("pay 5")
    original, confirmation = asked.calls
    items = {
        "mixed": tool_result(original, CONFIRM, {"confirmed": True}),
        "swapped": tool_result(confirmation, "pay", {"confirmed": True}),
        "unknown": tool_result("adk-not-there", CONFIRM, {"confirmed": True}),
        "made up": tool_result(original, "pay", {"paid": 1_000_000}),
        "yes": tool_result(confirmation, CONFIRM, {"confirmed": "yes"}),
        "empty": tool_result(confirmation, CONFIRM, {}),
    }
    prompts = len(stage.model.prompts)
    refused = await chat.answer(items[mistake])
    assert [vars(record)["code"] for record in caplog.records] == [code]
    assert re.search(r"Send|must be", refused.error["message"])
    if mistake in {"mixed", "made up"}:
        assert confirmation in refused.error["message"]
    assert stage.payments == []
    assert len(stage.model.prompts) == prompts
    right = tool_result(confirmation, CONFIRM, {"confirmed": True})
    answered = await chat.answer(right)
    assert answered.text == "Result told."
    assert stage.payments == [5]


async def test_history_in_the_profile_shows_the_confirmation(stage: Stage, chat: SeedChat) -> None:
    asked = await chat.say("pay 5")
    history = (await stage.http.get("/api/chats/c?profile=adk")).json()
    part = history["messages"][1]["parts"][-1]
    assert part["type"] == f"tool-{CONFIRM}"
    assert part["state"] == "input-available"
    assert part["toolCallId"] == asked.calls[1]
    native = (await stage.http.get("/api/chats/c")).json()
    assert native["messages"][1]["parts"][2]["state"] == "approval-requested"


@pytest.mark.parametrize("route", ROUTES)
async def test_who_may_decide_and_until_when_is_shown_with_the_confirmation(route: str) -> None:
    steps = (ApprovalStep("manager", by=("bob",)),)
    rule = ToolRule(
        title="Send money", hint="Really?", risk="high", ui={"icon": "bank"}, steps=steps
    )
    async with staged(rules={"pay": rule}) as stage, talking(stage, route) as chat:
        asked = await chat.say("pay 5")
        shown = confirmations(asked)[0]["input"]["toolConfirmation"]
        assert re.fullmatch(r"[\d-]+T[\d:.]+Z", shown.pop("expiresAt"))
        assert shown == {
            "hint": "Really?",
            "confirmed": False,
            "title": "Send money",
            "risk": "high",
            "ui": {"icon": "bank"},
            "step": {"n": 1, "of": 1, "name": "manager", "by": ["bob"]},
        }
        # A yes that is not alice's to give: she is asked again, and sees whose it is.
        again = await chat.confirm(asked, True)
        assert confirmations(again)[0]["input"]["toolConfirmation"]["step"]["by"] == ["bob"]
    assert stage.payments == []


async def test_a_browser_tool_with_approval_in_this_profile(stage: Stage, chat: SeedChat) -> None:
    asked = await chat.say("where am I")
    location, confirmation = asked.calls
    assert originals(asked)[0]["providerExecuted"] is True
    approved = await chat.answer(tool_result(confirmation, CONFIRM, {"confirmed": True}))
    assert approved.types == [
        "start",
        "start-step",
        "tool-output-available",
        "finish-step",
        "finish",
    ]
    told = await chat.answer(tool_result(location, "get_location", {"latitude": 35.6}))
    outputs = {c["toolCallId"]: c["output"] for c in told.only("tool-output-available")}
    assert outputs == {confirmation: {"confirmed": True}, location: {"latitude": 35.6}}
    assert told.text == "Place told."
    assert "35.6" in str(stage.model.prompts[-1])


async def test_a_browser_tool_without_approval_in_this_profile(chat: SeedChat) -> None:
    asked = await chat.say("play jazz")
    assert asked.types[-4:] == [
        "tool-input-start",
        "tool-input-available",
        "finish-step",
        "finish",
    ]
    assert "providerExecuted" not in asked.only("tool-input-available")[0]
    told = await chat.answer(tool_result(asked.calls[0], "change_bgm", {"playing": "jazz"}))
    (output,) = told.only("tool-output-available")
    assert (output["toolCallId"], output["output"]) == (asked.calls[0], {"playing": "jazz"})
    assert told.text == "Music told."


async def test_an_output_that_the_clients_part_shows_is_not_sent_back(chat: SeedChat) -> None:
    asked = await chat.say("play jazz")
    part = {
        "type": "tool-change_bgm",
        "toolCallId": asked.calls[0],
        "state": "output-available",
        "input": {},
        "output": {"playing": "jazz"},
    }
    message = {"id": asked.message_id, "role": "assistant", "parts": [part]}
    told = await chat.send({"id": "c", "messages": [message]})
    assert told.only("tool-output-available") == []
    assert told.text == "Music told."
