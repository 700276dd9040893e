"""The lines of the README and of the tutorial, as they stand there."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from support.clients import PAGES, ClientPage, FrontEnd, Open, PageServer
from support.scripted import call

pytestmark = pytest.mark.anyio

SAID = "Pay 50 dollars to Hanako."


@pytest.fixture(
    params=[FrontEnd(page, line) for page in ("readme", "tutorial") for line in ("ai7", "ai6")],
    ids=str,
)
def first_lines(request: pytest.FixtureRequest) -> FrontEnd:
    found: FrontEnd = request.param
    return found


async def ask(client: ClientPage) -> None:
    if client.front_end.page == "readme":
        await client.button("Pay").click()
    else:
        box = client.page.get_by_role("textbox")
        await box.fill(SAID)
        await box.press("Enter")


def text(client: ClientPage, text: str) -> Locator:
    return client.page.get_by_text(text)


async def test_the_first_lines_pay_once_it_is_approved(
    open_page: Open, server: PageServer, first_lines: FrontEnd
) -> None:
    server.stage.model.script = {SAID: [[call("pay", amount=50)], ["It is paid."]]}
    client = await open_page(first_lines)
    await ask(client)
    await client.button("Approve").click()
    await expect(text(client, "It is paid.")).to_be_visible()
    await expect(text(client, 'tool-pay {"amount":50}: output-available')).to_be_visible()
    assert server.stage.payments == [50]
    assert len(client.posts) == 2


async def test_the_first_lines_show_what_failed_and_try_again(
    open_page: Open, server: PageServer, first_lines: FrontEnd
) -> None:
    server.stage.model.script = {SAID: [[RuntimeError("SECRET")]]}
    client = await open_page(first_lines)
    await ask(client)
    await expect(text(client, "The agent could not finish this reply")).to_be_visible()
    server.stage.model.script = {SAID: [["Not today."]]}
    await client.button("Retry").click()
    await expect(text(client, "Not today.")).to_be_visible()
    await expect(client.button("Retry")).to_have_count(0)
    assert len(client.posts) == 2


@pytest.mark.parametrize(("line", "knows"), [("ai7", True), ("ai6", False)])
def test_each_build_has_the_ai_of_its_line_and_no_other(line: str, knows: bool) -> None:
    # A chunk that only ai 7 knows.
    scripts = [path.read_text("utf-8") for path in (PAGES / line / "assets").glob("*.js")]
    assert any("reset-step" in script for script in scripts) == knows
