"""The stock clients of ai v6 and v7, newest and last strict ones, against the real server.

No code of ours runs in the client: `AbstractChat` with `DefaultChatTransport`, and the same stories
with v7's `WebSocketChatTransport`. Only v6, which has none, is given our `SocketChatTransport`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest

from stories.connecting import CONNECTIONS, Connect
from support.conformance import SDK_VERSIONS, ChatState, Part, SdkVersion, StockChat, UIMessage
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture(params=CONNECTIONS, ids=str)
def connect(request: pytest.FixtureRequest) -> Connect:
    chosen: Connect = request.param
    return chosen


@pytest.fixture(params=SDK_VERSIONS)
def sdk(request: pytest.FixtureRequest) -> SdkVersion:
    version: SdkVersion = request.param
    return version


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


def tool_states(state: ChatState) -> list[str]:
    return [part["state"] for part in state.tool_parts]


def one_assistant_message(state: ChatState) -> None:
    assert [message["role"] for message in state.messages] == ["user", "assistant"]
    assert state.status == "ready", state.error


def part_types(state: ChatState) -> list[str]:
    return [part["type"] for part in state.last["parts"] if not part["type"].startswith("data-")]


async def test_text_arrives_as_one_message(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        state = await chat.send("hi")
    one_assistant_message(state)
    assert state.text == "Hello."
    assert state.requests == 1


async def test_a_refusal_is_shown_as_a_sentence(stage: Stage, connect: Connect) -> None:
    await stage.say("theirs", "hi", **{"x-user": "bob"})
    async with connect(stage, chat_id="theirs") as chat:
        refused = await chat.send("hi")
    assert (refused.status, refused.error) == ("error", "No such chat.")


async def test_thoughts_arrive_as_reasoning(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        state = await chat.send("think")
    one_assistant_message(state)
    assert part_types(state) == ["step-start", "reasoning", "text"]
    assert state.last["parts"][1]["text"] == "Let me see."


async def test_a_tool_runs_and_the_model_tells(stage: Stage, connect: Connect) -> None:
    async with connect(stage, auto="both") as chat:
        state = await chat.send("add")
    one_assistant_message(state)
    assert part_types(state) == ["step-start", "tool-add", "step-start", "text"]
    assert state.tool_parts[0]["output"] == {"sum": 3}
    assert state.requests == 1


async def test_a_failing_tool_is_an_error_part_and_leaks_nothing(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="both") as chat:
        state = await chat.send("fail")
    one_assistant_message(state)
    assert tool_states(state) == ["output-error"]
    assert state.text == "It failed."
    assert "SECRET" not in str(state)
    assert state.requests == 1


async def test_an_approved_payment_is_made_once(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        assert tool_states(asked) == ["approval-requested"]
        assert stage.payments == []
        state = await chat.approve(asked.open_approvals[0])
    one_assistant_message(state)
    assert part_types(state) == ["step-start", "text", "tool-pay", "step-start", "text"]
    assert tool_states(state) == ["output-available"]
    assert state.tool_parts[0]["approval"]["approved"] is True
    assert stage.payments == [5]
    assert state.requests == 2


async def test_a_denied_payment_is_never_made(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        state = await chat.deny(asked.open_approvals[0], reason="too much")
    one_assistant_message(state)
    assert tool_states(state) == ["output-denied"]
    assert state.tool_parts[0]["approval"]["reason"] == "too much"
    assert state.text.endswith("Result told.")
    assert stage.payments == []
    assert state.requests == 2
    told = str(stage.model.prompts[-1])
    assert "User denied execution: too much" in told


@pytest.mark.parametrize(
    ("first", "second"), [(True, True), (True, False), (False, True), (False, False)]
)
async def test_two_payments_in_one_step_are_each_decided(
    stage: Stage, connect: Connect, first: bool, second: bool
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay both")
        one, two = asked.open_approvals
        await (chat.approve(one) if first else chat.deny(one))
        state = await (chat.approve(two) if second else chat.deny(two))
    one_assistant_message(state)
    said = {True: "output-available", False: "output-denied"}
    assert tool_states(state) == [said[first], said[second]]
    assert stage.payments == [amount for amount, yes in ((1, first), (2, second)) if yes]
    assert state.text == "Both told."
    assert state.requests == 2


async def test_chained_approvals_grow_one_message(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        first = await chat.send("pay in turn")
        second = await chat.approve(first.open_approvals[0])
        assert tool_states(second) == ["output-available", "approval-requested"]
        state = await chat.approve(second.open_approvals[0])
    one_assistant_message(state)
    assert tool_states(state) == ["output-available", "output-available"]
    assert stage.payments == [1, 2]
    assert state.requests == 3


async def test_a_tool_that_asks_by_itself_gets_its_payload(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("book 3")
        state = await chat.approve(asked.open_approvals[0])
    one_assistant_message(state)
    assert state.tool_parts[0]["output"] == {"booked": {"days": 3}}
    assert state.text == "Booking told."
    assert len(stage.model.prompts) == 2


async def test_a_browser_tool_is_answered_by_the_browser(stage: Stage, connect: Connect) -> None:
    async with connect(stage, auto="tools") as chat:
        asked = await chat.send("play jazz")
        assert tool_states(asked) == ["input-available"]
        assert [call["toolName"] for call in asked.tool_calls] == ["change_bgm"]
        call_id = asked.tool_parts[0]["toolCallId"]
        state = await chat.output("change_bgm", call_id, output={"playing": "jazz"})
    one_assistant_message(state)
    assert state.tool_parts[0]["output"] == {"playing": "jazz"}
    assert state.text == "Music told."
    assert state.requests == 2
    assert "tool-output-available" not in [chunk["type"] for chunk in state.chunks[1]]
    assert "'playing': 'jazz'" in str(stage.model.prompts[-1])


async def test_a_browser_tool_that_fails_tells_the_model_why(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="tools") as chat:
        asked = await chat.send("play jazz")
        call_id = asked.tool_parts[0]["toolCallId"]
        state = await chat.output_error("change_bgm", call_id, error_text="no speaker")
    one_assistant_message(state)
    assert tool_states(state) == ["output-error"]
    assert "no speaker" in str(stage.model.prompts[-1])


async def test_approval_and_output_of_a_browser_tool_may_come_in_one_request(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="tools") as chat:
        asked = await chat.send("where am I")
        part = asked.tool_parts[0]
        assert part["state"] == "approval-requested"
        await chat.approve(asked.open_approvals[0])
        state = await chat.output("get_location", part["toolCallId"], output={"latitude": 35.6})
    one_assistant_message(state)
    assert state.text == "Place told."
    assert state.requests == 2
    assert "35.6" in str(stage.model.prompts[-1])


async def test_approval_and_output_of_a_browser_tool_may_come_in_two_requests(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage, auto="approvals") as chat:
        asked = await chat.send("where am I")
        approved = await chat.approve(asked.open_approvals[0])
        assert approved.requests == 2
        assert approved.status == "ready"
        call_id = approved.tool_parts[0]["toolCallId"]
        await chat.output("get_location", call_id, output={"latitude": 35.6})
        state = await chat.submit()
    one_assistant_message(state)
    assert state.text == "Place told."
    assert state.requests == 3
    assert len(stage.model.prompts) == 2


async def test_a_denied_browser_tool_is_not_run(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("where am I")
        state = await chat.deny(asked.open_approvals[0])
    one_assistant_message(state)
    assert tool_states(state) == ["output-denied"]
    assert state.text == "Place told."


async def test_regenerate_replaces_the_answer(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        first = await chat.send("hi")
        second = await chat.regenerate()
        third = await chat.regenerate(second.last["id"])
    one_assistant_message(third)
    assert len({first.last["id"], second.last["id"], third.last["id"]}) == 3
    history = (await stage.http.get(f"/api/chats/{third.chat_id}")).json()
    assert [message["id"] for message in history["messages"]] == [
        message["id"] for message in third.messages
    ]
    assert len(stage.model.prompts[-1]) == 1


async def test_an_edit_takes_back_what_followed(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        first = await chat.send("pay 5")
        state = await chat.edit(first.messages[0]["id"], "hello")
    one_assistant_message(state)
    assert state.text == "Hello again."
    assert len(stage.model.prompts[-1]) == 1
    pending = (await stage.http.get("/api/approvals?status=pending")).json()
    assert pending == {"approvals": []}
    late = await stage.http.post(
        f"/api/approvals/{first.open_approvals[0]}", json={"approved": True}
    )
    assert late.status_code == 409
    assert late.json()["status"] == "cancelled"
    assert stage.payments == []


async def test_stop_ends_the_reply_and_keeps_what_was_said(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        await chat.send("long", wait=False)
        state = await chat.text_contains("One.")
        stopped = await stage.http.post(f"/api/chat/{state.chat_id}/stop")
        assert stopped.json() == {"stopped": True}
        state = await chat.settled()
        one_assistant_message(state)
        assert state.text == "One. "
        history = (await stage.http.get(f"/api/chats/{state.chat_id}")).json()
        assert history["messages"][1]["parts"][1]["text"] == "One. "
        again = await chat.send("hi")
    assert again.status == "ready"
    assert again.text == "Hello."


async def test_leaving_is_not_stopping(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="left") as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        if not connect.socket:
            # Over a WebSocket that would be a stop.
            await chat.stop()
    stage.more.set()
    async with connect(stage, chat_id="left") as chat:
        state = await chat.resume()
    assert state.text == "One. Two."


async def test_an_answer_after_a_reload_works(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        history = (await stage.http.get(f"/api/chats/{asked.chat_id}")).json()
        loaded = await chat.reload(history["messages"])
        assert tool_states(loaded) == ["approval-requested"]
        state = await chat.approve(loaded.open_approvals[0])
    one_assistant_message(state)
    assert tool_states(state) == ["output-available"]
    assert stage.payments == [5]


async def test_typing_instead_of_answering_leaves_the_approval_open(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        typed = await chat.send("hi")
        assert typed.status == "ready", typed.error
        assert typed.text == "Hello."
        assert [m["role"] for m in typed.messages] == ["user", "assistant", "user", "assistant"]
        pending = (await stage.http.get("/api/approvals?status=pending")).json()["approvals"]
        assert [approval["id"] for approval in pending] == asked.open_approvals
        decided = await stage.http.post(
            f"/api/approvals/{asked.open_approvals[0]}", json={"approved": True}
        )
        assert decided.status_code == 200
        history = await _history_with(stage, asked.chat_id, "Result told.")
        state = await chat.reload(history)
    assert stage.payments == [5]
    assert state.messages[1]["parts"][2]["state"] == "output-available"


async def test_an_error_half_way_is_reported_once(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        state = await chat.send("break")
        assert state.status == "error"
        assert state.error_kind == "stream"
        assert state.text == "Some "
        assert "SECRET" not in str(state)
        again = await chat.send("hi")
    assert again.status == "ready"
    assert again.text == "Hello."


async def test_a_decision_made_elsewhere_is_seen_by_resume(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        decided = await stage.http.post(
            f"/api/approvals/{asked.open_approvals[0]}", json={"approved": True}
        )
        assert decided.json()["status"] == "approved"
        history = await _history_with(stage, asked.chat_id, "Result told.")
        await chat.reload(history[:1])
        state = await chat.resume()
    one_assistant_message(state)
    assert tool_states(state) == ["output-available"]
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]


@pytest.mark.parametrize("late", [True, False])
async def test_a_late_answer_shows_the_real_outcome(
    stage: Stage, connect: Connect, late: bool
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        await stage.http.post(f"/api/approvals/{asked.open_approvals[0]}", json={"approved": False})
        state = await (chat.approve if late else chat.deny)(asked.open_approvals[0])
    one_assistant_message(state)
    # A part that holds an approval cannot be a denied one: the AI SDK would call it invalid.
    assert tool_states(state) == ["output-error" if late else "output-denied"]
    assert not late or state.tool_parts[0]["errorText"] == "User denied execution"
    assert state.text.endswith("Result told.")
    assert stage.payments == []
    assert state.requests == 2


async def test_two_approvals_beside_a_plain_tool(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay and add")
        assert tool_states(asked) == [
            "approval-requested",
            "approval-requested",
            "output-available",
        ]
        await chat.approve(asked.open_approvals[0])
        state = await chat.deny(asked.open_approvals[1])
    one_assistant_message(state)
    assert tool_states(state) == ["output-available", "output-denied", "output-available"]
    assert stage.payments == [5]


async def test_an_approval_beside_a_browser_tool(stage: Stage, connect: Connect) -> None:
    async with connect(stage, auto="both") as chat:
        asked = await chat.send("pay and play")
        call_id = asked.tool_parts[1]["toolCallId"]
        await chat.output("change_bgm", call_id, output={"playing": "rock"})
        state = await chat.approve(asked.open_approvals[0])
    one_assistant_message(state)
    assert tool_states(state) == ["output-available", "output-available"]
    assert state.text == "Mixed told."
    assert stage.payments == [7]
    assert "'playing': 'rock'" in str(stage.model.prompts[-1])
    assert state.requests == 2


async def test_a_japanese_payment(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("花子さんに50ドル送金してください")
        state = await chat.approve(asked.open_approvals[0])
    one_assistant_message(state)
    assert state.text == "送金します。花子さんに50ドルを送金しました。"


async def test_the_confirmation_tool_is_answered_with_add_tool_output(
    stage: Stage, sdk: SdkVersion
) -> None:
    async with StockChat(f"{stage.url}/stream", sdk, auto="tools") as chat:
        asked = await chat.send("pay both")
        assert [call["toolName"] for call in asked.tool_calls] == ["adk_request_confirmation"] * 2
        confirmations = _confirmations(asked)
        await chat.output("adk_request_confirmation", confirmations[0], output={"confirmed": True})
        state = await chat.output(
            "adk_request_confirmation", confirmations[1], output={"confirmed": False}
        )
    one_assistant_message(state)
    assert state.requests == 2
    assert stage.payments == [1]
    payments = [part for part in state.tool_parts if part["type"] == "tool-pay"]
    assert [part["state"] for part in payments] == ["output-available", "output-error"]
    assert payments[1]["errorText"] == "User denied execution"
    assert state.text == "Both told."


def _confirmations(state: ChatState) -> list[str]:
    def asks(part: Part) -> bool:
        return part["type"] == "tool-adk_request_confirmation"

    return [part["toolCallId"] for part in state.tool_parts if asks(part)]


async def _history_with(stage: Stage, chat_id: str, text: str) -> list[UIMessage]:
    """Return the chat's messages once the continuation has told its text."""
    with anyio.fail_after(10):
        while True:
            await stage.http.get(f"/api/chat/{chat_id}/stream")
            history = (await stage.http.get(f"/api/chats/{chat_id}")).json()["messages"]
            if text in str(history):
                return list(history)
