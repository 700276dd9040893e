"""Payments that wait for a person, in every mode and profile."""

from __future__ import annotations

import httpx
import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Route
from support.command import Served

pytestmark = pytest.mark.anyio


async def test_an_approved_payment_is_made(visit: Visit, route: Route) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    card = chat.approval()
    await expect(card).to_contain_text("Nothing is sent unless you approve.")
    await expect(card).to_contain_text("high risk")
    await expect(card).to_contain_text("Expires in")
    await expect(card.get_by_role("row", name="recipient")).to_contain_text("Hanako")
    await chat.button("Approve").click()
    await chat.transaction("Hanako")
    await chat.is_done()
    await expect(chat.tool("process_payment", "done")).to_be_visible()
    await expect(card).to_have_count(0)


async def test_a_payment_that_is_approved_twice_is_made_once(
    visit: Visit, route: Route, server: Served
) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.button("Approve").dblclick()
    first = await chat.transaction("Hanako")
    await chat.is_done()
    async with httpx.AsyncClient(base_url=server.url) as client:
        approvals = (await client.get("/api/approvals")).json()["approvals"]
    [approval] = [found for found in approvals if found["chatId"] == chat.chat_id]
    assert approval["status"] == "done"
    # The book counts its payments: between these two there was no other.
    await chat.asks("Send 5 dollars to Taro")
    await chat.button("Approve").click()
    assert await chat.transaction("Taro") == first + 1


async def test_a_denied_payment_is_not_made_and_the_agent_is_told_why(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.approval().get_by_role("textbox", name="Reason").fill("too much")
    await chat.button("Deny").click()
    await chat.sees("The payment of 50 USD to Hanako was not made")
    await chat.sees("Your reason: too much.")
    await chat.is_done()
    await expect(chat.tool("process_payment", "denied")).to_be_visible()
