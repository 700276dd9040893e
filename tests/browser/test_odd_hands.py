"""People who do two things at once, or the next thing too soon."""

from __future__ import annotations

import anyio
import pytest
from playwright.async_api import FilePayload, Request, WebSocketRoute, expect
from playwright.async_api import Route as Held

from browser.conftest import Visit
from support.browser import Faults, Route
from support.browser_chat import ChatPage
from support.command import Served

pytestmark = pytest.mark.anyio

GREETING = "Hello! I am the demo assistant."


def note(name: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": name.encode()}


async def greeted(chat: ChatPage) -> None:
    await chat.say("Hello")
    await chat.sees(GREETING)
    await chat.is_done()


async def test_all_files_that_are_chosen_at_once_are_attached(visit: Visit) -> None:
    chat = await visit()
    names = ["one.txt", "two.txt", "three.txt"]
    await chat.page.locator("input[type=file]").set_input_files([note(name) for name in names])
    for name in names:
        await expect(chat.button(f"Remove {name}")).to_be_visible()


async def test_text_that_brings_a_picture_of_itself_is_pasted_as_text(visit: Visit) -> None:
    chat = await visit()
    is_taken_from_the_browser = await chat.composer.evaluate(
        """field => {
            const data = new DataTransfer();
            data.setData('text/plain', 'a\\tb');
            data.items.add(new File(['cells'], 'image.png', { type: 'image/png' }));
            const clipboardData = { clipboardData: data, bubbles: true, cancelable: true };
            return !field.dispatchEvent(new ClipboardEvent('paste', clipboardData));
        }"""
    )
    assert not is_taken_from_the_browser


async def test_an_edited_message_keeps_its_files(visit: Visit) -> None:
    chat = await visit()
    await chat.page.locator("input[type=file]").set_input_files([note("one.txt")])
    await expect(chat.button("Remove one.txt")).to_be_visible()
    await greeted(chat)
    await chat.page.reload()
    await chat.sees(GREETING)
    await chat.button("Edit").click()
    await chat.messages.get_by_role("textbox", name="Message").fill("Hello again")
    await chat.button("Send again").click()
    await chat.sees("Hello again")
    await chat.is_done()
    await chat.page.reload()
    await chat.sees("Hello again")
    await expect(chat.text("one.txt")).to_be_visible()


async def test_an_edit_that_is_refused_takes_nothing_away(visit: Visit, faults: Faults) -> None:
    faults.allow("413")
    chat = await visit()
    await greeted(chat)
    await chat.button("Edit").click()
    await chat.messages.get_by_role("textbox", name="Message").fill("x" * 70_000)
    await chat.button("Send again").click()
    await expect(chat.notice).to_contain_text("at most 65536 bytes")
    await chat.sees(GREETING)


async def test_what_is_being_sent_survives_a_change_of_the_mode(visit: Visit) -> None:
    chat = await visit()
    await greeted(chat)
    may_go, is_held = anyio.Event(), anyio.Event()

    async def hold(request: Held) -> None:
        is_held.set()
        await may_go.wait()
        await request.continue_()

    await chat.page.route("**/api/chat", hold)
    await chat.say("What is the weather in Osaka?")
    with anyio.fail_after(5):
        await is_held.wait()
    await chat.choose_in("Mode", "Live")
    may_go.set()
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await expect(chat.text("What is the weather in Osaka?")).to_have_count(1)


async def test_what_is_said_before_the_chat_is_loaded_is_not_taken_away(visit: Visit) -> None:
    chat = await visit()
    await greeted(chat)
    may_go, is_held = anyio.Event(), anyio.Event()

    async def answer_late(request: Held) -> None:
        found = await request.fetch()
        is_held.set()
        await may_go.wait()
        await request.fulfill(response=found)

    await chat.page.route("**/api/chats/*", answer_late)
    await chat.page.reload()
    with anyio.fail_after(5):
        await is_held.wait()
    await chat.say("What is the weather in Osaka?")
    may_go.set()
    await chat.sees("The weather in Osaka: sunny, 20 °C.")
    await chat.sees(GREETING)
    await expect(chat.text("What is the weather in Osaka?")).to_have_count(1)


async def test_a_reply_that_is_left_holds_no_connection(visit: Visit, slow_server: Served) -> None:
    chat = await visit(url=slow_server.url)
    await greeted(chat)
    greeting = chat.page.url
    await chat.button("New chat").click()
    await chat.say("Tell me a story")
    await chat.sees("Once upon a time")
    story = chat.page.url
    is_open: set[Request] = set()

    def on_request(request: Request) -> None:
        if "/stream" in request.url:
            is_open.add(request)

    def on_end(request: Request) -> None:
        is_open.discard(request)

    chat.page.on("request", on_request)
    chat.page.on("requestfailed", on_end)
    chat.page.on("requestfinished", on_end)
    for _ in range(3):
        # As the links of the side bar do: the page stays.
        await chat.page.evaluate("url => { location.href = url; }", greeting)
        await chat.sees(GREETING)
        await chat.page.evaluate("url => { location.href = url; }", story)
        await chat.sees("Once upon a time")
    assert len(is_open) <= 1


async def test_a_socket_that_never_opens_is_not_tried_without_end(
    visit: Visit, faults: Faults
) -> None:
    faults.allow_lost_server()
    chat = await visit()
    await greeted(chat)
    tries = 0

    async def close(socket: WebSocketRoute) -> None:
        nonlocal tries
        tries += 1
        await socket.close(code=1011)

    await chat.page.route_web_socket("**/api/chat/ws", close)
    await chat.choose_in("Mode", "WebSocket")
    await expect(chat.notice).to_contain_text("The connection is lost.")
    # Two looks of the watch later; each try is followed by one of its own.
    for _ in range(2):
        async with chat.page.expect_response("**/api/chats"):
            pass
    assert tries < 4


async def test_who_goes_to_a_chat_leaves_the_replay(visit: Visit) -> None:
    chat = await visit()
    recording: FilePayload = {
        "name": "short.jsonl",
        "mimeType": "application/x-ndjson",
        "buffer": b'{"recording":1,"by":"test","startedAt":"2026-11-16T09:00:00.000Z"}\n',
    }
    await greeted(chat)
    await chat.button("Inspector").click()
    await chat.page.get_by_label("Replay a file").set_input_files([recording])
    await expect(chat.button("Leave the replay")).to_be_visible()
    await chat.button("New chat").click()
    await expect(chat.button("Leave the replay")).to_have_count(0)
    await expect(chat.composer).to_be_visible()


async def test_a_key_that_is_held_to_talk_denies_nothing(visit: Visit) -> None:
    chat = await visit(Route("Live", "ai-sdk"))
    await greeted(chat)
    await chat.composer.fill("Send 50 dollars to Hanako")
    await chat.button("Hold to talk").focus()
    await chat.page.keyboard.down(" ")
    # There is none here; the key is held all the same.
    await expect(chat.notice).to_contain_text("did not give the microphone")
    await chat.page.evaluate("document.querySelector('form.composer').requestSubmit()")
    await expect(chat.button("Deny")).to_be_visible()
    # A key that is held repeats.
    await chat.page.keyboard.down(" ")
    await chat.page.keyboard.up(" ")
    await expect(chat.button("Deny")).to_be_visible()
    await expect(chat.button("Deny")).not_to_be_focused()


async def test_an_enter_that_chooses_a_word_sends_nothing(visit: Visit) -> None:
    chat = await visit()
    await chat.composer.fill("東京")
    # As Safari has it.
    await chat.composer.evaluate(
        """field => field.dispatchEvent(
            new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true }))"""
    )
    await expect(chat.composer).to_have_value("東京")


async def test_a_long_paste_is_not_cut(visit: Visit) -> None:
    chat = await visit()
    await chat.composer.focus()
    await chat.page.keyboard.insert_text("x" * 30_000)
    await expect(chat.composer).to_have_value("x" * 30_000)


async def test_a_file_dropped_beside_the_field_does_not_replace_the_page(visit: Visit) -> None:
    chat = await visit()
    is_left_to_the_browser = await chat.messages.evaluate(
        "log => log.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true }))"
    )
    assert not is_left_to_the_browser


async def test_an_address_that_names_no_chat_is_replaced_by_what_is_said(
    visit: Visit, server: Served, faults: Faults
) -> None:
    faults.allow("404")
    chat = await visit(url=f"{server.url}/#%E0%A4%A")
    await greeted(chat)
    await chat.page.reload()
    await chat.sees(GREETING)


async def test_an_enter_while_arguments_are_edited_approves_nothing(visit: Visit) -> None:
    chat = await visit()
    await chat.asks("Send 50 dollars to Hanako")
    await chat.button("Change the arguments").click()
    amount = chat.page.get_by_role("textbox", name="amount")
    await amount.fill("20")
    await amount.press("Enter")
    await expect(chat.button("Approve the changed call")).to_be_enabled()
    await chat.button("Leave them as they are").click()
    await chat.button("Deny").click()
    await chat.sees("was not made")
