"""Live chats with the real google-genai client, through ADK's own `Gemini`, in our whole server."""

from __future__ import annotations

import dataclasses

import anyio
import pytest

from adk_stream_protocol.server.settings import Settings
from stories.connecting import Connect
from support.conformance import ChatState
from support.gemini_live import GEMINI_2, GEMINI_3, LiveConnection
from support.gemini_live_brain import TONE, brain
from support.gemini_live_stage import on_gemini, shown
from support.gemini_live_wire import audio, call, heard, spoken, text
from support.socket import chunks_of, opened

pytestmark = pytest.mark.anyio

LIVE = Connect("ai7", socket="live")
PLAIN = dataclasses.replace(Settings(), drain_seconds=1.0)
ALOUD = dataclasses.replace(PLAIN, live_modality="audio")
IDLE_SOON = dataclasses.replace(PLAIN, live_idle_seconds=0.2)
HELD_SHORTLY = dataclasses.replace(PLAIN, live_hold_seconds=0.2)


@pytest.fixture(params=[GEMINI_2, GEMINI_3])
def model(request: pytest.FixtureRequest) -> str:
    """A model of each order on the wire."""
    name: str = request.param
    return name


def part_types(state: ChatState) -> list[str]:
    return [part["type"] for part in state.last["parts"] if not part["type"].startswith("data-")]


def chunk_types(state: ChatState) -> list[str]:
    """Return the types of the last reply's chunks."""
    return [str(chunk["type"]) for chunk in state.chunks[-1]]


async def test_text_streams_and_the_connection_is_kept(model: str) -> None:
    async with on_gemini(then=brain(), model=model) as stage, LIVE(stage) as chat:
        first = await chat.send("Hi")
        assert first.text == "You said: Hi"
        # Two pieces, unless both were there when the first was read.
        assert chunk_types(first).count("text-delta") in {1, 2}
        second = await chat.send("花子さん、こんにちは")
        assert second.text == "You said: 花子さん、こんにちは"
        assert [message["role"] for message in second.messages] == ["user", "assistant"] * 2
        assert isinstance(second.last["metadata"], dict)
        assert second.last["metadata"]["model"] == model
        assert second.last["metadata"]["usage"] == {
            "inputTokens": 3,
            "outputTokens": 2,
            "totalTokens": 5,
        }
        assert await stage.loaded(second) == shown(second)
        assert len(stage.gemini.connections) == 1


async def test_a_tool_is_one_message_with_one_end_in_both_orders(model: str) -> None:
    async with on_gemini(then=brain(), model=model) as stage, LIVE(stage) as chat:
        state = await chat.send('call add {"a": 1, "b": 2}')
        assert [message["role"] for message in state.messages] == ["user", "assistant"]
        assert part_types(state) == ["step-start", "tool-add", "step-start", "text"]
        assert state.text == 'Done: [{"sum": 3}]'
        types = chunk_types(state)
        assert (types.count("start"), types.count("finish")) == (1, 1)
        assert state.requests == 1
        assert await stage.loaded(state) == shown(state)


async def test_parallel_tools_run_in_one_step(model: str) -> None:
    async with on_gemini(then=brain(), model=model) as stage, LIVE(stage) as chat:
        state = await chat.send('call add {"a": 1, "b": 2} call add {"a": 3, "b": 4}')
        assert part_types(state) == ["step-start", "tool-add", "tool-add", "step-start", "text"]
        assert [part["output"] for part in state.tool_parts] == [{"sum": 3}, {"sum": 7}]
        assert state.text == 'Done: [{"sum": 3}, {"sum": 7}]'
        assert await stage.loaded(state) == shown(state)


async def test_tools_one_after_another_grow_one_message(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.call_tools(call("add", {"a": 1, "b": 2}))
        await connection.call_tools(call("add", {"a": 3, "b": 4}))
        await connection.say("3 and 7.")

    async with on_gemini(script, model=model) as stage, LIVE(stage) as chat:
        state = await chat.send("add twice")
        steps_of_each = ["step-start", "tool-add"] * 2
        assert part_types(state) == [*steps_of_each, "step-start", "text"]
        assert chunk_types(state).count("finish") == 1
        assert await stage.loaded(state) == shown(state)


async def test_a_failing_tool_is_told_and_the_connection_lives(model: str) -> None:
    async with on_gemini(then=brain(), model=model) as stage, LIVE(stage) as chat:
        failed = await chat.send("call explode {}")
        assert [part["state"] for part in failed.tool_parts] == ["output-error"]
        assert "SECRET" not in str(failed.messages)
        again = await chat.send("Hi")
        assert again.text == "You said: Hi"
        assert await stage.loaded(again) == shown(again)
        assert len(stage.gemini.connections) == 1


@pytest.mark.parametrize("approved", [True, False])
async def test_a_confirmation_is_asked_and_answered_on_one_connection(
    model: str, approved: bool
) -> None:
    async with on_gemini(then=brain(), model=model) as stage, LIVE(stage) as chat:
        asked = await chat.send('call pay {"amount": 5}')
        assert [part["state"] for part in asked.tool_parts] == ["approval-requested"]
        assert await stage.loaded(asked) == shown(asked)
        assert stage.payments == []
        [approval] = asked.open_approvals
        state = await (chat.approve(approval) if approved else chat.deny(approval, reason="mine"))
        assert state.status == "ready", state.error
        assert stage.payments == ([5] if approved else [])
        assert [message["role"] for message in state.messages] == ["user", "assistant"]
        assert state.text.startswith("Done: ")
        assert chunk_types(state).count("finish") == 1
        assert await stage.loaded(state) == shown(state)
        [connection] = stage.gemini.connections
        [told] = [message for message in connection.messages if message.kind == "toolResponse"]
        assert ("'paid': 5" in str(told)) is approved
        assert ("User denied execution: mine" in str(told)) is not approved


async def test_two_payments_of_one_step_are_each_decided(model: str) -> None:
    async with on_gemini(then=brain(), model=model) as stage, LIVE(stage) as chat:
        asked = await chat.send('call pay {"amount": 1} call pay {"amount": 2}')
        one, two = asked.open_approvals
        await chat.approve(one)
        state = await chat.deny(two)
        states = [part["state"] for part in state.tool_parts]
        assert states == ["output-available", "output-denied"]
        assert stage.payments == [1]
        assert state.text.startswith("Done: ")
        assert await stage.loaded(state) == shown(state)


async def test_an_interruption_ends_the_reply_and_the_next_message_works(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send(text("Once upon "), text("a time"))
        await connection.interrupt()
        await connection.prompt()
        await connection.say("Yes?")

    async with on_gemini(script, model=model) as stage, LIVE(stage) as chat:
        cut = await chat.send("Tell me a story")
        assert cut.status == "ready", cut.error
        assert cut.text == "Once upon a time"
        assert isinstance(cut.last["metadata"], dict)
        assert cut.last["metadata"]["interrupted"] is True
        assert chunk_types(cut).count("finish") == 1
        assert await stage.loaded(cut) == shown(cut)
        state = await chat.send("Wait")
        assert state.text == "Yes?"
        assert await stage.loaded(state) == shown(state)
        assert len(stage.gemini.connections) == 1


async def test_what_the_model_says_aloud_is_the_text_of_the_reply(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send(audio(TONE), spoken("It is "), audio(TONE), spoken("noon."))
        await connection.end_turn()

    async with on_gemini(script, model=model, settings=ALOUD) as stage, LIVE(stage) as chat:
        state = await chat.send("What time is it?")
        assert state.text == "It is noon."
        assert part_types(state) == ["step-start", "text"]
        assert await stage.loaded(state) == shown(state)
        [connection] = stage.gemini.connections
        assert connection.setup["generationConfig"] == {"responseModalities": ["AUDIO"]}
        assert "outputAudioTranscription" in connection.setup


async def test_what_the_model_was_saying_aloud_when_interrupted_is_kept(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send(audio(TONE), spoken("Once upon "), audio(TONE), spoken("a time"))
        await connection.interrupt()
        await connection.prompt()
        await connection.send(audio(TONE), spoken("Yes?"))
        await connection.end_turn()

    async with on_gemini(script, model=model, settings=ALOUD) as stage, LIVE(stage) as chat:
        cut = await chat.send("Tell me a story")
        assert cut.text == "Once upon a time"
        assert isinstance(cut.last["metadata"], dict)
        assert cut.last["metadata"]["interrupted"] is True
        assert await stage.loaded(cut) == shown(cut)
        state = await chat.send("Wait")
        assert state.text == "Yes?"
        assert await stage.loaded(state) == shown(state)


async def test_what_the_user_says_aloud_is_a_message_of_the_chat(model: str) -> None:
    speaks = anyio.Event()

    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.send(audio(TONE), spoken("Hello."))
        await connection.end_turn()
        await speaks.wait()
        await connection.send(heard("What time is it?"), audio(TONE), spoken("It is noon."))
        await connection.end_turn()

    async with (
        on_gemini(script, model=model, settings=ALOUD) as stage,
        opened(stage.url, route="live") as page,
    ):
        await page.say("r1", "c", "Hi")
        await page.all("r1")
        speaks.set()
        assert await page.next("-") == {"type": "active", "requestId": "-", "id": "c"}
        await page.resume("r2", "c")
        chunks = chunks_of(await page.all("r2"))
        told = "".join(c["delta"] for c in chunks if c["type"] == "text-delta")
        assert told == "It is noon."
        messages = (await stage.http.get("/api/chats/c")).json()["messages"]
        assert [(m["role"], m["parts"][-1]["text"]) for m in messages] == [
            ("user", "Hi"),
            ("assistant", "Hello."),
            ("user", "What time is it?"),
            ("assistant", "It is noon."),
        ]
        assert messages[-1]["id"] == chunks[0]["messageId"]


async def test_calls_that_share_an_id_are_told_apart(model: str) -> None:
    """A model may count anew in every session; it gets its own id back."""

    async def script(connection: LiveConnection) -> None:
        for amount in (1, 2, 3):
            await connection.prompt()
            results = await connection.call_tools(call("pay", {"amount": amount}, "call-1"))
            await connection.say(f"Paid {results['call-1']['paid']}.")

    async with on_gemini(script, model=model) as stage, LIVE(stage) as chat:
        state = await chat.state()
        for amount in (1, 2, 3):
            asked = await chat.send("pay")
            state = await chat.approve(asked.open_approvals[0])
            assert state.text == f"Paid {amount}."
        assert stage.payments == [1, 2, 3]
        calls = [part for m in state.messages for part in m["parts"] if "toolCallId" in part]
        assert len({part["toolCallId"] for part in calls}) == 3
        assert calls[0]["toolCallId"] == "call-1"
        assert await stage.loaded(state) == shown(state)


async def test_calls_of_two_connections_that_share_an_id_are_told_apart(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        results = await connection.call_tools(call("pay", {"amount": connection.number}, "call-1"))
        await connection.say(f"Paid {results['call-1']['paid']}.")

    async with (
        on_gemini(script, script, model=model, settings=IDLE_SOON) as stage,
        LIVE(stage) as chat,
    ):
        asked = await chat.send("pay")
        await chat.approve(asked.open_approvals[0])
        await (await stage.connection(1)).closed.wait()
        asked = await chat.send("pay again")
        state = await chat.approve(asked.open_approvals[0])
        assert state.text == "Paid 2."
        assert stage.payments == [1, 2]
        assert await stage.loaded(state) == shown(state)


async def test_a_renamed_call_can_be_approved_after_the_wait(model: str) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.call_tools(call("add", {"a": 1, "b": 2}, "call-1"))
        await connection.say("It is 3.")
        await connection.prompt()
        await connection.send_calls(call("pay", {"amount": 5}, "call-1"))

    async with (
        on_gemini(script, then=brain(), model=model, settings=HELD_SHORTLY) as stage,
        LIVE(stage) as chat,
    ):
        await chat.send("add")
        asked = await chat.send("pay")
        await (await stage.connection(1)).closed.wait()
        state = await chat.approve(asked.open_approvals[0])
        assert "{'paid': 5}" in state.text
        assert stage.payments == [5]
        assert await stage.loaded(state) == shown(state)
