"""Files that go to the agent with a message."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from browser.conftest import Visit
from support.browser import Route

pytestmark = pytest.mark.anyio


def png() -> bytes:
    """Return a picture of 8 x 8 red dots."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    rows = b"".join(b"\0" + b"\xe0\x30\x30" * 8 for _ in range(8))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


async def give(page: Page, event: str, *, name: str, kind: str, body: bytes) -> None:
    """Do to the composer what a paste or a drop of a file does."""
    await page.get_by_role("textbox", name="Message").evaluate(
        """(field, { event, name, kind, body }) => {
            const bytes = Uint8Array.from(atob(body), letter => letter.charCodeAt(0));
            const data = new DataTransfer();
            data.items.add(new File([bytes], name, { type: kind }));
            const init = { bubbles: true, cancelable: true };
            field.dispatchEvent(
                event === 'paste'
                    ? new ClipboardEvent('paste', { ...init, clipboardData: data })
                    : new DragEvent('drop', { ...init, dataTransfer: data }),
            );
        }""",
        {"event": event, "name": name, "kind": kind, "body": base64.b64encode(body).decode()},
    )


async def test_a_chosen_image_is_shown_and_answered(
    visit: Visit, either_route: Route, tmp_path: Path
) -> None:
    picture = tmp_path / "red.png"
    picture.write_bytes(png())
    chat = await visit(either_route)
    async with chat.page.expect_file_chooser() as choosing:
        await chat.button("Attach files").click()
    await (await choosing.value).set_files(picture)
    await expect(chat.page.get_by_role("img", name="red.png")).to_be_visible()
    await chat.say("What is this?")
    await chat.sees("I received your image (image/png,")
    await chat.is_done()
    shown = chat.messages.get_by_role("img", name="red.png")
    await expect(shown).to_have_js_property("naturalWidth", 8)
    await chat.page.reload()
    await expect(shown).to_have_js_property("naturalWidth", 8)


@pytest.mark.parametrize("event", ["paste", "drop"])
async def test_a_pasted_or_dropped_image_is_sent_without_a_word(visit: Visit, event: str) -> None:
    chat = await visit()
    await give(chat.page, event, name="red.png", kind="image/png", body=png())
    await expect(chat.page.get_by_role("img", name="red.png")).to_be_visible()
    await chat.button("Send").click()
    await chat.sees("I received your image (image/png,")
    await expect(chat.messages.get_by_role("img", name="red.png")).to_be_visible()


async def test_a_file_can_be_taken_out_again(visit: Visit) -> None:
    chat = await visit()
    await give(chat.page, "drop", name="red.png", kind="image/png", body=png())
    await chat.button("Remove red.png").click()
    await expect(chat.page.get_by_role("img", name="red.png")).to_have_count(0)
    await expect(chat.button("Send")).to_be_disabled()


async def test_a_kind_of_file_that_is_not_taken_is_refused_by_name(visit: Visit) -> None:
    chat = await visit()
    await give(chat.page, "drop", name="run.sh", kind="text/x-sh", body=b"true")
    await expect(chat.notice).to_contain_text("run.sh is of a kind that the server does not take.")
