import pytest
from google.adk.models.google_llm import Gemini

from adk_stream_protocol.demo.agent import PaymentBook, build_agent, get_weather
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.held_calls.browser_tool import BrowserTool
from adk_stream_protocol.held_calls.policy import Policy
from support.adk_chat import AdkChat

pytestmark = pytest.mark.anyio


def test_agent_is_offline_unless_a_model_is_given() -> None:
    assert isinstance(build_agent().model, OfflineModel)
    assert build_agent("gemini-2.5-flash").model == "gemini-2.5-flash"
    gemini = Gemini(model="gemini-2.5-pro")
    assert build_agent(gemini).model is gemini


async def test_tools_and_their_gates_are_declared() -> None:
    agent = build_agent()
    tools = {tool.name: tool for tool in await agent.canonical_tools()}

    assert agent.name == "demo"
    assert list(tools) == ["get_weather", "process_payment", "get_location", "change_bgm"]
    assert [name for name, tool in tools.items() if isinstance(tool, BrowserTool)] == [
        "get_location",
        "change_bgm",
    ]
    assert all(tool.description for tool in tools.values())


async def test_only_payment_and_location_ask_first() -> None:
    agent = build_agent()
    policy = Policy().with_rules_of(agent)
    asked = await AdkChat(agent).say("pay Bob 5")

    assert list(asked.confirmations) == ["Bob"]
    assert policy.rule("get_location").approval
    assert policy.runs_at_once_in_browser("change_bgm")
    assert not policy.rule("get_weather").browser


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("where am I?", "I could not learn your location."),
        ("play some jazz", "The music was not changed."),
    ],
)
async def test_browser_tool_without_a_browser_says_so(text: str, told: str) -> None:
    assert (await AdkChat(build_agent()).say(text)).text.startswith(told)


async def test_every_tool_is_named_in_the_instruction() -> None:
    agent = build_agent()

    for tool in await agent.canonical_tools():
        assert tool.name in str(agent.instruction)


@pytest.mark.parametrize(("english", "japanese"), [("Tokyo", "東京"), ("paris", "パリ")])
def test_weather_is_the_same_in_both_languages(english: str, japanese: str) -> None:
    here, there = get_weather(english), get_weather(japanese)

    assert here["city"] == english
    assert {**here, "city": ""} == {**there, "city": ""}


def test_unknown_city_has_plausible_weather_that_never_changes() -> None:
    weather = get_weather("Ouagadougou")

    assert weather == get_weather("Ouagadougou")
    assert isinstance(weather["temperature_c"], int)
    assert 5 <= weather["temperature_c"] < 30


async def test_payment_is_booked_once_after_approval() -> None:
    book = PaymentBook()
    chat = AdkChat(build_agent(payments=book))
    asked = await chat.say("send 50 dollars to Hanako")
    assert book.payments == []

    done = await chat.decide({asked.confirmations["Hanako"]: True})

    assert book.payments == [
        {
            "status": "paid",
            "transaction_id": "tx-0001",
            "amount": 50,
            "currency": "USD",
            "recipient": "Hanako",
        }
    ]
    assert done.text == "I sent 50 USD to Hanako (transaction tx-0001)."


async def test_denied_payment_is_never_booked() -> None:
    book = PaymentBook()
    chat = AdkChat(build_agent(payments=book))
    asked = await chat.say("花子さんに50ドル送金してください")

    await chat.decide({asked.confirmations["花子"]: False})

    assert book.payments == []


def test_each_payment_has_its_own_transaction() -> None:
    book = PaymentBook()
    for recipient in ("Alice", "Bob"):
        book.process_payment(1, recipient)

    assert [payment["transaction_id"] for payment in book.payments] == ["tx-0001", "tx-0002"]


@pytest.mark.parametrize("amount", [0, -5])
def test_amount_that_is_not_positive_is_not_booked(amount: float) -> None:
    book = PaymentBook()

    assert "error" in book.process_payment(amount, "Bob")
    assert book.payments == []


def test_agents_do_not_share_payments() -> None:
    first, second = PaymentBook(), PaymentBook()
    first.process_payment(1, "Bob")

    assert second.payments == []
