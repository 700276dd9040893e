"""Who decided what, when, from where, with which arguments; and calls of unknown end."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from adk_stream_protocol import ApprovalStep, Settings, ToolRule
from adk_stream_protocol.stores.sql import sqlite_stores
from adk_stream_protocol.wire.values import digest
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio

BOSS = ToolRule(steps=(ApprovalStep("own"), ApprovalStep("boss", by=("bob",))))


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    sql = request.param == "sqlite"
    stores = sqlite_stores(str(tmp_path / "stores.db")) if sql else None
    settings = dataclasses.replace(Settings(), tool_seconds=1.0)
    async with staged(rules={"pay": BOSS}, stores=stores, settings=settings) as stage:
        yield stage


async def told(stage: Stage, text: str) -> None:
    with anyio.fail_after(10):
        while text not in Answered.of(await stage.http.get("/api/chat/c/stream")).text:
            await anyio.lowlevel.checkpoint()


async def lines(stage: Stage, user: str = "alice", query: str = "") -> list[dict[str, Any]]:
    answer = await stage.http.get(f"/api/audit{query}", headers={"x-user": user})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


async def trail(stage: Stage, approval_id: str) -> list[dict[str, Any]]:
    answer = await stage.http.get(f"/api/approvals/{approval_id}/trail")
    assert answer.json()["id"] == approval_id
    found: list[dict[str, Any]] = answer.json()["trail"]
    return found


async def test_the_trail_tells_each_step_from_asking_to_the_end(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    (pay,) = asked.approvals
    await stage.post("/api/chat", asked.approving("c", True))
    await stage.http.post(
        f"/api/approvals/{pay}",
        json={"approved": True, "reason": "all right", "decisionId": "inbox-1"},
        headers={"x-user": "bob"},
    )
    await told(stage, "Result told.")

    entries = await trail(stage, pay)
    assert [(entry["event"], entry.get("by"), entry.get("via")) for entry in entries[:3]] == [
        ("open", "alice", None),
        ("step", "alice", "chat 127.0.0.1"),
        ("approve", "bob", "api 127.0.0.1"),
    ]
    assert [entry["event"] for entry in entries[3:]] == ["claim", "finish"]
    assert [entry.get("step") for entry in entries[:3]] == [None, 1, 2]
    assert (entries[2]["reason"], entries[2]["decisionId"]) == ("all right", "inbox-1")
    assert {entry["argumentsHash"] for entry in entries} == {digest({"amount": 5})}
    assert [entry["at"] for entry in entries] == sorted(entry["at"] for entry in entries)
    assert await lines(stage) == entries


async def test_a_trail_is_for_those_who_may_see_the_call(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    await stage.say("other", "book 3")
    assert [line["toolName"] for line in await lines(stage)] == ["pay", "book"]
    assert [line["toolName"] for line in await lines(stage, "bob")] == ["pay"]
    assert await lines(stage, "mallory") == []
    foreign = await stage.http.get(f"/api/approvals/{pay}/trail", headers={"x-user": "mallory"})
    assert foreign.status_code == 404


async def test_an_export_may_begin_at_a_moment_and_tell_the_arguments(stage: Stage) -> None:
    await stage.say("c", "pay 5")
    assert await lines(stage, query="?since=2999-01-01") == []
    (line,) = await lines(stage, query="?since=2026-01-01T00:00:00%2B09:00&arguments=true")
    assert line["input"] == {"amount": 5}
    bad = await stage.http.get("/api/audit?since=soon")
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "bad_since")


async def test_all_pages_are_exported() -> None:
    async with staged(may_decide=lambda user, _call: user == "boss") as stage:
        for number in range(205):
            await stage.say(f"c{number}", "pay 5", **{"x-user": f"user-{number // 15}"})
        exported = await lines(stage, "boss")
        own = await lines(stage, "user-0")
    assert len({line["approvalId"] for line in exported}) == 205
    assert len(own) == 15


async def lost(stage: Stage) -> str:
    """Return a call of which nobody knows how it ended."""
    asked = await stage.say("c", "pay slowly")
    answered = await stage.post("/api/chat", asked.approving("c", True))
    assert answered.types[-1] == "abort"
    stage.tool_may_end.set()
    return asked.approvals[0]


async def test_a_person_says_how_a_call_ended(stage: Stage) -> None:
    pay = await lost(stage)
    path = f"/api/approvals/{pay}/resolve"
    body = {"outcome": "done", "result": {"paid": 9}, "reason": "seen at the bank"}
    resolved = await stage.http.post(path, json=body)
    again = await stage.http.post(path, json=body)
    other = await stage.http.post(path, json={"outcome": "failed"})

    assert (resolved.status_code, again.status_code, other.status_code) == (200, 200, 409)
    for answer in (resolved, again, other):
        assert answer.json()["status"] == "done"
        assert answer.json()["resolved"]["by"] == "alice"
        assert answer.json()["resolved"]["reason"] == "seen at the bank"
    assert [entry["event"] for entry in await trail(stage, pay)][-2:] == ["lapse", "resolve_done"]
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    (card,) = [part for part in messages[1]["parts"] if part["type"] == "data-approval"]
    assert (card["data"]["status"], card["data"]["resolved"]["by"]) == ("done", "alice")


async def test_a_call_that_did_not_take_effect_is_failed(stage: Stage) -> None:
    pay = await lost(stage)
    resolved = await stage.http.post(f"/api/approvals/{pay}/resolve", json={"outcome": "failed"})
    assert (resolved.status_code, resolved.json()["status"]) == (200, "failed")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "bad_outcome"),
        ({"outcome": "unknown"}, "bad_outcome"),
        ({"outcome": "failed", "result": 1}, "bad_outcome"),
        ({"outcome": "done", "reason": 5}, "bad_reason"),
    ],
)
async def test_a_resolution_says_how_it_ended(body: dict[str, object], code: str) -> None:
    async with staged() as stage:
        (pay,) = (await stage.say("c", "pay 5")).approvals
        answer = await stage.http.post(f"/api/approvals/{pay}/resolve", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_only_a_call_of_unknown_end_is_resolved_and_only_by_who_may(stage: Stage) -> None:
    (pay,) = (await stage.say("c", "pay 5")).approvals
    path, body = f"/api/approvals/{pay}/resolve", {"outcome": "done"}
    pending = await stage.http.post(path, json=body)
    foreign = await stage.http.post(path, json=body, headers={"x-user": "mallory"})
    assert (pending.status_code, pending.json()["status"]) == (409, "pending")
    assert foreign.status_code == 404


async def test_where_the_app_says_who_decides_the_owner_does_not_resolve() -> None:
    settings = dataclasses.replace(Settings(), tool_seconds=0.2)
    async with staged(settings=settings, may_decide=lambda user, _: user == "bob") as stage:
        asked = await stage.say("c", "pay slowly")
        path = f"/api/approvals/{asked.approvals[0]}"
        await stage.http.post(path, json={"approved": True}, headers={"x-user": "bob"})
        await stage.http.get("/api/chat/c/stream")
        own = await stage.http.post(f"{path}/resolve", json={"outcome": "done"})
        bobs = await stage.http.post(
            f"{path}/resolve", json={"outcome": "done"}, headers={"x-user": "bob"}
        )
        stage.tool_may_end.set()
    assert (own.status_code, own.json()["error"]["code"]) == (403, "not_yours")
    assert (bobs.status_code, bobs.json()["status"]) == (200, "done")
