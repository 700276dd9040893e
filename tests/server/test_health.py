"""Whether requests should be sent here: the lifespan, the drain, and stores that answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents.llm_agent import LlmAgent

from adk_stream_protocol import Settings, create_app
from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.ports import Stores
from adk_stream_protocol.server.health import health_routes
from adk_stream_protocol.server.probes import Probe
from adk_stream_protocol.server.wiring import turns_of
from adk_stream_protocol.stores.sql import postgres_stores
from support.postgres import postgres_server

pytestmark = pytest.mark.anyio


async def test_a_server_whose_lifespan_does_not_run_is_alive_and_not_ready() -> None:
    app = create_app(LlmAgent(name="idle"), settings=Settings())
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        alive, ready = await http.get("/healthz"), await http.get("/readyz")
        async with app.router.lifespan_context(app):
            started = await http.get("/readyz")
            turns_of(app).drain.begin()
            draining = await http.get("/readyz")
        ended = await http.get("/readyz")

    not_ready = {"status": "not ready", "part": "lifespan"}
    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (503, not_ready)
    assert (started.status_code, started.json()) == (200, {"status": "ready"})
    assert (draining.status_code, draining.json()) == (503, {"status": "draining"})
    assert (ended.status_code, ended.json()) == (503, not_ready)


async def test_a_server_is_ready_only_while_its_database_answers() -> None:
    with postgres_server() as postgres:
        async with asking(postgres_stores(postgres.url())) as http:
            before = await http.get("/readyz")
            postgres.stop()
            away = await http.get("/readyz")
            alive = await http.get("/healthz")
            postgres.start()
            after = await http.get("/readyz")

    assert (before.status_code, before.json()) == (200, {"status": "ready"})
    assert (away.status_code, away.json()) == (503, {"status": "not ready", "part": "stores"})
    assert alive.status_code == 200
    assert after.status_code == 200


@asynccontextmanager
async def asking(stores: Stores) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the health of stores, and nothing else."""

    async def nothing(*_: object) -> None:
        return None

    turns, probe = ChatTurns(stores), Probe(stores.calls.now)
    app = FastAPI()
    app.include_router(health_routes(turns, probe))
    transport = httpx.ASGITransport(app)
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://test") as http,
        probe.serving(),
        turns.serving(nothing, nothing),
    ):
        yield http
    await stores.close()


async def test_who_asks_does_not_wait_for_a_question_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adk_stream_protocol.server.probes._PATIENCE", 0.05)
    asked, answered = 0, anyio.Event()

    async def ask() -> str:
        nonlocal asked
        asked += 1
        with anyio.CancelScope(shield=True):
            await answered.wait()
        return "yes"

    probe = Probe(ask)
    assert await probe.answer() is None
    async with probe.serving():
        with anyio.fail_after(5):
            assert [await probe.answer(), await probe.answer()] == [None, None]
            assert asked == 1, "the question is asked once, however many wait for its answer"
            answered.set()
            assert await probe.answer() == "yes"
            assert await probe.answer() == "yes"
            assert asked == 2


async def test_a_question_that_fails_has_no_answer_and_can_be_asked_again() -> None:
    answers = iter(["yes"])
    failures = [RuntimeError("away")]

    async def ask() -> str:
        if failures:
            raise failures.pop()
        return next(answers)

    probe = Probe(ask)
    async with probe.serving():
        assert await probe.answer() is None
        assert await probe.answer() == "yes"
