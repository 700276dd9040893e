"""What a client can see it can answer: on every route, in the very tick in which it sees it."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool

from adk_stream_protocol import Settings, create_app
from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.stores.memory import MemoryCalls, MemoryLog, memory_stores
from adk_stream_protocol.wire.chunks import ToolInputAvailableChunk
from adk_stream_protocol.wire.entries import Entry
from stories.seed_routes import answering, tool_result
from stories.seed_telling import SEED_ROUTES, SeedRoute, seed_telling
from stories.telling import ROUTES, Chunks, Route, Teller, telling
from support.envelope import DONE, enveloped
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio

TRIES = 1000
SOCKETS = 4
TURNS = 10
"""In one chat: a longer one takes ever more time to read."""
CALLS = 5
"""In one turn."""
ROUTES_OF_ALL = (*ROUTES, *SEED_ROUTES)


class SlowCalls(MemoryCalls):
    """A ledger whose database takes long enough for a client to answer meanwhile."""

    async def open(self, call: HeldCall) -> HeldCall:
        for _ in range(30):
            await anyio.lowlevel.checkpoint()
        return await super().open(call)


def slow_stores() -> Stores:
    return dataclasses.replace(memory_stores(), calls=SlowCalls())


@asynccontextmanager
async def told_on(stage: Stage, route: Route | SeedRoute) -> AsyncIterator[Teller]:
    """Tell a story on any route."""
    match route:
        case "stream" | "envelope":
            async with seed_telling(stage, route) as seed_teller:
                yield seed_teller
        case "sse" | "ws" | "live":
            async with telling(stage, route) as teller:
                yield teller


async def test_a_client_that_answers_in_the_same_tick_is_never_refused_in_1000_tries() -> None:
    taken: list[str] = []

    async def talk(url: str, chats: Iterator[int]) -> None:
        for chat in chats:
            async with enveloped(url) as live:
                for _ in range(TURNS):
                    await live.say("play", chat=f"c{chat}")
                    while (heard := await live.next()) != DONE:
                        assert heard["type"] not in {"error", "refused"}, heard
                        if heard["type"] == "tool-input-available":
                            await live.answer(heard["toolCallId"], {"playing": "jazz"})
                            taken.append(heard["toolCallId"])

    async with staged(stores=slow_stores()) as stage, anyio.create_task_group() as talks:
        stage.model.script["play"] = [[call("change_bgm", track="jazz")] * CALLS, ["Told."]]
        chats = iter(range(TRIES // TURNS // CALLS))
        for _ in range(SOCKETS):
            talks.start_soon(talk, stage.url, chats)
    assert len(set(taken)) == TRIES


@pytest.mark.parametrize("route", ROUTES_OF_ALL)
@pytest.mark.parametrize(
    ("text", "tool", "result", "said"),
    [
        ("play jazz", "change_bgm", {"playing": "jazz"}, "Music told."),
        ("pay 5", "pay", {"approved": True}, "Result told."),
    ],
)
async def test_a_call_can_be_answered_while_the_reply_that_shows_it_runs(
    route: Route | SeedRoute, text: str, tool: str, result: object, said: str
) -> None:
    async with (
        staged(stores=slow_stores()) as stage,
        told_on(stage, route) as teller,
        told_on(stage, route) as other,
    ):
        running = await teller.begin_saying(text)
        await running.until(lambda chunk: _completes(chunk, tool))
        shown = next(chunk for chunk in running.chunks if _completes(chunk, tool))
        told = await other.ask(answering(tool_result(shown["toolCallId"], tool, result)))
        assert told.text == said
        await running.rest()
    assert stage.payments == ([5] if tool == "pay" else [])


# When a call is written, whatever the speed of anything


class Journal:
    """What was stored, in order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def stores(self) -> Stores:
        journal = self

        class Calls(MemoryCalls):
            async def open(self, call: HeldCall) -> HeldCall:
                journal.lines.append(("row", call.call_id))
                return await super().open(call)

        class Log(MemoryLog):
            async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
                for entry in entries:
                    if isinstance(entry, ToolInputAvailableChunk):
                        journal.lines.append(("shown", entry.tool_call_id))
                await super().append(reply_id, entries)

        return dataclasses.replace(memory_stores(), calls=Calls(), log=Log())


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("play jazz", 1),
        ("where am I", 1),
        ("pay 5", 1),
        ("pay both", 2),
        ("pay and play", 2),
        ("pay and add", 2),
    ],
)
async def test_a_call_is_in_the_ledger_before_it_is_shown_as_complete(
    text: str, held: int, route: Route
) -> None:
    journal = Journal()
    async with staged(stores=journal.stores()) as stage, telling(stage, route) as teller:
        await teller.say(text)
    rows = [name for kind, name in journal.lines if kind == "row"]
    assert len(rows) == held
    for name in rows:
        assert journal.lines.index(("row", name)) < journal.lines.index(("shown", name))


@pytest.mark.parametrize("route", ROUTES)
async def test_a_tool_that_runs_beside_one_that_is_held_is_shown_while_it_runs(
    route: Route,
) -> None:
    may_end = anyio.Event()

    async def look_up() -> dict[str, str]:
        """Look something up, slowly."""
        await may_end.wait()
        return {"found": "it"}

    stage = Stage()
    calls = [call("change_bgm", track="rock"), call("look_up")]
    stage.model = ScriptedModel(script={"look and play": [calls, ["Both told."]]})
    tools = [*stage.tools(), FunctionTool(look_up)]
    app = create_app(LlmAgent(name="stage", model=stage.model, tools=tools), settings=Settings())
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        stage.url, stage.http = url, http
        async with telling(stage, route) as teller:
            running = await teller.begin_saying("look and play")
            await running.until(lambda chunk: _completes(chunk, "look_up"))
            # It is known of, and cannot be answered: its request waits for what runs beside it.
            assert [c["toolName"] for c in running.chunks if c["type"] == "tool-input-start"] == [
                "change_bgm",
                "look_up",
            ]
            assert not any(_completes(chunk, "change_bgm") for chunk in running.chunks)
            may_end.set()
            asked = await running.rest()
            told = await teller.give(Answered(200, _music_first(asked.chunks)), "change_bgm", ok=1)
    assert told.text == "Both told."


def _completes(chunk: dict[str, Any], tool: str) -> bool:
    return bool(chunk["type"] == "tool-input-available" and chunk["toolName"] == tool)


def _music_first(chunks: Chunks) -> Chunks:
    """Return a reply without the call that the server ran."""
    return [chunk for chunk in chunks if chunk.get("toolName") != "look_up"]
