"""What only a transport over WebSockets does: one socket for a page, cut, shared, and misused.

`WebSocketChatTransport` of v7, and our `SocketChatTransport` for v6.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from stories.connecting import SOCKETS, Connect
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture(params=SOCKETS, ids=str)
def connect(request: pytest.FixtureRequest) -> Connect:
    chosen: Connect = request.param
    return chosen


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


async def test_a_socket_that_is_cut_while_text_streams_is_resumed(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        cut = await chat.cut()
        assert cut.status == "error"
        assert cut.finishes[-1]["isDisconnect"] is True
        await chat.resume(wait=False)
        await chat.text_contains("One.")
        stage.more.set()
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert [message["role"] for message in state.messages] == ["user", "assistant"]
    assert state.text == "One. Two."
    assert [resume["status"] for resume in state.resumes] == [200]


async def test_a_socket_that_is_cut_while_a_call_is_held_still_takes_the_answer(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        await chat.cut()
        resumed = await chat.resume()
        assert resumed.open_approvals == asked.open_approvals
        state = await chat.approve(asked.open_approvals[0])
    assert state.status == "ready", state.error
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]


async def test_a_socket_that_is_cut_before_the_continuation_was_read_is_resumed(
    stage: Stage, connect: Connect
) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay late")
        await chat.approve(asked.open_approvals[0], wait=False)
        await chat.part_in_state("output-available")
        await chat.cut()
        await chat.resume(wait=False)
        stage.more.set()
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "Late told."
    assert [part["state"] for part in state.tool_parts] == ["output-available"]
    assert stage.payments == [5]


async def test_chats_of_one_page_share_the_socket(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="one") as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        await chat.show("two")
        await chat.send("pay 5", wait=False)
        asked = await chat.part_in_state("approval-requested")
        assert (await chat.show("one")).status == "streaming"
        stage.more.set()
        long = await chat.settled()
        assert long.text == "One. Two."
        await chat.show("two")
        state = await chat.approve(asked.open_approvals[0])
    assert state.text == "Paying. Result told."
    assert stage.payments == [5]
    assert state.status == long.status == "ready"


async def test_another_users_chat_is_no_chat(stage: Stage, connect: Connect) -> None:
    await stage.say("c1", "hi", **{"x-user": "bob"})
    async with connect(stage, chat_id="c1") as chat:
        refused = await chat.send("hi")
        assert (refused.status, refused.error) == ("error", "No such chat.")
        await chat.show("c2")
        state = await chat.send("hi")
    assert state.text == "Hello."


@pytest.mark.parametrize("frame", ["{", "[]", '{"type":"dance","requestId":"x"}', "花" * 400_000])
async def test_a_bad_frame_harms_no_chat_of_the_page(
    stage: Stage, connect: Connect, frame: str
) -> None:
    async with connect(stage) as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        await chat.write(frame)
        stage.more.set()
        state = await chat.settled()
        assert state.text == "One. Two."
        state = await chat.send("hi")
    assert state.text == "Hello."
    assert "error" in [answer["type"] for answer in state.frames]


async def test_a_hint_harms_no_chat_of_the_page(stage: Stage, connect: Connect) -> None:
    async with connect(stage) as chat:
        asked = await chat.send("pay 5")
        await stage.http.post(f"/api/approvals/{asked.open_approvals[0]}", json={"approved": True})
        await chat.show("other")
        state = await chat.send("long", wait=False)
        await chat.text_contains("One.")
        stage.more.set()
        state = await chat.settled()
        assert state.text == "One. Two."
        hints = [frame for frame in state.frames if frame["type"] == "active"]
        assert hints == [{"type": "active", "requestId": "-", "id": asked.chat_id}]
        await chat.show(asked.chat_id)
        seen = await chat.resume()
    assert seen.text == "Paying. Result told."


async def test_a_page_that_loads_resumes_what_runs(stage: Stage, connect: Connect) -> None:
    async with connect(stage, chat_id="c1") as chat:
        await chat.send("long", wait=False)
        await chat.text_contains("One.")
        history = (await stage.http.get("/api/chats/c1")).json()["messages"]
    async with connect(stage, chat_id="c1", resume=True) as chat:
        await chat.reload(history[:1], wait=False)
        await chat.text_contains("One.")
        stage.more.set()
        state = await chat.settled()
    assert state.status == "ready", state.error
    assert state.text == "One. Two."


async def test_a_page_with_nothing_to_resume_is_ready(stage: Stage, connect: Connect) -> None:
    async with connect(stage, resume=True) as chat:
        state = await chat.settled()
        assert state.status == "ready"
        assert [resume["status"] for resume in state.resumes] == [204]
