"""What a request means, on every route: the same message again, another text, a branch.

The server keeps the history, so each story also looks at what a reload shows, and at what the
model was given.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from stories.telling import ROUTES, Route, Teller, telling
from support.joining import joined
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


@pytest.fixture(params=ROUTES)
async def teller(request: pytest.FixtureRequest, stage: Stage) -> AsyncIterator[Teller]:
    route: Route = request.param
    async with telling(stage, route) as teller:
        yield teller


async def ask(teller: Teller, text: str, message_id: str, **rest: object) -> Answered:
    """Send a message with its trigger, as a stock client does."""
    return await teller.ask(submitted(text, message_id, **rest))


def submitted(text: str, message_id: str, **rest: object) -> dict[str, object]:
    said = {"id": "c", "trigger": "submit-message", "messages": [user_message(text, message_id)]}
    return {**said, **rest}


def again(**rest: object) -> dict[str, object]:
    return {"id": "c", "trigger": "regenerate-message", **rest}


def alone(text: str, message_id: str) -> dict[str, object]:
    """Return what the AI SDK's documentation sends."""
    return {"id": "c", "message": user_message(text, message_id)}


async def history(stage: Stage) -> list[tuple[str, str]]:
    """Return the ids of the chat's messages, the user's own, and their text."""
    messages: list[dict[str, Any]] = (await stage.http.get("/api/chats/c")).json()["messages"]
    return [
        (
            message["id"] if message["role"] == "user" else "assistant",
            "".join(part["text"] for part in message["parts"] if part["type"] == "text"),
        )
        for message in messages
    ]


def prompt(stage: Stage) -> list[str]:
    """Return the texts that the model was given last."""
    return [
        part.text
        for content in stage.model.prompts[-1]
        for part in content.parts or []
        if part.text
    ]


async def pending(stage: Stage) -> int:
    return len((await stage.http.get("/api/approvals?status=pending")).json()["approvals"])


def same(one: Answered, other: Answered) -> bool:
    return bool(joined(one.chunks) == joined(other.chunks))


# A message that is sent again


async def test_a_message_alone_is_said(stage: Stage, teller: Teller) -> None:
    assert (await teller.ask(alone("hi", "u1"))).text == "Hello."
    assert (await teller.ask(alone("hello", "u2"))).text == "Hello again."
    assert prompt(stage) == ["hi", "Hello.", "hello"]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("body", [alone("long", "u1"), submitted("long", "u1")])
async def test_a_message_that_is_sent_again_while_it_is_answered_gets_the_same_reply(
    stage: Stage, route: Route, body: Mapping[str, object]
) -> None:
    async with telling(stage, route) as one, telling(stage, route) as other:
        first = await one.begin(body)
        await first.until(lambda chunk: chunk.get("delta") == "One. ")
        second = await other.begin(body)
        await second.until(lambda chunk: chunk.get("delta") == "One. ")
        stage.more.set()
        assert same(await first.rest(), await second.rest())
    assert len(stage.model.prompts) == 1


async def test_a_message_alone_that_is_sent_again_once_its_answer_was_read_gets_another(
    stage: Stage, teller: Teller
) -> None:
    replies = [await teller.ask(alone("hi", "u1")) for _ in range(3)]
    assert len({reply.message_id for reply in replies}) == 3
    assert (len(stage.model.prompts), prompt(stage)) == (3, ["hi"])
    assert await history(stage) == [("u1", "hi"), ("assistant", "Hello.")]


async def test_a_message_alone_that_is_sent_again_takes_back_what_waits(
    stage: Stage, teller: Teller
) -> None:
    first, second = [await teller.ask(alone("pay 5", "u1")) for _ in range(2)]
    assert await pending(stage) == 1
    await teller.answer(second, True)
    late = await stage.http.post(f"/api/approvals/{first.approvals[0]}", json={"approved": True})
    assert (late.status_code, stage.payments) == (409, [5])


async def test_a_message_alone_whose_reply_was_stopped_is_answered_anew(
    stage: Stage, teller: Teller
) -> None:
    running = await teller.begin(alone("long", "u1"))
    await running.until(lambda chunk: chunk.get("delta") == "One. ")
    await teller.stop()
    await running.rest()
    stage.more.set()
    assert (await teller.ask(alone("long", "u1"))).text == "One. Two."
    assert await history(stage) == [("u1", "long"), ("assistant", "One. Two.")]


async def test_an_earlier_message_alone_is_not_taken_for_a_wish_to_begin_there_again(
    stage: Stage, teller: Teller
) -> None:
    await teller.ask(alone("hi", "u1"))
    await teller.ask(alone("hello", "u2"))
    refused = await teller.ask(alone("hi", "u1"))
    assert "regenerate-message" in refused.error["message"]
    assert [said for said, _ in await history(stage)] == ["u1", "assistant", "u2", "assistant"]


async def test_a_message_that_is_submitted_again_gets_the_reply_that_it_had(
    stage: Stage, teller: Teller
) -> None:
    first = await ask(teller, "pay 5", "u1")
    assert same(first, await ask(teller, "pay 5", "u1"))
    await ask(teller, "hi", "u2")
    assert same(first, await ask(teller, "pay 5", "u1"))
    assert (len(stage.model.prompts), await pending(stage)) == (2, 1)


# Another text


async def test_another_text_under_a_known_id_is_an_edit(stage: Stage, teller: Teller) -> None:
    await teller.ask(alone("pay 5", "u1"))
    await teller.ask(alone("hi", "u2"))
    edited = await teller.ask(alone("hello", "u1"))
    assert (edited.text, prompt(stage)) == ("Hello again.", ["hello"])
    assert await history(stage) == [("u1", "hello"), ("assistant", "Hello again.")]
    assert await pending(stage) == 0
    # And back again, though that was answered before.
    assert (await teller.ask(alone("hi", "u1"))).text == "Hello."
    assert await history(stage) == [("u1", "hi"), ("assistant", "Hello.")]


async def test_an_edit_that_is_sent_twice_is_one_edit(stage: Stage, teller: Teller) -> None:
    await ask(teller, "hi", "u1")
    for hint in ({"messageId": "u1"}, {}):
        text = "hello" if hint else "think"
        first = await ask(teller, text, "u1", **hint)
        assert same(first, await ask(teller, text, "u1", **hint))
    assert len(stage.model.prompts) == 3


async def test_a_message_edited_back_is_not_given_the_answer_that_was_taken_back(
    stage: Stage, teller: Teller
) -> None:
    for text in ("hi", "hello", "hi"):
        await ask(teller, text, "u1")
    assert (len(stage.model.prompts), prompt(stage)) == (3, ["hi"])
    assert await history(stage) == [("u1", "hi"), ("assistant", "Hello.")]


async def test_an_edit_that_changes_nothing_is_answered_anew(stage: Stage, teller: Teller) -> None:
    first = await ask(teller, "hi", "u1")
    second = await ask(teller, "hi", "u1", messageId="u1")
    assert first.message_id != second.message_id
    assert (len(stage.model.prompts), len(await history(stage))) == (2, 2)


async def test_a_message_that_names_its_answer_gets_another(stage: Stage, teller: Teller) -> None:
    first = await ask(teller, "hi", "u1")
    await ask(teller, "hello", "u2")
    body = submitted("hi", "u1", messageId=first.message_id)
    second = await teller.ask(body)
    assert second.message_id != first.message_id
    assert await history(stage) == [("u1", "hi"), ("assistant", "Hello.")]
    assert same(second, await teller.ask(body))


async def test_a_message_that_continues_one_that_is_missing_is_refused(
    stage: Stage, teller: Teller
) -> None:
    first = await ask(teller, "pay 5", "u1")
    await ask(teller, "hi", "u2")
    refused = await ask(teller, "hi", "u2", messageId=first.message_id)
    assert "it is not in" in refused.error["message"]
    assert (len(stage.model.prompts), await pending(stage)) == (2, 1)


# A message that is answered again


@pytest.mark.parametrize("named", ["answer", "message", "nothing"])
async def test_a_regenerate_needs_no_message(stage: Stage, teller: Teller, named: str) -> None:
    await ask(teller, "hello", "u0")
    first = await ask(teller, "hi", "u1")
    names: dict[str, dict[str, object]] = {
        "answer": {"messageId": first.message_id},
        "message": {"messageId": "u1"},
        "nothing": {},
    }
    second = await teller.ask(again(**names[named]))
    assert second.message_id != first.message_id
    assert prompt(stage) == ["hello", "Hello again.", "hi"]
    assert [said for said, _ in await history(stage)] == ["u0", "assistant", "u1", "assistant"]


async def test_a_regenerate_with_another_text_is_an_edit(stage: Stage, teller: Teller) -> None:
    await ask(teller, "pay 5", "u1")
    await ask(teller, "hi", "u2")
    edited = await teller.ask(again(messages=[user_message("hello", "u1")]))
    assert (edited.text, prompt(stage), await pending(stage)) == ("Hello again.", ["hello"], 0)
    assert await history(stage) == [("u1", "hello"), ("assistant", "Hello again.")]


async def test_a_regenerate_that_only_names_its_message_in_the_list_keeps_the_text(
    stage: Stage, teller: Teller
) -> None:
    await ask(teller, "hi", "u1")
    stub = {"id": "u1", "role": "user", "parts": []}
    assert (await teller.ask(again(messages=[stub]))).text == "Hello."
    assert prompt(stage) == ["hi"]


async def test_a_regenerate_of_an_answer_that_is_sent_twice_is_one(
    stage: Stage, teller: Teller
) -> None:
    first = await ask(teller, "pay 5", "u1")
    body = again(messageId=first.message_id, messages=[user_message("pay 5", "u1")])
    second = await teller.ask(body)
    assert same(second, await teller.ask(body))
    assert (len(stage.model.prompts), len(await history(stage))) == (2, 2)
    # Who has read that names what it was given.
    third = await teller.ask({**body, "messageId": second.message_id})
    assert third.message_id != second.message_id


# Branches


async def test_a_message_with_a_parent_takes_back_what_followed(
    stage: Stage, teller: Teller
) -> None:
    first = await ask(teller, "hi", "u1")
    await ask(teller, "pay 5", "u2")
    body = submitted("hello", "u3", parentId=first.message_id)
    branch = await teller.ask(body)
    assert (branch.text, prompt(stage)) == ("Hello again.", ["hi", "Hello.", "hello"])
    assert [said for said, _ in await history(stage)] == ["u1", "assistant", "u3", "assistant"]
    assert await pending(stage) == 0
    assert same(branch, await teller.ask(body))
    assert len(stage.model.prompts) == 3


async def test_a_message_without_a_parent_is_the_first(stage: Stage, teller: Teller) -> None:
    await ask(teller, "hi", "u1", parentId=None)
    await ask(teller, "hi", "u2")
    await ask(teller, "hello", "u3", parentId=None)
    assert prompt(stage) == ["hello"]
    assert await history(stage) == [("u3", "hello"), ("assistant", "Hello again.")]


async def test_a_parent_that_is_the_last_message_takes_nothing_back(
    stage: Stage, teller: Teller
) -> None:
    first = await ask(teller, "hi", "u1", parentId=None)
    await ask(teller, "hello", "u2", parentId=first.message_id)
    assert prompt(stage) == ["hi", "Hello.", "hello"]


async def test_a_users_message_as_parent_stays_without_its_answer(
    stage: Stage, teller: Teller
) -> None:
    await ask(teller, "hi", "u1")
    await ask(teller, "pay 5", "u2")
    branch = await ask(teller, "hello", "u3", parentId="u2")
    assert branch.text == "Hello again."
    assert prompt(stage) == ["hi", "Hello.", "pay 5", "hello"]
    assert [said for said, _ in await history(stage)] == [
        "u1",
        "assistant",
        "u2",
        "u3",
        "assistant",
    ]
    assert await pending(stage) == 0


async def test_a_parent_that_is_unknown_changes_nothing(stage: Stage, teller: Teller) -> None:
    await ask(teller, "hi", "u1")
    before = await history(stage)
    for body in (submitted("hello", "u2", parentId="gone"), again(parentId="gone")):
        refused = await teller.ask(body)
        assert "leave it out" in refused.error["message"]
    assert await history(stage) == before
    assert (await ask(teller, "hello", "u2")).text == "Hello again."


async def test_a_regenerate_with_a_parent_answers_what_it_ends_with(
    stage: Stage, teller: Teller
) -> None:
    first = await ask(teller, "hi", "u1")
    await ask(teller, "hello", "u2")
    for parent, messages in ((first.message_id, [user_message("hello", "u2")]), ("u1", [])):
        await teller.ask(again(parentId=parent, messages=messages))
    assert prompt(stage) == ["hi"]
    assert await history(stage) == [("u1", "hi"), ("assistant", "Hello.")]


@pytest.mark.parametrize("route", ROUTES)
async def test_a_branch_does_not_steer_the_reply_that_it_leaves(stage: Stage, route: Route) -> None:
    async with telling(stage, route) as one, telling(stage, route) as other:
        first = await ask(one, "hi", "u1")
        asked = await ask(one, "pay slowly", "u2")
        running = await one.begin_answering(asked, True)
        with anyio.fail_after(60):
            await anyio.to_thread.run_sync(stage.tool_started.wait)
        # The turn will ask the model again: another message could go in front of that.
        body = submitted("hello", "u3", parentId=first.message_id, busy="steer")
        branch = await other.begin(body)
        with anyio.fail_after(60):
            while '"u3"' not in (await stage.http.get("/api/chats/c")).text:
                await anyio.lowlevel.checkpoint()
        stage.tool_may_end.set()
        assert (await running.rest()).text == "Slowly told."
        assert (await branch.rest()).text == "Hello again."
    assert (stage.payments, prompt(stage)) == ([9], ["hi", "Hello.", "hello"])
    assert [said for said, _ in await history(stage)] == ["u1", "assistant", "u3", "assistant"]
