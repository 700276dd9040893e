"""`/metrics`: what is counted, in a form that Prometheus' own parser reads."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.server.metrics import Readings
from adk_stream_protocol.server.probes import Probe
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.telemetry import Meters
from support.stage import Stage, staged, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Return all values by name and label values; fails where Prometheus would."""
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        assert family.type in {"gauge", "counter"}, family.name
        for sample in family.samples:
            key = (sample.name.removeprefix("adk_stream_"), *sample.labels.values())
            assert key not in found, "a series is told once"
            found[key] = sample.value
    return found


async def scraped(stage: Stage) -> dict[tuple[str, ...], float]:
    response = await stage.http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response.text.endswith("\n")
    return samples(response.text)


async def test_a_new_server_shows_what_it_will_count(stage: Stage) -> None:
    found = await scraped(stage)
    assert found[("build_info", version("adk-stream-protocol"))] == 1
    assert found[("pending_approvals",)] == 0
    assert found[("running_turns",)] == found[("open_streams",)] == 0
    assert found[("turns_total", "done")] == found[("turns_total", "failed")] == 0
    assert found[("decisions_total", "approved", "accepted")] == 0
    assert found[("answers_refused_total",)] == 0


async def test_turns_are_counted_by_how_they_end(stage: Stage) -> None:
    await stage.say("c", "hi")
    await stage.say("c", "break")
    await stage.say("d", "hello", path="/stream")
    found = await scraped(stage)
    assert found[("turns_total", "done")] == 2
    assert found[("turns_total", "failed")] == 1
    assert found[("replies_total", "ai-sdk", "complete")] == 2
    assert found[("replies_total", "adk", "complete")] == 1
    assert found[("replies_total", "ai-sdk", "left")] == 0


async def test_held_calls_and_answers_are_counted(stage: Stage) -> None:
    asked = await stage.say("c", "pay both")
    waiting = await scraped(stage)
    first, second = (f"/api/approvals/{approval}" for approval in asked.approvals)
    for url, approved in ((first, True), (first, True), (first, False), (second, False)):
        await stage.http.post(url, json={"approved": approved})
    played = await stage.say("d", "play jazz")
    output = {"type": "tool-change_bgm", "toolCallId": played.calls[0], "output": {}}
    part = {**output, "state": "output-available"}
    message = {"id": played.message_id, "role": "assistant", "parts": [part]}
    await stage.post("/api/chat", {"id": "d", "messages": [message]})
    found = await scraped(stage)

    assert waiting[("pending_approvals",)] == 2
    assert waiting[("calls_held_total", "pay")] == 2
    assert found[("pending_approvals",)] == 0
    assert found[("decisions_total", "approved", "accepted")] == 1
    assert found[("decisions_total", "approved", "repeat")] == 1
    assert found[("decisions_total", "denied", "conflict")] == 1
    assert found[("decisions_total", "denied", "accepted")] == 1
    assert found[("decisions_total", "output", "accepted")] == 1
    assert found[("answers_refused_total",)] == 1


async def test_what_runs_is_shown_while_it_runs(stage: Stage) -> None:
    body = {"id": "c", "messages": [user_message("long")]}
    async with stage.http.stream("POST", "/api/chat", json=body) as response:
        async for line in response.aiter_lines():
            if "text-delta" in line:
                break
        during = await scraped(stage)
    with anyio.fail_after(5):
        while (left := await scraped(stage))[("open_streams",)]:
            pass
    await stage.http.post("/api/chat/c/stop")
    with anyio.fail_after(5):
        while (after := await scraped(stage))[("running_turns",)]:
            pass

    assert (during[("running_turns",)], during[("open_streams",)]) == (1, 1)
    assert left[("replies_total", "ai-sdk", "left")] == 1
    assert left[("running_turns",)] == 1, "a reader that leaves does not end a turn"
    assert after[("turns_total", "stopped")] == 1


async def test_metrics_are_kept_from_other_hosts_and_sites_and_can_be_turned_off() -> None:
    settings = dataclasses.replace(Settings(), allowed_hosts=("127.0.0.1",))
    async with staged(settings=settings) as stage:
        host = await stage.http.get("/metrics", headers={"host": "evil.example"})
        site = await stage.http.get("/metrics", headers={"origin": "https://evil.example"})
    async with staged(settings=Settings.from_environment({"ADK_STREAM_METRICS": "false"})) as stage:
        off = await stage.http.get("/metrics")

    assert (host.status_code, host.json()["error"]["code"]) == (403, "bad_host")
    assert (site.status_code, site.json()["error"]["code"]) == (403, "bad_origin")
    assert (off.status_code, off.json()["error"]["code"]) == (404, "no_metrics")


async def test_label_values_of_any_kind_are_read_back_as_they_were() -> None:
    meters = Meters()
    odd = 'a "tool"\\with\nlines'
    meters.count("calls_held", odd)

    async def unanswered() -> int:
        raise OSError("the database is away")

    pending = Probe(unanswered)
    async with pending.serving():
        text = await Readings(meters, ChatTurns(memory_stores()), lambda: 0, pending).text()
    found = samples(text)
    assert found[("calls_held_total", odd)] == 1
    assert ("pending_approvals",) not in found, "what is not known is not told"
    assert ("running_turns",) in found


async def test_the_guide_lists_every_metric_with_its_labels(stage: Stage) -> None:
    await stage.say("c", "pay 5")
    text = (await stage.http.get("/metrics")).text
    shown = {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    guide = (Path(__file__).parents[2] / "docs/howto/operate.md").read_text("utf-8")
    rows = re.findall(r"^\| `(adk_stream_\w+)` \| ([^|]*)\|", guide, re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == shown
