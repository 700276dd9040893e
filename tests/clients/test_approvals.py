"""Approvals, in front ends that nobody here wrote."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from support.clients import FrontEnd, Open, PageServer

pytestmark = pytest.mark.anyio


async def test_an_approved_payment_is_made_once(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay")
    await client.sees_states("pay", "approval-requested")
    await client.is_done()
    assert server.stage.payments == []
    await client.button("Approve").click()
    await client.sees("Told.")
    await client.sees_states("pay", "output-available")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [5]
    assert len(client.posts) == 2


async def test_a_denied_payment_is_never_made(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay")
    await client.button("Deny").click()
    await client.sees("Told.")
    await client.sees_states("pay", "output-denied")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == []
    assert len(client.posts) == 2


async def test_two_payments_of_one_step_are_decided_one_by_one_and_sent_together(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay both")
    await client.sees_states("pay", "approval-requested", "approval-requested")
    await client.is_done()
    await client.button("Approve").last.click()
    await client.sees_states("pay", "approval-requested", "approval-responded")
    await client.button("Deny").click()
    await client.sees("Both told.")
    await client.sees_states("pay", "output-denied", "output-available")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [2]
    assert len(client.posts) == 2


async def test_an_approval_that_was_open_before_a_reload_is_given_after_it(
    open_page: Open, front_end: FrontEnd, server: PageServer
) -> None:
    client = await open_page(front_end)
    await client.send("pay")
    await client.sees_states("pay", "approval-requested")
    await client.is_the_same_after_a_reload()
    await client.button("Approve").click()
    await client.sees("Told.")
    await client.sees_states("pay", "output-available")
    await expect(client.message("assistant")).to_have_count(1)
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [5]
    assert len(client.posts) == 2


@pytest.mark.parametrize(
    ("button", "verdict"), [("Approve", "You approved this."), ("Deny", "You rejected this.")]
)
@pytest.mark.parametrize("line", ["ai6", "ai7"])
async def test_a_confirmation_shows_the_verdict_and_is_never_an_empty_box(
    open_page: Open, server: PageServer, line: str, button: str, verdict: str
) -> None:
    client = await open_page(FrontEnd("elements", line))
    box = client.tool("pay").get_by_role("status")
    await client.send("pay late")
    await expect(box).to_contain_text("May it?")
    await client.button(button).click()
    await expect(box).to_have_text(verdict)
    await client.sees_states("pay", "output-available" if button == "Approve" else "output-denied")
    await client.reload()
    server.stage.more.set()
    await client.sees("Late told.")
    await client.is_done()
    # In a replay ai 6 cannot be told a verdict: there is no box then.
    await expect(box).to_have_text([verdict] if line == "ai7" else [])
    await client.reload()
    await expect(box).to_have_text(verdict)
