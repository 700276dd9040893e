"""`python -m benchmarks.text_peers PEER`: a server of others, run by the Python it is installed in.

It says its address and ends as `text_server` does. Of ours it imports only the model.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.memory import resident


def _ag_ui() -> Any:
    """Return ag-ui-adk around the agent that all others run."""
    from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint  # type: ignore[import-not-found]  # a peer's
    from fastapi import FastAPI

    from benchmarks.text_model import text_agent

    app = FastAPI()
    # Its limit of runs at a time would refuse what is measured.
    agent = ADKAgent(
        text_agent(), app_name="bench", user_id="ann", max_concurrent_executions=10_000
    )
    add_adk_fastapi_endpoint(app, agent, path="/api/chat")
    return app


def _pydantic_ai() -> Any:
    """Return pydantic-ai's adapter for the AI SDK around a model that says the same."""
    from pydantic_ai import Agent  # type: ignore[import-not-found]  # a peer's
    from pydantic_ai.messages import ModelMessage  # type: ignore[import-not-found]  # a peer's
    from pydantic_ai.models.function import AgentInfo, FunctionModel  # type: ignore[import-not-found]  # a peer's
    from pydantic_ai.ui.vercel_ai import VercelAIAdapter  # type: ignore[import-not-found]  # a peer's
    from starlette.applications import Starlette

    from benchmarks.text_pieces import pieces

    async def say(messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str]:
        async for piece in pieces(str(messages[-1].parts[-1].content)):
            yield piece

    agent = Agent(FunctionModel(stream_function=say))

    async def chat(request: Request) -> Response:
        answer: Response = await VercelAIAdapter.dispatch_request(
            request, agent=agent, sdk_version=6
        )
        return answer

    return Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])


def _vercel_ai() -> Any:
    """Return Vercel's AI SDK for Python, its own adapter for `useChat` and a model of its own."""
    import ai  # type: ignore[import-not-found]  # a peer's
    from starlette.applications import Starlette

    from benchmarks.text_pieces import pieces

    class Talker(ai.Provider):  # type: ignore[misc]  # a peer's
        provider_class_id: str = "bench"
        name: str = "bench"
        default_base_url: str = "http://bench.invalid"

        async def stream(self, _model: Any, messages: list[Any], **_options: Any) -> Any:
            yield ai.events.StreamStart()
            yield ai.events.TextStart(block_id="1")
            async for piece in pieces(messages[-1].text):
                yield ai.events.TextDelta(chunk=piece, block_id="1")
            yield ai.events.TextEnd(block_id="1")
            yield ai.events.StreamEnd(finish_reason="stop")

    agent, model = ai.Agent(), ai.Model(id="bench", provider=Talker())
    adapter = ai.ui.ai_sdk

    async def chat(request: Request) -> Response:
        said = [adapter.UIMessage(**each) for each in (await request.json())["messages"]]
        messages, approvals = adapter.to_messages(said)
        adapter.apply_approvals(approvals)

        async def body() -> AsyncIterator[str]:
            async with agent.run(model, messages) as events:
                async for line in adapter.to_sse(events):
                    yield line

        return StreamingResponse(body(), headers=adapter.UI_MESSAGE_STREAM_HEADERS)

    return Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])


_PEERS: dict[str, Callable[[], Any]] = {
    "ag-ui-adk": _ag_ui,
    "pydantic-ai": _pydantic_ai,
    "vercel-ai": _vercel_ai,
}


async def _cpu(_request: Request) -> Response:
    return JSONResponse(time.process_time())


async def _memory(_request: Request) -> Response:
    return JSONResponse(resident())


def _serve(peer: str) -> None:
    sys.stdin.readline()
    app = _PEERS[peer]()
    app.routes.extend([Route("/bench/cpu", _cpu), Route("/bench/memory", _memory)])
    listener = socket.create_server(("127.0.0.1", 0))
    # As a socket that uvicorn opens itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))

    def until_told() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=until_told, daemon=True).start()
    # It listens: whoever connects before it serves waits a moment.
    sys.stdout.write(f"http://127.0.0.1:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    asyncio.run(server.serve(sockets=[listener]))


if __name__ == "__main__":
    _serve(sys.argv[1])
