"""A page that uses all of our client, over `WS /live`: real chats of ai 6 and ai 7, a real server.

The stream of a turn stays open while a call waits, so these stories wait for the question and not
for the end of the request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from support.conformance import StockChat
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

Version = Literal["ai6", "ai7"]


@pytest.fixture(params=["ai6", "ai7"])
def sdk(request: pytest.FixtureRequest) -> Version:
    chosen: Version = request.param
    return chosen


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


def page(stage: Stage, sdk: Version, *, resume: bool = False) -> StockChat:
    api = f"{stage.url.replace('http', 'ws', 1)}/live"
    return StockChat(api, sdk, envelope=True, auto="answered", chat_id="c", resume=resume)


async def messages(stage: Stage) -> list[Any]:
    """What a page loads: the chat as the server has it."""
    response = await stage.http.get(f"{stage.url}/api/chats/c", params={"profile": "adk"})
    found: list[Any] = response.json()["messages"]
    return found


async def test_a_message_is_answered(stage: Stage, sdk: Version) -> None:
    async with page(stage, sdk) as chat:
        state = await chat.send("hi")
    assert state.status == "ready", state.error
    assert state.text == "Hello."


async def test_an_approved_payment_is_made_on_the_open_stream(stage: Stage, sdk: Version) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        asked = await chat.confirmations_asked()
        assert asked.status == "streaming"
        await chat.confirm(asked.open_confirmations[0], True, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]
    assert [part["state"] for part in state.tool_parts] == ["output-available", "output-available"]
    # No second message: the answer was a frame of its own.
    assert state.requests == 1


async def test_a_denied_payment_is_never_made_and_the_reason_is_told(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        asked = await chat.confirmations_asked()
        await chat.confirm(asked.open_confirmations[0], False, reason="Too much.", wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert stage.payments == []
    payment, confirmation = state.tool_parts
    assert payment["errorText"] == "User denied execution: Too much."
    assert confirmation["output"] == {"confirmed": False}
    assert state.requests == 1


async def test_a_double_click_is_one_answer(stage: Stage, sdk: Version) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        asked = await chat.confirmations_asked()
        click = {
            "do": "confirm",
            "toolCallId": asked.open_confirmations[0],
            "confirmed": True,
            "wait": False,
        }
        await chat.act_together(click, click)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert stage.payments == [5]
    assert not [frame for frame in state.frames if frame["type"] == "error"]


async def test_two_payments_of_one_step_go_on_when_both_are_decided(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay both", wait=False)
        asked = await chat.confirmations_asked(2)
        first, second = asked.open_confirmations
        half = await chat.confirm(first, True, wait=False)
        assert half.status == "streaming"
        await chat.confirm(second, False, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "Both told."
    assert stage.payments == [1]
    assert state.requests == 1


async def test_payments_one_after_another_are_asked_one_after_another(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay in turn", wait=False)
        first = await chat.confirmations_asked()
        await chat.confirm(first.open_confirmations[0], True, wait=False)
        # The first is answered at once in the page, so that the next that is asked is the second.
        second = await chat.confirmations_asked()
        assert second.open_confirmations != first.open_confirmations
        await chat.confirm(second.open_confirmations[0], True, wait=False)
        state = await chat.settled()
    assert state.text == "All told."
    assert stage.payments == [1, 2]


async def test_a_browser_tool_runs_once_while_the_stream_is_open(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        state = await chat.send("play jazz")
    assert state.status == "ready", state.error
    assert state.text == "Music told."
    assert state.runs == ["jazz"]
    assert [part["output"] for part in state.tool_parts] == [{"playing": "jazz"}]
    assert state.requests == 1


async def test_a_browser_tool_waits_for_its_approval_and_its_failure_is_told(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("where am I", wait=False)
        asked = await chat.confirmations_asked()
        assert asked.runs == []
        await chat.confirm(asked.open_confirmations[0], True, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.runs == ["location"]
    assert state.tool_parts[0]["state"] == "output-error"
    assert state.tool_parts[0]["errorText"] == "The user does not say."
    assert state.text == "Place told."
    # That a tool failed is said by a message: a `tool_result` has no word for it.
    assert state.requests == 2


async def test_a_browser_tool_that_is_denied_does_not_run(stage: Stage, sdk: Version) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("where am I", wait=False)
        asked = await chat.confirmations_asked()
        await chat.confirm(asked.open_confirmations[0], False, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.runs == []


async def test_a_payment_and_a_browser_tool_of_one_step(stage: Stage, sdk: Version) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay and play", wait=False)
        asked = await chat.confirmations_asked()
        await chat.confirm(asked.open_confirmations[0], True, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "Mixed told."
    assert stage.payments == [7]
    assert state.runs == ["rock"]


async def test_a_page_that_is_loaded_while_a_call_waits_resumes_and_answers(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        await chat.confirmations_asked()
    async with page(stage, sdk, resume=True) as chat:
        await chat.reload(await messages(stage), wait=False)
        # The message is told from its beginning, and replaces what was loaded.
        await chat.streaming()
        asked = await chat.confirmations_asked()
        await chat.confirm(asked.open_confirmations[0], True, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]
    assert state.requests == 0


async def test_a_page_that_is_loaded_and_does_not_resume_answers_with_a_message(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        await chat.confirmations_asked()
    async with page(stage, sdk) as chat:
        asked = await chat.reload(await messages(stage))
        state = await chat.confirm(asked.open_confirmations[0], True)
    assert state.status == "ready", state.error
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]
    assert state.requests == 1
    assert len(state.messages) == 2


async def test_a_chat_in_which_nothing_runs_has_nothing_to_resume(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk, resume=True) as chat:
        state = await chat.settled()
        assert state.status == "ready"
        assert state.messages == []
        state = await chat.send("hi")
    assert state.text == "Hello."


async def test_a_socket_that_is_cut_while_text_streams_is_resumed(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        cut = await chat.cut()
        assert cut.status == "error"
        assert cut.finishes[-1]["isDisconnect"] is True
        await chat.resume(wait=False)
        # A turn that has ended is not told again here, so it must not end before.
        await chat.streaming()
        stage.more.set()
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "One. Two."
    assert [message["role"] for message in state.messages] == ["user", "assistant"]


async def test_a_socket_that_is_cut_while_a_call_waits_still_takes_the_answer(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        asked = await chat.confirmations_asked()
        await chat.cut()
        await chat.resume(wait=False)
        await chat.streaming()
        again = await chat.confirmations_asked()
        assert again.open_confirmations == asked.open_confirmations
        await chat.confirm(again.open_confirmations[0], True, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]


async def test_a_decision_from_elsewhere_goes_on_in_the_page(stage: Stage, sdk: Version) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        asked = await chat.confirmations_asked()
        [approval] = asked.open_confirmations
        await stage.http.post(f"{stage.url}/api/approvals/{approval}", json={"approved": True})
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]


async def test_a_turn_of_another_tab_is_shown(stage: Stage, sdk: Version) -> None:
    async with page(stage, sdk) as chat, page(stage, sdk) as other:
        await chat.send("hi")
        await other.send("add late", wait=False)
        await chat.turns_begun_elsewhere()
        stage.more.set()
        state = await chat.settled()
    assert state.active == ["c"]
    assert state.text == "It is 3."


async def test_an_interruption_ends_what_waits_and_nothing_is_sent_again(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        await chat.confirmations_asked()
        await chat.interrupt(wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert stage.payments == []
    assert state.requests == 1
    assert state.tool_parts[1]["output"] == {"confirmed": False, "outcome": "cancelled"}


async def test_who_types_instead_of_answering_is_answered_and_may_still_decide(
    stage: Stage, sdk: Version
) -> None:
    async with page(stage, sdk) as chat:
        await chat.send("pay 5", wait=False)
        asked = await chat.confirmations_asked()
        await chat.send("hello", wait=False)
        await chat.text_contains("Hello again.")
        await chat.confirm(asked.open_confirmations[0], True, wait=False)
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert stage.payments == [5]
    assert [message["role"] for message in state.messages] == ["user", "assistant"] * 2
