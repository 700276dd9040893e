"""The page as a person uses it: found by what is written on it and by what a screen reader says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from playwright.async_api import Locator, Page, expect

from support.browser import Route

__all__ = ["ChatPage"]


@dataclass(frozen=True)
class ChatPage:
    """One tab with the page, in English unless a test chose another language."""

    page: Page

    @property
    def composer(self) -> Locator:
        """Where messages are written."""
        return self.page.get_by_role("textbox", name="Message").last

    @property
    def messages(self) -> Locator:
        """All that was said."""
        return self.page.get_by_role("log")

    @property
    def replies(self) -> Locator:
        """What the agent said, a message each."""
        return self.page.get_by_role("article", name="Agent")

    @property
    def notice(self) -> Locator:
        """What the page has to say above the composer, if it is bad news."""
        return self.page.get_by_role("alert")

    @property
    def chat_id(self) -> str:
        """The id of the chat that is shown; the address names it once something was said."""
        return unquote(urlsplit(self.page.url).fragment)

    def button(self, name: str) -> Locator:
        """Find a button by its whole name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def text(self, text: str | re.Pattern[str]) -> Locator:
        """Find text in the conversation."""
        return self.messages.get_by_text(text)

    def approval(self, title: str = "Send money", *, about: str = "") -> Locator:
        """Find the card that asks for a decision, by its title and by what it is about."""
        card = self.page.get_by_role("region", name=title)
        return card.filter(has_text=about) if about else card

    def tool(self, name: str, state: str) -> Locator:
        """Find the card of a call in that state."""
        cards = self.messages.get_by_role("group")
        return cards.filter(has=self.page.get_by_text(name, exact=True)).filter(
            has=self.page.get_by_text(state, exact=True)
        )

    async def choose(self, route: Route) -> None:
        """Choose mode and profile."""
        await self.choose_in("Mode", route.mode)
        # A unary WebSocket has only one profile, and the page chooses it by itself.
        if route.mode != "WebSocket":
            await self.choose_in("Profile", route.profile)

    async def choose_in(self, group: str, choice: str) -> None:
        """Choose one of a few."""
        choices = self.page.get_by_role("group", name=group)
        await choices.get_by_role("radio", name=choice, exact=True).check()

    async def say(self, text: str) -> None:
        """Write a message and send it by Enter."""
        await self.composer.fill(text)
        await self.composer.press("Enter")

    async def sees(self, text: str | re.Pattern[str]) -> None:
        """Wait until the conversation shows this, once."""
        await expect(self.text(text)).to_be_visible()

    async def is_done(self) -> None:
        """Wait until nothing runs: a message can be sent."""
        await expect(self.button("Send")).to_be_visible()

    async def asks(self, text: str) -> None:
        """Say something that needs an approval, and wait for the question."""
        await self.say(text)
        await expect(self.button("Approve").first).to_be_visible()

    async def transaction(self, recipient: str) -> int:
        """Wait for a payment to be told; return its number."""
        told = self.text(re.compile(rf"I sent .* to {recipient} \(transaction tx-\d+\)"))
        await expect(told).to_be_visible()
        number = re.search(r"tx-(\d+)", await told.inner_text())
        assert number is not None
        return int(number[1])
