"""Tools that a stock page runs in `onToolCall`, before and after an approval, on every route.

No code of ours is in the page: `onToolCall` gives the output without awaiting it, and what sends by
itself is `lastAssistantMessageIsCompleteWithApprovalResponses` or `...WithToolCalls`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from stories.connecting import CONNECTIONS, PAGES, Connect
from support.conformance import ChatState
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture(params=PAGES, ids=str)
def connect(request: pytest.FixtureRequest) -> Connect:
    chosen: Connect = request.param
    return chosen


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


def states(state: ChatState) -> list[str]:
    return [part["state"] for part in state.tool_parts]


async def loaded(stage: Stage, chat_id: str) -> list[Any]:
    messages: list[Any] = (await stage.http.get(f"/api/chats/{chat_id}")).json()["messages"]
    return messages


@pytest.mark.parametrize("connect", CONNECTIONS, ids=str)
async def test_an_approved_tool_is_run_once_and_not_before_the_approval(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="both", browser=True) as chat:
        asked = await chat.send("where am I")
        assert states(asked) == ["approval-requested"]
        assert asked.tool_parts[0]["input"] == {}
        assert asked.tool_calls == []
        state = await chat.approve(asked.open_approvals[0])
        assert state.runs == ["get_location"]
        assert [call["toolCallId"] for call in state.tool_calls] == [
            asked.tool_parts[0]["toolCallId"]
        ]
    assert (state.status, state.requests) == ("ready", 3), state.error
    assert states(state) == ["output-available"]
    assert state.tool_parts[0]["approval"]["approved"] is True
    assert state.text == "Place told."
    assert "35.6" in str(stage.model.prompts[-1])
    assert len(stage.model.prompts) == 2


async def test_a_denied_tool_is_never_run(stage: Stage, connect: Connect) -> None:
    async with connect(stage, auto="both", browser=True) as chat:
        asked = await chat.send("where am I")
        state = await chat.deny(asked.open_approvals[0])
    assert (state.status, state.requests) == ("ready", 2), state.error
    assert (state.runs, state.tool_calls) == ([], [])
    assert states(state) == ["output-denied"]
    assert state.text == "Place told."


@pytest.mark.parametrize("paid", [True, False])
async def test_a_tool_beside_a_payment_is_run_once_when_both_are_decided(
    stage: Stage, connect: Connect, paid: bool
) -> None:
    async with connect(stage, auto="both", browser=True) as chat:
        asked = await chat.send("pay and locate")
        pay, locate = asked.open_approvals
        waiting = await chat.approve(locate)
        assert (waiting.requests, waiting.runs) == (1, [])
        state = await (chat.approve(pay) if paid else chat.deny(pay))
    assert (state.status, state.requests) == ("ready", 3), state.error
    assert state.runs == ["get_location"]
    assert states(state) == ["output-available" if paid else "output-denied", "output-available"]
    assert state.text == "Both known."
    assert stage.payments == ([7] if paid else [])


async def test_a_tool_that_is_approved_elsewhere_is_run_when_the_page_resumes(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="both", browser=True) as chat:
        asked = await chat.send("where am I")
        path = f"/api/approvals/{asked.open_approvals[0]}"
        assert (await stage.http.post(path, json={"approved": True})).status_code == 200
        await chat.reload(asked.messages[:1])
        state = await chat.resume()
    assert state.status == "ready", state.error
    assert state.runs == ["get_location"]
    assert state.text == "Place told."


async def test_a_page_that_was_closed_while_the_tool_ran_runs_it_when_it_is_back(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c", auto="both") as chat:
        asked = await chat.send("where am I")
        gone = await chat.approve(asked.open_approvals[0])
        assert states(gone) == ["input-available"]
        assert gone.requests == 2
        stored = await loaded(stage, "c")
    (part,) = [part for part in stored[-1]["parts"] if "toolCallId" in part]
    assert (part["state"], part["approval"]["approved"]) == ("approval-responded", True)
    async with connect(stage, chat_id="c", auto="both", browser=True) as chat:
        await chat.reload(stored[:1])
        state = await chat.resume()
        assert state.runs == ["get_location"]
        assert state.text == "Place told."
        await chat.reload((await loaded(stage, "c"))[:1])
        again = await chat.resume()
    assert again.text == "Place told."
    assert again.runs == ["get_location"]


async def test_a_tool_without_approval_is_run_once_and_not_again_after_a_reload(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="both", browser=True) as chat:
        played = await chat.send("play jazz")
        assert (played.runs, played.requests) == (["change_bgm"], 2)
        await chat.reload(played.messages[:1])
        assert (await chat.resume()).runs == ["change_bgm"]
        await chat.reload(played.messages[:1])
        state = await chat.resume()
    assert state.runs == ["change_bgm"]
    assert [call["toolName"] for call in state.tool_calls] == ["change_bgm"]
    assert state.last["parts"] == played.last["parts"]
    assert state.text == "Music told."


async def test_a_tool_that_nobody_answered_is_run_after_a_reload(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c") as chat:
        asked = await chat.send("play jazz")
        assert states(asked) == ["input-available"]
    async with connect(stage, chat_id="c", auto="both", browser=True) as chat:
        await chat.reload(asked.messages[:1])
        state = await chat.resume()
    assert state.runs == ["change_bgm"]
    assert state.text == "Music told."


async def test_an_output_that_waits_for_a_decision_is_not_made_again_after_a_reload(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, chat_id="c", auto="none", browser=True) as chat:
        asked = await chat.send("pay and play")
        assert asked.runs == ["change_bgm"]
        await chat.submit()
    async with connect(stage, chat_id="c", browser=True) as chat:
        await chat.reload(asked.messages[:1])
        resumed = await chat.resume()
        assert states(resumed) == ["approval-requested", "output-available"]
        assert resumed.runs == []
        state = await chat.approve(resumed.open_approvals[0])
    assert state.runs == []
    assert state.text == "Mixed told."
    assert stage.payments == [7]
    assert "'playing': 'rock'" in str(stage.model.prompts[-1])


@pytest.mark.parametrize("connect", [Connect("ai7"), Connect("ai7", socket="live")], ids=str)
async def test_a_client_that_is_told_of_verdicts_keeps_them(stage: Stage, connect: Connect) -> None:
    async with connect(stage, auto="both", browser=True, query="?sdk=7") as chat:
        asked = await chat.send("pay and locate")
        for approval in asked.open_approvals:
            path = f"/api/approvals/{approval}"
            assert (await stage.http.post(path, json={"approved": True})).status_code == 200
        await chat.reload(asked.messages[:1])
        state = await chat.resume()
    assert state.status == "ready", state.error
    assert state.runs == ["get_location"]
    assert state.text == "Both known."
    assert [part["approval"]["approved"] for part in state.tool_parts] == [True, True]
