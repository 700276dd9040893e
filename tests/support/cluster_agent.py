"""The agent that the servers of a cluster run: its model plays what the user's message says.

A message is JSON, `{"name", "responses"}`: each response is a list of beats, and a beat is text,
`{"wait": place}` or `{"call": tool, "args": {...}}`. So a test writes its whole story itself,
though the model runs in another process. What the model and the tools do is one line in a file
that all processes append to, in the folder that `CLUSTER_FOLDER` names.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from support.scripted import LiveConnection

__all__ = ["PlayingModel", "agent"]

_PATIENCE_SECONDS = 300


class PlayingModel(BaseLlm):
    """Streams each beat as a partial response, then the whole."""

    model: str = "playing"
    folder: Path

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[BaseLlmConnection, None]:
        """Open a live connection, and note when it opens and ends."""
        connection = LiveConnection(self, llm_request)
        name = _asked(llm_request.contents)[0]
        _note(self.folder / "connections.txt", f"{name} {os.getpid()} opened")
        try:
            yield connection
        finally:
            await connection.close()
            _note(self.folder / "connections.txt", f"{name} {os.getpid()} ended")

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Play the next response of what was said."""
        name, number, beats = _asked(llm_request.contents)
        _note(self.folder / "asked.txt", f"{name} {number} {os.getpid()}")
        parts: list[types.Part] = []
        for beat in beats:
            if isinstance(beat, dict) and "wait" in beat:
                await _wait(self.folder, beat["wait"])
                continue
            part = _part(beat)
            if parts and part.text and parts[-1].text:
                parts[-1] = types.Part(text=parts[-1].text + part.text)
            else:
                parts.append(part)
            if stream:
                yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            partial=False,
            finish_reason=types.FinishReason.STOP,
        )


def _tools(folder: Path) -> Sequence[BaseTool]:
    def pay(name: str, tool_context: ToolContext) -> dict[str, str]:
        """Pay: one line in the file of effects."""
        _note(folder / "effects.txt", f"{name} {tool_context.function_call_id} {os.getpid()}")
        return {"paid": name}

    def pay_slowly(name: str, tool_context: ToolContext) -> dict[str, str]:
        """Pay when the conductor says so, and say that it is paid."""
        _tell_in_thread(folder, name, waits=True)
        paid = pay(name, tool_context)
        _tell_in_thread(folder, f"{name}-paid", waits=False)
        return paid

    def look(name: str) -> dict[str, str]:
        """Look something up; nobody is asked."""
        return {"seen": f"{name} ✓"}

    return [
        FunctionTool(pay, require_confirmation=True),
        FunctionTool(pay_slowly, require_confirmation=True),
        FunctionTool(look),
    ]


def _asked(contents: Sequence[types.Content]) -> tuple[str, int, Sequence[Any]]:
    """Return which play is on, how many responses it has had, and the beats of the next."""
    number, play = 0, {"name": "?", "responses": [["No play."]]}
    for content in contents:
        said = "".join(part.text or "" for part in content.parts or [])
        if content.role == "user" and said.startswith("{"):
            number, play = 0, json.loads(said)
        elif content.role == "model":
            number += 1
    responses = play["responses"]
    return str(play["name"]), number, responses[min(number, len(responses) - 1)]


def _part(beat: Any) -> types.Part:
    if isinstance(beat, str):
        return types.Part(text=beat)
    return types.Part(function_call=types.FunctionCall(name=beat["call"], args=beat["args"]))


async def _wait(folder: Path, place: str) -> None:
    """Wait until the conductor lets this place go on; without a conductor nothing waits."""
    try:
        async with await anyio.connect_unix(folder / "conductor") as stream:
            await stream.send(f"{place}\n".encode())
            with anyio.fail_after(_PATIENCE_SECONDS):
                await stream.receive()
    except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
        return


def _tell_in_thread(folder: Path, place: str, *, waits: bool) -> None:
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(_PATIENCE_SECONDS)
        try:
            stream.connect(str(folder / "conductor"))
            stream.sendall(f"{place}\n".encode())
            if waits:
                stream.recv(1)
        except OSError:
            return


def _note(file: Path, line: str) -> None:
    """Append a line: one write to a file opened for appending is whole, whoever else writes."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


_FOLDER = Path(os.environ["CLUSTER_FOLDER"])

agent = LlmAgent(name="cluster", model=PlayingModel(folder=_FOLDER), tools=[*_tools(_FOLDER)])
