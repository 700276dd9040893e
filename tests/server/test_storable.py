"""U+0000, which PostgreSQL cannot keep, is refused before anything is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from adk_stream_protocol import ToolRule
from support.stage import staged, user_message

pytestmark = pytest.mark.anyio

NUL = "a\0b"


@pytest.mark.parametrize(
    "body",
    [
        {"approved": False, "reason": NUL},
        {"approved": True, "decisionId": NUL},
        {"approved": True, "argumentsHash": NUL},
        {"approved": True, "input": {"amount": [{NUL: 1}]}},
    ],
)
async def test_a_decision_that_cannot_be_stored_is_refused(body: Mapping[str, object]) -> None:
    async with staged(rules={"pay": ToolRule(editable=True)}) as stage:
        (pay,) = (await stage.say("c", "pay 5")).approvals
        refused = await stage.http.post(f"/api/approvals/{pay}", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_text")
        assert "U+0000" in refused.json()["error"]["message"]
        assert (await stage.http.get(f"/api/approvals/{pay}")).json()["status"] == "pending"


@pytest.mark.parametrize("path", ["a%00b", "a%00b/trail"])
async def test_an_id_that_no_row_can_have_is_refused(path: str) -> None:
    async with staged() as stage:
        refused = await stage.http.get(f"/api/approvals/{path}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_text")


FILE = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk="}


@pytest.mark.parametrize(
    "message",
    [
        user_message(NUL),
        user_message("hi", NUL),
        {"id": "u1", "role": "user", "parts": [{**FILE, "filename": NUL}]},
    ],
)
async def test_a_message_that_cannot_be_stored_is_refused(message: Mapping[str, object]) -> None:
    async with staged() as stage:
        refused = await stage.post("/api/chat", {"id": "c", "messages": [message]})
        assert (refused.status, refused.error["code"]) == (400, "bad_text")
        assert stage.model.prompts == []


@pytest.mark.parametrize(
    "given",
    [
        {"state": "output-available", "output": {"track": NUL}},
        {"state": "output-error", "errorText": NUL},
    ],
)
async def test_an_output_that_cannot_be_stored_is_refused(given: Mapping[str, Any]) -> None:
    async with staged() as stage:
        asked = await stage.say("c", "play jazz")
        part = {"type": "tool-change_bgm", "toolCallId": asked.calls[0], "input": {}, **given}
        message = {"id": asked.message_id, "role": "assistant", "parts": [part]}
        refused = await stage.post("/api/chat", {"id": "c", "messages": [message]})
        assert (refused.status, refused.error["code"]) == (400, "bad_text")
        result = {"type": "tool-result", "toolCallId": asked.calls[0], "result": [NUL]}
        older = {"role": "user", "content": [result]}
        refused = await stage.post("/api/chat", {"id": "c", "messages": [older]})
        assert (refused.status, refused.error["code"]) == (400, "bad_text")


async def test_what_is_not_stored_may_hold_anything() -> None:
    async with staged() as stage:
        # A tool's own output, as a stock client sends it back with the next message.
        past = {"type": "tool-add", "toolCallId": "x", "state": "output-available", "output": NUL}
        messages = [{"id": "m1", "role": "assistant", "parts": [past]}, user_message("hi")]
        answered = await stage.post("/api/chat", {"id": "c", "messages": messages})
        assert (answered.status, answered.text) == (200, "Hello.")
