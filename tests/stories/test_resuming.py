"""A page that loads a chat and resumes it: what is running, what is over, what is decided.

A stock page empties its message at the first `start` of what it resumes, so all that it shows then
comes from there. Versions that append instead are given the chat without its last message, as the
docs say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from stories.connecting import PAGES, Connect
from support.conformance import SDK_VERSIONS, ChatState, SdkVersion, StockChat
from support.envelope import DONE, enveloped
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio

TELLS_VERDICTS = Connect("ai7")
"""With `?sdk=7` a stream carries `tool-approval-response`."""


@pytest.fixture(params=PAGES, ids=str)
def connect(request: pytest.FixtureRequest) -> Connect:
    chosen: Connect = request.param
    return chosen


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


async def loaded(stage: Stage, chat_id: str) -> dict[str, Any]:
    chat: dict[str, Any] = (await stage.http.get(f"/api/chats/{chat_id}")).json()
    return chat


async def resumed(chat: StockChat, state: ChatState) -> ChatState:
    await chat.reload(state.messages[:1])
    return await chat.resume()


def statuses(parts: list[Any]) -> list[str]:
    return [part["data"]["status"] for part in parts if part["type"] == "data-approval"]


async def test_a_tool_that_has_its_result_is_not_called_again(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        told = await chat.send("add")
        assert [call["toolName"] for call in told.tool_calls] == ["add"]
        state = await resumed(chat, told)
    assert len(state.tool_calls) == 1
    assert state.last == told.last


async def test_a_tool_that_runs_is_told_as_it_is_and_its_result_follows(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay slowly")
        await chat.approve(asked.open_approvals[0], wait=False)
        assert await anyio.to_thread.run_sync(stage.tool_started.wait, 60)
        await chat.reload(asked.messages[:1])
        await chat.resume(wait=False)
        running = await chat.part_in_state("input-available")
        assert running.open_approvals == []
        stage.tool_may_end.set()
        state = await chat.settled()
    assert [part["state"] for part in state.tool_parts] == ["output-available"]
    assert state.text == "Slowly told."
    assert stage.payments == [9]


async def test_a_reply_that_is_resumed_while_it_runs_calls_nothing_again(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        await chat.send("add late", wait=False)
        told = await chat.part_in_state("output-available")
        await chat.reload(told.messages[:1])
        await chat.resume(wait=False)
        await chat.part_in_state("output-available")
        stage.more.set()
        state = await chat.settled()
    assert len(state.tool_calls) == 1
    assert state.text == "It is 3."


@pytest.mark.parametrize("approved", [True, False])
async def test_what_was_decided_stays_decided(
    stage: Stage, connect: Connect, approved: bool
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        decide = chat.approve if approved else chat.deny
        decided = await decide(asked.open_approvals[0], reason="so")
        state = await resumed(chat, decided)
    # No chunk that ai 6 knows carries a verdict: the part has none, and so cannot be a denied one.
    (part,) = state.tool_parts
    assert part["state"] == ("output-available" if approved else "output-error")
    assert approved or part["errorText"] == "User denied execution: so"
    assert "approval" not in part
    assert statuses(state.last["parts"]) == ["done" if approved else "denied"]
    assert state.text == decided.text
    assert len(state.tool_calls) == len(decided.tool_calls)


@pytest.mark.parametrize("approved", [True, False])
async def test_a_client_that_is_told_of_verdicts_keeps_them(stage: Stage, approved: bool) -> None:
    async with TELLS_VERDICTS(stage, query="?sdk=7") as chat:
        asked = await chat.send("pay 5")
        decide = chat.approve if approved else chat.deny
        decided = await decide(asked.open_approvals[0], reason="so")
        state = await resumed(chat, decided)
        history = await loaded(stage, state.chat_id)
    verdict = {"id": asked.open_approvals[0], "approved": approved, "reason": "so"}
    assert [part["approval"] for part in state.tool_parts] == [verdict]
    assert [part["state"] for part in state.tool_parts] == [
        "output-available" if approved else "output-denied"
    ]
    stored = [part for part in history["messages"][-1]["parts"] if "toolCallId" in part]
    assert stored[0]["approval"] == verdict


async def test_a_decision_that_waits_for_another_can_be_completed(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay both")
        first, second = asked.open_approvals
        await stage.http.post(f"/api/approvals/{first}", json={"approved": True})
        state = await resumed(chat, asked)
        assert state.open_approvals == [first, second]
        assert statuses(state.last["parts"]) == ["approved", "pending"]
        await chat.approve(first)
        done = await chat.approve(second)
    assert done.text == "Both told."
    assert stage.payments == [1, 2]


async def test_a_decision_that_waits_for_another_is_not_asked_for_where_it_can_be_told(
    stage: Stage,
) -> None:
    async with TELLS_VERDICTS(stage, query="?sdk=7") as chat:
        asked = await chat.send("pay both")
        first, second = asked.open_approvals
        await stage.http.post(f"/api/approvals/{first}", json={"approved": False})
        state = await resumed(chat, asked)
        assert state.open_approvals == [second]
        assert [part["state"] for part in state.tool_parts] == [
            "output-denied",
            "approval-requested",
        ]
        done = await chat.approve(second)
    assert done.text == "Both told."
    assert stage.payments == [2]


async def test_what_was_given_up_is_told_as_an_error_of_a_call_that_nobody_decided(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c") as chat:
        asked = await chat.send("pay 5")
        assert (await stage.http.post("/api/chat/c/stop")).json() == {"stopped": True}
        state = await resumed(chat, asked)
        stored = (await loaded(stage, "c"))["messages"][-1]["parts"]
    for parts in (state.last["parts"], stored):
        (part,) = [part for part in parts if "toolCallId" in part]
        assert part["state"] == "output-error"
        assert "cancelled" in part["errorText"]
        assert "approval" not in part
        assert statuses(list(parts)) == ["cancelled"]


@pytest.mark.parametrize("sdk", SDK_VERSIONS)
async def test_a_confirmation_that_was_answered_is_not_called_again(
    stage: Stage, sdk: SdkVersion
) -> None:
    async with StockChat(f"{stage.url}/stream", sdk, auto="tools") as chat:
        asked = await chat.send("pay 5")
        (confirmation,) = asked.open_confirmations
        done = await chat.output(
            "adk_request_confirmation", confirmation, output={"confirmed": True}
        )
        state = await resumed(chat, done)
    assert [call["toolName"] for call in state.tool_calls] == ["adk_request_confirmation"]
    assert state.last["parts"] == done.last["parts"]


async def test_a_socket_of_envelopes_that_is_opened_again_goes_on_where_the_turn_stands(
    stage: Stage,
) -> None:
    async with enveloped(stage.url, chat="c") as first:
        await first.write("message", messages=[user_message("where am I")])
        asked = await first.reply()
        await first.confirm(asked.calls[-1], True)
        await first.reply()
    async with enveloped(stage.url, chat="c") as second:
        again = await second.reply()
        confirmed = [chunk["output"] for chunk in again.only("tool-output-available")]
        assert confirmed == [{"confirmed": True}]
        shown = [chunk["toolName"] for chunk in again.only("tool-input-available")]
        assert shown == ["get_location"]
        await second.answer(asked.calls[0], {"latitude": 35.6}, "get_location")
        told = await second.reply()
        assert told.text == "Place told."
        # One end for the whole turn, and only now.
        assert DONE not in second.heard
        assert await second.next() == DONE


async def test_a_chat_says_whether_a_reply_runs_and_what_it_has_said_so_far(stage: Stage) -> None:
    async with Connect("ai7")(stage, chat_id="c") as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        running = await loaded(stage, "c")
        assert running["activeStreamId"] == "c"
        assert [message["role"] for message in running["messages"]] == ["user", "assistant"]
        assert running["messages"][-1]["parts"] == [
            {"type": "step-start"},
            {"type": "text", "text": "One. ", "state": "streaming"},
        ]
        stage.more.set()
        ended = await chat.settled()
        over = await loaded(stage, "c")
    assert over["activeStreamId"] is None
    assert over["messages"][-1]["parts"] == ended.last["parts"]
    assert over["messages"][-1]["id"] == running["messages"][-1]["id"]


async def test_a_page_that_loads_what_was_said_so_far_shows_it_once(
    stage: Stage, connect: Connect
) -> None:
    if connect.sdk in {"ai6strict", "ai7strict"}:
        pytest.skip("versions before 6.0.250 and 7.0.61 append what they resume")
    async with connect(stage, chat_id="c") as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        running = await loaded(stage, "c")
        await chat.reload(running["messages"])
        await chat.resume(wait=False)
        await chat.text_contains("One.")
        stage.more.set()
        state = await chat.settled()
    assert len(state.messages) == 2
    assert state.text == "One. Two."
    assert state.last["id"] == running["messages"][-1]["id"]


async def test_a_chat_whose_tool_runs_shows_it_as_running(stage: Stage) -> None:
    asked = await stage.say("c", "pay slowly")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.post, "/api/chat", asked.approving("c", True))
        assert await anyio.to_thread.run_sync(stage.tool_started.wait, 60)
        running = await loaded(stage, "c")
        stage.tool_may_end.set()
    (part,) = [part for part in running["messages"][-1]["parts"] if "toolCallId" in part]
    assert (part["state"], part["approval"]["approved"]) == ("approval-responded", True)
    assert running["activeStreamId"] == "c"


async def test_a_call_that_waits_is_no_reply_that_runs(stage: Stage) -> None:
    await stage.say("c", "pay 5")
    assert (await loaded(stage, "c"))["activeStreamId"] is None


async def test_a_reply_that_breaks_is_replayed_with_its_error(stage: Stage) -> None:
    broken = await stage.say("c", "break")
    again = Answered.of(await stage.http.get("/api/chat/c/stream"))
    assert again.chunks == broken.chunks
    assert again.types[-1] == "error"
