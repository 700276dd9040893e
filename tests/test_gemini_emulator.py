"""The emulator, driven by ADK's own Gemini model and runner."""

import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from google.adk.agents import LlmAgent
from google.adk.models.google_llm import Gemini
from google.adk.tools.function_tool import FunctionTool
from google.genai.errors import ServerError

from support.adk_chat import AdkChat
from support.gemini_emulator import (
    CUT,
    GeminiEmulator,
    call,
    finish,
    http_error,
    serve_gemini,
    text,
    thought,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail any connection and any name lookup that would leave the machine."""
    connect, lookup = socket.socket.connect, socket.getaddrinfo

    def guarded_connect(self: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1", f"a connection to {address}"
        connect(self, address)

    def guarded_lookup(host: Any, *args: Any, **options: Any) -> Any:
        assert host in {"127.0.0.1", b"127.0.0.1"}, f"a lookup of {host}"
        return lookup(host, *args, **options)

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_lookup)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)


def chat_with(
    gemini: GeminiEmulator,
    *tools: Callable[..., Any] | FunctionTool,
    streaming: bool = True,
) -> AdkChat:
    model = Gemini(
        model="gemini-2.5-flash",
        base_url=gemini.base_url,
        client_kwargs={"api_key": "fake"},
    )
    agent = LlmAgent(name="tested", model=model, instruction="Be brief.", tools=list(tools))
    return AdkChat(agent, streaming=streaming)


def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


async def test_text_streams_as_deltas_and_ends_whole() -> None:
    async with serve_gemini([[text("Hello "), text("there."), finish(answer_tokens=3)]]) as gemini:
        turn = await chat_with(gemini).say("Hi")

    assert [part.text for part in turn.deltas] == ["Hello ", "there."]
    assert turn.text == "Hello there."
    last = turn.events[-1]
    assert last.finish_reason == "STOP"
    assert last.usage_metadata is not None
    assert last.usage_metadata.candidates_token_count == 3


async def test_request_is_recorded_as_it_came() -> None:
    async with serve_gemini([[text("Hello."), finish()]]) as gemini:
        await chat_with(gemini, add).say("Hi")

    [request] = gemini.requests
    assert (request.model, request.streaming, request.api_key) == ("gemini-2.5-flash", True, "fake")
    assert request.contents == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert request.tool_names == ["add"]
    assert "Be brief." in str(request.body["systemInstruction"])


async def test_model_that_does_not_stream_gets_one_response() -> None:
    script = [[thought("Hm."), text("Hello "), text("there."), finish()]]
    async with serve_gemini(script) as gemini:
        turn = await chat_with(gemini, streaming=False).say("Hi")

    assert (turn.deltas, turn.thought, turn.text) == ([], "Hm.", "Hello there.")
    assert not gemini.requests[0].streaming


async def test_thoughts_stay_apart_from_text() -> None:
    async with serve_gemini([[thought("Let me see."), text("42."), finish()]]) as gemini:
        turn = await chat_with(gemini).say("What is it?")

    assert [(part.text, part.thought) for part in turn.deltas] == [
        ("Let me see.", True),
        ("42.", None),
    ]
    assert (turn.thought, turn.text) == ("Let me see.", "42.")


async def test_tool_runs_and_its_result_comes_back_to_the_model() -> None:
    script = [[call("add", {"a": 2, "b": 3}), finish()], [text("It is 5."), finish()]]
    async with serve_gemini(script) as gemini:
        turn = await chat_with(gemini, add).say("2 and 3?")

    assert turn.results == [{"sum": 5}]
    assert turn.text == "It is 5."
    asked, answered = gemini.requests[1].contents[1:]
    assert asked["parts"][0]["functionCall"] == {"name": "add", "args": {"a": 2, "b": 3}}
    assert answered["parts"] == [{"functionResponse": {"name": "add", "response": {"sum": 5}}}]


async def test_calls_of_one_reply_run_in_one_step() -> None:
    script = [
        [call("add", {"a": 1, "b": 1}), call("add", {"a": 2, "b": 2}), finish()],
        [text("2 and 4."), finish()],
    ]
    async with serve_gemini(script) as gemini:
        turn = await chat_with(gemini, add).say("Add twice.")

    assert [[step_call.args for step_call in step] for step in turn.steps] == [
        [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    ]
    assert turn.results == [{"sum": 2}, {"sum": 4}]
    assert len(gemini.requests) == 2


async def test_confirmed_call_runs_only_after_the_answer() -> None:
    runs: list[int] = []

    def pay(amount: int) -> dict[str, int]:
        """Pays an amount."""
        runs.append(amount)
        return {"paid": amount}

    script = [[call("pay", {"amount": 5}), finish()], [text("Paid."), finish()]]
    async with serve_gemini(script) as gemini:
        chat = chat_with(gemini, FunctionTool(pay, require_confirmation=True))
        asked = await chat.say("Pay 5.")
        assert runs == []
        assert len(gemini.requests) == 1

        done = await chat.decide({asked.confirmations["pay"]: True})

    assert runs == [5]
    assert (done.results, done.text) == ([{"paid": 5}], "Paid.")
    # The model never sees the confirmation, only the call and its result.
    assert [content["role"] for content in gemini.requests[1].contents] == ["user", "model", "user"]


async def test_denied_call_never_runs_and_the_model_is_told() -> None:
    runs: list[int] = []

    def pay(amount: int) -> None:
        """Pays an amount."""
        runs.append(amount)

    script = [[call("pay", {"amount": 5}), finish()], [text("Not paid."), finish()]]
    async with serve_gemini(script) as gemini:
        chat = chat_with(gemini, FunctionTool(pay, require_confirmation=True))
        asked = await chat.say("Pay 5.")
        done = await chat.decide({asked.confirmations["pay"]: False})

    assert runs == []
    assert done.results == [{"error": "This tool call is rejected."}]
    assert "rejected" in str(gemini.requests[1].contents[-1])


async def test_cut_connection_fails_the_run_after_what_was_streamed() -> None:
    async with serve_gemini([[text("Once upon"), text(" a time"), CUT]]) as gemini:
        chat = chat_with(gemini)
        with pytest.raises(httpx.RemoteProtocolError):
            await chat.say("A story, please.")

    assert [part.text for part in chat.last_turn.deltas] == ["Once upon", " a time"]


async def test_http_error_fails_the_run_with_geminis_own_status() -> None:
    async with serve_gemini([http_error(503)]) as gemini:
        with pytest.raises(ServerError, match="UNAVAILABLE") as raised:
            await chat_with(gemini).say("Hi")

    assert raised.value.code == 503
    assert len(gemini.requests) == 1


async def test_request_beyond_the_script_is_refused_by_name() -> None:
    async with serve_gemini([]) as gemini:
        with pytest.raises(Exception, match="script has 0 replies; this is request 1"):
            await chat_with(gemini).say("Hi")


async def test_unknown_address_is_not_found() -> None:
    async with serve_gemini([]) as gemini, httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(f"{gemini.base_url}/v1beta/models")

    assert response.status_code == 404
    assert response.json()["error"]["status"] == "NOT_FOUND"


async def test_port_is_closed_when_the_block_is_left() -> None:
    async with serve_gemini([]) as gemini:
        pass

    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(gemini.base_url)
