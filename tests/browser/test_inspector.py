"""What goes over the line, shown, kept in a file and played again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from browser.conftest import Visit
from support.browser import Route
from support.browser_chat import ChatPage

pytestmark = pytest.mark.anyio


def inspector(chat: ChatPage) -> Locator:
    return chat.page.get_by_role("complementary", name="Inspector")


def rows(chat: ChatPage, text: str) -> Locator:
    listed = inspector(chat).get_by_role("group", name="Every request and every chunk")
    return listed.get_by_role("button").filter(has_text=text)


async def paid(chat: ChatPage) -> None:
    await chat.button("Inspector").click()
    await chat.asks("Send 50 dollars to Hanako")
    await chat.button("Approve").click()
    await chat.transaction("Hanako")
    await chat.is_done()


async def test_both_directions_are_shown_and_filtered(visit: Visit, either_route: Route) -> None:
    chat = await visit(either_route)
    await expect(chat.button("Inspector")).to_have_attribute("aria-pressed", "false")
    await paid(chat)
    tools = inspector(chat)
    await tools.get_by_role("searchbox", name="Filter").fill("hanako")
    await tools.get_by_role("radio", name="Sent").check()
    await expect(rows(chat, "Sent").first).to_be_visible()
    await expect(rows(chat, "Received")).to_have_count(0)
    await rows(chat, "send").first.click()
    await expect(tools.get_by_text('"Send 50 dollars to Hanako"')).to_be_visible()
    await tools.get_by_role("radio", name="Received").check()
    await expect(rows(chat, "tool-input-available").first).to_be_visible()
    await expect(rows(chat, "Sent")).to_have_count(0)
    await tools.get_by_role("searchbox", name="Filter").fill("nothing like this")
    await expect(tools.get_by_text("Nothing matches the filter.")).to_be_visible()
    await tools.get_by_role("button", name="Clear").click()
    await expect(
        tools.get_by_text("Nothing yet. Say something, and watch it here.")
    ).to_be_visible()
    await tools.get_by_role("button", name="Close").click()
    await expect(tools).to_have_count(0)


async def test_what_was_downloaded_is_replayed_as_the_same_messages(
    visit: Visit, route: Route, tmp_path: Path
) -> None:
    chat = await visit(route)
    await paid(chat)
    told = [
        # Nothing can be done in a replay.
        re.sub(
            r"\s*\b(Copy|Edit|Answer again)$", "", await article.inner_text(), flags=re.MULTILINE
        )
        for article in await chat.page.get_by_role("article").all()
    ]
    async with chat.page.expect_download() as downloading:
        await inspector(chat).get_by_role("button", name="Download").click()
    file = tmp_path / "talk.jsonl"
    await (await downloading.value).save_as(file)
    first, *entries = map(json.loads, file.read_text().splitlines())
    assert first["recording"] == 1
    assert {entry["direction"] for entry in entries} == {"in", "out"}
    async with chat.page.expect_file_chooser() as choosing:
        await inspector(chat).get_by_role("button", name="Replay a file").click()
    await (await choosing.value).set_files(file)
    await expect(chat.page.get_by_text("Replay of talk.jsonl.")).to_be_visible()
    await chat.transaction("Hanako")
    articles = chat.page.get_by_role("article")
    await expect(articles).to_have_count(len(told))
    await expect(articles).to_have_text(told, use_inner_text=True)
    await expect(chat.button("Approve")).to_have_count(0)
    await chat.button("Leave the replay").click()
    await chat.is_done()


async def test_a_file_that_is_no_recording_is_refused_by_its_line(
    visit: Visit, tmp_path: Path
) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"recording":1,"by":"adk-stream-client"}\nnot JSON\n')
    chat = await visit()
    await chat.button("Inspector").click()
    async with chat.page.expect_file_chooser() as choosing:
        await inspector(chat).get_by_role("button", name="Replay a file").click()
    await (await choosing.value).set_files(file)
    await expect(chat.notice).to_contain_text("This file cannot be replayed.")
    await expect(chat.notice).to_contain_text("2")
    await chat.button("Leave the replay").click()
    await expect(chat.page.get_by_role("heading", name="What can I do")).to_be_visible()
