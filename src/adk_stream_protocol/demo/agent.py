"""The demo agent: weather, payments that need approval, and two tools that run in the browser."""

import itertools

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.tools.function_tool import FunctionTool
from pydantic import JsonValue

from adk_stream_protocol.demo.cities import find_city
from adk_stream_protocol.demo.offline_model import OfflineModel
from adk_stream_protocol.held_calls.browser_tool import BrowserTool

__all__ = ["PaymentBook", "build_agent", "change_bgm", "get_location", "get_weather"]

_INSTRUCTION = """\
You are a friendly, brief assistant that demonstrates tools with human approval.

Always answer in the language of the user's last message.

Use the tools whenever they fit; never invent their results:
- get_weather(city): the current weather in one city.
- process_payment(amount, recipient, currency): sends money. The user is asked for approval by the
  application, so call the tool directly and do not ask for confirmation in text.
- get_location(): where the user is now, told by the browser after the user allows it.
- change_bgm(track): changes the background music in the browser; a style or a track name.

If the user asks for several independent things, make all the calls in one step. If the user says
that one thing should follow another ("then", "after that"), wait for the first result before
making the next call.

Ask for a missing amount, recipient or city instead of guessing it. When the currency is not said,
use USD.

After the results, tell what happened, one thing at a time. If a call was rejected or its approval
expired, say plainly that it was not done, do not call the tool again by yourself, and offer help.
"""

# The bodies of browser tools run only where nothing holds their calls, such as `adk web`.
_NO_BROWSER = "No browser is connected that could run this."


class PaymentBook:
    """Keeps the payments of one agent in memory; no money moves."""

    def __init__(self) -> None:
        self.payments: list[dict[str, JsonValue]] = []  # in the order made
        self._numbers = itertools.count(1)  # of the transactions

    def process_payment(
        self, amount: float, recipient: str, currency: str = "USD"
    ) -> dict[str, JsonValue]:
        """Sends money to a person or company.

        Args:
            amount: How much to send; more than zero.
            recipient: The name of the person or company who receives the money.
            currency: ISO 4217 code such as USD, EUR or JPY.

        Returns:
            The payment with its transaction id, or an error.
        """
        if amount <= 0:
            return {"error": "The amount must be more than zero."}
        payment: dict[str, JsonValue] = {
            "status": "paid",
            # ADK may run plain functions in threads; `next` of a count hands out a number once.
            "transaction_id": f"tx-{next(self._numbers):04d}",
            "amount": amount,
            "currency": currency,
            "recipient": recipient,
        }
        self.payments.append(payment)
        return payment


def get_weather(city: str) -> dict[str, JsonValue]:
    """Gets the current weather in a city.

    Args:
        city: The name of the city, in any language.

    Returns:
        The city, its temperature in degrees Celsius and the condition of the sky.
    """
    found = find_city(city)
    return {"city": city, "temperature_c": found.temperature_c, "condition": found.condition}


def get_location() -> dict[str, JsonValue]:
    """Finds out where the user is now.

    Returns:
        Latitude and longitude, and maybe the accuracy in metres, or an error.
    """
    return {"error": _NO_BROWSER}


def change_bgm(track: str) -> dict[str, JsonValue]:
    """Changes the background music in the user's browser.

    Args:
        track: A style or the name of a track, for example "jazz" or "track 1".

    Returns:
        What plays now, or an error.
    """
    return {"error": _NO_BROWSER, "track": track}


def build_agent(
    model: str | BaseLlm | None = None, payments: PaymentBook | None = None
) -> LlmAgent:
    """Return a new demo agent; without a model it runs offline.

    Payments are kept in `payments`, or in a book of the agent's own.
    """
    book = PaymentBook() if payments is None else payments
    return LlmAgent(
        name="demo",
        description="Shows weather, approved payments and tools that run in the browser.",
        model=OfflineModel() if model is None else model,
        instruction=_INSTRUCTION,
        tools=[
            get_weather,
            FunctionTool(book.process_payment, require_confirmation=True),
            BrowserTool(get_location, require_confirmation=True),
            BrowserTool(change_bgm),
        ],
    )
