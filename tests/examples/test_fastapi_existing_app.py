"""The example of an existing app, started and used: its own users and routes, and the agent."""

from __future__ import annotations

import httpx
import pytest

from support.examples import started
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio


async def test_a_person_logs_in_and_pays_with_the_agent() -> None:
    async with (
        started("fastapi-existing-app", r"http://127\.0\.0\.1:\d+", PORT="0") as url,
        httpx.AsyncClient(base_url=url, timeout=20) as ann,
        httpx.AsyncClient(base_url=url, timeout=20) as bob,
    ):
        body = {"id": "c", "messages": [user_message("Send 50 dollars to Hanako")]}
        assert (await ann.get("/payments")).status_code == 401
        assert (await ann.get("/agent/")).status_code == 401
        assert (await ann.post("/agent/api/chat", json=body)).status_code == 403
        for person, name in ((ann, "ann"), (bob, "bob")):
            welcome = await person.post("/login", data={"name": name})
            assert (welcome.status_code, welcome.headers["location"]) == (303, "/agent/")
        page = await ann.get("/agent/")
        asked = Answered.of(await ann.post("/agent/api/chat", json=body))
        assert (await bob.get("/agent/api/chats/c")).status_code == 404
        approve = f"/agent/api/approvals/{asked.approvals[0]}"
        assert (await bob.post(approve, json={"approved": True})).status_code == 404
        assert (await ann.get("/payments")).json() == []
        answer = asked.approving("c", True)
        paid = Answered.of(await ann.post("/agent/api/chat", json=answer))
        payments = (await ann.get("/payments")).json()

    assert "text/html" in page.headers["content-type"]
    assert "Hanako" in paid.text
    assert [(each["amount"], each["recipient"]) for each in payments] == [(50, "Hanako")]
