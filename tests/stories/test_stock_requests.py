"""What applications let the stock clients send, instead of all their messages.

The real `ai` packages with a `prepareSendMessagesRequest` of each kind that is met (see
`tests/conformance/prepare.mjs`): each must work like a client that sends everything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias

import pytest

from stories.connecting import Connect
from support.conformance import SDK_VERSIONS, ChatState, Prepared
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

Client: TypeAlias = tuple[Connect, Prepared]

AI7_WS, AI7_LIVE = Connect("ai7", socket="ws"), Connect("ai7", socket="live")
AI6_WS = Connect("ai6", socket="ws")

CLIENTS: list[Client] = [
    *((Connect(sdk), "documented") for sdk in SDK_VERSIONS),
    *((Connect(sdk), "untriggered") for sdk in SDK_VERSIONS[::2]),
    (Connect("ai6"), "last"),
    (Connect("ai7"), "naming"),
    (Connect("ai6"), "branching"),
    (AI7_WS, "documented"),
    (AI7_LIVE, "last"),
    (AI6_WS, "branching"),
]
CHATBOTS: list[Client] = [
    (Connect("ai6"), "all"),
    (Connect("ai7"), "all"),
    (Connect("ai7"), "documented"),
    (Connect("ai6"), "last"),
    (AI7_WS, "all"),
    (AI7_LIVE, "last"),
]
TREES: list[Client] = [
    (Connect("ai7"), "branching"),
    (AI7_LIVE, "branching"),
    (AI6_WS, "branching"),
]


def name(client: Client) -> str:
    return f"{client[0]}-{client[1]}"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


async def as_stored(stage: Stage, state: ChatState) -> bool:
    """Whether the page shows the messages that the server has."""
    assert state.status == "ready", state.error
    history = (await stage.http.get(f"/api/chats/{state.chat_id}")).json()
    stored = [message["id"] for message in history["messages"]]
    return stored == [message["id"] for message in state.messages]


def prompt(stage: Stage) -> list[str]:
    return [
        part.text
        for content in stage.model.prompts[-1]
        for part in content.parts or []
        if part.text
    ]


@pytest.mark.parametrize("client", CLIENTS, ids=name)
async def test_a_client_that_sends_little_works_like_one_that_sends_all(
    stage: Stage, client: Client
) -> None:
    connect, prepare = client
    async with connect(stage, prepare=prepare) as chat:
        first = await chat.send("hi")
        assert await as_stored(stage, first)
        # Another answer, and another one.
        second = await chat.regenerate()
        third = await chat.regenerate(second.last["id"])
        assert len({first.last["id"], second.last["id"], third.last["id"]}) == 3
        assert prompt(stage) == ["hi"]
        assert await as_stored(stage, third)
        # An approval, answered.
        asked = await chat.send("pay 5")
        paid = await chat.approve(asked.open_approvals[0])
        assert (stage.payments, paid.text) == ([5], "Paying. Result told.")
        assert await as_stored(stage, paid)
        # Another text for what was said last, and for what was said first.
        edited = await chat.edit(paid.messages[2]["id"], "hello")
        assert prompt(stage) == ["hi", "Hello.", "hello"]
        assert await as_stored(stage, edited)
        edited = await chat.edit(paid.messages[0]["id"], "think")
        assert prompt(stage) == ["think"]
        assert await as_stored(stage, edited)
        assert len(edited.messages) == 2


@pytest.mark.parametrize("client", CHATBOTS, ids=name)
async def test_an_edit_as_vercels_chatbot_makes_it_is_answered_with_its_own_text(
    stage: Stage, client: Client
) -> None:
    connect, prepare = client
    async with connect(stage, prepare=prepare) as chat:
        await chat.send("pay 5")
        state = await chat.send("hi")
        edited = await chat.rewrite(state.messages[0]["id"], "hello")
        assert (edited.text, prompt(stage)) == ("Hello again.", ["hello"])
        assert await as_stored(stage, edited)
    pending = (await stage.http.get("/api/approvals?status=pending")).json()
    assert pending == {"approvals": []}


@pytest.mark.parametrize("client", TREES, ids=name)
async def test_an_edit_as_assistant_ui_makes_it_is_a_branch_of_the_servers_too(
    stage: Stage, client: Client
) -> None:
    connect, prepare = client
    async with connect(stage, prepare=prepare) as chat:
        first = await chat.send("hi")
        await chat.send("pay 5")
        branch = await chat.branch(first.last["id"], "hello")
        assert prompt(stage) == ["hi", "Hello.", "hello"]
        assert await as_stored(stage, branch)
        again = await chat.regenerate()
        assert await as_stored(stage, again)
        root = await chat.branch(None, "think")
        assert prompt(stage) == ["think"]
        assert await as_stored(stage, root)
    pending = (await stage.http.get("/api/approvals?status=pending")).json()
    assert pending == {"approvals": []}


async def test_the_clients_send_what_they_are_said_to_send(stage: Stage) -> None:
    prepared: tuple[Prepared, ...] = ("documented", "untriggered", "last", "naming", "branching")
    sent = {}
    for prepare in prepared:
        async with Connect("ai7")(stage, prepare=prepare) as chat:
            await chat.send("hi")
            again = await chat.regenerate()
        sent[prepare] = [sorted(body) for body in again.bodies]
    assert sent == {
        "documented": [["id", "message"]] * 2,
        "untriggered": [["id", "messages"]] * 2,
        "last": [["id", "messages", "trigger"]] * 2,
        "naming": [["id", "message", "trigger"], ["id", "trigger"]],
        "branching": [["id", "messages", "parentId", "trigger"]] * 2,
    }
