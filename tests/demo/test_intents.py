# ruff: noqa: RUF001 - full-width punctuation is how Japanese is written

import pytest

from adk_stream_protocol.demo.intents import find_follow_up, find_steps

Summary = list[list[tuple[object, ...]]]


def summary(text: str) -> Summary:
    return [[(call.tool, *call.arguments.values()) for call in step] for step in find_steps(text)]


def pay(amount: float, recipient: str, currency: str = "USD") -> tuple[object, ...]:
    return ("process_payment", amount, recipient, currency)


def weather(city: str) -> tuple[object, ...]:
    return ("get_weather", city)


def music(track: str) -> tuple[object, ...]:
    return ("change_bgm", track)


LOCATION = ("get_location",)


@pytest.mark.parametrize(
    ("text", "cities"),
    [
        ("weather in Tokyo", ["Tokyo"]),
        ("What's the weather like in tokyo, new york and Lima?", ["Tokyo", "New York", "Lima"]),
        ("What’s the forecast for San Francisco today?", ["San Francisco"]),
        ("weather in ouagadougou please", ["Ouagadougou"]),
        ("Tokyo weather", ["Tokyo"]),
        ("is it raining in London?", ["London"]),
        ("weather in 東京", ["東京"]),
        ("weather in Tokyo, Tokyo and 東京", ["Tokyo"]),
        ("東京の天気", ["東京"]),
        ("今日の東京の天気は？", ["東京"]),
        ("パリと東京の天気を教えて", ["パリ", "東京"]),
        ("東京、大阪、リマの気温は", ["東京", "大阪", "リマ"]),
        ("東京は雨ですか", ["東京"]),
        ("さいたまの天気", ["さいたま"]),
    ],
)
def test_cities_are_found(text: str, cities: list[str]) -> None:
    assert summary(text) == [[weather(city) for city in cities]]


@pytest.mark.parametrize(
    ("text", "payments"),
    [
        ("send 50 dollars to Hanako", [pay(50, "Hanako")]),
        ("Send $25 to Alice Smith.", [pay(25, "Alice Smith")]),
        ("pay Bob 30 EUR", [pay(30, "Bob", "EUR")]),
        ("pay Bob € 30.50 please", [pay(30.5, "Bob", "EUR")]),
        ("pay bob smith 1,000 yen", [pay(1000, "bob smith", "JPY")]),
        ("pay my landlord 900 pounds", [pay(900, "my landlord", "GBP")]),
        ("Please transfer 5k to Bob", [pay(5000, "Bob")]),
        ("send Bob another 30", [pay(30, "Bob")]),
        ("send 50 dollars to 花子さん", [pay(50, "花子")]),
        ("wire 12.75 GBP to Tanaka-san", [pay(12.75, "Tanaka", "GBP")]),
        ("I have 50 dollars, pay Bob 30", [pay(30, "Bob")]),
        ("pay Alice 30 and Bob 40", [pay(30, "Alice"), pay(40, "Bob")]),
        ("pay 30 to Alice and 40 to Bob", [pay(30, "Alice"), pay(40, "Bob")]),
        (
            "send Alice $30, Bob $40 and Carol $50",
            [pay(30, "Alice"), pay(40, "Bob"), pay(50, "Carol")],
        ),
        ("pay Alice 30 and send 40 to Bob", [pay(30, "Alice"), pay(40, "Bob")]),
        ("pay Alice and Bob 30 each", [pay(30, "Alice"), pay(30, "Bob")]),
        ("send 50 dollars to Hanako and Bob", [pay(50, "Hanako"), pay(50, "Bob")]),
        ("花子さんに50ドル送金してください", [pay(50, "花子")]),
        ("さとうさんに５０ドル送金", [pay(50, "さとう")]),
        ("50ドルを花子さんに送金して", [pay(50, "花子")]),
        ("Bob に 30 ドル払って", [pay(30, "Bob")]),
        ("支払い: Bobへ20ユーロ", [pay(20, "Bob", "EUR")]),
        ("花子に1万円振り込んで", [pay(10_000, "花子", "JPY")]),
        ("Aliceに30ドル、Bobに40ドル送金してください", [pay(30, "Alice"), pay(40, "Bob")]),
        ("30ドルをAliceに、40ドルをBobに送金", [pay(30, "Alice"), pay(40, "Bob")]),
        ("AliceさんとBobさんに30ドルずつ送って", [pay(30, "Alice"), pay(30, "Bob")]),
    ],
)
def test_payments_are_found(text: str, payments: list[tuple[object, ...]]) -> None:
    assert summary(text) == [payments]


@pytest.mark.parametrize(
    "text",
    [
        "don't pay Bob 5",
        "Bobに5ドル送らないで",
        "did you pay Bob 5?",
        "花子さんに50ドル送金しましたか？",
        "pay Bob",
        "pay Bob -5",
        "pay Bob thirty dollars",
        "50ドル送金して",
        "I have 50 dollars",
        "give me the weather for 5 days",
        "今日の天気は？",
        "I am in Tokyo",
        "hello",
        "",
    ],
)
def test_what_is_not_clearly_a_request_asks_for_no_tool(text: str) -> None:
    assert summary(text) == []


@pytest.mark.parametrize(
    ("text", "track"),
    [
        ("play some jazz", "jazz"),
        ("play some classical music, please", "classical"),
        ("put on some rock", "rock"),
        ("play music", "jazz"),
        ("change the music to track 1", "track 1"),
        ("switch the background music to lo-fi beats.", "lo-fi beats"),
        ("BGMをジャズに変えて", "ジャズ"),
        ("BGMをトラック1に変更してください", "トラック1"),
        ("ジャズをかけて", "ジャズ"),
        ("ジャズの曲を流して", "ジャズ"),
        ("何か音楽をかけて", "jazz"),
        ("音楽を変えて", "jazz"),
    ],
)
def test_track_is_found(text: str, track: str) -> None:
    assert summary(text) == [[music(track)]]


@pytest.mark.parametrize(
    "text", ["where am I?", "What is my current location?", "現在地は？", "今どこ"]
)
def test_location_is_asked_for(text: str) -> None:
    assert summary(text) == [[LOCATION]]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("weather in Paris and pay Bob 5 dollars", [weather("Paris"), pay(5, "Bob")]),
        ("pay Bob 5 dollars and tell me the weather in Paris", [pay(5, "Bob"), weather("Paris")]),
        ("where am I and what is the weather in Tokyo", [LOCATION, weather("Tokyo")]),
        ("pay Bob 5 dollars and play track 1", [pay(5, "Bob"), music("track 1")]),
        ("パリの天気を教えて、Bobに5ドル送金して", [weather("パリ"), pay(5, "Bob")]),
        ("パリの天気とBobに5ドル送金", [weather("パリ"), pay(5, "Bob")]),
        ("現在地と東京の天気を教えて", [LOCATION, weather("東京")]),
        ("Bobに30ドル払って、BGMもロックに変えて", [pay(30, "Bob"), music("ロック")]),
    ],
)
def test_several_things_are_one_step_in_the_order_of_the_text(
    text: str, step: list[tuple[object, ...]]
) -> None:
    assert summary(text) == [step]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("pay Alice 30, then pay Bob 40", [[pay(30, "Alice")], [pay(40, "Bob")]]),
        ("pay Alice 30 and then Bob 40", [[pay(30, "Alice")], [pay(40, "Bob")]]),
        ("send 30 to Alice, then 40 to Bob", [[pay(30, "Alice")], [pay(40, "Bob")]]),
        ("Aliceに30ドル送金してから、Bobに40ドル送金して", [[pay(30, "Alice")], [pay(40, "Bob")]]),
        ("Aliceに30ドル、次にBobに40ドル送金して", [[pay(30, "Alice")], [pay(40, "Bob")]]),
        ("weather in Tokyo, then pay Bob 5", [[weather("Tokyo")], [pay(5, "Bob")]]),
        ("weather in Tokyo, then Paris", [[weather("Tokyo")], [weather("Paris")]]),
    ],
)
def test_then_begins_a_new_step(text: str, steps: Summary) -> None:
    assert summary(text) == steps


@pytest.mark.parametrize(
    ("text", "cities"),
    [
        ("And in Paris?", ["Paris"]),
        ("what about Lima and Rome?", ["Lima", "Rome"]),
        ("Paris", ["Paris"]),
        ("How about Kyoto today?", ["Kyoto"]),
        ("パリは？", ["パリ"]),
        ("じゃあ東京と大阪は？", ["東京", "大阪"]),
        ("Great", []),
        ("thanks", []),
        ("what about you?", []),
        ("了解です", []),
    ],
)
def test_follow_up_after_weather_names_cities(text: str, cities: list[str]) -> None:
    calls = find_follow_up(text, previous="weather in Tokyo")

    assert [call.arguments["city"] for call in calls] == cities


def test_request_is_read_from_the_beginning_of_a_long_message() -> None:
    assert summary("weather in Tokyo. " + "Aに" * 30_000) == [[weather("Tokyo")]]


def test_amount_that_a_long_message_cuts_in_two_is_not_paid() -> None:
    text = "pay Bob 500 dollars".rjust(1009)
    assert text[:1000].endswith("pay Bob 50"), "the cut must fall into the amount"

    assert summary(text) == []


def test_follow_up_means_nothing_after_another_topic() -> None:
    assert find_follow_up("And in Paris?", previous="play some jazz") == ()
