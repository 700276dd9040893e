from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any

import anyio
import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.events.event import Event
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.demo.tones import SAMPLE_RATE, spoken
from support.adk_chat import AdkChat, Turn
from support.adk_live import adk_live, live_config

pytestmark = pytest.mark.anyio

FOREVER = 3600.0  # seconds; only an interruption or the end ends such a pause

LOUD = b"".join(spoken("somebody speaks"))[: 2 * 16_000]
SILENCE = bytes(2 * 8_000)  # half a second

SPEAKING = live_config(audio=True)


def get_weather(city: str) -> dict[str, Any]:
    """Gets the weather."""
    return {"city": city, "temperature_c": 18, "condition": "sunny"}


def process_payment(amount: float, recipient: str, currency: str) -> dict[str, Any]:
    """Pays."""
    return {
        "status": "paid",
        "transaction_id": f"tx-{recipient}",
        "amount": amount,
        "currency": currency,
        "recipient": recipient,
    }


def agent_of(model: OfflineModel | None = None, *tools: Any) -> LlmAgent:
    return LlmAgent(
        name="tested",
        model=model or OfflineModel(),
        tools=list(tools or (get_weather, process_payment)),
    )


def story(turns: Sequence[Turn]) -> list[str]:
    """Return what kind of event came after what, and how often."""
    kinds = [kind_of(event) for turn in turns for event in turn.events]
    return [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before]


def kind_of(event: Event) -> str:
    if event.turn_complete:
        return "turn complete"
    if event.get_function_calls():
        return "calls"
    if event.get_function_responses():
        return "results"
    if event.usage_metadata:
        return "usage"
    if event.input_transcription:
        return "hearing" if event.partial else "heard"
    if event.output_transcription:
        return "telling" if event.partial else "told"
    if event.content and event.content.parts and event.content.parts[0].inline_data:
        return "sound"
    kind = "delta" if event.partial else "text" if event.content else ""
    return f"{kind} interrupted".strip() if event.interrupted else kind


def sound_of(turn: Turn) -> bytes:
    parts = [part for event in turn.events if event.content for part in event.content.parts or []]
    blobs = [part.inline_data for part in parts if part.inline_data]
    assert {blob.mime_type for blob in blobs} <= {f"audio/pcm;rate={SAMPLE_RATE}"}
    return b"".join(blob.data or b"" for blob in blobs)


def heard_in(turn: Turn) -> list[str]:
    found = [event.input_transcription for event in turn.events if not event.partial]
    return [heard.text or "" for heard in found if heard is not None]


def told_in(turn: Turn) -> list[str]:
    found = [event.output_transcription for event in turn.events if not event.partial]
    return [told.text or "" for told in found if told is not None]


def counted(turn: Turn) -> list[tuple[int | None, int | None]]:
    found = [event.usage_metadata for event in turn.events if not event.partial]
    return [(use.prompt_token_count, use.candidates_token_count) for use in found if use]


# The same story as in a unary run.


@pytest.mark.parametrize(
    "text",
    [
        "Hello",
        "東京とパリの天気",
        "weather in Tokyo",
        "weather in Tokyo, then pay Bob 5",
        "pay Alice 30 and Bob 40",
        "Think: what is the weather in Tokyo?",
        "Think about the sea",
    ],
)
async def test_live_run_says_and_does_what_a_unary_run_does(text: str) -> None:
    unary = await AdkChat(agent_of()).say(text)
    async with adk_live(agent_of()) as chat:
        chat.say(text)
        live = Turn(await chat.turn())

    assert [part.text for part in live.deltas] == [part.text for part in unary.deltas]
    assert (live.text, live.thought) == (unary.text, unary.thought)
    assert live.results == unary.results
    assert [[(call.name, call.args) for call in step] for step in live.steps] == [
        [(call.name, call.args) for call in step] for step in unary.steps
    ]
    assert counted(live) == counted(unary)


async def test_text_comes_in_pieces_then_whole_then_the_turn_ends() -> None:
    async with adk_live(agent_of()) as chat:
        chat.say("Hello")
        first = Turn(await chat.turn())
        chat.say("thanks")
        second = Turn(await chat.turn())

    assert story([first]) == ["delta", "text", "usage", "turn complete"]
    assert story([second]) == story([first])


@pytest.mark.parametrize(
    ("calls_end_turn", "told"),
    [
        (False, ["usage", "calls", "results", "delta", "text", "usage", "turn complete"]),
        (
            True,
            # As Gemini 2.x orders it.
            [
                *("usage", "calls", "results", "turn complete"),
                *("delta", "text", "usage", "turn complete"),
            ],
        ),
    ],
)
async def test_tool_is_called_in_the_order_of_either_gemini(
    calls_end_turn: bool, told: list[str]
) -> None:
    async with adk_live(agent_of(OfflineModel(calls_end_turn=calls_end_turn))) as chat:
        chat.say("weather in Tokyo")
        turns = [Turn(await chat.turn()) for _ in range(1 + calls_end_turn)]

    assert story(turns) == told
    assert turns[-1].text == "The weather in Tokyo: sunny, 18 °C."


async def test_two_parallel_calls_have_ids_of_their_own_and_one_answer() -> None:
    async with adk_live(agent_of()) as chat:
        chat.say("pay Alice 30 and Bob 40")
        turn = Turn(await chat.turn())

    [step] = turn.steps
    assert len({call.call_id for call in step}) == 2
    assert [result["recipient"] for result in turn.results] == ["Alice", "Bob"]
    assert turn.text == (
        "I sent 30 USD to Alice (transaction tx-Alice). I sent 40 USD to Bob (transaction tx-Bob)."
    )


async def test_history_with_an_unanswered_message_is_answered_on_connecting() -> None:
    history = [
        types.UserContent("my name is Hanako"),
        types.ModelContent("Nice to meet you."),
        types.UserContent("hello"),
    ]
    async with adk_live(agent_of(), history=history) as chat:
        assert "Hanako" in Turn(await chat.turn()).text


async def test_answered_history_waits_for_the_user() -> None:
    sessions = InMemorySessionService()
    async with adk_live(agent_of(), sessions=sessions) as chat:
        chat.say("weather in Tokyo")
        await chat.turn()

    async with adk_live(agent_of(), sessions=sessions) as chat:
        chat.say("And in Paris?")
        turn = Turn(await chat.turn())

    assert turn.text == "The weather in Paris: sunny, 18 °C."


async def test_session_resumption_and_compression_change_nothing() -> None:
    config = RunConfig(
        response_modalities=[types.Modality.TEXT],
        session_resumption=types.SessionResumptionConfig(),
        context_window_compression=types.ContextWindowCompressionConfig(
            sliding_window=types.SlidingWindow()
        ),
    )
    async with adk_live(agent_of(), config) as chat:
        chat.say("weather in Tokyo")
        assert Turn(await chat.turn()).text == "The weather in Tokyo: sunny, 18 °C."


# Interruptions, late results and the end.


async def test_message_interrupts_what_is_being_said() -> None:
    async with adk_live(agent_of(OfflineModel(delay=FOREVER))) as chat:
        chat.say("hello")
        begun = Turn(await chat.until(lambda event: bool(event.partial)))
        chat.say("weather in Tokyo")
        interrupted = Turn(await chat.turn())
        answer = Turn(await chat.until(lambda event: bool(event.get_function_responses())))

    assert story([begun, interrupted]) == ["delta", "text interrupted", "turn complete"]
    assert interrupted.text == begun.deltas[0].text
    assert [call.name for [call] in answer.steps] == ["get_weather"]


async def test_two_messages_at_once_are_both_taken_up() -> None:
    async with adk_live(agent_of()) as chat:
        chat.say("hello")
        chat.say("weather in Tokyo")
        first = Turn(await chat.turn())
        second = Turn(await chat.turn())

    assert story([first]) == ["delta", "text interrupted", "turn complete"]
    assert second.text == "The weather in Tokyo: sunny, 18 °C."


async def test_message_during_a_call_is_answered_first_and_the_result_is_still_told() -> None:
    asked, decided = anyio.Event(), anyio.Event()

    async def slow_payment(amount: float, recipient: str, currency: str) -> dict[str, Any]:
        """Pays when it may."""
        asked.set()
        await decided.wait()
        return process_payment(amount, recipient, currency)

    slow_payment.__name__ = "process_payment"
    async with adk_live(agent_of(None, slow_payment, get_weather)) as chat:
        chat.say("pay Bob 5")
        first = Turn(await chat.until(lambda event: bool(event.get_function_calls())))
        chat.say("weather in Tokyo")
        # ADK hands the message on while the tool runs, and nothing tells when it has.
        await anyio.wait_all_tasks_blocked()
        decided.set()
        interrupted = Turn(await chat.turn())
        weather = Turn(await chat.turn())
        payment = Turn(await chat.turn())

    assert asked.is_set()
    assert story([first, interrupted]) == [
        *("usage", "calls", "results", "interrupted", "turn complete")
    ]
    assert weather.text == "The weather in Tokyo: sunny, 18 °C."
    assert payment.text == "I sent 5 USD to Bob (transaction tx-Bob)."


async def test_results_of_calls_that_do_not_block_are_awaited_and_told_together() -> None:
    first, second = anyio.Event(), anyio.Event()

    async def later_weather(city: str) -> dict[str, Any]:
        """Gets the weather when it may."""
        await (first if city == "Tokyo" else second).wait()
        return get_weather(city)

    later_weather.__name__ = "get_weather"
    tool = FunctionTool(later_weather)
    tool.behavior = types.Behavior.NON_BLOCKING
    async with adk_live(agent_of(None, tool)) as chat:
        chat.say("weather in Tokyo and Paris")
        await chat.until(lambda event: bool(event.get_function_calls()))
        second.set()
        early = Turn(await chat.until(lambda event: bool(event.get_function_responses())))
        first.set()
        turn = Turn(await chat.turn())

    assert [result["city"] for result in early.results] == ["Paris"]
    assert story([turn]) == ["results", "delta", "text", "usage", "turn complete"]
    assert turn.text == ("The weather in Tokyo: sunny, 18 °C. The weather in Paris: sunny, 18 °C.")


@pytest.mark.parametrize("config", [None, SPEAKING])
async def test_closing_ends_the_run_in_the_middle_of_a_sentence(config: RunConfig | None) -> None:
    model = OfflineModel(delay=FOREVER, speech_pace=FOREVER)
    async with adk_live(agent_of(model), config) as chat:
        chat.say("hello")
        await chat.until(lambda event: event.content is not None)
        chat.queue.close()
        assert await chat.rest() == []


async def test_closing_ends_a_run_that_waits() -> None:
    async with adk_live(agent_of()) as chat:
        chat.say("hello")
        await chat.turn()
        chat.queue.close()
        assert await chat.rest() == []


# Speech.


async def test_speech_is_heard_transcribed_and_answered_aloud() -> None:
    async with adk_live(agent_of(), SPEAKING) as chat:
        chat.queue.send_realtime(pcm(LOUD + SILENCE))
        turn = Turn(await chat.turn())

    assert story([turn]) == [
        *("hearing", "heard", "usage", "calls", "results"),
        *("telling", "sound") * 7,
        *("told", "usage", "turn complete"),
    ]
    assert heard_in(turn) == ["What is the weather in Tokyo?"]
    assert told_in(turn) == ["The weather in Tokyo: sunny, 18 °C."]
    assert sound_of(turn) == b"".join(spoken("The weather in Tokyo: sunny, 18 °C."))
    assert turn.text == ""


async def test_speech_is_answered_in_text_where_text_is_wanted() -> None:
    async with adk_live(agent_of()) as chat:
        chat.queue.send_realtime(pcm(LOUD + SILENCE))
        turn = Turn(await chat.turn())

    assert heard_in(turn) == ["What is the weather in Tokyo?"]
    assert turn.text == "The weather in Tokyo: sunny, 18 °C."
    assert sound_of(turn) == b""


async def test_typed_message_is_answered_aloud_where_audio_is_wanted() -> None:
    async with adk_live(agent_of(), SPEAKING) as chat:
        chat.say("Hello")
        turn = Turn(await chat.turn())

    assert told_in(turn) == [(await AdkChat(agent_of()).say("Hello")).text]


async def test_speech_without_transcription_is_sound_alone() -> None:
    config = types.LiveConnectConfig(response_modalities=[types.Modality.AUDIO])
    async with OfflineModel().connect(LlmRequest(live_connect_config=config)) as live:
        await live.send_realtime(pcm(LOUD + SILENCE))
        responses = await turn_of(live)

    assert not any(told.input_transcription or told.output_transcription for told in responses)
    assert all(part.inline_data for told in responses for part in parts_of(told))
    assert len(responses) > 3


async def test_each_utterance_is_taken_for_the_next_phrase_also_after_a_reconnect() -> None:
    sessions = InMemorySessionService()
    agent = agent_of(OfflineModel(heard=("hello", "weather in Tokyo", "thanks")))
    heard: list[str] = []
    for _ in range(2):
        async with adk_live(agent, sessions=sessions) as chat:
            for _ in range(2):
                chat.queue.send_realtime(pcm(LOUD + SILENCE))
                heard += heard_in(Turn(await chat.turn()))

    assert heard == ["hello", "weather in Tokyo", "thanks", "hello"]


async def test_speech_interrupts_speech() -> None:
    model = OfflineModel(heard=("hello", "weather in Tokyo"), speech_pace=FOREVER)
    async with adk_live(agent_of(model), SPEAKING) as chat:
        chat.queue.send_realtime(pcm(LOUD + SILENCE))
        begun = Turn(await chat.until(lambda event: event.content is not None))
        chat.queue.send_realtime(pcm(LOUD))
        interrupted = Turn(await chat.turn())
        chat.queue.send_realtime(pcm(SILENCE))
        answer = Turn(await chat.until(lambda event: bool(event.get_function_responses())))

    assert story([begun, interrupted]) == [
        *("hearing", "heard", "telling", "sound", "told", "interrupted", "turn complete")
    ]
    telling = begun.events[-2].output_transcription
    assert telling is not None
    assert told_in(interrupted) == [telling.text]
    assert heard_in(answer) == ["weather in Tokyo"]


async def test_client_may_say_itself_when_somebody_speaks() -> None:
    async with adk_live(agent_of()) as chat:
        chat.queue.send_activity_start()
        chat.queue.send_realtime(pcm(LOUD + SILENCE + SILENCE + LOUD))
        chat.queue.send_activity_end()
        chat.queue.send_realtime(pcm(SILENCE))
        chat.queue.send_audio_stream_end()
        first = Turn(await chat.turn())
        chat.queue.send_realtime(pcm(LOUD))
        chat.queue.send_audio_stream_end()
        second = Turn(await chat.turn())

    assert len(heard_in(first)) == len(heard_in(second)) == 1


async def test_what_is_not_speech_is_not_answered() -> None:
    async with OfflineModel().connect(LlmRequest()) as live:
        await live.send_realtime(pcm(SILENCE))
        await live.send_realtime(types.Blob(data=LOUD, mime_type="image/jpeg"))
        await live.close()
        assert await turn_of(live) == []


# What ADK does not do in these tests, but may.


async def test_newer_result_takes_the_place_of_one_that_was_pending() -> None:
    async with text_connection(get_weather) as live:
        await live.send_content(types.UserContent("weather in Tokyo"))
        async with aclosing(live.receive()) as responses:
            call_id = await id_of_call(responses)
            await live.send_content(result(call_id, {"status": "pending"}))
            waiting = [response async for response in responses]
        await live.send_content(result(call_id, get_weather("Tokyo")))
        told = await turn_of(live)

    assert "The weather in Tokyo: sunny, 18 °C." not in text_of(waiting)
    assert text_of(told) == "The weather in Tokyo: sunny, 18 °C."


async def test_result_of_a_call_that_was_not_made_is_left_out() -> None:
    async with text_connection(get_weather) as live:
        await live.send_content(result("another", {"city": "Rome"}))
        await live.send_content(types.UserContent("hello"))
        responses = await turn_of(live)

    assert "Rome" not in text_of(responses)
    assert [response.turn_complete for response in responses].count(True) == 1


async def test_result_in_history_is_told() -> None:
    call = types.FunctionCall(name="get_weather", args={"city": "Tokyo"})
    history = [
        types.UserContent("weather in Tokyo"),
        types.ModelContent(types.Part(function_call=call)),
        result(None, get_weather("Tokyo")),
    ]
    async with text_connection(get_weather) as live:
        await live.send_history(history)
        assert text_of(await turn_of(live)) == "The weather in Tokyo: sunny, 18 °C."


def text_connection(*tools: Any) -> AbstractAsyncContextManager[BaseLlmConnection]:
    config = types.LiveConnectConfig(response_modalities=[types.Modality.TEXT])
    request = LlmRequest(live_connect_config=config)
    request.append_tools([FunctionTool(tool) for tool in tools])
    return OfflineModel().connect(request)


def pcm(sound: bytes) -> types.Blob:
    return types.Blob(data=sound, mime_type="audio/pcm;rate=16000")


def result(call_id: str | None, response: dict[str, Any]) -> types.Content:
    told = types.FunctionResponse(id=call_id, name="get_weather", response=response)
    return types.Content(role="user", parts=[types.Part(function_response=told)])


def parts_of(response: LlmResponse) -> list[types.Part]:
    return (response.content and response.content.parts) or []


def text_of(responses: list[LlmResponse]) -> str:
    whole = [part for told in responses if not told.partial for part in parts_of(told)]
    return "".join(part.text or "" for part in whole)


async def id_of_call(responses: AsyncIterator[LlmResponse]) -> str:
    with anyio.fail_after(5):
        async for response in responses:
            for part in parts_of(response):
                if part.function_call:
                    return part.function_call.id or ""
    raise AssertionError("no call was made")


async def turn_of(live: BaseLlmConnection) -> list[LlmResponse]:
    with anyio.fail_after(5):
        async with aclosing(live.receive()) as responses:
            return [response async for response in responses]
