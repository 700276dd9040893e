from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from adk_stream_protocol.bell import Bell

pytestmark = pytest.mark.anyio


async def test_everyone_who_waits_is_woken() -> None:
    bell, woken = Bell(), 0

    async def wait() -> None:
        nonlocal woken
        await bell.wait()
        woken += 1

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            tasks.start_soon(wait)
            await checkpoint()
            bell.ring()
    assert woken == 2


async def test_a_ring_that_nobody_waited_for_is_not_kept() -> None:
    bell = Bell()
    bell.ring()
    with anyio.move_on_after(0.01) as waiting:
        await bell.wait()
    assert waiting.cancelled_caught


async def test_who_gave_up_waiting_takes_no_ring_from_others() -> None:
    bell = Bell()
    with anyio.move_on_after(0.01):
        await bell.wait()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bell.wait)
            await checkpoint()
            bell.ring()
