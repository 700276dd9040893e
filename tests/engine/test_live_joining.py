"""What a live model has ready at the same time goes on as one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.engine.live_joining import joined, joins_pieces
from stories.telling import telling
from support.scripted import ScriptedModel, call
from support.stage import staged

pytestmark = pytest.mark.anyio

PCM = "audio/pcm;rate=24000"


def of_model(part: types.Part, **more: Any) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[part]), **more)


def text(words: str, **more: Any) -> LlmResponse:
    return of_model(types.Part(text=words), partial=True, **more)


def thought(words: str) -> LlmResponse:
    return of_model(types.Part(text=words, thought=True), partial=True)


def spoken(words: str) -> LlmResponse:
    said = types.Transcription(text=words, finished=False)
    return LlmResponse(output_transcription=said, partial=True)


def sound(samples: bytes) -> LlmResponse:
    return of_model(types.Part(inline_data=types.Blob(data=samples, mime_type=PCM)))


def model_of(*responses: LlmResponse) -> Callable[[], AsyncGenerator[LlmResponse, None]]:
    """Return what a model is asked with that has all of this ready."""

    async def receive() -> AsyncGenerator[LlmResponse, None]:
        for response in responses:
            yield response

    return receive


async def told(
    receive: Callable[[], AsyncGenerator[LlmResponse, None]],
) -> list[LlmResponse]:
    heard: list[LlmResponse] = []
    async with (
        anyio.create_task_group() as tasks,
        aclosing(joined(receive, tasks.start_soon)) as pieces,
    ):
        heard += [response async for response in pieces]
    return heard


def words_of(response: LlmResponse) -> str:
    if response.output_transcription is not None:
        return response.output_transcription.text or ""
    parts = (response.content.parts if response.content else None) or []
    return "".join(part.text or "" for part in parts)


def samples_of(response: LlmResponse) -> bytes:
    parts = (response.content.parts if response.content else None) or []
    return b"".join(part.inline_data.data or b"" for part in parts if part.inline_data)


async def test_text_that_is_ready_together_is_one_piece() -> None:
    [piece] = await told(model_of(text("One "), text("two "), text("three.")))
    assert words_of(piece) == "One two three."
    assert piece.partial


async def test_words_and_their_sound_are_joined_each() -> None:
    pieces = [spoken("One "), sound(b"aa"), spoken("two"), sound(b"bb")]
    words, aloud = await told(model_of(*pieces))
    assert words_of(words) == "One two"
    assert words.output_transcription is not None
    assert not words.output_transcription.finished
    assert samples_of(aloud) == b"aabb"


@pytest.mark.parametrize(
    "apart",
    [
        thought("c"),
        text("c", interrupted=True),
        text("c", model_version="another"),
        of_model(types.Part(text="c"), partial=False),
        of_model(types.Part(inline_data=types.Blob(data=b"c", mime_type="image/png"))),
        of_model(types.Part(text="c", thought_signature=b"s"), partial=True),
        of_model(call("pay", amount=5)),
        spoken("c"),
        LlmResponse(output_transcription=types.Transcription(text="c", finished=True)),
        LlmResponse(input_transcription=types.Transcription(text="c"), partial=True),
        LlmResponse(turn_complete=True),
    ],
)
async def test_what_is_not_the_same_text_stays_as_it_is(apart: LlmResponse) -> None:
    first, other, last = await told(model_of(text("a"), text("b"), apart, text("d"), text("e")))
    assert (words_of(first), words_of(last)) == ("ab", "de")
    assert other is apart


async def test_the_first_piece_waits_for_no_other() -> None:
    more = anyio.Event()

    async def receive() -> AsyncGenerator[LlmResponse, None]:
        yield text("One ")
        await more.wait()
        yield text("two.")

    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as tasks,
            aclosing(joined(receive, tasks.start_soon)) as pieces,
        ):
            assert words_of(await anext(pieces)) == "One "
            more.set()
            assert words_of(await anext(pieces)) == "two."


async def test_a_model_that_calls_a_tool_is_read_on_when_adk_asks_for_more() -> None:
    read: list[str] = []

    async def receive() -> AsyncGenerator[LlmResponse, None]:
        yield of_model(call("pay", amount=5))
        read.append("on")
        yield LlmResponse(turn_complete=True)

    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as tasks,
            aclosing(joined(receive, tasks.start_soon)) as pieces,
        ):
            await anext(pieces)
            await anyio.wait_all_tasks_blocked()
            assert read == []
            assert (await anext(pieces)).turn_complete


async def test_a_model_is_not_read_ahead_without_end() -> None:
    read = 0

    async def receive() -> AsyncGenerator[LlmResponse, None]:
        nonlocal read
        while True:
            read += 1
            yield text("x")

    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as tasks,
            aclosing(joined(receive, tasks.start_soon)) as pieces,
        ):
            assert len(words_of(await anext(pieces))) == 64
            await anyio.wait_all_tasks_blocked()
            assert read == 64
            assert words_of(await anext(pieces))


async def test_a_connection_that_breaks_does_so_after_what_it_said() -> None:
    async def receive() -> AsyncGenerator[LlmResponse, None]:
        yield text("One ")
        yield text("two")
        raise ConnectionError("lost")

    with anyio.fail_after(5):
        async with (
            anyio.create_task_group() as tasks,
            aclosing(joined(receive, tasks.start_soon)) as pieces,
        ):
            assert words_of(await anext(pieces)) == "One two"
            with pytest.raises(ConnectionError, match="lost"):
                await anext(pieces)


async def test_a_model_ends_before_whoever_leaves_it() -> None:
    ended = False

    async def receive() -> AsyncGenerator[LlmResponse, None]:
        nonlocal ended
        try:
            yield text("One ")
            await anyio.sleep_forever()
        finally:
            ended = True

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            async with aclosing(joined(receive, tasks.start_soon)) as pieces:
                await anext(pieces)
            assert ended


_RESPONSES = st.one_of(
    st.builds(text, st.text(min_size=1)),
    st.builds(thought, st.text(min_size=1)),
    st.builds(spoken, st.text(min_size=1)),
    st.builds(sound, st.binary(min_size=1)),
    st.builds(lambda: LlmResponse(turn_complete=True)),
)


def _letters(responses: Sequence[LlmResponse]) -> list[object]:
    """Return what is read, letter by letter, each with what it is a letter of."""
    found: list[object] = []
    for response in responses:
        parts = (response.content.parts if response.content else None) or []
        is_thought = any(part.thought for part in parts)
        is_spoken = response.output_transcription is not None
        found += [(letter, is_thought, is_spoken) for letter in words_of(response)]
        if response.turn_complete:
            found.append(response)
    return found


def _samples(responses: Sequence[LlmResponse]) -> list[object]:
    """Return what is heard, byte by byte."""
    found: list[object] = []
    for response in responses:
        found += samples_of(response)
        if response.turn_complete:
            found.append(response)
    return found


@given(st.lists(_RESPONSES))
def test_no_letter_or_sample_is_lost_or_moved(responses: list[LlmResponse]) -> None:
    pieces = anyio.run(told, model_of(*responses))
    assert _letters(pieces) == _letters(responses)
    assert _samples(pieces) == _samples(responses)
    assert len(pieces) <= len(responses)


# Who looks at each piece


class Watching(BasePlugin):
    async def on_event_callback(self, **_given: Any) -> None:
        """Look at every event."""


class Counting(BasePlugin):
    async def before_run_callback(self, **_given: Any) -> None:
        """Look at every run."""


class Special(BaseAgent):
    """An agent of the app's own kind."""


def agent(**more: Any) -> LlmAgent:
    return LlmAgent(name="a", model=ScriptedModel(), **more)


def test_a_plain_agent_is_read_ahead_and_its_model_stays_of_its_kind() -> None:
    plain = agent(sub_agents=[LlmAgent(name="b", model=ScriptedModel())])
    model = plain.model
    assert joins_pieces(plain, [Counting("counting")])
    assert joins_pieces(plain, [])
    assert plain.model is model
    assert isinstance(model, ScriptedModel)
    assert type(model).__name__ == "ScriptedModel"


def test_a_model_that_cannot_run_live_stays_as_it_is() -> None:
    class Unary(BaseLlm):
        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            yield text("Hi.")

    plain = LlmAgent(name="a", model=Unary(model="unary"))
    assert joins_pieces(plain, [])
    assert type(plain.model) is Unary


def test_a_model_that_nobody_knows_is_left_to_the_run() -> None:
    assert joins_pieces(LlmAgent(name="a", model="no-such-model"), [])


@pytest.mark.parametrize(
    "watched",
    [
        agent(after_model_callback=lambda **_given: None),
        Special(name="s", sub_agents=[agent()]),
    ],
)
def test_a_model_is_left_alone_where_an_agent_looks_at_each_piece(watched: BaseAgent) -> None:
    assert not joins_pieces(watched, [])


def test_a_model_is_left_alone_where_a_plugin_looks_at_each_piece() -> None:
    assert not joins_pieces(agent(), [Watching("watching")])


async def test_a_model_is_read_ahead_in_live_runs_of_ours_only() -> None:
    plain = agent()
    joins_pieces(plain, [])
    assert isinstance(plain.model, ScriptedModel)
    async with plain.model.connect(LlmRequest()) as connection:
        assert "receive" not in vars(connection)


async def test_a_reply_that_is_ready_at_once_is_told_in_few_chunks() -> None:
    async with staged() as stage, telling(stage, "live") as teller:
        stage.model.script["flood"] = [["word "] * 50]
        told = await teller.say("flood")
    assert told.text == "word " * 50
    assert [chunk["type"] for chunk in told.chunks].count("text-delta") < 50
