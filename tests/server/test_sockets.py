"""Who may open a WebSocket, how many, how large a frame, and what a server that ends does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.abc
import pytest
from fastapi import HTTPException
from google.adk.agents.llm_agent import LlmAgent
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from adk_stream_protocol import Settings, create_app
from adk_stream_protocol.server.wiring import turns_of
from support.command import served
from support.scripted import ScriptedModel
from support.serving import serving
from support.socket import chunks_of, opened, socket_url
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    settings = dataclasses.replace(
        Settings(), allowed_hosts=("127.0.0.1",), allowed_origins=("https://app.example.com",)
    )
    async with staged(settings=settings) as stage:
        yield stage


async def denied(url: str, **headers: str) -> tuple[int, str]:
    """Return how a socket was refused before it was accepted."""
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, additional_headers=headers, proxy=None):
            pass
    response = refused.value.response
    error = json.loads(response.body or b"{}").get("error", {})
    return response.status_code, error.get("code", "")


# Before it is accepted


async def test_a_page_of_another_site_gets_no_socket(stage: Stage) -> None:
    url = socket_url(stage.url)
    assert await denied(url, origin="https://evil.example") == (403, "bad_origin")
    assert await denied(url, origin="null") == (403, "bad_origin")


async def test_our_own_and_allowed_pages_get_one(stage: Stage) -> None:
    for origin in (stage.url, "https://app.example.com"):
        async with opened(stage.url, headers={"origin": origin}) as socket:
            await socket.resume("r1", "c1")
            assert (await socket.next("r1"))["type"] == "no-active"


async def test_a_proxy_that_changes_the_host_needs_a_browser_that_vouches(stage: Stage) -> None:
    url, page = socket_url(stage.url), "http://127.0.0.1:5173"
    # As Chromium opens a socket: no different from one that another page of the machine opens.
    assert await denied(url, origin=page) == (403, "bad_origin")
    assert await denied(url, origin=page, **{"sec-fetch-site": "same-site"}) == (403, "bad_origin")
    # As Firefox does.
    vouched = {"origin": page, "sec-fetch-site": "same-origin"}
    async with opened(stage.url, headers=vouched) as socket:
        await socket.resume("r1", "c1")
        assert (await socket.next("r1"))["type"] == "no-active"


async def test_a_host_that_is_not_ours_gets_no_socket(stage: Stage) -> None:
    # The client would add its own Host beside a header of ours.
    url = socket_url(stage.url).replace("127.0.0.1", "localhost")
    assert await denied(url) == (403, "bad_host")


async def test_a_user_that_nobody_knows_gets_no_socket(stage: Stage) -> None:
    assert await denied(socket_url(stage.url), **{"x-user": ""}) == (403, "no_user")


async def test_an_unknown_sdk_gets_no_socket(stage: Stage) -> None:
    assert await denied(socket_url(stage.url, sdk="5")) == (400, "bad_sdk")


async def test_an_identify_may_refuse_with_an_exception_of_fastapi() -> None:
    def identify(_request: HTTPConnection) -> str:
        raise HTTPException(401, "Sign in.")

    app = create_app(LlmAgent(name="locked"), identify=identify, settings=Settings())
    async with serving(app) as url:
        assert await denied(socket_url(url)) == (401, "")


async def test_where_a_refusal_cannot_be_a_response_it_is_a_plain_403() -> None:
    app = create_app(LlmAgent(name="locked"), identify=lambda _: None, settings=Settings())

    async def without_extensions(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "extensions": {}}, receive, send)

    async with serving(without_extensions) as url:
        assert await denied(socket_url(url)) == (403, "")


async def test_the_first_subprotocol_that_is_offered_is_taken(stage: Stage) -> None:
    offered = [Subprotocol("adk-stream"), Subprotocol("token.abc")]
    async with connect(socket_url(stage.url), subprotocols=offered, proxy=None) as connection:
        assert connection.subprotocol == "adk-stream"


async def test_a_user_has_ten_sockets_and_another_one_others(stage: Stage) -> None:
    async with anyio.create_task_group() as tasks:
        enough = anyio.Event()

        async def hold(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with opened(stage.url):
                task_status.started()
                await enough.wait()

        for _ in range(10):
            await tasks.start(hold)
        assert await denied(socket_url(stage.url)) == (429, "too_many")
        async with opened(stage.url, headers={"x-user": "bob"}) as other:
            await other.resume("r1", "c1")
            assert (await other.next("r1"))["type"] == "no-active"
        enough.set()
    with anyio.fail_after(5):
        while True:
            try:
                async with opened(stage.url):
                    break
            except InvalidStatus:
                # The server has not seen all of them leave yet.
                await stage.http.get("/healthz")


# Frames


async def test_a_frame_that_is_too_large_fails_its_request_and_no_other() -> None:
    settings = dataclasses.replace(Settings(), frame_bytes=2000)
    async with staged(settings=settings) as stage, opened(stage.url) as socket:
        await socket.say("r1", "c1", "花" * 700)
        (refused,) = await socket.all("r1")
        assert refused["type"] == "error"
        assert refused["errorText"].startswith("The frame is larger than 2000 bytes.")
        await socket.write(" " * 2001)
        assert (await socket.next("-"))["type"] == "error"
        await socket.say("r2", "c1", "hi")
        assert Answered(200, chunks_of(await socket.all("r2"))).text == "Hello."


# A server that ends


async def test_a_server_that_drains_refuses_new_turns_and_keeps_those_that_run() -> None:
    more = anyio.Event()
    model = ScriptedModel(script={"long": [["One. ", more, "Two."]], "hi": [["Hello."]]})
    app = create_app(LlmAgent(name="drained", model=model), settings=Settings())
    async with serving(app) as url, opened(url) as socket:
        await socket.say("r1", "c1", "long")
        await socket.until_text("r1", "One.")
        turns_of(app).drain.begin()
        await socket.say("r2", "c2", "hi")
        (refused,) = await socket.all("r2")
        assert refused["errorText"].startswith("This server is about to end.")
        await socket.resume("r3", "c1")
        more.set()
        assert (await socket.all("r1"))[-1]["type"] == "end"
        assert Answered(200, chunks_of(await socket.all("r3"))).text == "One. Two."
        with pytest.raises(ConnectionClosed), anyio.fail_after(5):
            await socket.connection.recv()
        assert socket.connection.close_code == 1012


async def test_the_command_compresses_nothing_and_closes_its_sockets_when_it_ends(
    tmp_path: Path,
) -> None:
    async with (
        served(cwd=tmp_path) as server,
        # The client offers compression unless it is told not to.
        connect(socket_url(server.url), proxy=None) as connection,
    ):
        assert connection.protocol.extensions == []
        assert await server.end() == 0
        with pytest.raises(ConnectionClosed), anyio.fail_after(10):
            await connection.recv()
        assert connection.close_code == 1012
    assert "Traceback" not in server.log.read_text()


async def test_the_command_pings_and_closes_a_socket_that_does_not_answer(tmp_path: Path) -> None:
    environment = {"ADK_STREAM_PING_SECONDS": "0.2"}
    async with served(cwd=tmp_path, environment=environment) as server:
        url = urlsplit(server.url)
        assert url.hostname is not None
        assert url.port is not None
        # By hand: a client would answer.
        async with await anyio.connect_tcp(url.hostname, url.port) as raw:
            await raw.send(
                f"GET /api/chat/ws HTTP/1.1\r\nHost: {url.netloc}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
            )
            received = b""
            with anyio.fail_after(10):
                async for piece in raw:
                    received += piece
    head, _, frames = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101")
    assert b"permessage-deflate" not in head
    # A ping of four bytes, and then the close frame, 1011.
    assert (frames[0], frames[6]) == (0x89, 0x88)
    assert int.from_bytes(frames[8:10], "big") == 1011


async def test_without_a_lifespan_a_request_is_refused() -> None:
    app = create_app(LlmAgent(name="unborn"), settings=Settings())

    async def without_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "websocket"
        await app(scope, receive, send)

    async with serving(without_lifespan) as url, opened(url) as socket:
        await socket.say("r1", "c1", "hi")
        (refused,) = await socket.all("r1")
        assert refused["errorText"].startswith("The server is starting or stopping")
