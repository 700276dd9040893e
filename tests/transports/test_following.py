"""What a reader of a chat has, and what comes next."""

from __future__ import annotations

import pytest
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import TurnRecord
from adk_stream_protocol.server.identity import anyone
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import create_service
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.transports.following import Following
from adk_stream_protocol.wire.chunks import StartChunk, TextDeltaChunk, TextStartChunk
from adk_stream_protocol.wire.entries import CallHeld, Entry, OwnBegins
from support.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

CHAT, USER, REPLY = ChatId("c"), UserId("ann"), ReplyId("r2")


def held(approval_id: str) -> CallHeld:
    return CallHeld(
        call_id="call",
        tool_name="pay",
        input={},
        request_id="request",
        approval_id=approval_id,
        hint="",
    )


@pytest.mark.parametrize("message", ["m1", "m2"])
async def test_a_message_that_goes_on_is_not_told_again_whenever_its_call_is_delivered(
    message: str,
) -> None:
    stores = memory_stores(keep_replies=60)
    conversations = create_service(
        LlmAgent(name="a", model=ScriptedModel()),
        tools=None,
        identify=anyone,
        settings=Settings(),
        services=None,
        database=None,
        stores=stores,
        options=None,
        may_decide=None,
    ).conversations
    following = Following(conversations, user=USER, chat_id=CHAT, look_seconds=60)
    following.note([StartChunk("m1"), held("call")])
    retold: list[Entry] = [StartChunk(message), TextStartChunk("t0"), TextDeltaChunk("t0", "Old.")]
    own: list[Entry] = [StartChunk(message), TextStartChunk("t1"), TextDeltaChunk("t1", "New.")]

    # As another instance does: the turn begins before the call is noted as delivered in it.
    await stores.turns.begin(TurnRecord(CHAT, USER, REPLY, key="k"), repeatable=False)
    await stores.log.open(REPLY)
    await stores.log.append(REPLY, [*retold, OwnBegins(), *own])

    reply = await following.next()
    got = list((await reply.next()).entries)
    assert got == (own if message == "m1" else [*retold, *own])
