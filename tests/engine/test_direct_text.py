"""Pieces that a model has ready together: joined, unless somebody looks at each."""

from __future__ import annotations

import asyncio
import contextlib
import types as types_of_python
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.planners.plan_re_act_planner import PlanReActPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from adk_stream_protocol.engine.joining import joined
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import create_app
from support.scripted import ScriptedModel
from support.serving import serving
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio

PIECES = ["One, ", "two, ", "three."]


def piece(text: str, *, thought: bool | None = None, **more: Any) -> LlmResponse:
    said = {"text": text} if thought is None else {"text": text, "thought": thought}
    content = {"role": "model", "parts": [said]}
    return LlmResponse.model_validate({"content": content, "partial": True, **more})


def a_call() -> LlmResponse:
    call = types.FunctionCall(name="pay", args={"amount": 5})
    content = types.Content(role="model", parts=[types.Part(function_call=call)])
    return LlmResponse(content=content, partial=True)


def texts(responses: Sequence[LlmResponse]) -> list[str | None]:
    return [(r.content.parts or [types.Part()])[0].text if r.content else None for r in responses]


async def said(*steps: LlmResponse | Exception | None) -> AsyncGenerator[LlmResponse, None]:
    """Say the steps as a model would; None gives others a turn, as a socket does."""
    for step in steps:
        if isinstance(step, Exception):
            raise step
        if step is None:
            await anyio.lowlevel.checkpoint()
        else:
            yield step


@asynccontextmanager
async def reading(
    responses: AsyncGenerator[LlmResponse, None],
) -> AsyncIterator[AsyncGenerator[LlmResponse, None]]:
    async with (
        anyio.create_task_group() as tasks,
        aclosing(joined(responses, tasks.start_soon)) as stream,
    ):
        yield stream


async def all_of(responses: AsyncGenerator[LlmResponse, None]) -> list[LlmResponse]:
    async with reading(responses) as stream:
        return [response async for response in stream]


async def test_pieces_that_are_ready_together_are_one() -> None:
    assert texts(await all_of(said(piece("a"), piece("b"), piece("c")))) == ["abc"]


async def test_pieces_that_come_turn_by_turn_are_fewer() -> None:
    steps = [step for number in range(100) for step in (None, piece(f"{number} "))]
    heard = texts(await all_of(said(*steps)))
    assert "".join(map(str, heard)) == "".join(f"{number} " for number in range(100))
    assert len(heard) <= 60


async def test_the_first_piece_is_not_kept_for_the_next() -> None:
    steps = [step for text in "abcdef" for step in (None, piece(text))]
    first, second, *_ = texts(await all_of(said(*steps)))
    assert first == "a"
    # The others are: otherwise nothing would be joined at all.
    assert second is not None
    assert second.startswith("bc")


async def test_a_piece_waits_for_no_other() -> None:
    more = anyio.Event()

    async def slow() -> AsyncGenerator[LlmResponse, None]:
        yield piece("first ")
        await more.wait()
        yield piece("second")

    async with reading(slow()) as stream:
        with anyio.fail_after(5):
            assert texts([await anext(stream)]) == ["first "]
        more.set()
        assert texts([response async for response in stream]) == ["second"]


@pytest.mark.parametrize(
    "other",
    [
        a_call(),
        piece("b", thought=True),
        piece("b", partial=False),
        piece("b", finish_reason=types.FinishReason.STOP),
        piece("b", custom_metadata={"said": "aloud"}),
        piece("b", model_version="another"),
        LlmResponse(partial=True, error_code="429"),
        LlmResponse(content=types.Content(role="model", parts=[]), partial=True),
        LlmResponse(content=types.Content(role="user", parts=[types.Part(text="b")]), partial=True),
        LlmResponse(
            content=types.Content(
                role="model", parts=[types.Part(text="b", thought_signature=b"signed")]
            ),
            partial=True,
        ),
    ],
    ids=lambda other: "-".join(sorted(other.model_fields_set)),
)
async def test_what_is_not_more_of_the_same_text_stays_alone(other: LlmResponse) -> None:
    first, last = piece("a"), piece("c")
    heard = await all_of(said(first, other, last))
    assert heard == [first, other, last]
    assert heard[1] is other


async def test_what_was_used_so_far_is_told_by_the_last() -> None:
    used = [
        types.GenerateContentResponseUsageMetadata(candidates_token_count=count) for count in (1, 2)
    ]
    (heard,) = await all_of(
        said(*(piece(text, usage_metadata=each) for text, each in zip("ab", used, strict=True)))
    )
    assert texts([heard]) == ["ab"]
    assert heard.usage_metadata == used[1]


async def test_the_models_own_pieces_are_left_as_they_are() -> None:
    own = [piece("a"), piece("b")]
    await all_of(said(*own))
    assert texts(own) == ["a", "b"]


async def test_a_model_goes_on_after_a_call_only_when_asked() -> None:
    went_on: list[str] = []

    async def calling() -> AsyncGenerator[LlmResponse, None]:
        yield a_call()
        went_on.append("after the call")
        yield piece("a")

    async with reading(calling()) as stream:
        await anext(stream)
        await anyio.wait_all_tasks_blocked()
        assert went_on == []
        assert texts([response async for response in stream]) == ["a"]


async def test_a_fast_model_is_read_ahead_only_so_far() -> None:
    given_out: list[int] = []

    async def endless() -> AsyncGenerator[LlmResponse, None]:
        for number in range(10_000):
            given_out.append(number)
            yield piece("a")

    async with reading(endless()) as stream:
        await anext(stream)
        await anyio.wait_all_tasks_blocked()
        assert len(given_out) < 200


async def test_a_model_that_breaks_is_heard_out_first() -> None:
    async with reading(said(piece("a"), ValueError("broke"))) as stream:
        assert texts([await anext(stream)]) == ["a"]
        with pytest.raises(ValueError, match="broke"):
            await anext(stream)


async def test_a_model_that_is_cancelled_by_itself_does_not_look_done() -> None:
    async def given_up() -> AsyncGenerator[LlmResponse, None]:
        yield piece("a")
        raise asyncio.CancelledError

    async with reading(given_up()) as stream:
        assert texts([await anext(stream)]) == ["a"]
        with pytest.raises(asyncio.CancelledError):
            await anext(stream)


async def test_a_model_that_talks_on_when_cancelled_is_left() -> None:
    async def stubborn() -> AsyncGenerator[LlmResponse, None]:
        yield piece("a")
        with contextlib.suppress(asyncio.CancelledError):
            await anyio.sleep_forever()
        # Not text: whoever reads ahead would wait until it is taken.
        yield a_call()

    with anyio.move_on_after(2) as patience:
        async with reading(stubborn()) as stream:
            await anext(stream)
            await anyio.wait_all_tasks_blocked()
    assert not patience.cancel_called


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_a_model_that_is_left_ends_before_its_reader_does(how: str) -> None:
    steps: list[str] = []

    async def endless() -> AsyncGenerator[LlmResponse, None]:
        try:
            yield piece("a")
            await anyio.sleep_forever()
        finally:
            # A connection takes a moment to close.
            for _ in range(3):
                await anyio.lowlevel.cancel_shielded_checkpoint()
            steps.append("model ended")

    async def read(scope: anyio.CancelScope) -> None:
        async with aclosing(joined(endless(), tasks.start_soon)) as stream:
            await anext(stream)
            if how == "cancelled":
                scope.cancel()
                await anext(stream)

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            await read(scope)
        steps.append("reader ended")
    assert steps == ["model ended", "reader ended"]


STEPS = st.lists(
    st.one_of(
        st.none(),
        st.builds(
            piece,
            st.text(min_size=1, max_size=3),
            thought=st.sampled_from([None, True]),
        ),
        st.builds(a_call),
    ),
    max_size=30,
)


def blocks(responses: Sequence[LlmResponse]) -> list[object]:
    """Return texts of a kind that follow each other as one."""
    told: list[Any] = []
    for response in responses:
        assert response.content is not None
        assert response.content.parts
        part = response.content.parts[0]
        if part.text is None:
            told.append(id(response))
        elif told and isinstance(told[-1], list) and told[-1][0] == part.thought:
            told[-1][1] += part.text
        else:
            told.append([part.thought, part.text])
    return told


@given(steps=STEPS)
def test_whatever_comes_when_nothing_is_lost_or_moved(steps: list[LlmResponse | None]) -> None:
    heard = anyio.run(all_of, said(*steps))
    assert blocks(heard) == blocks([step for step in steps if step is not None])


# Served


async def talked(agent: BaseAgent | App, settings: Settings | None = None) -> list[str]:
    """Return the pieces of text that a client gets."""
    app = create_app(agent, settings=settings)
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        body = {"id": "c", "messages": [user_message("hi")]}
        answered = Answered.of(await http.post("/api/chat", json=body))
    deltas = [chunk["delta"] for chunk in answered.only("text-delta")]
    assert "".join(deltas) == "".join(PIECES)
    return deltas


def model() -> ScriptedModel:
    return ScriptedModel(script={"hi": [PIECES]})


async def test_a_client_gets_what_is_ready_as_one() -> None:
    assert await talked(LlmAgent(name="a", model=model())) == ["".join(PIECES)]


async def test_joining_can_be_turned_off() -> None:
    agent = LlmAgent(name="a", model=model())
    assert await talked(agent, Settings(join_text=False)) == PIECES


async def test_an_agent_keeps_its_very_model() -> None:
    own = model()
    agent = LlmAgent(name="a", model=own)
    await talked(agent)
    assert agent.model is own
    assert isinstance(own, ScriptedModel)
    assert type(own).__name__ == "ScriptedModel"
    assert len(own.prompts) == 1
    assert own.model_copy() == own


class Watching(BasePlugin):
    """Looks at what the agent says, piece by piece."""

    def __init__(self) -> None:
        super().__init__(name="watching")
        self.seen: list[str] = []


class WatchesResponses(Watching):
    @override
    async def after_model_callback(self, *, llm_response: LlmResponse, **_: Any) -> None:
        if llm_response.partial:
            self.seen += map(str, texts([llm_response]))


class WatchesEvents(Watching):
    @override
    async def on_event_callback(self, *, event: Event, **_: Any) -> None:
        if event.partial:
            self.seen += map(str, texts([event]))


@pytest.mark.parametrize("kind", [WatchesResponses, WatchesEvents])
async def test_a_plugin_that_looks_at_pieces_sees_each(kind: type[Watching]) -> None:
    plugin = kind()
    app = App(name="a", root_agent=LlmAgent(name="a", model=model()), plugins=[plugin])
    assert await talked(app) == PIECES
    assert plugin.seen == PIECES


class Outer(BaseAgent):
    """An agent of the app's own that runs another."""

    @override
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        async for event in self.sub_agents[0].run_async(ctx):
            yield event


class Hiding(BaseAgent):
    """An agent of the app's own that runs another, of which ADK does not know."""

    hidden: BaseAgent

    @override
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        async for event in self.hidden.run_async(ctx):
            yield event


# An agent of the app's own, which may do anything with what it says.
Inner: type[LlmAgent] = types_of_python.new_class("Inner", (LlmAgent,))


def watched() -> dict[str, Callable[[], BaseAgent]]:
    return {
        "a callback": lambda: LlmAgent(
            name="a", model=model(), after_model_callback=lambda **_: None
        ),
        "a planner": lambda: LlmAgent(name="a", model=model(), planner=PlanReActPlanner()),
        "its own kind": lambda: Inner(name="a", model=model()),
        "one that hides it": lambda: Hiding(
            name="hiding", hidden=LlmAgent(name="a", model=model())
        ),
        "an outer agent": lambda: Outer(
            name="outer", sub_agents=[LlmAgent(name="a", model=model())]
        ),
    }


@pytest.mark.parametrize("who", watched())
async def test_who_may_look_at_pieces_sees_each(who: str) -> None:
    assert await talked(watched()[who]()) == PIECES


@pytest.mark.filterwarnings("ignore:.*is deprecated in favor of Workflow:DeprecationWarning")
async def test_agents_of_adks_own_kinds_look_at_none() -> None:
    inner = LlmAgent(name="a", model=model())
    agent = SequentialAgent(name="outer", sub_agents=[inner])
    assert await talked(agent) == ["".join(PIECES)]
