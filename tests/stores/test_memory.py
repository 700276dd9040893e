from __future__ import annotations

from dataclasses import dataclass

import anyio
import pytest

from adk_stream_protocol.identifiers import ReplyId
from adk_stream_protocol.stores.memory import MemoryWake, memory_stores

# Before it is imported: it is no test module by its name.
pytest.register_assert_rewrite("stores.contract", "stores.contract_waiting")

from stores.contract import *  # noqa: E402, F403  # each of its tests is a test of this store
from stores.contract import KEPT, Backend, words  # noqa: E402
from stores.contract_waiting import *  # noqa: E402, F403  # and these


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    seconds: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.seconds

    async def advance(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def backend() -> Backend:
    clock = Clock()
    return Backend(memory_stores(clock, keep_replies=KEPT), clock.advance)


async def test_nothing_follows_the_end_marker(backend: Backend) -> None:
    log, reply_id = backend.stores.log, ReplyId("reply-1")
    await log.open(reply_id)
    await log.end(reply_id)
    with pytest.raises(AssertionError, match="nothing follows the end marker"):
        await log.append(reply_id, words(1))


async def test_stores_have_a_clock_of_their_own() -> None:
    stores = memory_stores()
    assert await stores.calls.now() > 1_700_000_000


async def test_a_topic_that_nobody_waits_for_any_more_is_forgotten() -> None:
    wake = MemoryWake()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wake.wait, "chat-1", None)
        await wake.wait("chat-1", 0.0)
        assert list(wake._topics) == ["chat-1"]
        tasks.cancel_scope.cancel()
    assert wake._topics == {}
