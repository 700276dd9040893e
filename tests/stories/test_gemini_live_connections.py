"""What becomes of a live chat when the model's connection is lost, or is let go of.

The real google-genai client, through ADK's own `Gemini`, in our whole server.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from logging import Handler, LogRecord, getLogger

import anyio
import pytest
from typing_extensions import override

from adk_stream_protocol.server.settings import Settings
from stories.connecting import Connect
from support.gemini_live import (
    CUT,
    GEMINI_2,
    GEMINI_3,
    INVALID_HANDLE,
    SESSION_NOT_FOUND,
    Close,
    Cut,
    LiveConnection,
)
from support.gemini_live_brain import brain
from support.gemini_live_stage import on_gemini, shown
from support.gemini_live_wire import call, filler, go_away, text

pytestmark = pytest.mark.anyio

LIVE = Connect("ai7", socket="live")
SOON = dataclasses.replace(Settings(), live_hold_seconds=0.2, drain_seconds=1.0)
LONG = "ADK_STREAM_TEST_LONG_WAIT"
FRAMES = 500


@pytest.fixture(params=[GEMINI_2, GEMINI_3])
def model(request: pytest.FixtureRequest) -> str:
    """A model of each order on the wire."""
    name: str = request.param
    return name


@contextmanager
def logged(message: str) -> Iterator[anyio.Event]:
    """Tell when our server logs something."""
    told = anyio.Event()

    class Teller(Handler):
        @override
        def emit(self, record: LogRecord) -> None:
            if record.getMessage() == message:
                told.set()

    logger, handler = getLogger("adk_stream_protocol"), Teller()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")
    try:
        yield told
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


async def pays(connection: LiveConnection) -> None:
    """Make a call, and then send frames that mean nothing."""
    await connection.prompt()
    await connection.send_calls(call("pay", {"amount": 5}))
    await connection.send(*filler(FRAMES))


async def tells(connection: LiveConnection) -> None:
    """Say what the history ends with, then echo."""
    prompt = await connection.prompt()
    # ADK retells in words what came by a live connection.
    paid, denied = "{'paid': 5}" in prompt.text, "User denied execution" in prompt.text
    await connection.say("Paid." if paid else "Denied." if denied else prompt.text)
    await brain()(connection)


async def test_a_confirmation_within_the_wait_outlives_many_frames(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await pays(connection)
        results = await connection.results()
        await connection.say(f"Told: {list(results.values())}")

    async with on_gemini(script, model=model) as stage, LIVE(stage) as chat:
        asked = await chat.send("pay")
        state = await chat.approve(asked.open_approvals[0])
        assert state.text == "Told: [{'paid': 5}]"
        assert stage.payments == [5]
        assert await stage.loaded(state) == shown(state)
        assert len(stage.gemini.connections) == 1


@pytest.mark.parametrize("approved", [True, False])
async def test_a_confirmation_after_the_wait_is_told_to_a_new_connection(
    model: str, approved: bool
) -> None:
    async with (
        on_gemini(pays, tells, model=model, settings=SOON, close_timeout=0.5) as stage,
        LIVE(stage) as chat,
    ):
        asked = await chat.send("pay")
        await (await stage.connection(1)).closed.wait()
        assert await stage.loaded(asked) == shown(asked)
        [approval] = asked.open_approvals
        state = await (chat.approve(approval) if approved else chat.deny(approval))
        assert state.status == "ready", state.error
        assert state.text == ("Paid." if approved else "Denied.")
        assert stage.payments == ([5] if approved else [])
        assert [message["role"] for message in state.messages] == ["user", "assistant"]
        assert await stage.loaded(state) == shown(state)
        assert (await stage.connection(2)).handle is None
        again = await chat.send("Hi")
        assert again.text == "You said: Hi"
        assert stage.payments == ([5] if approved else [])
        assert await stage.loaded(again) == shown(again)
        assert len(stage.gemini.connections) == 2


async def test_a_tool_beside_a_held_call_runs_once_and_both_results_are_told(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send_calls(call("pay", {"amount": 5}), call("add", {"a": 1, "b": 2}))

    async with (
        on_gemini(script, tells, model=model, settings=SOON) as stage,
        LIVE(stage) as chat,
    ):
        asked = await chat.send("pay and add")
        await (await stage.connection(1)).closed.wait()
        state = await chat.approve(asked.open_approvals[0])
        assert state.text == "Paid."
        assert [part["output"] for part in state.tool_parts] == [{"paid": 5}, {"sum": 3}]
        assert stage.payments == [5]
        assert "{'sum': 3}" in str((await stage.connection(2)).history)
        assert await stage.loaded(state) == shown(state)


async def test_an_answer_does_not_wait_for_the_old_connection_to_end() -> None:
    """google-genai waits ten seconds to close a connection that has more than was read."""
    with logged("live run ended by itself") as rests, logged("live run ended") as ended:
        async with (
            on_gemini(pays, tells, settings=SOON, close_timeout=5) as stage,
            LIVE(stage) as chat,
        ):
            asked = await chat.send("pay")
            await rests.wait()
            state = await chat.approve(asked.open_approvals[0])
            assert state.text == "Paid."
            assert stage.payments == [5]
            assert not ended.is_set()
            await ended.wait()


@pytest.mark.skipif(LONG not in os.environ, reason=f"takes a minute; set {LONG}")
async def test_a_confirmation_after_a_minute_and_many_frames_is_acted_on_once(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send_calls(call("pay", {"amount": 5}))
        for frame in filler(FRAMES):
            await connection.send(frame)
            await anyio.sleep(55 / FRAMES)

    async with on_gemini(script, tells, model=model) as stage, LIVE(stage) as chat:
        asked = await chat.send("pay")
        await anyio.sleep(60)
        state = await chat.approve(asked.open_approvals[0])
        assert state.text == "Paid."
        assert stage.payments == [5]
        assert await stage.loaded(state) == shown(state)


async def test_a_call_approved_by_post_is_told_to_the_model_of_the_next_live_turn(
    model: str,
) -> None:
    """Answered elsewhere while the run rests: the server itself goes on, live."""
    async with (
        on_gemini(pays, tells, model=model, settings=SOON, close_timeout=0.5) as stage,
        LIVE(stage) as chat,
    ):
        asked = await chat.send("pay")
        await (await stage.connection(1)).closed.wait()
        [approval] = asked.open_approvals
        decided = await stage.http.post(f"/api/approvals/{approval}", json={"approved": True})
        assert decided.status_code == 200
        await (await stage.connection(2)).prompted()
        state = await chat.resume()
        assert state.text == "Paid."
        assert [part["state"] for part in state.tool_parts] == ["output-available"]
        assert stage.payments == [5]


async def test_a_connection_that_must_go_while_a_call_is_held_loses_nothing(model: str) -> None:
    """The sign comes before the answer; ADK sees it only after the tool has run."""

    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send_calls(call("pay", {"amount": 5}))
        await connection.send(go_away())

    async with on_gemini(script, silent, tells, model=model) as stage, LIVE(stage) as chat:
        asked = await chat.send("pay")
        state = await chat.approve(asked.open_approvals[0])
        assert state.status == "ready", state.error
        assert state.text == "Paid."
        assert stage.payments == [5]
        assert await stage.loaded(state) == shown(state)
        again = await chat.send("Hi")
        assert again.text == "You said: Hi"
        assert stage.payments == [5]


async def test_a_connection_that_must_go_after_the_result_was_sent_loses_nothing(
    model: str,
) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.call_tools(call("pay", {"amount": 5}))
        await connection.send(go_away())

    async with on_gemini(script, silent, tells, model=model) as stage, LIVE(stage) as chat:
        asked = await chat.send("pay")
        state = await chat.approve(asked.open_approvals[0])
        assert state.status == "ready", state.error
        assert state.text == "Paid."
        assert stage.payments == [5]
        assert await stage.loaded(state) == shown(state)


async def silent(connection: LiveConnection) -> None:
    """Answer nothing: a resumed session may have lost what it was asked."""
    await connection.closed.wait()


@pytest.mark.parametrize("end", [go_away(), Close(), CUT], ids=["go away", "1011", "cut"])
async def test_a_message_in_flight_when_the_connection_is_lost_is_answered_once(
    model: str, end: dict[str, object] | Close | Cut
) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.say("Hello.")
        await connection.prompt()
        await lose(connection, end)

    async with on_gemini(script, silent, then=brain(), model=model) as stage, LIVE(stage) as chat:
        await chat.send("Hi")
        state = await chat.send("Are you there?")
        assert state.status == "ready", state.error
        assert state.text == "You said: Are you there?"
        assert [message["role"] for message in state.messages] == ["user", "assistant"] * 2
        assert await stage.loaded(state) == shown(state)
        resumed = await stage.connection(2)
        assert resumed.handle is not None
        assert (await stage.connection(3)).handle is None


@pytest.mark.parametrize("refusal", [SESSION_NOT_FOUND, INVALID_HANDLE], ids=["1008", "1007"])
@pytest.mark.parametrize("end", [go_away(), Close()], ids=["go away", "1011"])
async def test_a_session_that_cannot_be_resumed_is_begun_anew(
    model: str, end: dict[str, object] | Close, refusal: Close
) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.say("Hello.")
        await connection.prompt()
        stage.gemini.forget_sessions(refusal)
        await lose(connection, end)

    async with on_gemini(script, then=brain(), model=model) as stage, LIVE(stage) as chat:
        await chat.send("Hi")
        state = await chat.send("Are you there?")
        assert state.status == "ready", state.error
        assert state.text == "You said: Are you there?"
        assert await stage.loaded(state) == shown(state)
        assert [c.refused for c in stage.gemini.connections] == [False, True, False]


@pytest.mark.parametrize("end", [go_away(), Close(), CUT], ids=["go away", "1011", "cut"])
@pytest.mark.parametrize("forgets", [False, True], ids=["resumed", "refused"])
async def test_a_connection_lost_between_turns_costs_nothing(
    model: str, end: dict[str, object] | Close | Cut, forgets: bool
) -> None:
    leave = anyio.Event()

    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.say("Hello.")
        await leave.wait()
        await lose(connection, end)

    async with on_gemini(script, then=brain(), model=model) as stage, LIVE(stage) as chat:
        await chat.send("Hi")
        if forgets:
            stage.gemini.forget_sessions()
        leave.set()
        await (await stage.connection(1)).closed.wait()
        state = await chat.send("Are you there?")
        assert state.status == "ready", state.error
        assert state.text == "You said: Are you there?"
        assert [message["role"] for message in state.messages] == ["user", "assistant"] * 2
        assert await stage.loaded(state) == shown(state)


@pytest.mark.parametrize("end", [go_away(), Close(), CUT], ids=["go away", "1011", "cut"])
async def test_a_connection_lost_in_an_answer_ends_the_reply_as_interrupted(
    model: str, end: dict[str, object] | Close | Cut
) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send(text("Once upon "))
        await lose(connection, end)

    async with on_gemini(script, then=brain(), model=model) as stage, LIVE(stage) as chat:
        cut = await chat.send("Tell me a story")
        assert cut.status == "ready", cut.error
        assert cut.text == "Once upon "
        assert isinstance(cut.last["metadata"], dict)
        assert cut.last["metadata"]["interrupted"] is True
        assert await stage.loaded(cut) == shown(cut)
        state = await chat.send("Go on")
        assert state.text == "You said: Go on"
        assert await stage.loaded(state) == shown(state)


@pytest.mark.parametrize("end", [go_away(), Close(1011, "SECRET overloaded")], ids=["away", "1011"])
async def test_a_model_that_never_answers_is_an_error_and_the_chat_lives(
    end: dict[str, object] | Close,
) -> None:
    async def script(connection: LiveConnection) -> None:
        if not answers.is_set():
            await lose(connection, end)
        await brain()(connection)

    answers = anyio.Event()
    async with on_gemini(then=script) as stage, LIVE(stage) as chat:
        state = await chat.send("Hi")
        answers.set()
        assert state.status == "error"
        assert "SECRET" not in str(state)
        again = await chat.send("Hi again")
        assert again.text == "You said: Hi again"


async def lose(connection: LiveConnection, end: object) -> None:
    """Lose a connection, in one of the ways there are."""
    match end:
        case Close():
            await connection.close(end)
        case Cut():
            connection.cut()
        case dict():
            await connection.send(end)
