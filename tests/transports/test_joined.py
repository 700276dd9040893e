"""What is ready is sent together: pieces of text that wait in the log come as one."""

from __future__ import annotations

import pytest

from support.socket import chunks_of, opened
from support.stage import Answered, staged

pytestmark = pytest.mark.anyio


async def test_a_reply_that_is_read_later_has_its_text_in_one_piece_on_every_route() -> None:
    async with staged() as stage, opened(stage.url) as socket:
        await stage.say("c", "hi")
        streamed = Answered.of(await stage.http.get("/api/chat/c/stream"))
        await socket.resume("r1", "c")
        framed = Answered(200, chunks_of(await socket.all("r1")))
    for read in (streamed, framed):
        assert [chunk["delta"] for chunk in read.only("text-delta")] == ["Hello."]
        assert read.types[-3:] == ["text-end", "finish-step", "finish"]
