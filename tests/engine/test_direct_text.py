"""Plain pieces of text go past ADK, unless somebody looks at each; all else does not."""

from __future__ import annotations

import types as types_of_python
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

import anyio
import anyio.lowlevel
import httpx
import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
)
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.planners.plan_re_act_planner import PlanReActPlanner
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from adk_stream_protocol.engine.direct_text import told
from adk_stream_protocol.errors import StoreLost
from adk_stream_protocol.held_calls.run_scope import RunScope
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import Log
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import create_app
from adk_stream_protocol.stores.memory import MemoryLog, memory_stores
from adk_stream_protocol.translation.text_blocks import BlockKind
from adk_stream_protocol.wire.entries import Entry
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio

PIECES = ["One, ", "two, ", "three."]
LIKE = Event(author="a", partial=True)


def piece(text: str, *, thought: bool | None = None, **more: Any) -> LlmResponse:
    said = {"text": text} if thought is None else {"text": text, "thought": thought}
    content = {"role": "model", "parts": [said]}
    return LlmResponse.model_validate({"content": content, "partial": True, **more})


def whole(text: str) -> LlmResponse:
    return piece(text, partial=False, finish_reason=types.FinishReason.STOP)


def a_call() -> LlmResponse:
    call = types.FunctionCall(name="pay", args={"amount": 5})
    content = types.Content(role="model", parts=[types.Part(function_call=call)])
    return LlmResponse(content=content, partial=True)


def texts(responses: Sequence[LlmResponse]) -> list[str | None]:
    return [(r.content.parts or [types.Part()])[0].text if r.content else None for r in responses]


async def said(*steps: LlmResponse | Exception) -> AsyncGenerator[LlmResponse, None]:
    for step in steps:
        if isinstance(step, Exception):
            raise step
        yield step


class Heard:
    """What was told, and what ADK was given, in the order in which it came."""

    def __init__(self, *, visible: bool = True) -> None:
        self.all: list[tuple[Literal["told", "given"], object]] = []
        self.scope = RunScope(UserId("u"), ChatId("c"), ReplyId("r"), tell=self._tell)
        self.visible = visible
        """Whether what ADK is given comes out for the client."""
        self.refused: set[str] = set()
        """What has to come through ADK."""

    async def _tell(self, like: Event, kind: BlockKind, text: str) -> bool:
        assert like is LIKE
        if text in self.refused:
            return False
        self.all.append(("told", (kind, text)))
        return True

    async def listen(self, responses: AsyncGenerator[LlmResponse, None]) -> Heard:
        async with aclosing(told(responses, self.scope, LIKE)) as rest:
            async for response in rest:
                self.all.append(("given", response))
                if self.visible:
                    self.hand_on(response)
        assert not self.scope.passages
        return self

    def hand_on(self, response: LlmResponse) -> None:
        for passage in self.scope.passages:
            passage.take(Event(author="a", content=response.content, partial=response.partial))

    def only(self, how: Literal["told", "given"]) -> list[Any]:
        return [what for each, what in self.all if each == how]


async def test_pieces_are_told_and_adk_is_given_the_first_and_the_whole() -> None:
    first, end = piece("a"), whole("abc")
    heard = await Heard().listen(said(first, piece("b", thought=True), piece("c"), end))
    assert heard.only("told") == [("reasoning", "b"), ("text", "c")]
    assert heard.only("given") == [first, end]
    assert heard.all[-1] == ("given", end)


async def test_nothing_is_told_of_an_answer_that_does_not_come_out() -> None:
    steps = [*(piece(text) for text in "abcdefghijkl"), whole("abcdefghijkl")]
    heard = await Heard(visible=False).listen(said(*steps))
    assert heard.only("given") == steps


async def test_pieces_are_told_as_soon_as_adk_holds_none() -> None:
    heard = Heard(visible=False)
    steps = [piece(text) for text in "abcdefghijklmnopqrstuvwxyz"]

    async def late() -> AsyncGenerator[LlmResponse, None]:
        for number, step in enumerate(steps):
            if number == 20:
                # Only the newest shows that the others are out.
                heard.hand_on(steps[18])
            if number == 22:
                heard.hand_on(steps[21])
            yield step

    await heard.listen(late())
    assert heard.only("given") == steps[:22]
    assert heard.only("told") == [("text", text) for text in "wxyz"]


async def test_what_cannot_be_told_comes_through_adk() -> None:
    heard = Heard()
    heard.refused = {"c"}
    steps = [piece(text) for text in "abcd"]
    await heard.listen(said(*steps))
    assert [what if how == "told" else texts([what])[0] for how, what in heard.all] == [  # type: ignore[list-item]  # given are responses
        *("a", ("text", "b"), "c", ("text", "d")),
    ]


@pytest.mark.parametrize(
    "other",
    [
        a_call(),
        piece(""),
        piece("b", partial=False),
        piece("b", finish_reason=types.FinishReason.STOP),
        piece("b", custom_metadata={"said": "aloud"}),
        LlmResponse(partial=True, error_code="429"),
        LlmResponse(content=types.Content(role="model", parts=[]), partial=True),
        LlmResponse(content=types.Content(role="user", parts=[types.Part(text="b")]), partial=True),
        LlmResponse(
            content=types.Content(
                role="model", parts=[types.Part(text="b", thought_signature=b"signed")]
            ),
            partial=True,
        ),
        LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text="b"), types.Part(text="c")]),
            partial=True,
        ),
        types_of_python.new_class("Own", (LlmResponse,))(
            content=types.Content(role="model", parts=[types.Part(text="b")]), partial=True
        ),
    ],
    ids=lambda other: "-".join(sorted(other.model_fields_set)),
)
async def test_adk_is_given_whatever_is_not_plain(other: LlmResponse) -> None:
    first = piece("first")
    heard = await Heard().listen(said(first, piece("a"), other))
    assert heard.all == [("given", first), ("told", ("text", "a")), ("given", other)]
    assert heard.only("given")[1] is other


async def test_a_piece_does_not_come_before_what_adk_still_holds() -> None:
    heard = Heard()

    async def holding() -> AsyncGenerator[LlmResponse, None]:
        yield piece("first")
        yield piece("a")
        heard.visible = False
        yield a_call()
        yield piece("b")

    await heard.listen(holding())
    assert heard.only("told") == [("text", "a")]
    assert texts(heard.only("given")) == ["first", None, "b"]


async def test_adk_is_given_all_once_the_run_is_to_stop() -> None:
    heard = Heard()

    async def stopped() -> AsyncGenerator[LlmResponse, None]:
        yield piece("first")
        yield piece("a")
        heard.scope.stopping = True
        yield piece("b")

    await heard.listen(stopped())
    assert heard.only("told") == [("text", "a")]
    assert texts(heard.only("given")) == ["first", "b"]


async def test_adk_is_given_all_when_nobody_is_told_any_more() -> None:
    heard = Heard()

    async def left() -> AsyncGenerator[LlmResponse, None]:
        yield piece("first")
        yield piece("a")
        heard.scope.tell = None
        yield piece("b")

    await heard.listen(left())
    assert heard.only("told") == [("text", "a")]
    assert texts(heard.only("given")) == ["first", "b"]


async def test_a_model_that_breaks_is_heard_out_first() -> None:
    heard = Heard()
    with pytest.raises(ValueError, match="broke"):
        await heard.listen(said(piece("first"), piece("a"), ValueError("broke")))
    assert heard.only("told") == [("text", "a")]
    assert not heard.scope.passages


async def test_a_model_that_is_left_ends_before_its_reader_does() -> None:
    steps: list[str] = []

    async def endless() -> AsyncGenerator[LlmResponse, None]:
        try:
            yield a_call()
            await anyio.sleep_forever()
        finally:
            # A connection takes a moment to close.
            for _ in range(3):
                await anyio.lowlevel.cancel_shielded_checkpoint()
            steps.append("model ended")

    async with aclosing(told(endless(), Heard().scope, LIKE)) as stream:
        await anext(stream)
    steps.append("reader ended")
    assert steps == ["model ended", "reader ended"]


async def test_others_have_turns_beside_a_model_that_need_not_be_waited_for() -> None:
    turns: list[int] = []
    heard = Heard()

    async def count() -> None:
        while True:
            turns.append(len(heard.all))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await heard.listen(said(*(piece("a") for _ in range(1000))))
        tasks.cancel_scope.cancel()
    assert len(set(turns)) > 20


STEPS = st.lists(
    st.one_of(
        st.builds(piece, st.text(max_size=3), thought=st.sampled_from([None, True])),
        st.builds(a_call),
        st.builds(whole, st.text(max_size=3)),
    ),
    max_size=30,
)


@given(steps=STEPS)
def test_whatever_comes_nothing_is_lost_or_moved(steps: list[LlmResponse]) -> None:
    async def listen() -> Heard:
        return await Heard().listen(said(*steps))

    heard = anyio.run(listen)
    assert len(heard.all) == len(steps)
    for step, (how, what) in zip(steps, heard.all, strict=True):
        assert what is step or (how == "told" and what == text_of(step))


def text_of(response: LlmResponse) -> tuple[str, str | None]:
    assert response.content is not None
    assert response.content.parts
    part = response.content.parts[0]
    return ("reasoning" if part.thought else "text"), part.text


# Served


async def talked(agent: BaseAgent | App, settings: Settings | None = None) -> list[str]:
    """Return the pieces of text that a client gets."""
    app = create_app(agent, settings=settings)
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        body = {"id": "c", "messages": [user_message("hi")]}
        answered = Answered.of(await http.post("/api/chat", json=body))
    return [chunk["delta"] for chunk in answered.only("text-delta")]


class Hidden(BasePlugin):
    """Sees the pieces that ADK hands on, and is not known to look at them."""

    def __init__(self) -> None:
        super().__init__(name="hidden")
        self.seen: list[str] = []
        # Of this object only, not of its class: nobody would do that but a test.
        vars(self)["on_event_callback"] = self._look

    async def _look(self, *, event: Event, **_: Any) -> None:
        if event.partial:
            self.seen += map(str, texts([event]))


FIRST = PIECES[:1]
"""What comes through ADK where the others do not."""


async def passed(agent: BaseAgent, settings: Settings | None = None) -> list[str]:
    """Return the pieces that came through ADK; a client gets all, in any case."""
    plugin = Hidden()
    app = App(name="app", root_agent=agent, plugins=[plugin])
    assert await talked(app, settings) == PIECES
    return plugin.seen


def model() -> ScriptedModel:
    return ScriptedModel(script={"hi": [PIECES]})


async def test_a_client_gets_each_piece_and_adk_the_first() -> None:
    assert await passed(LlmAgent(name="a", model=model())) == FIRST


async def test_it_can_be_turned_off() -> None:
    agent = LlmAgent(name="a", model=model())
    assert await passed(agent, Settings(direct_text=False)) == PIECES


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
    assert await passed(watched()[who]()) == PIECES


@pytest.mark.filterwarnings("ignore:.*is deprecated in favor of Workflow:DeprecationWarning")
async def test_agents_of_adks_own_kinds_look_at_none() -> None:
    inner = LlmAgent(name="a", model=model())
    assert await passed(SequentialAgent(name="outer", sub_agents=[inner])) == FIRST


@pytest.mark.filterwarnings("ignore:.*is deprecated in favor of Workflow:DeprecationWarning")
async def test_each_of_parallel_agents_is_heard_in_order() -> None:
    said = {name: [f"{name}{number} " for number in range(40)] for name in "ab"}
    agents = [
        LlmAgent(name=name, model=ScriptedModel(script={"hi": [pieces]}))
        for name, pieces in said.items()
    ]
    heard = await talked(ParallelAgent(name="outer", sub_agents=agents))
    for name, pieces in said.items():
        assert [piece for piece in heard if piece.startswith(name)] == pieces


class SlowLog(MemoryLog):
    """A log that takes the longer the more it is given, as a database does."""

    @override
    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        for _ in range(4 * (len(entries) - 1)):
            await anyio.lowlevel.checkpoint()
        await super().append(reply_id, entries)


async def chunks_of(agent: BaseAgent, log: Log) -> list[dict[str, Any]]:
    """Return what a client gets from a server with a log of its own."""
    stores = replace(memory_stores(), log=log)
    app = create_app(agent, settings=Settings(), stores=stores)
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:
        body = {"id": "c", "messages": [user_message("hi")]}
        return Answered.of(await http.post("/api/chat", json=body)).chunks


async def test_pieces_wait_for_the_result_that_the_model_was_given() -> None:
    def look() -> str:
        """Look."""
        return "seen"

    script = {"hi": [["Let me ", "look. ", call("look")], PIECES]}
    agent = LlmAgent(name="a", model=ScriptedModel(script=script), tools=[look])
    chunks = await chunks_of(agent, SlowLog())
    told = [chunk.get("delta", chunk["type"]) for chunk in chunks if "toolName" not in chunk]
    assert told == [
        *("start", "start-step", "text-start", "Let me ", "look. ", "text-end", "tool-input-delta"),
        *("tool-output-available", "finish-step"),
        *("start-step", "text-start", *PIECES, "text-end", "finish-step", "finish"),
    ]


@pytest.mark.filterwarnings("ignore:.*is deprecated in favor of Workflow:DeprecationWarning")
async def test_pieces_wait_for_what_another_agent_said_before() -> None:
    agents = [
        LlmAgent(name=name, model=ScriptedModel(script={"hi": [[f"{name}1 ", f"{name}2 "]]}))
        for name in "ab"
    ]
    chunks = await chunks_of(ParallelAgent(name="outer", sub_agents=agents), SlowLog())
    kinds = [chunk["type"] for chunk in chunks]
    assert kinds.index("start-step") < kinds.index("text-start")
    for started in (chunk for chunk in chunks if chunk["type"] == "text-start"):
        told = [chunk["type"] for chunk in chunks if chunk.get("id") == started["id"]]
        assert told[0] == "text-start"
        assert told[-1] == "text-end"


async def test_what_an_agent_says_to_a_tool_is_not_told_to_the_client() -> None:
    # It is below the root as well, where it would be told.
    expert = LlmAgent(name="expert", model=ScriptedModel(script={"hi": [["Between ", "us."]]}))
    heard: list[str | None] = []

    async def consult(tool_context: ToolContext) -> str:
        """Ask the expert, in a run of the tool's own with all that this one has."""
        plugins = tool_context.get_invocation_context().plugin_manager.plugins
        app = App(name="inner", root_agent=expert, plugins=list(plugins))
        sessions = InMemorySessionService()
        await sessions.create_session(app_name="inner", user_id="u", session_id="inner")
        events = Runner(app=app, session_service=sessions).run_async(
            user_id="u",
            session_id="inner",
            new_message=types.Content(role="user", parts=[types.Part(text="hi")]),
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )
        heard.extend([texts([event])[0] async for event in events if event.partial])
        return "consulted"

    script = {"hi": [[call("consult")], PIECES]}
    root = LlmAgent(
        name="root", model=ScriptedModel(script=script), tools=[consult], sub_agents=[expert]
    )
    assert await talked(root) == PIECES
    assert heard == ["Between ", "us."]


def expert() -> LlmAgent:
    return LlmAgent(name="expert", model=ScriptedModel(script={"hi": [["Between ", "us."]]}))


async def privately(agent: BaseAgent, context: InvocationContext) -> None:
    """Ask an agent in the run that goes on, and keep what it says."""
    inner = context.model_copy(update={"agent": agent})
    async with aclosing(agent.run_async(inner)) as events:
        assert [event async for event in events]


async def test_what_a_tool_hears_of_an_agent_in_its_run_is_not_told() -> None:
    other = expert()

    async def consult(tool_context: ToolContext) -> str:
        """Ask the expert."""
        await privately(other, tool_context.get_invocation_context())
        return "consulted"

    script = {"hi": [[call("consult")], PIECES]}
    scripted = ScriptedModel(script=script)
    assert await talked(
        LlmAgent(name="root", model=scripted, tools=[consult], sub_agents=[other])
    ) == (PIECES)


async def test_what_a_callback_hears_of_an_agent_is_not_told() -> None:
    other = expert()

    async def consult(callback_context: CallbackContext) -> None:
        await privately(other, callback_context.get_invocation_context())

    root = LlmAgent(name="root", model=model(), before_agent_callback=consult, sub_agents=[other])
    assert await talked(root) == PIECES


async def test_what_an_agent_that_is_named_like_the_root_says_to_a_tool_is_not_told() -> None:
    twin = LlmAgent(name="root", model=expert().model)

    async def consult(tool_context: ToolContext) -> str:
        """Ask the other."""
        await privately(twin, tool_context.get_invocation_context())
        return "consulted"

    script = {"hi": [[call("consult")], PIECES]}
    root = LlmAgent(name="root", model=ScriptedModel(script=script), tools=[consult])
    assert await talked(root) == PIECES


class Loud(BaseLlm):
    """A model that asks another, and says it louder."""

    model: str = "loud"
    other: BaseLlm

    @override
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in self.other.generate_content_async(llm_request, stream):
            assert response.content is not None
            assert response.content.parts
            for part in response.content.parts:
                part.text = str(part.text).upper()
            yield response


async def test_a_model_that_asks_another_hears_each_piece_of_it() -> None:
    other = model()
    await talked(LlmAgent(name="a", model=other))
    heard = await talked(LlmAgent(name="b", model=Loud(other=other)))
    assert heard == [piece.upper() for piece in PIECES]


class Sealed(Loud):
    """A model that asks another, and whose kind cannot be extended."""

    model: str = "sealed"

    def __init_subclass__(cls, **more: Any) -> None:
        raise TypeError("sealed")


async def test_a_model_that_cannot_be_taught_hears_each_piece_of_another() -> None:
    other = model()
    await talked(LlmAgent(name="a", model=other))
    heard = await talked(LlmAgent(name="b", model=Sealed(other=other)))
    assert heard == [piece.upper() for piece in PIECES]


async def test_a_model_that_a_callback_puts_before_another_hears_each_piece_of_it() -> None:
    other = model()

    def change(callback_context: CallbackContext, **_: Any) -> None:
        agent = callback_context.get_invocation_context().agent
        assert isinstance(agent, LlmAgent)
        agent.model = Loud(other=other)

    agent = LlmAgent(name="a", model=other, before_model_callback=change)
    assert await talked(agent) == [piece.upper() for piece in PIECES]


async def test_what_stands_before_a_models_method_hears_each_piece() -> None:
    own = model()
    agent = LlmAgent(name="a", model=own)
    await talked(agent)
    ask = own.generate_content_async

    async def loudly(*arguments: Any, **named: Any) -> AsyncGenerator[LlmResponse, None]:
        async for response in ask(*arguments, **named):
            for part in (response.content.parts if response.content else None) or []:
                part.text = str(part.text).upper()
            yield response

    object.__setattr__(own, "generate_content_async", loudly)
    assert await talked(agent) == [piece.upper() for piece in PIECES]


class Tagged(ScriptedModel):
    """A model with something more to say to whoever asks it otherwise."""

    @override
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False, tag: str = ""
    ) -> AsyncGenerator[LlmResponse, None]:
        async for response in super().generate_content_async(llm_request, stream):
            yield response
        if tag:
            yield piece(tag)


async def test_a_model_can_still_be_asked_in_its_own_way() -> None:
    own = Tagged(script={"hi": [PIECES]})
    await talked(LlmAgent(name="a", model=own))
    asked = LlmRequest(contents=[types.Content(role="user", parts=[types.Part(text="hi")])])
    heard = [response async for response in own.generate_content_async(asked, tag="tag")]
    assert texts(heard)[-1] == "tag"


class LosesText(MemoryLog):
    """A log that is lost after the first piece."""

    @override
    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        if any(getattr(entry, "delta", None) == PIECES[1] for entry in entries):
            raise StoreLost("gone")
        await super().append(reply_id, entries)


@pytest.mark.filterwarnings("ignore:.*is deprecated in favor of Workflow:DeprecationWarning")
async def test_a_log_that_is_lost_is_not_taken_for_a_model_that_broke() -> None:
    blamed: list[Exception] = []

    def blame(*, error: Exception, **_: Any) -> LlmResponse:
        blamed.append(error)
        return whole("The model is down.")

    agent = LlmAgent(name="a", model=model(), on_model_error_callback=blame)
    chunks = await chunks_of(SequentialAgent(name="outer", sub_agents=[agent]), LosesText())
    assert blamed == []
    # It is cut off, and left to whoever recovers it.
    told = [chunk.get("delta", chunk["type"]) for chunk in chunks]
    assert told == ["start", "start-step", "text-start", *FIRST, "error"]
