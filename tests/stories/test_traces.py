"""Our replies beside the recorded ones of the real `streamText`, chunk by chunk.

Left out of the comparison: ids and values, and what ours say in addition (`data-approval`, usage).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adk_stream_protocol import ToolRule
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio

TRACES = Path(__file__).parents[1] / "conformance" / "streamtext-traces.txt"


def traces() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    name = ""
    for line in TRACES.read_text("utf-8").splitlines():
        if line.startswith("## "):
            name = line.removeprefix("## ")
        elif line.startswith("{"):
            found.setdefault(name, []).append(json.loads(line))
    return found


def shape(chunks: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the chunks without their ids and values: type, which call, which fields, why ended."""
    calls: dict[str, int] = {}
    shapes: list[tuple[Any, ...]] = []
    for chunk in chunks:
        if chunk["type"].startswith("data-"):
            continue
        call = calls.setdefault(chunk["toolCallId"], len(calls)) if "toolCallId" in chunk else None
        fields = frozenset(chunk) - {"signature", "messageMetadata"}
        shapes.append((chunk["type"], call, fields, chunk.get("finishReason")))
    return shapes


def per_call(chunks: list[dict[str, Any]]) -> dict[int | None, list[tuple[Any, ...]]]:
    """Return the shapes of each call by itself: parallel calls may interleave either way."""
    found: dict[int | None, list[tuple[Any, ...]]] = {}
    for each in shape(chunks):
        found.setdefault(each[1], []).append(each)
    return found


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


def merged(answered: Answered) -> list[dict[str, Any]]:
    """Return the chunks with neighbouring deltas made one: a model streams as it likes."""
    chunks: list[dict[str, Any]] = []
    for chunk in answered.chunks:
        if chunk["type"] == "text-delta" and chunks and chunks[-1]["type"] == "text-delta":
            continue
        chunks.append(chunk)
    return chunks


@pytest.mark.parametrize(
    ("text", "trace"),
    [
        ("hi", "text"),
        ("add", "server tool + answer"),
        ("fail", "server tool throws"),
        ("play jazz", "client tool"),
        ("pay in turn", "approval request"),
        ("break at once", "model error"),
    ],
)
async def test_a_first_reply_matches_the_recorded_one(stage: Stage, text: str, trace: str) -> None:
    answered = await stage.say("c", text)
    assert shape(merged(answered)) == shape(traces()[trace])


async def test_invalid_tool_input_ends_in_the_same_part(stage: Stage) -> None:
    answered = await stage.say("c", "add badly")
    recorded = traces()["invalid tool input"]
    # ADK takes the call and then refuses it: the input is shown, and its refusal is the output.
    # Where `streamText` says both at once, v6 also sends the output error; the part is the same.
    at = [chunk["type"] for chunk in recorded].index("tool-input-error")
    ours = merged(answered)
    assert shape(ours[:at]) == shape(recorded[:at])
    assert [c["type"] for c in ours[at : at + 2]] == ["tool-input-available", "tool-output-error"]
    assert "mandatory" in ours[at + 1]["errorText"]
    assert shape(ours[at + 2 :]) == shape(recorded[at + 1 :])


async def test_an_approved_continuation_matches(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    answered = await stage.post("/api/chat", asked.approving("c", True))
    assert shape(answered.chunks) == shape(traces()["-> approved"])
    assert answered.message_id == asked.message_id


async def test_a_denied_continuation_matches(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    answered = await stage.post("/api/chat", asked.approving("c", False))
    assert shape(answered.chunks) == shape(traces()["-> denied"])


async def test_a_second_approval_in_a_continuation_matches(stage: Stage) -> None:
    asked = await stage.say("c", "pay in turn")
    answered = await stage.post("/api/chat", asked.approving("c", True))
    assert shape(answered.chunks) == shape(traces()["-> approved, then a second approval"])


@pytest.mark.parametrize(
    ("verdict", "trace"), [(True, "v7 automatic approval"), (False, "v7 automatic denial")]
)
async def test_what_a_policy_decides_matches(verdict: bool, trace: str) -> None:
    async with staged(rules={"pay": ToolRule(decide=lambda _: verdict)}) as stage:
        answered = await stage.say("c", "pay", path="/api/chat?sdk=7")
    assert shape(answered.chunks) == shape(traces()[trace])


async def test_two_approvals_beside_a_free_tool_match_call_by_call(stage: Stage) -> None:
    asked = await stage.say("c", "pay and add")
    # ADK runs the free tool before it asks, and asks for both at once.
    assert per_call(asked.chunks) == per_call(traces()["two approvals + one free tool"])
    answered = await stage.post("/api/chat", asked.approving("c", True, False))
    assert shape(answered.chunks) == shape(traces()["-> c1 yes, c2 no"])


async def test_a_stopped_reply_matches_and_also_ends_what_it_opened(stage: Stage) -> None:
    body = {"id": "c", "messages": [{"id": "u", "role": "user", "content": "long"}]}
    async with stage.http.stream("POST", "/api/chat", json=body) as response:
        lines: list[str] = []
        async for line in response.aiter_lines():
            lines.append(line)
            if '"One. "' in line:
                await stage.http.post("/api/chat/c/stop")
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    ours = [each for each in shape(chunks) if each[0] not in {"text-end", "finish-step"}]
    recorded = [(*each[:2], each[2] - {"reason"}, each[3]) for each in
                shape(traces()["abort mid stream"])]  # fmt: skip
    assert ours == recorded
    assert [chunk["type"] for chunk in chunks][-3:] == ["text-end", "finish-step", "abort"]
