"""The Live emulator, driven by ADK's own `run_live` through the real google-genai client."""

import socket
import ssl
from collections.abc import Callable
from typing import Any

import anyio
import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.models.google_llm import Gemini
from google.genai import types
from google.genai.errors import APIError

from support.adk_live import adk_live, live_config
from support.gemini_live import (
    CUT,
    GEMINI_2,
    GEMINI_3,
    INVALID_HANDLE,
    PROMPT,
    RESULTS,
    SESSION_NOT_FOUND,
    Close,
    Cut,
    GeminiLive,
    LiveConnection,
    Until,
    gemini_live,
    steps,
)
from support.gemini_live_brain import TONE, Reply, brain
from support.gemini_live_wire import (
    GENERATION_COMPLETE,
    NOT_RESUMABLE,
    TURN_COMPLETE,
    Frame,
    call,
    filler,
    go_away,
    text,
    tool_call,
    tool_call_cancellation,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_other_gemini(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)


def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


def agent_on(model: Gemini, *tools: Callable[..., Any]) -> LlmAgent:
    return LlmAgent(name="tested", model=model, instruction="Be brief.", tools=list(tools))


def said(events: list[Event]) -> str:
    """What the model said, without the deltas that built it."""
    whole = [event for event in events if not event.partial and event.author != "user"]
    return "".join(part.text or "" for event in whole for part in parts_of(event))


def parts_of(event: Event) -> list[types.Part]:
    return (event.content.parts if event.content else None) or []


def outline(events: list[Event]) -> list[str]:
    """What kind each event is, without the counts of tokens and the resumption updates."""
    kinds = [_kind(event) for event in events]
    return [kind for kind in kinds if kind]


def _kind(event: Event) -> str:
    if event.get_function_calls():
        return "calls"
    if event.get_function_responses():
        return "results"
    if event.turn_complete:
        return "turn complete"
    if any(part.text for part in parts_of(event)):
        return "delta" if event.partial else "text"
    return ""


def _updated(handle: str) -> Callable[[Event], bool]:
    """Fits the event that carries a handle; each connection gives one when it is set up."""

    def fits(event: Event) -> bool:
        update = event.live_session_resumption_update
        return update is not None and update.new_handle == handle

    return fits


async def test_text_streams_as_deltas_and_ends_whole() -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model())) as chat,
    ):
        chat.say("Hi")
        events = await chat.turn()

    assert outline(events) == ["delta", "delta", "text", "turn complete"]
    assert said(events) == "You said: Hi"
    assert {event.live_session_id for event in events} == {"session-1"}
    [counted] = [event.usage_metadata for event in events if event.usage_metadata]
    assert counted.candidates_token_count == 2


async def test_setup_and_messages_are_recorded_as_they_came() -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model(), add)) as chat,
    ):
        chat.say("Hi")
        await chat.turn()

    [connection] = server.connections
    assert connection.api_key == "fake"
    assert connection.setup["model"] == f"models/{GEMINI_2}"
    assert connection.setup["generationConfig"] == {"responseModalities": ["TEXT"]}
    assert "Be brief." in str(connection.setup["systemInstruction"])
    [declared] = connection.setup["tools"][0]["functionDeclarations"]
    assert declared["name"] == "add"
    assert declared["parametersJsonSchema"]["required"] == ["a", "b"]
    assert connection.messages[0].kind == "clientContent"
    assert connection.messages[0].turns == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert connection.messages[0].body["turnComplete"] is True
    assert connection.close_code == 1000


async def test_3x_model_gets_typed_text_as_realtime_input() -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model(GEMINI_3))) as chat,
    ):
        chat.say("Hi")
        events = await chat.turn()

    assert said(events) == "You said: Hi"
    assert [message.kind for message in server.connections[0].messages] == ["realtimeInput"]


@pytest.mark.parametrize(
    ("model", "order"),
    [
        (GEMINI_2, ["calls", "results", "turn complete", "delta", "text", "turn complete"]),
        (GEMINI_3, ["calls", "results", "delta", "text", "turn complete"]),
    ],
)
async def test_tool_runs_in_the_order_of_its_generation(model: str, order: list[str]) -> None:
    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        [result] = (await connection.call_tools(call("add", {"a": 1, "b": 2}))).values()
        await connection.say(f"It is {result['sum']}.")

    async with gemini_live(script) as server, adk_live(agent_on(server.model(model), add)) as chat:
        chat.say("1 and 2?")
        events = await chat.until(lambda event: said([event]) == "It is 3.")
        events += await chat.turn()

    assert outline(events) == order
    answered = server.connections[0].messages[-1]
    assert answered.kind == "toolResponse"
    assert answered.results == {"function-call-1-1": {"sum": 3}}


@pytest.mark.parametrize("model", [GEMINI_2, GEMINI_3])
async def test_calls_of_one_frame_are_answered_together(model: str) -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model(model), add)) as chat,
    ):
        chat.say('call add {"a": 1, "b": 1} and call add {"a": 2, "b": 2}')
        events = await chat.until(lambda event: said([event]).startswith("Done"))

    calls = [event.get_function_calls() for event in events if event.get_function_calls()]
    assert [[made.args for made in step] for step in calls] == [
        [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    ]
    assert said(events) == 'Done: [{"sum": 2}, {"sum": 4}]'
    sent = [m for m in server.connections[0].messages if m.kind == "toolResponse"]
    assert [list(message.results.values()) for message in sent] == [[{"sum": 2}, {"sum": 4}]]


async def test_rule_of_the_test_decides_the_reply() -> None:
    def rule(words: str) -> Reply:
        return [call("add", {"a": 50, "b": 0})] if "50ドル" in words else "わかりません"

    async with (
        gemini_live(then=brain(rule)) as server,
        adk_live(agent_on(server.model(GEMINI_3), add)) as chat,
    ):
        chat.say("花子さんに50ドル送金してください")
        assert said(await chat.turn()) == 'Done: [{"sum": 50}]'
        chat.say("何?")
        assert said(await chat.turn()) == "わかりません"


async def test_frames_sent_while_a_call_is_held_come_after_it() -> None:
    decided = anyio.Event()
    handed_over = anyio.Event()

    async def wait(reason: str) -> str:
        """Waits."""
        await decided.wait()
        return reason

    async def script(connection: LiveConnection) -> None:
        await connection.prompt()
        calls = await connection.send_calls(call("wait", {"reason": "why"}))
        await connection.send(*filler(500))
        handed_over.set()
        await connection.results_of(calls)
        await connection.say("Waited.")

    async with (
        gemini_live(script) as server,
        adk_live(agent_on(server.model(GEMINI_3, max_queue=4096), wait)) as chat,
    ):
        chat.say("Wait")
        await chat.until(lambda event: bool(event.get_function_calls()))
        with anyio.fail_after(10):
            await handed_over.wait()
        decided.set()
        events = await chat.turn()

    assert len([event for event in events if event.usage_metadata]) == 501
    assert outline(events) == ["results", "delta", "text", "turn complete"]


async def test_users_next_word_interrupts_a_story() -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model())) as chat,
    ):
        chat.say("story Once upon a time")
        await chat.until(lambda event: bool(event.partial))
        chat.say("Stop")
        interrupted = await chat.turn()
        answered = await chat.turn()

    [event] = [event for event in interrupted if event.interrupted]
    assert said([event]) == "Once upon a time"
    assert said(answered) == "You said: Stop"


async def test_go_away_is_followed_by_a_connection_with_the_handle() -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model()), live_config(resumption=True)) as chat,
    ):
        chat.say("Hi")
        events = await chat.turn()
        chat.say("go away")
        # The update of the second connection: nothing of the change itself is told.
        [*_, resumed] = await chat.until(lambda event: bool(event.live_session_resumption_update))
        chat.say("Still there?")
        answered = await chat.turn()

    [update] = [
        e.live_session_resumption_update for e in events if e.live_session_resumption_update
    ]
    assert (update.new_handle, update.resumable) == ("handle-1", True)
    assert resumed.live_session_resumption_update is not None
    assert said(answered) == "You said: Still there?"
    first, second = server.connections
    assert (first.handle, first.close_code) == (None, 1000)
    assert second.handle == "handle-1"
    # The server has the conversation already.
    assert [message.text for message in second.messages] == ["Still there?"]


async def test_newest_handle_is_the_one_resumed_with() -> None:
    async def first(connection: LiveConnection) -> None:
        await connection.prompt()
        await connection.say("Hello.")
        assert await connection.offer_resumption() == "handle-2"
        await connection.send(go_away())

    async with (
        gemini_live(first, then=brain()) as server,
        adk_live(agent_on(server.model()), live_config(resumption=True)) as chat,
    ):
        chat.say("Hi")
        await chat.turn()
        await chat.until(_updated("handle-3"))

    assert server.connections[1].handle == "handle-2"


@pytest.mark.parametrize("refusal", [SESSION_NOT_FOUND, INVALID_HANDLE])
async def test_refused_resumption_fails_the_run_at_once(refusal: Close) -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model()), live_config(resumption=True)) as chat,
    ):
        chat.say("Hi")
        await chat.turn()
        server.forget_sessions(refusal)
        chat.say("go away")
        with pytest.raises(APIError, match=refusal.reason) as raised:
            await chat.rest()

    assert raised.value.code == refusal.code
    assert [connection.refused for connection in server.connections] == [False, True]


async def test_resumption_refused_with_1011_is_tried_five_times() -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model()), live_config(resumption=True)) as chat,
    ):
        chat.say("Hi")
        await chat.turn()
        server.forget_sessions(Close(1011, "Internal error encountered."))
        chat.say("go away")
        with pytest.raises(APIError, match="Internal error encountered"):
            await chat.rest()

    assert [connection.refused for connection in server.connections] == [False] + [True] * 5
    assert {connection.handle for connection in server.connections[1:]} == {"handle-1"}


@pytest.mark.parametrize("end", [Close(1011), CUT])
async def test_lost_connection_is_resumed_when_there_is_a_handle(end: Close | Cut) -> None:
    first = steps(PROMPT, text("Once upon"), end)
    async with (
        gemini_live(first, then=brain()) as server,
        adk_live(agent_on(server.model()), live_config(resumption=True)) as chat,
    ):
        chat.say("A story, please.")
        await chat.until(lambda event: bool(event.partial))
        await chat.until(lambda event: bool(event.live_session_resumption_update))
        chat.say("Hello?")
        assert said(await chat.turn()) == "You said: Hello?"

    assert [connection.handle for connection in server.connections] == [None, "handle-1"]


async def test_lost_connection_without_a_handle_fails_the_run() -> None:
    script = steps(PROMPT, text("Once upon"), Close(1011))
    async with gemini_live(script) as server, adk_live(agent_on(server.model())) as chat:
        chat.say("A story, please.")
        with pytest.raises(APIError, match="Internal error encountered") as raised:
            await chat.rest()

    assert raised.value.code == 1011


async def test_go_away_where_it_cannot_resume_loses_the_conversation() -> None:
    """ADK 2.13 takes the empty handle of `resumable: false` for the newest one."""
    first = steps(
        PROMPT, text("Hello."), TURN_COMPLETE, PROMPT, NOT_RESUMABLE, go_away(), text("Lost.")
    )
    async with (
        gemini_live(first, then=brain()) as server,
        adk_live(agent_on(server.model()), live_config(resumption=True)) as chat,
    ):
        chat.say("Hi")
        await chat.turn()
        chat.say("Remember 42.")
        await chat.until(_updated("handle-2"))
        chat.say("What was it?")
        await chat.turn()

    second = server.connections[1]
    assert second.handle is None
    assert [message.text for message in second.messages] == ["What was it?"]


@pytest.mark.parametrize(("last_update", "handle"), [([], "handle-1"), ([NOT_RESUMABLE], None)])
async def test_go_away_while_a_call_is_held_loses_the_answer_to_it(
    last_update: list[Frame], handle: str | None
) -> None:
    """ADK 2.13 reads nothing while a tool runs, and reconnects as soon as it has.

    The result goes to the old socket, whose answer nobody reads.
    """
    sent, decided = anyio.Event(), anyio.Event()
    runs: list[str] = []

    async def wait(reason: str) -> None:
        """Waits."""
        runs.append(reason)
        await decided.wait()

    async def first(connection: LiveConnection) -> None:
        await connection.prompt()
        calls = await connection.send_calls(call("wait", {"reason": "why"}))
        await connection.send(*last_update, go_away())
        sent.set()
        await connection.results_of(calls)
        await connection.say("Waited.")

    async with (
        gemini_live(first, then=brain()) as server,
        adk_live(agent_on(server.model(), wait), live_config(resumption=True)) as chat,
    ):
        chat.say("Wait")
        await chat.until(lambda event: bool(event.get_function_calls()))
        with anyio.fail_after(10):
            await sent.wait()
        decided.set()
        events = await chat.until(_updated("handle-2"))
        chat.say("Well?")
        answered = await chat.turn()

    assert outline(events) == ["results", "turn complete"]
    assert said(answered) == "You said: Well?"
    assert server.connections[1].handle == handle
    assert runs == ["why"]


async def test_spoken_answer_comes_as_sound_and_transcription() -> None:
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model()), live_config(audio=True)) as chat,
    ):
        chat.say("speak Good morning")
        events = await chat.turn()

    [sound] = [p.inline_data for event in events for p in parts_of(event) if p.inline_data]
    assert (sound.mime_type, sound.data) == ("audio/pcm;rate=24000", TONE)
    told = [event.output_transcription for event in events if event.output_transcription]
    assert [(part.text, part.finished) for part in told] == [
        ("Good morning", False),
        ("Good morning", True),
    ]
    assert server.connections[0].setup["generationConfig"] == {"responseModalities": ["AUDIO"]}


@pytest.mark.parametrize("model", [GEMINI_2, GEMINI_3])
async def test_speech_is_heard_and_transcribed(model: str) -> None:
    config = live_config(audio=True, manual_activity=True)
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model(model)), config) as chat,
    ):
        chat.queue.send_activity_start()
        for _ in range(2):
            chat.queue.send_realtime(types.Blob(mime_type="audio/pcm;rate=16000", data=TONE * 10))
        chat.queue.send_activity_end()
        events = await chat.turn()

    heard = [event for event in events if event.input_transcription]
    assert {event.author for event in heard} == {"user"}
    last = heard[-1].input_transcription
    assert last is not None
    assert (last.text, last.finished) == ("640 bytes", True)
    assert [message.audio for message in server.connections[0].messages] == [
        b"",
        TONE * 10,
        TONE * 10,
        b"",
    ]


async def test_users_voice_interrupts_a_story() -> None:
    config = live_config(manual_activity=True)
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model()), config) as chat,
    ):
        for _ in range(2):
            chat.say("story Once upon a time")
            await chat.until(lambda event: bool(event.partial))
            chat.queue.send_activity_start()
            [interrupted] = [event for event in await chat.turn() if event.interrupted]
            assert said([interrupted]) == "Once upon a time"
            chat.queue.send_activity_end()
            await chat.turn()


async def test_cancelled_call_still_runs() -> None:
    """ADK 2.13 does not read `toolCallCancellation`."""
    ran: list[int] = []

    def note(number: int) -> None:
        """Notes a number."""
        ran.append(number)

    script = steps(
        PROMPT,
        tool_call(call("note", {"number": 1}, "one")),
        tool_call_cancellation("one"),
        GENERATION_COMPLETE,
        TURN_COMPLETE,
        RESULTS,
        text("Noted."),
        TURN_COMPLETE,
    )
    async with gemini_live(script) as server, adk_live(agent_on(server.model(), note)) as chat:
        chat.say("Note 1.")
        await chat.until(lambda event: said([event]) == "Noted.")

    assert ran == [1]


@pytest.mark.parametrize("model", [GEMINI_2, GEMINI_3])
async def test_replayed_history_that_ends_with_the_user_is_answered(model: str) -> None:
    history = [types.UserContent("Hi"), types.ModelContent("Hello."), types.UserContent("Again")]
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model(model)), history=history) as chat,
    ):
        events = await chat.turn()

    assert said(events) == "You said: Again"
    [connection] = server.connections
    assert [turn["parts"] for turn in connection.history] == [
        [{"text": "Hi"}],
        [{"text": "Hello."}],
        [{"text": "Again"}],
    ]


@pytest.mark.parametrize("model", [GEMINI_2, GEMINI_3])
async def test_replayed_history_that_ends_with_results_is_answered(model: str) -> None:
    history = [
        types.UserContent("1 and 2?"),
        types.ModelContent(types.Part.from_function_call(name="add", args={"a": 1, "b": 2})),
        types.UserContent(types.Part.from_function_response(name="add", response={"sum": 3})),
    ]
    async with (
        gemini_live(then=brain()) as server,
        adk_live(agent_on(server.model(model), add), history=history) as chat,
    ):
        events = await chat.turn()

    assert said(events) == 'Done: [{"sum": 3}]'


async def test_script_waits_for_the_test() -> None:
    go = anyio.Event()
    script = steps(PROMPT, Until(go), text("Gone."), TURN_COMPLETE)
    async with gemini_live(script) as server, adk_live(agent_on(server.model())) as chat:
        chat.say("Go")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_set_when_asked, server, go)
            assert said(await chat.turn()) == "Gone."


async def _set_when_asked(server: GeminiLive, go: anyio.Event) -> None:
    connection = await server.connection(1)
    await connection.seen(lambda message: message.text == "Go")
    go.set()


async def test_connection_beyond_the_scripts_is_refused_by_name() -> None:
    async with gemini_live() as server, adk_live(agent_on(server.model())) as chat:
        chat.say("Hi")
        with pytest.raises(APIError, match="There are 0 scripts; this is connection 1"):
            await chat.rest()


async def test_failed_script_fails_the_test() -> None:
    async def script(connection: LiveConnection) -> None:
        prompt = await connection.prompt()
        assert prompt.text == "Bye", "not what was said"

    with pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match="not what was said")):
        async with gemini_live(script) as server, adk_live(agent_on(server.model())) as chat:
            chat.say("Hi")
            with pytest.raises(APIError):
                await chat.rest()


async def test_model_without_any_code_for_it_connects_by_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with gemini_live(then=brain()) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate.path))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        model = Gemini(model=GEMINI_2, base_url=server.base_url, client_kwargs={"api_key": "fake"})
        async with adk_live(agent_on(model)) as chat:
            chat.say("Hi")
            assert said(await chat.turn()) == "You said: Hi"


async def test_certificate_stands_the_strict_check_of_newer_pythons() -> None:
    async with gemini_live() as server:
        trusted = server.certificate.client_context()
        trusted.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        async with httpx.AsyncClient(trust_env=False, verify=trusted) as client:
            response = await client.get(server.base_url)

    assert response.status_code == 404


async def test_certificate_is_not_trusted_by_others() -> None:
    async with gemini_live() as server, httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(server.base_url)


async def test_unknown_address_is_not_found() -> None:
    async with gemini_live() as server:
        trusted = server.certificate.client_context()
        async with httpx.AsyncClient(trust_env=False, verify=trusted) as client:
            response = await client.get(f"{server.base_url}/v1beta/models")

    assert response.status_code == 404


async def test_port_is_closed_when_the_block_is_left() -> None:
    async with gemini_live() as server:
        port = int(server.base_url.rpartition(":")[2])

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
