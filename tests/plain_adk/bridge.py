"""ADK behind HTTP as its documentation leads one to write it. Nothing of ours is in here.

`useChat`'s request in, `Runner.run_async`, its stream out. Answers become the `FunctionResponse`
parts that ADK asks for; what the browser sends as a tool's output becomes that tool's response.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
    ToolThreadPoolConfig,
)
from google.adk.events.event import Event
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types

__all__ = ["USER", "naive_app"]

USER = "local"
_CONFIRMATION = "adk_request_confirmation"


def naive_app(agent: BaseAgent, sessions: BaseSessionService) -> FastAPI:
    """Return a server for the agent: ADK's runner, ADK's sessions, and a translation."""
    runner = Runner(app_name=agent.name, agent=agent, session_service=sessions)
    # What ends each chat's newest run, and what tells that it has.
    aborts: dict[str, asyncio.Event] = {}
    ends: dict[str, asyncio.Event] = {}
    app = FastAPI()

    @app.post("/api/chat")
    async def chat(request: Request) -> StreamingResponse:
        body = await request.json()
        name = {"app_name": agent.name, "user_id": USER, "session_id": body["id"]}
        if await sessions.get_session(**name) is None:
            await sessions.create_session(**name)
        abort = aborts[body["id"]] = asyncio.Event()
        ended = ends[body["id"]] = asyncio.Event()
        events = runner.run_async(
            user_id=USER,
            session_id=body["id"],
            new_message=_content(body["messages"][-1]),
            run_config=RunConfig(
                streaming_mode=StreamingMode.SSE, tool_thread_pool_config=ToolThreadPoolConfig()
            ),
            abort_signal=abort,
        )
        return StreamingResponse(_stream(events, ended), media_type="text/event-stream")

    @app.post("/api/chat/{chat_id}/stop")
    async def stop(chat_id: str) -> JSONResponse:
        aborts[chat_id].set()
        await ends[chat_id].wait()
        return JSONResponse({"stopped": True})

    return app


def _content(message: dict[str, Any]) -> types.Content:
    return types.Content(role="user", parts=[_part(part) for part in message["parts"]])


def _part(part: dict[str, Any]) -> types.Part:
    if part["type"] == "text":
        return types.Part(text=part["text"])
    if part["state"] == "approval-responded":
        approval = part["approval"]
        response = {"confirmed": approval["approved"]}
        return _answer(_CONFIRMATION, approval["id"], response)
    name = part["type"].removeprefix("tool-")
    return _answer(name, part["toolCallId"], part["output"])


def _answer(name: str, call_id: str, response: dict[str, Any]) -> types.Part:
    answer = types.FunctionResponse(id=call_id, name=name, response=response)
    return types.Part(function_response=answer)


async def _stream(events: AsyncIterator[Event], ended: asyncio.Event) -> AsyncIterator[str]:
    begun = False
    try:
        async for event in events:
            if not begun:
                begun = True
                yield _line({"type": "start", "messageId": event.invocation_id})
            for chunk in _chunks(event):
                yield _line(chunk)
    except Exception as error:  # noqa: BLE001  # as ADK's own server does: the client is told
        yield _line({"type": "error", "errorText": type(error).__name__})
    ended.set()
    yield _line({"type": "finish"})


def _line(chunk: dict[str, Any]) -> str:
    return f"data: {json.dumps(chunk)}\n\n"


def _chunks(event: Event) -> Iterator[dict[str, Any]]:
    for part in (event.content.parts or []) if event.content else []:
        if part.text and not event.partial:
            yield {"type": "text-start", "id": event.id}
            yield {"type": "text-delta", "id": event.id, "delta": part.text}
            yield {"type": "text-end", "id": event.id}
        call = part.function_call
        if call is None or event.partial:
            continue
        if call.name == _CONFIRMATION:
            original = (call.args or {})["originalFunctionCall"]["id"]
            yield {"type": "tool-approval-request", "approvalId": call.id, "toolCallId": original}
        else:
            shown = {"toolCallId": call.id, "toolName": call.name, "input": call.args}
            yield {"type": "tool-input-available", **shown}
    for response in event.get_function_responses():
        if response.id not in event.actions.requested_tool_confirmations:
            output = {"toolCallId": response.id, "output": response.response}
            yield {"type": "tool-output-available", **output}
