"""A model that is read ahead ends as if nobody had."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from google.adk.models.llm_response import LlmResponse

from adk_stream_protocol.engine.reading_ahead import Ahead

pytestmark = pytest.mark.anyio

PIECE = LlmResponse(partial=True)
OTHER = LlmResponse(partial=False)


@asynccontextmanager
async def reading(
    responses: AsyncGenerator[LlmResponse, None],
) -> AsyncIterator[Ahead[str]]:
    async with anyio.create_task_group() as tasks:
        ahead = Ahead(responses, lambda response: "piece" if response.partial else None)
        tasks.start_soon(ahead.read)
        try:
            yield ahead
        finally:
            await ahead.close()


async def test_a_model_that_is_cancelled_by_itself_does_not_look_done() -> None:
    async def given_up() -> AsyncGenerator[LlmResponse, None]:
        yield PIECE
        raise asyncio.CancelledError

    async with reading(given_up()) as ahead:
        assert await ahead.has_more()
        ahead.ready.clear()
        with pytest.raises(asyncio.CancelledError):
            await ahead.has_more()


async def test_a_model_that_talks_on_when_cancelled_is_left() -> None:
    async def stubborn() -> AsyncGenerator[LlmResponse, None]:
        yield PIECE
        with contextlib.suppress(asyncio.CancelledError):
            await anyio.sleep_forever()
        # Nothing to join: whoever reads ahead would wait until it is taken.
        yield OTHER

    with anyio.move_on_after(2) as patience:
        async with reading(stubborn()) as ahead:
            assert await ahead.has_more()
            await anyio.wait_all_tasks_blocked()
    assert not patience.cancel_called


async def test_a_model_ends_before_a_reader_that_is_cancelled() -> None:
    steps: list[str] = []

    async def endless() -> AsyncGenerator[LlmResponse, None]:
        try:
            yield PIECE
            await anyio.sleep_forever()
        finally:
            # A connection takes a moment to close.
            for _ in range(3):
                await anyio.lowlevel.cancel_shielded_checkpoint()
            steps.append("model ended")

    async with anyio.create_task_group() as tasks:
        ahead = Ahead(endless(), lambda _: "piece")
        tasks.start_soon(ahead.read)
        with anyio.CancelScope() as scope:
            try:
                assert await ahead.has_more()
                ahead.ready.clear()
                scope.cancel()
                await ahead.has_more()
            finally:
                await ahead.close()
        steps.append("reader ended")
    assert steps == ["model ended", "reader ended"]
