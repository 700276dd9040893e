"""An approval that nobody decides in time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import expect

from browser.conftest import Visit
from support.browser import Route
from support.command import Served, served

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def impatient(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("impatient")
    patience = {"ADK_STREAM_APPROVAL_SECONDS": "2"}
    async with served(
        "--database", "memory:", "--delay", "0", cwd=folder, environment=patience
    ) as server:
        yield server


async def test_an_expired_payment_is_shown_as_expired_by_itself(
    visit: Visit, route: Route, impatient: Served
) -> None:
    chat = await visit(route, url=impatient.url)
    await chat.asks("Send 50 dollars to Hanako")
    await chat.sees("the request expired before a decision came")
    await chat.is_done()
    await expect(chat.button("Approve")).to_have_count(0)
    await expect(chat.tool("process_payment", "expired")).to_be_visible()
