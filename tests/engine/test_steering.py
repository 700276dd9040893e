"""Messages that steer a turn: which it takes, and what becomes of those it does not get."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from adk_stream_protocol.engine.steering import Steering, message_of
from adk_stream_protocol.held_calls.run_scope import RunScope
from adk_stream_protocol.identifiers import ChatId, MessageId, ReplyId, UserId
from adk_stream_protocol.ports import Queued, Stores, TurnRecord, WaitingRequest
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.translation.contents import ContentLimits
from adk_stream_protocol.wire.requests import parse_request
from support.stage import user_message

pytestmark = pytest.mark.anyio

CHAT, ANN = ChatId("chat"), UserId("ann")
R1 = ReplyId("reply-1")


@pytest.fixture
async def stores() -> Stores:
    """Stores with a chat in which a turn runs."""
    stores = memory_stores()
    await stores.turns.begin(TurnRecord(CHAT, ANN, R1, "say:1"), repeatable=False)
    return stores


def scope() -> RunScope:
    return RunScope(ANN, CHAT, holder=R1, may_be_steered=True)


async def send(stores: Stores, name: str, text: str, message_id: str | None = None) -> None:
    """Send a message into the turn that runs."""
    message = {**user_message(text), "id": message_id if message_id is not None else name}
    body = parse_request({"id": CHAT, "messages": [message]}).to_json()
    request = WaitingRequest(CHAT, ANN, ReplyId(name), name, request=body, policy="steer")
    turn = TurnRecord(CHAT, ANN, ReplyId(name), name)
    assert isinstance(await stores.turns.begin(turn, repeatable=False, request=request), Queued)


async def stored(*names: str) -> Collection[str]:
    return names


async def never() -> Collection[str]:
    raise AssertionError("nothing steered it, so nobody need read the session")


async def waiting(stores: Stores) -> list[str]:
    return [request.reply_id for request in await stores.waiting.of_chat(CHAT)]


async def test_a_turn_takes_messages_in_order_and_knows_that_it_may_have(stores: Stores) -> None:
    steering, running = Steering(stores, ContentLimits()), scope()
    await send(stores, "m1", "one")
    await send(stores, "m2", "two")
    taken = await steering.take(running)
    assert [message.message_id for message in taken] == ["m1", "m2"]
    assert [part.text for message in taken for part in message.content.parts or ()] == [
        "one",
        "two",
    ]
    assert (running.may_be_steered, running.is_steered) == (False, True)
    assert await steering.take(running) == []


async def test_a_message_without_an_id_is_named_by_its_request(stores: Stores) -> None:
    await send(stores, "m1", "one", message_id="")
    (request,) = await stores.waiting.of_chat(CHAT)
    assert message_of(request) == MessageId("m1")


async def test_messages_that_the_model_was_not_told_wait_again(stores: Stores) -> None:
    steering, running = Steering(stores, ContentLimits()), scope()
    await send(stores, "m1", "one")
    await send(stores, "m2", "two")
    first, _ = await steering.take(running)
    await steering.put_back(running, [])
    assert await waiting(stores) == []
    await steering.put_back(running, [first])
    assert await waiting(stores) == ["m1"]


async def test_only_what_the_session_has_was_heard(stores: Stores) -> None:
    steering, running = Steering(stores, ContentLimits()), scope()
    assert await steering.heard(R1, never) == []
    await send(stores, "m1", "one")
    await send(stores, "m2", "two")
    await steering.take(running)
    assert await steering.heard(R1, lambda: stored("m2", "another")) == ["m2"]


async def test_a_message_that_is_too_long_by_now_is_not_lost(stores: Stores) -> None:
    steering, running = Steering(stores, ContentLimits(text_bytes=3)), scope()
    await send(stores, "m1", "one")
    await send(stores, "m2", "far too long")
    assert [message.message_id for message in await steering.take(running)] == ["m1"]
    heard = await steering.heard(R1, lambda: stored("m1"))
    await stores.turns.end(CHAT, R1, carried=R1, heard=heard)
    # Its own turn says what is wrong with it.
    assert await waiting(stores) == ["m2"]
