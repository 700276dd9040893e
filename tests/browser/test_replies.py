"""What a person can do with what was said."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Route
from support.command import Served

pytestmark = pytest.mark.anyio


async def test_a_story_that_is_stopped_ends_there_and_the_chat_goes_on(
    visit: Visit, route: Route, slow_server: Served
) -> None:
    chat = await visit(route, url=slow_server.url)
    await chat.say("Tell me a story")
    await chat.sees("Once upon a time")
    await chat.button("Stop").click()
    await chat.is_done()
    await chat.sees("Stopped.")
    await expect(chat.text("because of the first.")).to_have_count(0)
    await chat.say("What is the weather in Osaka?")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await chat.is_done()


async def test_a_message_while_a_story_is_told_interrupts_it(
    visit: Visit, route: Route, slow_server: Served
) -> None:
    chat = await visit(route, url=slow_server.url)
    await chat.say("Tell me a story")
    await chat.sees("Once upon a time")
    await chat.say("What is the weather in Osaka?")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await chat.is_done()
    await expect(chat.text("because of the first.")).to_have_count(0)
    await chat.page.reload()
    await chat.sees("Once upon a time")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")


async def test_a_question_that_is_given_up_is_cancelled(visit: Visit, route: Route) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    await expect(chat.page.get_by_text("A call waits for your decision.")).to_be_visible()
    await chat.button("Give up waiting").click()
    await expect(chat.button("Approve")).to_have_count(0)
    await expect(chat.tool("process_payment", "cancelled")).to_be_visible()
    await chat.is_done()


async def test_an_answer_is_given_again_in_place_of_the_old_one(visit: Visit, route: Route) -> None:
    chat = await visit(route)
    await chat.say("What is the weather in Osaka?")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await chat.is_done()
    old = await chat.replies.get_by_role("button", name="Answer again").element_handle()
    assert old is not None
    await old.click()
    await old.wait_for_element_state("hidden")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await chat.is_done()
    await expect(chat.replies).to_have_count(1)
    await chat.page.reload()
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await expect(chat.replies).to_have_count(1)


async def test_an_edited_message_takes_back_what_followed_it(visit: Visit, route: Route) -> None:
    chat = await visit(route)
    await chat.say("What is the weather in Osaka?")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await chat.is_done()
    await chat.say("Hello")
    await chat.sees("Hello! I am the demo assistant.")
    await chat.is_done()
    first = chat.page.get_by_role("article", name="You").first
    await first.get_by_role("button", name="Edit").click()
    await expect(first.get_by_role("textbox", name="Message")).to_be_focused()
    await first.get_by_role("textbox", name="Message").fill("What is the weather in Paris?")
    await chat.button("Send again").click()
    await chat.sees("The weather in Paris: light rain, 14 °C.")
    await chat.is_done()
    await expect(chat.page.get_by_role("article")).to_have_count(2)
    await chat.page.reload()
    await chat.sees("The weather in Paris: light rain, 14 °C.")
    await expect(chat.page.get_by_role("article")).to_have_count(2)


async def test_a_reply_is_copied_as_its_text(visit: Visit) -> None:
    chat = await visit(permissions=["clipboard-read", "clipboard-write"])
    await chat.say("What is the weather in Osaka?")
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await chat.is_done()
    await chat.replies.get_by_role("button", name="Copy").click()
    await expect(chat.replies.get_by_role("button", name="Copied")).to_be_visible()
    copied = await chat.page.evaluate("navigator.clipboard.readText()")
    assert copied == "The weather in Osaka: sunny, 20 °C."


async def test_a_chat_is_deleted_after_a_question(visit: Visit) -> None:
    chat = await visit()
    await chat.asks("Send 50 dollars to Hanako")
    delete = chat.page.get_by_role("button", name="Delete “Send 50 dollars to Hanako”")
    await delete.click()
    dialog = chat.page.get_by_role("dialog", name="Delete “Send 50 dollars to Hanako”?")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(dialog).to_have_count(0)
    await expect(chat.approval()).to_be_visible()
    await delete.click()
    await dialog.get_by_role("button", name="Delete", exact=True).click()
    await expect(chat.page.get_by_role("heading", name="What can I do")).to_be_visible()
    await expect(delete).to_have_count(0)
    await expect(chat.page.get_by_label("1 approval waits")).to_have_count(0)


async def test_a_payment_is_made_with_the_arguments_it_was_changed_to(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.button("Change the arguments").click()
    card = chat.approval()
    await card.get_by_role("textbox", name="amount").fill("many")
    await chat.button("Approve the changed call").click()
    await expect(card.get_by_role("alert")).to_have_text("amount must be a number.")
    await card.get_by_role("textbox", name="amount").fill("20")
    await card.get_by_role("textbox", name="recipient").fill("Taro")
    await chat.button("Approve the changed call").click()
    await chat.transaction("Taro")
    await chat.sees("I sent 20 USD to Taro")
    await chat.is_done()


async def test_what_is_always_approved_in_a_chat_is_not_asked_again_there(
    visit: Visit, route: Route
) -> None:
    chat = await visit(route)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.button("Always in this chat").click()
    await chat.transaction("Hanako")
    await chat.is_done()
    await chat.say("Send 5 dollars to Taro")
    await chat.transaction("Taro")
    await chat.is_done()
    await chat.button("New chat").click()
    await chat.asks("Send 5 dollars to Taro")
