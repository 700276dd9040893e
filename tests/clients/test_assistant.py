"""assistant-ui's thread list and history on the server's chats."""

from __future__ import annotations

import pytest
from playwright.async_api import Dialog, Locator, expect

from support.clients import FRONT_ENDS, ClientPage, Open, PageServer, new_id
from support.stage import user_message

pytestmark = pytest.mark.anyio

(ASSISTANT,) = [front_end for front_end in FRONT_ENDS if front_end.page == "assistant"]


def thread(client: ClientPage, title: str, *, among: str = "Chats") -> Locator:
    threads = client.page.get_by_role("list", name=among).get_by_role("listitem")
    return threads.filter(has=client.page.get_by_role("button", name=title, exact=True))


async def say(client: ClientPage, server: PageServer, text: str) -> None:
    """Say something in a chat of its own, away from the page."""
    body = {"id": new_id(), "messages": [user_message(text)]}
    assert (await client.page.request.post(f"{server.url}/api/chat", data=body)).ok


async def titles(client: ClientPage, server: PageServer, query: str = "") -> list[str]:
    chats = await (await client.page.request.get(f"{server.url}/api/chats{query}")).json()
    return [chat["title"] for chat in chats["chats"]]


async def test_chats_are_threads_and_a_new_thread_is_a_chat(
    open_page: Open, server: PageServer
) -> None:
    client = await open_page(ASSISTANT)
    await say(client, server, "add")
    await client.reload()
    await thread(client, "add").get_by_role("button", name="add").click()
    await client.sees("It is 3.")
    await client.button("New chat").click()
    await expect(client.message("assistant")).to_have_count(0)
    await client.send("hi")
    await client.sees("Hello.")
    await expect(thread(client, "hi")).to_be_visible()
    await client.is_the_same_after_a_reload()
    await expect(thread(client, "hi")).to_be_visible()
    assert await titles(client, server) == ["hi", "add"]


async def test_a_thread_is_renamed_archived_and_deleted_on_the_server(
    open_page: Open, server: PageServer
) -> None:
    client = await open_page(ASSISTANT)
    for text in ("hi", "hello", "add"):
        await say(client, server, text)
    await client.reload()

    async def answer(dialog: Dialog) -> None:
        await dialog.accept("Sums")

    client.page.on("dialog", answer)
    await thread(client, "add").get_by_role("button", name="Rename").click()
    await expect(thread(client, "Sums")).to_be_visible()
    await thread(client, "hello").get_by_role("button", name="Archive", exact=True).click()
    await expect(thread(client, "hello", among="Archived")).to_be_visible()
    await thread(client, "hi").get_by_role("button", name="Delete").click()
    await expect(thread(client, "hi")).to_have_count(0)
    await client.reload()
    await expect(thread(client, "Sums")).to_be_visible()
    await expect(thread(client, "hello", among="Archived")).to_be_visible()
    assert await titles(client, server) == ["Sums"]
    await thread(client, "hello", among="Archived").get_by_role("button", name="Unarchive").click()
    await expect(thread(client, "hello")).to_be_visible()
    await client.reload()
    await expect(thread(client, "hello")).to_be_visible()
    assert sorted(await titles(client, server)) == ["Sums", "hello"]


async def test_more_threads_than_a_page_come_page_by_page(
    open_page: Open, server: PageServer
) -> None:
    client = await open_page(ASSISTANT)
    for _ in range(21):
        await say(client, server, "hi")
    await client.reload()
    await expect(thread(client, "hi")).to_have_count(20)
    await client.button("More").click()
    await expect(thread(client, "hi")).to_have_count(21)


async def test_an_earlier_reply_is_regenerated_and_all_after_it_is_gone(
    open_page: Open, server: PageServer
) -> None:
    client = await open_page(ASSISTANT)
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_done()
    await client.send("add")
    await client.sees("It is 3.")
    await client.is_done()
    server.stage.model.script = {"hi": [["Good day."]]}
    await client.button("Regenerate").first.click()
    await client.sees("Good day.")
    await expect(client.message("user")).to_have_count(1)
    await client.is_the_same_after_a_reload()
