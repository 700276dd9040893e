from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable

import pytest
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from httpx import ASGITransport, AsyncClient, Response
from starlette import responses
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adk_stream_protocol.transports.lasting import Lasting, serve_last

pytestmark = pytest.mark.anyio


class Thing:
    """What a route has, and what served it can look at."""


class Answer(responses.Response):
    """Begins in the route, and goes on with what it is given."""

    def __init__(self, go_on: Callable[[Receive, Send], Awaitable[None]]) -> None:
        super().__init__()
        self.go_on = go_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await serve_last(scope, receive, send, serve=self.go_on)


def app_that_says(go_on: Callable[[Receive, Send, Thing | None], Awaitable[None]]) -> FastAPI:
    """Return an app whose answer is told whether what its route had is still there."""
    app = FastAPI()

    @app.get("/")
    async def route() -> Answer:
        thing = Thing()
        seen = weakref.ref(thing)
        answer = Answer(lambda receive, send: go_on(receive, send, seen()))
        answer.background = thing  # type: ignore[assignment]  # only to be kept as long as it is
        return answer

    return app


async def say(_receive: Receive, send: Send, thing: Thing | None) -> None:
    said = b"let go" if thing is None else b"kept"
    await send({"type": "http.response.body", "body": said, "more_body": False})


async def answer_of(app: ASGIApp) -> Response:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://app") as client:
        return await client.get("/", headers={"origin": "http://page"})


async def test_what_lasts_is_served_when_its_route_is_gone() -> None:
    app = app_that_says(say)
    app.add_middleware(Lasting)
    assert (await answer_of(app)).text == "let go"


async def test_without_the_middleware_it_is_served_in_its_route() -> None:
    assert (await answer_of(app_that_says(say))).text == "kept"


async def test_what_adds_to_the_beginning_of_an_answer_is_heard() -> None:
    app = app_that_says(say)
    app.add_middleware(CORSMiddleware, allow_origins=["http://page"])
    app.add_middleware(Lasting)
    answer = await answer_of(app)
    assert answer.headers["access-control-allow-origin"] == "http://page"
    assert answer.text == "let go"


async def test_what_is_around_hears_the_end_of_an_answer() -> None:
    heard: list[Message] = []
    app = app_that_says(say)
    app.add_middleware(Lasting)

    async def around(scope: Scope, receive: Receive, send: Send) -> None:
        async def hear(message: Message) -> None:
            heard.append(message)
            await send(message)

        await app(scope, receive, hear)
        heard.append({"type": "returned"})

    await answer_of(around)
    assert [message["type"] for message in heard] == [
        "http.response.start",
        "http.response.body",
        "returned",
    ]


async def test_only_what_was_routed_stays_in_the_scope() -> None:
    app = app_that_says(say)
    app.add_middleware(Lasting)
    left: list[set[str]] = []

    async def around(scope: Scope, receive: Receive, send: Send) -> None:
        before = scope.keys() | {"app"}
        await app(scope, receive, send)
        left.append(scope.keys() - before)

    await answer_of(around)
    assert left == [{"route", "endpoint", "path_params"}]
