"""Pages whose `sendAutomaticallyWhen` would send for ever: the server ends it, and clicks work.

`approved` sends while any part is approved and unanswered, as a well-known chat template does;
`confirmed` while a confirmation has its output and its call has none, as the first clients of the
seeds' protocol do. Both see no difference in the short reply to an answer that is not the last.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stories.connecting import CONNECTIONS, Connect
from support.conformance import SDK_VERSIONS, SdkVersion, StockChat
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

CONFIRM = "adk_request_confirmation"
ASKED, ANSWERED, REPEATED = 1, 1, 3
"""How many requests it takes: to ask, to answer, and to be told to stop."""


@pytest.fixture(params=CONNECTIONS, ids=str)
def connect(request: pytest.FixtureRequest) -> Connect:
    chosen: Connect = request.param
    return chosen


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


async def test_an_approval_of_one_of_two_is_not_sent_for_ever(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="approved") as chat:
        asked = await chat.send("pay both")
        one, two = asked.open_approvals
        told = await chat.approve(one)
        assert (told.status, told.error_kind) == ("error", "stream")
        assert told.error is not None
        assert told.error.endswith("when the rest is answered, too: pay (a decision).")
        assert told.requests == ASKED + ANSWERED + REPEATED
        assert told.open_approvals == [two]
        state = await chat.approve(two)
    assert state.status == "ready", state.error
    assert state.requests == told.requests + 1
    assert state.text == "Both told."
    assert stage.payments == [1, 2]


async def test_an_approved_browser_tool_beside_a_payment_is_run_once_and_sent(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="approved", browser=True) as chat:
        asked = await chat.send("pay and locate")
        pay, locate = asked.open_approvals
        located = await chat.approve(locate)
        # It has its output now: nothing is left that such a page would send.
        assert (located.status, located.runs) == ("ready", ["get_location"])
        state = await chat.approve(pay)
    assert state.status == "ready", state.error
    assert state.runs == ["get_location"]
    assert state.text == "Both known."
    assert stage.payments == [7]


@pytest.mark.parametrize("sdk", SDK_VERSIONS)
async def test_a_confirmation_of_one_of_two_is_not_sent_for_ever(
    stage: Stage, sdk: SdkVersion
) -> None:
    async with StockChat(f"{stage.url}/stream", sdk, auto="confirmed") as chat:
        asked = await chat.send("pay both")
        one, two = asked.open_confirmations
        told = await chat.output(CONFIRM, one, output={"confirmed": True})
        assert told.error is not None
        assert "pay (a decision)" in told.error
        assert told.requests == ASKED + ANSWERED + REPEATED
        state = await chat.output(CONFIRM, two, output={"confirmed": False})
    assert state.status == "ready", state.error
    assert state.text == "Both told."
    assert stage.payments == [1]


@pytest.mark.parametrize("sdk", SDK_VERSIONS)
async def test_a_confirmed_browser_tool_is_not_sent_for_ever(stage: Stage, sdk: SdkVersion) -> None:
    async with StockChat(f"{stage.url}/stream", sdk, auto="confirmed") as chat:
        asked = await chat.send("where am I")
        (confirmation,) = asked.open_confirmations
        told = await chat.output(CONFIRM, confirmation, output={"confirmed": True})
        assert told.error is not None
        assert "get_location (its output)" in told.error
        assert told.requests == ASKED + ANSWERED + REPEATED
        call_id = asked.tool_parts[0]["toolCallId"]
        await chat.output("get_location", call_id, output={"latitude": 35.6})
        state = await chat.submit()
    assert state.status == "ready", state.error
    assert state.text == "Place told."


@pytest.mark.parametrize("query", ["", "?sdk=7"])
async def test_a_short_reply_leaves_what_is_over_as_it_is(stage: Stage, query: str) -> None:
    async with Connect("ai7")(stage, auto="none", query=query) as chat:
        asked = await chat.send("pay one, then two")
        await chat.approve(asked.open_approvals[0])
        then = await chat.submit()
        await chat.approve(then.open_approvals[0])
        state = await chat.submit()
        assert [part["state"] for part in state.tool_parts] == [
            "output-available",
            "approval-responded",
            "approval-requested",
        ]
        await chat.approve(then.open_approvals[1])
        done = await chat.submit()
    assert done.text == "All told."
    assert stage.payments == [1, 2, 3]


async def test_an_honest_repetition_gets_the_same_reply(stage: Stage) -> None:
    asked = await stage.say("c", "pay both")
    answer = asked.approving("c", True, True)
    del answer["messages"][0]["parts"][1]
    first, second, third = [await stage.post("/api/chat", answer) for _ in range(3)]
    assert first.types[0] == "start"
    assert second.chunks == third.chunks == first.chunks
    refused = await stage.post("/api/chat", answer)
    assert refused.types == ["start", "error"]
    assert refused.message_id == asked.message_id
    both = await stage.post("/api/chat", asked.approving("c", True, True))
    assert both.text == "Both told."


async def test_answers_that_differ_are_no_repetition(stage: Stage) -> None:
    asked = await stage.say("c", "pay both")
    yes, no = asked.approving("c", True, True), asked.approving("c", False, True)
    for body in (yes, no):
        del body["messages"][0]["parts"][1]
    for body in (yes, no, yes, no, yes, no):
        assert "error" not in (await stage.post("/api/chat", body)).types
    assert stage.payments == []


async def test_a_loop_in_one_chat_is_no_matter_of_another(stage: Stage) -> None:
    one, other = [await stage.say(chat, "pay both") for chat in ("one", "other")]
    body = one.approving("one", True, True)
    del body["messages"][0]["parts"][1]
    looping = [await stage.post("/api/chat", body) for _ in range(5)]
    assert looping[-1].types[-1] == "error"
    answer = other.approving("other", True, True)
    assert (await stage.post("/api/chat", answer)).text == "Both told."
