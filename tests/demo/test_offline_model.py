# ruff: noqa: RUF001 - full-width punctuation is how Japanese is written

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types
from pydantic import ValidationError

from adk_stream_protocol.demo.offline_model import OfflineModel
from support.adk_chat import AdkChat, Turn

pytestmark = pytest.mark.anyio


def get_weather(city: str) -> dict[str, Any]:
    """Gets the weather."""
    return {
        "city": city,
        "temperature_c": 18 if city in {"Tokyo", "東京"} else 7,
        "condition": "sunny",
    }


def process_payment(amount: float, recipient: str, currency: str) -> dict[str, Any]:
    """Pays."""
    return {
        "status": "paid",
        "transaction_id": f"tx-{recipient}",
        "amount": amount,
        "currency": currency,
        "recipient": recipient,
    }


def get_location() -> dict[str, Any]:
    """Finds the user."""
    return {"latitude": 35.68, "longitude": 139.76, "accuracy": 20}


def change_bgm(track: str) -> dict[str, Any]:
    """Changes the music."""
    return {"playing": track}


def answering(name: str, result: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """Return a tool of that name which always answers the same."""

    def tool() -> dict[str, Any]:
        return result

    tool.__name__ = name
    return tool


Tool = Callable[..., Any] | FunctionTool


def chat_with(*tools: Tool, streaming: bool = True) -> AdkChat:
    offered = tools or (get_weather, process_payment, get_location, change_bgm)
    agent = LlmAgent(name="tested", model=OfflineModel(), tools=list(offered))
    return AdkChat(agent, streaming=streaming)


def approving_chat() -> AdkChat:
    return chat_with(FunctionTool(process_payment, require_confirmation=True), get_weather)


def called(turn: Turn) -> list[list[tuple[str, dict[str, Any]]]]:
    return [[(call.name, call.args) for call in step] for step in turn.steps]


def payment(amount: float, recipient: str) -> tuple[str, dict[str, Any]]:
    return (
        "process_payment",
        {"amount": amount, "recipient": recipient, "currency": "USD"},
    )


# What the user asks for, and what is told of the results.


@pytest.mark.parametrize(
    ("text", "city", "told"),
    [
        ("weather in Tokyo", "Tokyo", "The weather in Tokyo: sunny, 18 °C."),
        ("東京の天気", "東京", "東京の天気は晴れ、気温は18度です。"),
    ],
)
async def test_weather_is_looked_up_and_told(text: str, city: str, told: str) -> None:
    turn = await chat_with().say(text)

    assert called(turn) == [[("get_weather", {"city": city})]]
    assert turn.text == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "weather in Tokyo and Paris",
            "The weather in Tokyo: sunny, 18 °C. The weather in Paris: sunny, 7 °C.",
        ),
        ("東京とパリの天気", "東京の天気は晴れ、気温は18度です。パリの天気は晴れ、気温は7度です。"),
    ],
)
async def test_several_cities_are_looked_up_in_one_step(text: str, told: str) -> None:
    turn = await chat_with().say(text)

    assert [len(step) for step in turn.steps] == [2]
    assert turn.text == told


async def test_weather_of_another_shape_is_told_as_it_is() -> None:
    turn = await chat_with(answering("get_weather", {"sky": "blue"})).say("weather in Rome")

    assert turn.text == 'This is the result for the weather in Rome: {"sky": "blue"}'


async def test_weather_that_failed_is_told_as_failed() -> None:
    turn = await chat_with(answering("get_weather", {"error": "no data"})).say("weather in Rome")

    assert turn.text.startswith("I could not get the weather in Rome: no data")


@pytest.mark.parametrize(
    ("text", "recipient", "told"),
    [
        (
            "send 50 dollars to Hanako",
            "Hanako",
            "I sent 50 USD to Hanako (transaction tx-Hanako).",
        ),
        (
            "花子さんに50ドル送金してください",
            "花子",
            "花子さんに50ドルを送金しました（取引番号 tx-花子）。",
        ),
    ],
)
async def test_payment_is_made_and_told(text: str, recipient: str, told: str) -> None:
    turn = await chat_with().say(text)

    assert called(turn) == [[payment(50, recipient)]]
    assert turn.text == told


async def test_payment_that_an_approver_changed_is_told_as_it_was_made() -> None:
    paid = {"status": "paid", "transaction_id": "tx-1", "amount": 40, "recipient": "Hanako"}
    turn = await chat_with(answering("process_payment", paid)).say("send 50 dollars to Hanako")

    assert turn.text == "I sent 40 USD to Hanako (transaction tx-1)."


@pytest.mark.parametrize(
    "text", ["pay Alice 30 and Bob 40", "Aliceに30ドル、Bobに40ドル送金してください"]
)
async def test_two_payments_are_asked_in_one_step(text: str) -> None:
    turn = await approving_chat().say(text)

    assert called(turn) == [[payment(30, "Alice"), payment(40, "Bob")]]
    assert list(turn.confirmations) == ["Alice", "Bob"]


@pytest.mark.parametrize(
    "text", ["pay Alice 30, then pay Bob 40", "Aliceに30ドル送金してから、Bobに40ドル送金して"]
)
async def test_second_payment_waits_for_the_result_of_the_first(text: str) -> None:
    chat = approving_chat()
    first = await chat.say(text)
    assert called(first) == [[payment(30, "Alice")]]

    second = await chat.decide({first.confirmations["Alice"]: True})
    assert called(second) == [[payment(40, "Bob")]]
    assert second.text == ""

    last = await chat.decide({second.confirmations["Bob"]: True})
    assert last.steps == []
    assert "Alice" in last.text
    assert "Bob" in last.text


async def test_second_payment_is_still_asked_after_the_first_was_denied() -> None:
    chat = approving_chat()
    first = await chat.say("pay Alice 30, then pay Bob 40")
    second = await chat.decide({first.confirmations["Alice"]: False})
    assert called(second) == [[payment(40, "Bob")]]

    last = await chat.decide({second.confirmations["Bob"]: True})

    assert last.text == (
        "The payment of 30 USD to Alice was not made, because you did not approve it. "
        "I sent 40 USD to Bob (transaction tx-Bob). Tell me if I can help in another way."
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "pay Bob 5 dollars",
            "The payment of 5 USD to Bob was not made, because you did not approve it. "
            "Tell me if I can help in another way.",
        ),
        (
            "Bobに5ドル送金して",
            "承認されなかったため、Bobさんへの5ドルの送金は行いませんでした。"
            "ほかにお手伝いできることがあれば教えてください。",
        ),
    ],
)
async def test_denied_payment_is_told_with_an_offer_to_help(text: str, told: str) -> None:
    chat = approving_chat()
    asked = await chat.say(text)

    denied = await chat.decide({asked.confirmations["Bob"]: False})

    assert denied.steps == []
    assert denied.text == told


@pytest.mark.parametrize("approved", ["Alice", "Bob"])
@pytest.mark.parametrize(
    ("text", "paid", "not_paid"),
    [
        ("pay Alice 30 and Bob 40", "I sent {} USD to {}", "{} USD to {} was not made"),
        (
            "Aliceに30ドル、Bobに40ドル送金して",
            "{1}さんに{0}ドルを送金しました",
            "{1}さんへの{0}ドルの送金は行いませんでした",
        ),
    ],
)
async def test_mixed_decisions_are_told_one_by_one(
    text: str, paid: str, not_paid: str, approved: str
) -> None:
    amounts = {"Alice": 30, "Bob": 40}
    chat = approving_chat()
    asked = await chat.say(text)

    done = await chat.decide(
        {call_id: name == approved for name, call_id in asked.confirmations.items()}
    )

    for name, amount in amounts.items():
        assert (paid if name == approved else not_paid).format(amount, name) in done.text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pay Bob 5", "The payment of 5 USD to Bob was not made: the request expired"),
        (
            "Bobに5ドル送金して",
            "Bobさんへの5ドルの送金は、承認の期限が切れたため行いませんでした。",
        ),
    ],
)
@pytest.mark.parametrize("error", ["The approval expired.", "No decision came in time."])
async def test_expired_payment_is_told_as_expired(text: str, told: str, error: str) -> None:
    turn = await chat_with(answering("process_payment", {"error": error})).say(text)

    assert turn.text.startswith(told)


@pytest.mark.parametrize(
    "result",
    [
        {"error": "This tool call is rejected.", "reason": "I am waiting"},
        {"error": "User denied execution: I am waiting"},
    ],
)
async def test_reason_of_a_denial_is_told(result: dict[str, Any]) -> None:
    turn = await chat_with(answering("process_payment", result)).say("pay Bob 5")

    assert turn.text.startswith("The payment of 5 USD to Bob was not made, because you did not")
    assert "Your reason: I am waiting." in turn.text


async def test_failed_payment_is_told_with_its_error() -> None:
    turn = await chat_with(answering("process_payment", {"error": "No funds."})).say("pay Bob 5")

    assert turn.text.startswith("The payment of 5 USD to Bob was not made: No funds.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("where am I?", "You are at latitude 35.68, longitude 139.76 (within 20 m)."),
        ("現在地は？", "現在地は緯度35.68、経度139.76です（誤差は約20メートル）。"),
    ],
)
async def test_location_is_told_in_coordinates(text: str, told: str) -> None:
    turn = await chat_with().say(text)

    assert called(turn) == [[("get_location", {})]]
    assert turn.text == told


async def test_location_without_accuracy_is_told() -> None:
    turn = await chat_with(answering("get_location", {"latitude": 1.5, "longitude": -2.5})).say(
        "where am I?"
    )

    assert turn.text == "You are at latitude 1.5, longitude -2.5."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("where am I?", "I could not learn your location."),
        ("現在地は？", "現在地を確認できませんでした。"),
    ],
)
async def test_location_that_was_refused_is_told_as_unknown(text: str, told: str) -> None:
    turn = await chat_with(answering("get_location", {"error": "User denied Geolocation"})).say(
        text
    )

    assert turn.text.startswith(told)


@pytest.mark.parametrize(
    ("text", "track", "told"),
    [
        ("play some jazz", "jazz", "The music is now: jazz."),
        ("change the music to track 1", "track 1", "The music is now: track 1."),
        ("BGMをジャズに変えて", "ジャズ", "BGMを「ジャズ」に変えました。"),
    ],
)
async def test_music_is_changed_and_told(text: str, track: str, told: str) -> None:
    turn = await chat_with().say(text)

    assert called(turn) == [[("change_bgm", {"track": track})]]
    assert turn.text == told


async def test_music_that_could_not_be_changed_is_told() -> None:
    turn = await chat_with(answering("change_bgm", {"error": "no speaker"})).say("play some jazz")

    assert turn.text.startswith("The music was not changed.")


@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("weather in Paris and pay Bob 5 dollars", ["get_weather", "process_payment"]),
        ("where am I and what is the weather in Tokyo", ["get_location", "get_weather"]),
        ("現在地と東京の天気を教えて", ["get_location", "get_weather"]),
    ],
)
async def test_different_things_are_done_in_one_step_and_all_told(
    text: str, tools: list[str]
) -> None:
    turn = await chat_with().say(text)

    assert [[call.name for call in step] for step in turn.steps] == [tools]
    assert len(turn.results) == 2
    assert turn.text


# Waiting, and never asking twice.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "pay Bob 5",
            "I am waiting for your decision on the payment of 5 USD to Bob.",
        ),
        ("Bobに5ドル送金して", "Bobさんへの5ドルの送金について、ご判断をお待ちしています。"),
    ],
)
@pytest.mark.parametrize(
    "placeholder",
    [
        {"error": "This tool call requires confirmation, please approve or reject."},
        {"status": "pending"},
        {"status": "The browser runs this; its output follows."},
        {"result": {"status": "waiting for approval"}},
    ],
)
async def test_call_that_waits_is_told_as_waiting(
    text: str, told: str, placeholder: dict[str, Any]
) -> None:
    turn = await chat_with(answering("process_payment", placeholder)).say(text)

    assert [len(step) for step in turn.steps] == [1]
    assert turn.text == told


async def test_second_step_does_not_begin_while_the_first_waits() -> None:
    chat = chat_with(answering("process_payment", {"status": "pending"}))
    turn = await chat.say("pay Alice 30, then pay Bob 40")

    assert called(turn) == [[payment(30, "Alice")]]
    assert "waiting" in turn.text


async def test_one_decision_of_two_is_told_and_the_other_still_waits() -> None:
    chat = approving_chat()
    asked = await chat.say("pay Alice 30 and Bob 40")

    first = await chat.decide({asked.confirmations["Bob"]: True})
    assert first.steps == []
    assert first.text == (
        "I sent 40 USD to Bob (transaction tx-Bob). "
        "I am waiting for your decision on the payment of 30 USD to Alice."
    )

    second = await chat.decide({asked.confirmations["Alice"]: True})
    assert second.steps == []
    assert "30 USD to Alice" in second.text


async def test_plain_result_is_told_together_with_the_approved_one() -> None:
    chat = approving_chat()
    asked = await chat.say("weather in Paris and pay Bob 5 dollars")
    assert [len(step) for step in asked.steps] == [2]

    done = await chat.decide({asked.confirmations["Bob"]: True})

    assert done.steps == []
    assert done.text == (
        "The weather in Paris: sunny, 7 °C. I sent 5 USD to Bob (transaction tx-Bob)."
    )


async def test_output_of_a_long_running_tool_is_told_when_it_comes() -> None:
    def find_user() -> None:
        """Finds the user."""

    find_user.__name__ = "get_location"
    chat = chat_with(LongRunningFunctionTool(find_user))
    held = await chat.say("where am I?")
    [[call]] = held.steps

    told = await chat.output(call, {"latitude": 1, "longitude": 2})

    assert told.steps == []
    assert told.text == "You are at latitude 1, longitude 2."


async def test_answer_after_other_talk_is_told_and_nothing_is_called_again() -> None:
    chat = approving_chat()
    asked = await chat.say("pay Alice 30, then pay Bob 40")
    assert (await chat.say("hello")).text.startswith("Hello!")

    second = await chat.decide({asked.confirmations["Alice"]: True})
    assert called(second) == [[payment(40, "Bob")]]

    last = await chat.decide({second.confirmations["Bob"]: True})
    assert last.steps == []
    assert "I sent 40 USD to Bob" in last.text


@pytest.mark.parametrize("result", [{}, {"anything": 1}, {"error": "broken"}])
async def test_call_with_any_result_is_never_made_again(result: dict[str, Any]) -> None:
    turn = await chat_with(answering("process_payment", result)).say("pay Bob 5")

    assert [len(step) for step in turn.steps] == [1]
    assert turn.text


async def test_same_request_in_a_new_message_is_made_again() -> None:
    chat = chat_with()
    await chat.say("pay Bob 5")
    again = await chat.say("pay Bob 5")

    assert called(again) == [[payment(5, "Bob")]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pay Bob 5", "I cannot help with the payment of 5 USD to Bob here"),
        ("Bobに5ドル送金して", "ここでは使えるツールがないため、Bobさんへの5ドルの送金"),
    ],
)
async def test_tool_that_is_not_offered_is_not_called(text: str, told: str) -> None:
    turn = await chat_with(get_weather).say(text)

    assert turn.steps == []
    assert turn.text.startswith(told)


async def test_tools_that_are_offered_are_called_when_others_are_missing() -> None:
    turn = await chat_with(get_weather).say("weather in Paris and pay Bob 5")

    assert called(turn) == [[("get_weather", {"city": "Paris"})]]
    assert "The weather in Paris" in turn.text
    assert "I cannot help with the payment of 5 USD to Bob here" in turn.text


# Talk without tools.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Hello", "Hello!"),
        ("good morning!", "Hello!"),
        ("こんにちは", "こんにちは！"),
        ("Thanks a lot!", "You are welcome!"),
        ("ありがとうございます", "どういたしまして。"),
        ("help", "I can tell you the weather in a city"),
        ("What can you do?", "I can tell you the weather in a city"),
        ("何ができますか？", "街の天気を調べること"),
        ("who are you?", "I am the demo assistant."),
        ("あなたは誰ですか", "デモのアシスタントです。"),
        ("goodbye", "Goodbye"),
        ("さようなら", "さようなら。"),
        ("OK", "All right."),
        ("Great, very nice!", "All right."),
        ("はい", "わかりました。"),
        ("What's the weather?", "For which city"),
        ("今日の天気は？", "どの街の天気"),
        ("I want to pay Bob", "Whom shall I pay, and how much?"),
        ("送金したい", "どなたに、いくら送金しましょうか。"),
        ("Did you pay Bob?", "No payment has been asked for"),
        ("Explain quantum physics", "I am a small offline model"),
        ("量子力学を説明して", "小さなオフラインモデルなので"),
        ("?", "I am a small offline model"),
    ],
)
async def test_small_talk_is_answered_in_the_language_of_the_user(text: str, told: str) -> None:
    turn = await chat_with().say(text)

    assert turn.steps == []
    assert turn.text.startswith(told)


@pytest.mark.parametrize(
    ("telling", "asking", "told"),
    [
        ("Hi, my name is Ken Sato", "what is my name?", "Your name is Ken Sato."),
        ("Call me Ken", "Do you remember my name?", "Your name is Ken."),
        ("私の名前は健です", "私の名前は何ですか？", "お名前は健さんです。"),
        ("僕は健といいます", "僕の名前を覚えていますか", "お名前は健さんです。"),
        ("my name is Ken", "私の名前は？", "お名前はKenさんです。"),
    ],
)
async def test_name_is_remembered_from_the_history(telling: str, asking: str, told: str) -> None:
    chat = chat_with()
    assert "Ken" in (met := (await chat.say(telling)).text) or "健" in met
    await chat.say("weather in Tokyo")

    assert (await chat.say(asking)).text == told


@pytest.mark.parametrize(
    ("text", "told"),
    [("what is my name?", "You have not told me"), ("私の名前は？", "まだお名前を")],
)
async def test_unknown_name_is_not_invented(text: str, told: str) -> None:
    assert (await chat_with().say(text)).text.startswith(told)


async def test_known_user_is_greeted_by_name() -> None:
    chat = chat_with()
    await chat.say("my name is Ken")

    assert (await chat.say("hello")).text.startswith("Hello again, Ken!")


@pytest.mark.parametrize(
    ("first", "second", "city"),
    [
        ("weather in Tokyo", "And in Paris?", "Paris"),
        ("What's the weather?", "Paris", "Paris"),
        ("東京の天気", "パリは？", "パリ"),
    ],
)
async def test_follow_up_asks_for_the_weather_elsewhere(first: str, second: str, city: str) -> None:
    chat = chat_with()
    await chat.say(first)

    assert called(await chat.say(second)) == [[("get_weather", {"city": city})]]


@pytest.mark.parametrize(
    ("text", "told"),
    [("Did you pay Bob?", "I sent 5 USD to Bob"), ("送金できた？", "Bobさんに5ドルを送金しました")],
)
async def test_payments_so_far_are_told_from_the_history(text: str, told: str) -> None:
    chat = chat_with()
    await chat.say("pay Bob 5")
    turn = await chat.say(text)

    assert turn.steps == []
    assert turn.text.startswith(told)


async def test_answer_follows_the_language_of_the_last_message() -> None:
    chat = chat_with()
    assert (await chat.say("東京の天気")).text.startswith("東京の天気は")
    assert (await chat.say("weather in Tokyo")).text.startswith("The weather in Tokyo")
    assert (await chat.say("Tokyoの天気は？")).text.startswith("Tokyoの天気は")
    assert (await chat.say("send 50 dollars to 花子さん")).text.startswith("I sent 50 USD to 花子")


@pytest.mark.parametrize(
    ("text", "thought", "told"),
    [
        ("Think about tea, please", "think about tea", "I have thought about tea"),
        ("think carefully", "think about this", "I have thought about this"),
        ("お茶について考えて", "お茶について", "お茶について考えてみました"),
    ],
)
async def test_thought_streams_before_the_text(text: str, thought: str, told: str) -> None:
    turn = await chat_with().say(text)

    assert thought in turn.thought
    assert turn.text.startswith(told)
    kinds = [bool(part.thought) for part in turn.deltas]
    assert kinds == sorted(kinds, reverse=True)
    assert "".join(part.text or "" for part in turn.deltas) == turn.thought + turn.text


async def test_thought_comes_once_before_the_calls() -> None:
    turn = await chat_with().say("Think carefully: what is the weather in Tokyo?")

    assert turn.thought == (
        "The user asks for the weather in Tokyo. I have tools for this, so I will call them."
    )
    assert turn.text == "The weather in Tokyo: sunny, 18 °C."


async def test_story_is_long() -> None:
    assert len((await chat_with().say("Tell me a story")).text.split()) >= 120
    assert len((await chat_with().say("物語を話して")).text) >= 300


@pytest.mark.parametrize(
    ("text", "file", "told"),
    [
        ("", ("image/png", b"x" * 2_500), "I received your image (image/png, 2.5 kB)."),
        ("", ("application/pdf", b"x" * 12), "I received your file (application/pdf, 12 B)."),
        (
            "これを見て",
            ("image/jpeg", b"x" * 3_000_000),
            "画像を受け取りました（image/jpeg、3.0 MB）。小さな",
        ),
    ],
)
async def test_file_is_acknowledged_by_type_and_size(
    text: str, file: tuple[str, bytes], told: str
) -> None:
    assert (await chat_with().say(text, files=[file])).text.startswith(told)


async def test_file_without_words_is_answered_in_the_language_before() -> None:
    chat = chat_with()
    await chat.say("こんにちは")

    told = (await chat.say(files=[("audio/wav", b"x")])).text
    assert told == "音声を受け取りました（audio/wav、1 B）。"


async def test_file_with_a_request_is_told_with_the_result() -> None:
    turn = await chat_with().say("weather in Tokyo", files=[("text/plain", b"abc")])

    assert turn.text == (
        "I received your file (text/plain, 3 B). The weather in Tokyo: sunny, 18 °C."
    )


# The shape of a response.


async def responses_to(
    *contents: types.Content, stream: bool = False, model: OfflineModel | None = None
) -> list[LlmResponse]:
    request = LlmRequest(
        contents=list(contents), tools_dict={"get_weather": FunctionTool(get_weather)}
    )
    model = model or OfflineModel()
    return [response async for response in model.generate_content_async(request, stream)]


def user(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def texts(responses: list[LlmResponse]) -> list[str]:
    return [
        part.text or ""
        for response in responses
        for part in (response.content.parts if response.content else None) or []
    ]


async def test_english_streams_word_by_word_and_ends_whole() -> None:
    *deltas, last = await responses_to(user("thanks"), stream=True)

    assert texts(deltas)[:4] == ["You", " are", " welcome!", " Tell"]
    assert texts([last]) == ["".join(texts(deltas))]
    assert all(delta.partial and delta.finish_reason is None for delta in deltas)
    assert (last.partial, last.finish_reason) == (False, types.FinishReason.STOP)


async def test_japanese_streams_in_few_characters() -> None:
    *deltas, last = await responses_to(user("ありがとう"), stream=True)

    assert texts(deltas)[:3] == ["どうい", "たしま", "して。"]
    assert texts([last]) == ["".join(texts(deltas))]


async def test_story_streams_its_paragraphs_unchanged() -> None:
    *deltas, last = await responses_to(user("tell me a story"), stream=True)

    assert "".join(texts(deltas)) == texts([last])[0]
    assert "\n\n" in texts([last])[0]


async def test_response_without_streaming_equals_the_last_one_with_it() -> None:
    [whole] = await responses_to(user("Hello"))

    assert whole == (await responses_to(user("Hello"), stream=True))[-1]


async def test_calls_come_whole_and_without_ids() -> None:
    [response] = await responses_to(user("weather in Tokyo"), stream=True)

    assert response.content is not None
    [part] = response.content.parts or []
    assert part.function_call == types.FunctionCall(name="get_weather", args={"city": "Tokyo"})
    assert response.finish_reason == types.FinishReason.STOP


async def test_usage_adds_up() -> None:
    [response] = await responses_to(user("think about tea"))

    usage = response.usage_metadata
    assert usage is not None
    assert usage.prompt_token_count == 3
    assert (usage.candidates_token_count or 0) > 20
    assert (usage.thoughts_token_count or 0) > 20
    assert usage.total_token_count == sum(
        (
            usage.prompt_token_count,
            usage.candidates_token_count or 0,
            usage.thoughts_token_count or 0,
        )
    )


async def test_call_without_a_result_is_told_as_waiting_and_not_made_again() -> None:
    call = types.FunctionCall(name="get_weather", args={"city": "Tokyo"})
    [response] = await responses_to(
        user("weather in Tokyo"),
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        types.Content(role="user", parts=[]),
    )

    assert texts([response]) == ["I am waiting for your decision on the weather in Tokyo."]


async def test_request_without_contents_is_answered() -> None:
    [response] = await responses_to()

    assert texts([response])[0].startswith("I am a small offline model")


async def test_address_of_a_file_is_acknowledged_without_a_size() -> None:
    file = types.FileData(file_uri="https://example.com/a.png", mime_type="image/png")
    [response] = await responses_to(types.Content(role="user", parts=[types.Part(file_data=file)]))

    assert texts([response]) == ["I received your image (image/png, ?)."]


async def test_delay_stands_before_each_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("anyio.sleep", pause)
    *deltas, _ = await responses_to(user("Hello"), stream=True, model=OfflineModel(delay=0.02))

    assert pauses == [0.02] * len(deltas)


def test_negative_delay_is_refused() -> None:
    with pytest.raises(ValidationError):
        OfflineModel(delay=-1)
