"""Live chats that wait for an approval: the memory each takes, and what a decision then takes."""

from __future__ import annotations

import dataclasses
import time
from contextlib import ExitStack
from typing import Final

from adk_stream_protocol.engine.conversation import Conversations
from adk_stream_protocol.identifiers import ApprovalId, ChatId, UserId
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.translation.instructions import Decision
from adk_stream_protocol.wire.chunks import ToolOutputAvailableChunk
from adk_stream_protocol.wire.entries import CallHeld
from benchmarks.live_model import live_agent
from benchmarks.memory import resident
from benchmarks.page import figure, table
from benchmarks.rounds import Benchmark, Results, Sample, percentile
from benchmarks.served import opened, served
from benchmarks.setting import Setting
from benchmarks.talkers import whole, words

__all__ = ["LIVE_WAITING"]

_NAMES: Final = {
    "memory-inside": "memory, the run goes on",
    "memory-ended": "memory, the run has ended",
    "sqlite-inside": "SQLite, the run goes on",
    "sqlite-ended": "SQLite, the run has ended",
}
_SETTINGS: Final = dataclasses.replace(Settings(), live_hold_seconds=3600.0)


class _Waiting:
    """Chats of as many users, each with a call that waits."""

    def __init__(self, conversations: Conversations, *, inside: bool) -> None:
        self._conversations = conversations
        self.inside = inside
        """Whether someone has the chats open, and so their runs go on."""
        self._open = ExitStack()
        self._held: list[tuple[UserId, ChatId, ApprovalId]] = []

    async def hold(self, count: int) -> None:
        """Ask for as many payments, one after another."""
        for number in range(len(self._held), len(self._held) + count):
            chat, user = ChatId(f"chat-{number:06}"), UserId(f"user-{number:06}")
            if self.inside:
                self._open.enter_context(self._conversations.lives.present(chat))
            reply = await self._conversations.submit(words(chat, "pay"), user, mode="live")
            [call] = [each for each in await whole(reply) if isinstance(each, CallHeld)]
            self._held.append((user, chat, ApprovalId(call.approval_id)))
            await self._rest(chat)

    async def decide(self, number: int) -> tuple[float, float]:
        """Approve one; return the seconds until that is decided, and until the reply has ended."""
        user, chat, approval_id = self._held[number]
        began = time.perf_counter()
        ruling, _ = await self._conversations.decide(
            Decision(approval_id, approved=True), user, via="bench"
        )
        decided = time.perf_counter()
        assert ruling == "accepted"
        reply = await self._conversations.resume(chat, user)
        assert reply is not None
        told = await whole(reply)
        assert any(isinstance(each, ToolOutputAvailableChunk) for each in told), told
        answered = time.perf_counter()
        await self._rest(chat)
        return decided - began, answered - began

    async def _rest(self, chat: ChatId) -> None:
        if not self.inside:
            # As it does by itself when nobody has had the chat open for a while.
            await self._conversations.lives.end(chat)

    def leave(self) -> None:
        """Close all chats."""
        self._open.close()


async def _measure(variant: str, setting: Setting) -> Sample:
    count, times = setting.sized(500, 3), setting.sized(100, 2)
    async with (
        opened(variant, setting) as database,
        served(live_agent(), database, _SETTINGS) as conversations,
    ):
        waiting = _Waiting(conversations, inside=variant.endswith("inside"))
        # What is compiled and cached is not what a chat takes; pools and caches fill slowly.
        warm_up = setting.sized(250, 2)
        await waiting.hold(warm_up)
        for number in range(warm_up // 10 + 1):
            await waiting.decide(number)
        before = resident()
        await waiting.hold(count)
        each = (resident() - before) / count
        running = conversations.lives.count()
        assert running >= count if waiting.inside else not running
        took = [await waiting.decide(warm_up + number) for number in range(times)]
        waiting.leave()
    decided, answered = zip(*took, strict=True)
    return {
        "memory": each,
        "decided p50": percentile(decided, 0.5),
        "decided p99": percentile(decided, 0.99),
        "answered p50": percentile(answered, 0.5),
        "answered p99": percentile(answered, 0.99),
    }


def _tell(results: Results) -> str:
    head = ["", "KiB each", "decided, p50 ms", "p99 ms", "answered, p50 ms", "p99 ms"]
    times = [f"{what} {share}" for what in ("decided", "answered") for share in ("p50", "p99")]
    return table(
        head,
        [
            [
                _NAMES[variant],
                figure(found["memory"], 1 / 1024),
                *(figure(found[name], 1e3) for name in times),
            ]
            for variant, found in results.items()
        ],
    )


LIVE_WAITING: Final = Benchmark("live-waiting", tuple(_NAMES), _measure, _tell)
