"""Spans: which there are, what they say, and whose children they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import get_args

import anyio
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from opentelemetry import _logs, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adk_stream_protocol import Settings, create_app
from adk_stream_protocol.server.wiring import turns_of
from adk_stream_protocol.telemetry import SpanName, begin_span, is_heard, span, span_ids
from support.scripted import ScriptedModel, call
from support.stage import staged, user_message

pytestmark = pytest.mark.anyio

_exporter = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def _provider() -> Iterator[None]:
    # A process has one for its whole life; other tests do not look at it.
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(_exporter))
    trace.set_tracer_provider(provider)
    yield
    provider.shutdown()


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    _exporter.clear()
    yield _exporter
    _exporter.clear()


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [each for each in exporter.get_finished_spans() if each.name == name]


def only(exporter: InMemorySpanExporter, name: str) -> ReadableSpan:
    (found,) = named(exporter, name)
    return found


def said(found: ReadableSpan) -> dict[str, object]:
    return {
        name.removeprefix("adk_stream."): value for name, value in (found.attributes or {}).items()
    }


def test_a_failure_is_told_by_its_type_and_never_by_its_message(
    exporter: InMemorySpanExporter,
) -> None:
    def fail() -> None:
        with span("adk_stream.hold", call="call-1") as begun:
            begun.note(outcome="bad")
            int("4711 secrets")

    with pytest.raises(ValueError, match="4711"):
        fail()
    found = only(exporter, "adk_stream.hold")
    assert said(found) == {"call": "call-1", "outcome": "bad"}
    assert (found.status.status_code, found.status.description) == (
        trace.StatusCode.ERROR,
        "ValueError",
    )
    assert found.events == ()


def test_a_block_is_the_parent_of_what_begins_inside_it(exporter: InMemorySpanExporter) -> None:
    assert span_ids() == {}
    with span("adk_stream.turn"):
        ids = span_ids()
        inner = begin_span("adk_stream.tool", tool="pay")
    inner.end()
    turn, tool = only(exporter, "adk_stream.turn"), only(exporter, "adk_stream.tool")
    assert tool.parent is not None
    assert turn.context is not None
    assert tool.parent.span_id == turn.context.span_id
    assert ids == {
        "trace_id": trace.format_trace_id(turn.context.trace_id),
        "span_id": trace.format_span_id(turn.context.span_id),
    }


async def test_a_turn_is_a_span_and_adks_spans_are_inside_it(
    exporter: InMemorySpanExporter,
) -> None:
    async with staged() as stage:
        await stage.say("c", "add")
        await stage.say("c", "break")
    done, failed = named(exporter, "adk_stream.turn")
    assert (said(done)["chat"], said(done)["outcome"]) == ("c", "done")
    assert str(said(done)["reply"]).startswith("reply-")
    assert said(failed)["outcome"] == "failed"
    assert done.context is not None
    inside = [
        each
        for each in exporter.get_finished_spans()
        if each.context is not None and each.context.trace_id == done.context.trace_id
    ]
    adks = {each.name for each in inside if not each.name.startswith("adk_stream.")}
    assert any(name.startswith("invoke_agent") for name in adks), adks
    assert any(name.startswith("execute_tool") for name in adks), adks


async def test_holding_deciding_and_running_a_call_are_spans(
    exporter: InMemorySpanExporter,
) -> None:
    async with staged() as stage:
        asked = await stage.say("c", "pay 5")
        await stage.post("/api/chat", asked.approving("c", True))
        url = f"/api/approvals/{asked.approvals[0]}"
        await stage.http.post(url, json={"approved": False})
    guide = (Path(__file__).parents[2] / "docs/howto/operate.md").read_text("utf-8")
    for name in get_args(SpanName):
        row = re.search(rf"^\| `{re.escape(name)}` \|.*\| (.*) \|$", guide, re.MULTILINE)
        assert row is not None, name
        assert set(said(named(exporter, name)[0])) <= set(re.findall(r"`(\w+)`", row[1])), name
    ids = {"chat": "c", "call": asked.calls[0], "tool": "pay"}
    decided = ids | {"approval": asked.approvals[0]}
    assert said(only(exporter, "adk_stream.hold")) == decided
    first, second = (said(each) for each in named(exporter, "adk_stream.decision"))
    assert first == decided | {"verdict": "approved", "ruling": "accepted"}
    assert second == decided | {"verdict": "denied", "ruling": "conflict"}
    assert said(only(exporter, "adk_stream.tool")) == ids | {"outcome": "done"}


async def test_a_tool_that_raises_or_is_left_running_ends_its_span(
    exporter: InMemorySpanExporter,
) -> None:
    running = anyio.Event()

    async def hang() -> dict[str, int]:
        """Never return."""
        running.set()
        await anyio.sleep_forever()
        return {}

    model = ScriptedModel(script={"hang": [[call("hang")]]})
    app = create_app(LlmAgent(name="hangs", model=model, tools=[hang]), settings=Settings())
    transport = httpx.ASGITransport(app)
    async with (
        staged() as stage,
        httpx.AsyncClient(transport=transport, base_url="http://test") as http,
        anyio.create_task_group() as tasks,
    ):
        await stage.say("c", "fail")
        body = {"id": "d", "messages": [user_message("hang")]}
        with anyio.fail_after(10):
            async with app.router.lifespan_context(app):
                tasks.start_soon(partial(http.post, "/api/chat", json=body))
                await running.wait()
                turns_of(app).drain.hurry()
        tasks.cancel_scope.cancel()
    tools = [said(each) for each in named(exporter, "adk_stream.tool")]
    turns = [said(each) for each in named(exporter, "adk_stream.turn")]
    assert {each["tool"]: each["outcome"] for each in tools} == {
        "explode": "failed",
        "hang": "unknown",
    }
    assert {each["chat"]: each["outcome"] for each in turns} == {"c": "done", "d": "handed_over"}


async def test_no_text_is_in_a_span_of_ours(exporter: InMemorySpanExporter) -> None:
    async with staged() as stage:
        await stage.say("c", "break")
        await stage.say("c", "fail")
        asked = await stage.say("c", "pay badly")
        await stage.post("/api/chat", asked.approving("c", True, reason="SECRET reason"))
    for each in exporter.get_finished_spans():
        if each.name.startswith("adk_stream."):
            assert "SECRET" not in each.to_json()


def test_what_is_told_in_a_span_that_is_recorded_is_heard() -> None:
    assert not is_heard()
    with span("adk_stream.turn"):
        assert is_heard()
    with trace.use_span(trace.INVALID_SPAN):
        assert not is_heard()


def test_whoever_collects_logs_hears_too() -> None:
    collecting = _logs.get_logger_provider()
    assert not is_heard()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_logs, "get_logger_provider", LoggerProvider)
        assert is_heard()
    assert _logs.get_logger_provider() is collecting
