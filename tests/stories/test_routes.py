"""Every story of the protocol, told the same way on every route: chunk by chunk, ids aside.

Pieces of text that are sent together come joined, so all are compared joined. A story added here
runs on all routes. `pytest tests/stories/test_routes.py --golden-update` writes the files in
`expected` anew, from what `POST /api/chat` says; read what changed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from adk_stream_protocol import Settings
from stories.seed_telling import SEED_ROUTES, SeedRoute, seed_telling
from stories.telling import ROUTES, Chunks, Route, Teller, plain, read, telling
from support.stage import staged, user_message

pytestmark = pytest.mark.anyio

EXPECTED = Path(__file__).parent / "expected"

Story: TypeAlias = Callable[[Teller], Awaitable[None]]
STORIES: dict[str, Story] = {}

TOLD_APART = {"process_payment-answered-twice", "stop-while-a-call-is-held"}
"""A socket that has the outcome of a call says so in an error; a POST gets the outcome again."""


def story(name: str) -> Callable[[Story], Story]:
    def add(told: Story) -> Story:
        STORIES[name] = told
        return told

    return add


@story("get_weather")
async def plain_tool(teller: Teller) -> None:
    await teller.say("add")


@story("get_location-approved")
async def browser_tool_approved(teller: Teller) -> None:
    asked = await teller.say("where am I")
    await teller.give(asked, "get_location", latitude=1.5)


@story("get_location-denied")
async def browser_tool_denied(teller: Teller) -> None:
    asked = await teller.say("where am I")
    await teller.answer(asked, False)


@story("get_location-approved-then-run")
async def browser_tool_approved_first(teller: Teller) -> None:
    asked = await teller.say("where am I")
    await teller.answer(asked, True)
    await teller.give_later(asked, "get_location", latitude=1.5)


@story("get_location-beside-a-denied-payment")
async def browser_tool_beside_a_denial(teller: Teller) -> None:
    asked = await teller.say("pay and locate")
    await teller.answer(asked, False, True)
    await teller.give_later(asked, "get_location", latitude=1.5)


@story("one-of-two-payments-denied")
async def one_of_two_denied(teller: Teller) -> None:
    asked = await teller.say("pay both")
    await teller.answer_first(asked, False)
    await teller.answer(asked, False, True)


@story("change_bgm")
async def browser_tool_without_approval(teller: Teller) -> None:
    asked = await teller.say("play jazz")
    await teller.give(asked, "change_bgm", playing="jazz")


def write_anew(path: Path, told: str) -> None:
    """Write what is told, unless it differs only in which pieces of text came joined."""
    if not path.exists() or read(path.read_text(encoding="utf-8")) != read(told):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(told, encoding="utf-8")


def _paid(*verdicts: bool, text: str) -> Story:
    async def told(teller: Teller) -> None:
        asked = await teller.say(text)
        if teller.questions(asked) == len(verdicts):
            await teller.answer(asked, *verdicts)
            return
        for verdict in verdicts:
            asked = await teller.answer(asked, verdict)

    return told


_WORDS = {True: "approve", False: "deny"}
STORIES["process_payment-approved"] = _paid(True, text="pay 5")
STORIES["process_payment-denied"] = _paid(False, text="pay 5")
STORIES["japanese"] = _paid(True, text="花子さんに50ドル送金してください")
for _first in (True, False):
    for _second in (True, False):
        _verdicts = f"{_WORDS[_first]}+{_WORDS[_second]}"
        STORIES[f"two-payments-in-one-step-{_verdicts}"] = _paid(_first, _second, text="pay both")
        STORIES[f"two-payments-in-turn-{_verdicts}"] = _paid(_first, _second, text="pay in turn")


@story("process_payment-beside-a-plain-tool")
async def gated_beside_plain(teller: Teller) -> None:
    asked = await teller.say("pay and add")
    await teller.answer(asked, True, False)


@story("process_payment-invalid-id")
async def invalid_id(teller: Teller) -> None:
    asked = await teller.say("pay 5")
    await teller.answer_what_is_unknown(asked)
    await teller.answer(asked, True)


@story("process_payment-answered-twice")
async def answered_twice(teller: Teller) -> None:
    asked = await teller.say("pay 5")
    await teller.answer(asked, True)
    await teller.answer(asked, True)
    await teller.answer(asked, False)


@story("process_payment-raises")
async def raising_tool(teller: Teller) -> None:
    asked = await teller.say("pay badly")
    await teller.answer(asked, True)


@story("book-asks-by-itself")
async def dynamic_gate(teller: Teller) -> None:
    asked = await teller.say("book 3")
    await teller.answer(asked, True)


@story("book-denied")
async def dynamic_gate_denied(teller: Teller) -> None:
    asked = await teller.say("book 3")
    await teller.answer(asked, False)


@story("typed-instead-of-answered")
async def typed_instead(teller: Teller) -> None:
    asked = await teller.say("pay 5")
    await teller.say("hi")
    await teller.answer(asked, True)


@story("two-messages")
async def two_messages(teller: Teller) -> None:
    await teller.say("hi")
    await teller.say("hello")


@story("thoughts")
async def thoughts(teller: Teller) -> None:
    await teller.say("think")


@story("tool-raises")
async def plain_tool_raises(teller: Teller) -> None:
    await teller.say("fail")


@story("model-fails-half-way")
async def model_fails(teller: Teller) -> None:
    await teller.say("break")
    await teller.say("hi")


@story("model-fails-at-once")
async def model_fails_at_once(teller: Teller) -> None:
    await teller.say("break at once")
    await teller.say("hi")


@story("stop-while-text-streams")
async def stop_text(teller: Teller) -> None:
    running = await teller.begin_saying("long")
    await running.until(lambda chunk: chunk.get("delta") == "One. ")
    await teller.stop()
    await running.rest()
    await teller.say("hi")


@story("stop-while-a-call-is-held")
async def stop_held(teller: Teller) -> None:
    asked = await teller.say("pay 5")
    await teller.stop()
    await teller.answer(asked, True)
    await teller.say("hi")


@story("stop-while-a-tool-runs")
async def stop_tool(teller: Teller) -> None:
    asked = await teller.say("pay slowly")
    running = await teller.begin_answering(asked, True)
    await anyio.to_thread.run_sync(teller.stage.tool_started.wait, 10)
    await teller.stop()
    teller.stage.tool_may_end.set()
    await running.rest()
    await teller.say("hi")


@story("regenerated")
async def regenerated(teller: Teller) -> None:
    said = user_message("hi", "first")
    await teller.ask({"id": teller.chat, "messages": [said]})
    again = {"id": teller.chat, "trigger": "regenerate-message", "messages": [said]}
    await teller.ask(again)


@story("message-alone")
async def message_alone(teller: Teller) -> None:
    await teller.ask({"id": teller.chat, "message": user_message("hi")})


@story("regenerated-by-name")
async def regenerated_by_name(teller: Teller) -> None:
    again = {"id": teller.chat, "trigger": "regenerate-message"}
    first = await teller.say("hi")
    await teller.ask({**again, "messageId": first.message_id})
    await teller.ask(again)
    await teller.ask({**again, "messageId": "unknown"})


@story("edited-in-place")
async def edited_in_place(teller: Teller) -> None:
    for text in ("hi", "hello"):
        await teller.ask({"id": teller.chat, "message": user_message(text, "first")})


@story("edited-by-regenerating")
async def edited_by_regenerating(teller: Teller) -> None:
    await teller.ask({"id": teller.chat, "messages": [user_message("hi", "first")]})
    edited = [user_message("hello", "first")]
    again = {"id": teller.chat, "trigger": "regenerate-message", "messages": edited}
    await teller.ask(again)


@story("branched")
async def branched(teller: Teller) -> None:
    first = await teller.say("hi")
    await teller.say("add")
    branch = {"id": teller.chat, "messages": [user_message("hello")]}
    await teller.ask({**branch, "parentId": first.message_id})
    await teller.ask({**branch, "parentId": "unknown"})


def cards_told(replies: list[Chunks | str]) -> dict[str, Any]:
    """Return the card of each approval as a client has it in the end."""
    chunks = [chunk for reply in replies if not isinstance(reply, str) for chunk in reply]
    return cards_in([{"parts": chunks}])


def cards_in(messages: list[dict[str, Any]]) -> dict[str, Any]:
    parts = [part for message in messages for part in message["parts"]]
    return {part["id"]: part["data"] for part in parts if part["type"] == "data-approval"}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", sorted(STORIES))
async def test_a_story_is_told_the_same_way_on_every_route(
    name: str, route: Route, request: pytest.FixtureRequest
) -> None:
    async with staged() as stage, telling(stage, route) as teller:
        await STORIES[name](teller)
        told = plain(teller.replies)
        stored = (await stage.http.get(f"/api/chats/{teller.chat}")).json()["messages"]
    assert cards_told(teller.replies) == cards_in(stored)
    path = EXPECTED / f"{name}.jsonl"
    if route == "sse" and request.config.getoption("golden_update", default=False):
        write_anew(path, told)
    assert read(told) == read(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("route", SEED_ROUTES)
@pytest.mark.parametrize("name", sorted(STORIES))
async def test_a_story_is_told_the_same_way_on_both_routes_of_the_seeds(
    name: str, route: SeedRoute, request: pytest.FixtureRequest
) -> None:
    async with staged() as stage, seed_telling(stage, route) as teller:
        await STORIES[name](teller)
        told = plain(teller.replies)
        await teller.check_ends()
    path = EXPECTED / "adk" / f"{name}.jsonl"
    if route == "envelope" and name in TOLD_APART:
        path = path.with_suffix(".envelope.jsonl")
    elif route == "envelope":
        assert read(told) == read(path.read_text(encoding="utf-8"))
    if request.config.getoption("golden_update", default=False):
        write_anew(path, told)
    assert read(told) == read(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("route", ROUTES)
async def test_an_expired_call_is_told_the_same_way_on_every_route(route: Route) -> None:
    settings = dataclasses.replace(Settings(), approval_seconds=0.2)
    async with staged(settings=settings) as stage, telling(stage, route) as teller:
        asked = await teller.say("pay 5")
        with anyio.fail_after(10):
            while (await stage.http.get("/api/approvals?status=pending")).json()["approvals"]:
                await anyio.lowlevel.checkpoint()
            while "Result told." not in (await stage.http.get("/api/chats/c")).text:
                await anyio.lowlevel.checkpoint()
        late = await teller.answer(asked, True)
        assert not stage.payments
    errors = [chunk["errorText"] for chunk in late.only("tool-output-error")]
    assert [text for text in errors if "time" in text], late.chunks
    assert late.text == "Result told."


def test_every_file_belongs_to_a_story() -> None:
    assert {path.stem for path in EXPECTED.glob("*.jsonl")} == set(STORIES)
    apart = {f"{name}.envelope" for name in TOLD_APART}
    assert {path.stem for path in (EXPECTED / "adk").glob("*.jsonl")} == set(STORIES) | apart
