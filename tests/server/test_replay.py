"""A recording, served back: every route, in order, at its pace, until it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx
import pytest

from adk_stream_protocol.playback import Playlist
from adk_stream_protocol.server.player import Pace
from adk_stream_protocol.server.replay import create_replay
from adk_stream_protocol.server.settings import Settings
from support.envelope import DONE, enveloped
from support.recordings import line, playlist, reply, said, text_chunks
from support.serving import serving
from support.socket import chunks_of, opened
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio

CONFIRM = "adk_request_confirmation"


def two_replies() -> Playlist:
    return playlist(
        said("Hi", "1"),
        *reply(text_chunks("Hello."), "1"),
        said("More", "2", "u2"),
        *reply(text_chunks("And more.", "m2"), "2"),
    )


def confirmed() -> Playlist:
    asked: list[dict[str, Any]] = [
        {"type": "start", "messageId": "m1"},
        {"type": "tool-input-start", "toolCallId": "a", "toolName": CONFIRM},
        {"type": "tool-input-available", "toolCallId": "a", "toolName": CONFIRM, "input": {}},
        {"type": "finish", "finishReason": "tool-calls"},
    ]
    return playlist(
        said("Pay", "1"),
        *reply(asked, "1"),
        line("tool_result", "in", request="2", data={"toolCallId": "a"}),
        *reply(text_chunks("Paid."), "2"),
    )


@asynccontextmanager
async def replayed(
    found: Playlist, pace: Pace = "at-once", settings: Settings | None = None
) -> AsyncIterator[tuple[str, httpx.AsyncClient]]:
    app = create_replay(found, pace=pace, settings=settings or Settings())
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=20) as http:
        yield url, http


async def say(http: httpx.AsyncClient, chat: str | None = "c", path: str = "/api/chat") -> Answered:
    body: dict[str, Any] = {"messages": [user_message("anything")]}
    if chat is not None:
        body["id"] = chat
    return Answered.of(await http.post(path, json=body))


@pytest.mark.parametrize("chat", ["c", "another"])
async def test_each_request_gets_the_next_reply_until_it_is_over(chat: str) -> None:
    async with replayed(two_replies()) as (_, http):
        told = [await say(http, chat) for _ in range(3)]
    assert [each.text for each in told] == ["Hello.", "And more.", ""]
    assert told[0].chunks == text_chunks("Hello.")
    assert told[2].chunks == [
        {
            "type": "error",
            "errorText": "The recording is over: replies that it has for this chat: 2.",
        }
    ]
    assert told[2].raw.endswith("data: [DONE]\n\n")


async def test_a_reply_is_replayed_as_text_alone() -> None:
    async with replayed(two_replies()) as (_, http):
        body = {"id": "c", "prompt": "anything"}
        told = [await http.post("/api/chat?stream=text", json=body) for _ in range(3)]
    assert [each.text for each in told[:2]] == ["Hello.", "And more."]
    assert told[2].status_code == 500
    assert told[2].text == "The recording is over: replies that it has for this chat: 2."


async def test_chats_are_told_apart_and_unnamed_ones_begin_anew() -> None:
    async with replayed(two_replies()) as (_, http):
        assert (await say(http, "one")).text == "Hello."
        assert (await say(http, "two")).text == "Hello."
        assert (await say(http, None)).text == "Hello."
        named = await http.post("/api/chat?chat=one", json={"messages": [user_message("x")]})
        assert Answered.of(named).text == "And more."


async def test_the_page_and_the_history_are_served() -> None:
    async with replayed(two_replies()) as (_, http):
        page = await http.get("/")
        chats = (await http.get("/api/chats")).json()["chats"]
        chat = (await http.get("/api/chats/c")).json()
        unknown = await http.get("/api/chats/none")
        approvals = await http.get("/api/approvals?status=pending")
        ready = await http.get("/readyz")
        healthy = await http.get("/healthz")
        stopped = await http.post("/api/chat/c/stop")
    assert "text/html" in page.headers["content-type"]
    assert [(each["id"], each["title"]) for each in chats] == [("c", "Hi")]
    assert chat["createdAt"] == "2026-11-16T09:00:00.000Z"
    assert [message["parts"][0]["text"] for message in chat["messages"]] == [
        "Hi",
        "Hello.",
        "More",
        "And more.",
    ]
    assert unknown.status_code == 404
    assert approvals.json() == {"approvals": []}
    assert stopped.json() == {"stopped": False}
    assert ready.status_code == healthy.status_code == 200


async def test_a_refusal_comes_back_as_an_error() -> None:
    found = playlist(said("Hi", "1"), line("error", request="1", errorText="Busy."))
    async with replayed(found) as (url, http), opened(url) as socket:
        assert (await say(http)).chunks == [{"type": "error", "errorText": "Busy."}]
        await socket.say("1", "other", "Hi")
        frames = await socket.all("1")
    assert [frame["type"] for frame in frames] == ["start", "error"]
    assert frames[1]["errorText"] == "Busy."


async def test_a_refusal_comes_back_to_an_envelope_client_beside_the_stream() -> None:
    found = playlist(said("Hi", "1"), line("error", request="1", errorText="Busy."))
    async with replayed(found) as (url, _), enveloped(url) as envelope:
        await envelope.say("Hi")
        assert await envelope.refused() == "Busy."


async def test_a_reply_of_the_other_profile_is_given_to_who_asks_for_it() -> None:
    async with replayed(confirmed()) as (url, http):
        told = await say(http, path="/api/chat?profile=adk")
        assert told.calls == ["a"]
        async with enveloped(url, profile="ai-sdk") as envelope:
            await envelope.say("Hi", chat="other")
            assert "is of the profile adk" in await envelope.refused()


async def test_a_reply_of_the_other_profile_is_refused_with_the_way_to_go() -> None:
    async with replayed(confirmed()) as (url, http):
        refused = await say(http)
        async with opened(url) as socket:
            await socket.say("1", "c", "Hi")
            frame = (await socket.all("1"))[-1]
        served = await say(http, path="/stream")
    assert (refused.status, refused.error["code"]) == (409, "other_profile")
    assert "Ask on /stream and /live." in refused.error["message"]
    assert frame["errorText"] == refused.error["message"]
    assert served.only("tool-input-available")[0]["toolName"] == CONFIRM


@pytest.mark.parametrize("route", ["ws", "live"])
async def test_sockets_serve_several_requests_at_once(route: str) -> None:
    async with replayed(two_replies()) as (url, _), opened(url, route=route) as socket:
        await socket.say("1", "one", "Hi")
        await socket.say("2", "two", "Hi")
        await socket.resume("3", "one")
        await socket.write("no frame")
        assert chunks_of(await socket.all("1")) == text_chunks("Hello.")
        assert chunks_of(await socket.all("2")) == text_chunks("Hello.")
        assert [frame["type"] for frame in await socket.all("3")] == ["no-active"]
        assert (await socket.next("-"))["type"] == "error"


async def test_an_envelope_client_gets_one_end_for_a_turn_that_waits() -> None:
    async with replayed(confirmed()) as (url, _), enveloped(url) as envelope:
        await envelope.write("ping")
        assert (await envelope.next())["type"] == "pong"
        await envelope.say("Pay")
        asked = await envelope.reply()
        await envelope.confirm(asked.calls[-1], True)
        done = await envelope.turn()
        await envelope.say("More")
        over = await envelope.next()
        await envelope.put("no frame")
        assert await envelope.next() == DONE
        bad = await envelope.next()
    assert done.text == "Paid."
    assert over["errorText"] == "The recording is over: replies that it has for this chat: 2."
    assert bad["type"] == "refused"


async def test_a_reply_takes_the_time_it_took_and_can_be_resumed_meanwhile() -> None:
    chunks = text_chunks("Hello.")
    found = playlist(
        said("Hi", "1"),
        *reply(chunks[:3], "1", ended=False),
        *reply(chunks[3:], "1", at=600.0)[1:],
    )
    async with replayed(found, pace="recorded") as (url, http), opened(url) as socket:
        await socket.say("1", "c", "Hi")
        with anyio.fail_after(5):
            first = [await socket.next("1") for _ in range(4)]
        async with http.stream("GET", "/api/chat/c/stream") as resumed:
            assert resumed.status_code == 200
            lines = resumed.aiter_lines()
            with anyio.fail_after(5):
                while "Hello." not in await anext(lines):
                    pass
        await socket.abort("1")
        await socket.say("2", "another", "Hi")
        assert (await socket.next("2"))["type"] == "start"
    assert [frame["chunk"]["type"] for frame in first[1:]] == ["start", "text-start", "text-delta"]


async def test_what_was_only_resumed_is_given_to_who_resumes() -> None:
    found = playlist(
        said("Hi", "1"),
        *reply(text_chunks("Hello."), "1"),
        line("resume", "in", request="2"),
        *reply(text_chunks("By the way.", "m2"), "2"),
    )
    async with replayed(found) as (_, http):
        before = await http.get("/api/chat/c/stream")
        await say(http)
        resumed = Answered.of(await http.get("/api/chat/c/stream"))
        after = await http.get("/api/chat/c/stream")
    assert (before.status_code, after.status_code) == (204, 204)
    assert resumed.text == "By the way."


async def test_other_sites_and_other_names_are_refused() -> None:
    settings = Settings(allowed_hosts=("127.0.0.1",))
    async with replayed(two_replies(), settings=settings) as (url, http):
        for path in ("/api/chats", "/api/chats/c", "/api/approvals", "/api/chat/c/stream"):
            foreign = await http.get(path, headers={"origin": "https://evil.example"})
            assert foreign.status_code == 403, path
        rebound = await http.get("/api/chats/c", headers={"host": "evil.example"})
        assert rebound.status_code == 403
        with pytest.raises(Exception, match="403"):
            async with opened(url, headers={"origin": "https://evil.example"}):
                pass
