"""The agent that every side serves: one tool that charges, and a model that tells what it read."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

__all__ = ["AMOUNT", "APP", "Till"]

APP = "till"
AMOUNT = 5


@dataclass
class Till:
    """What was charged, in a file that outlives its process, and what a charge waits for."""

    file: Path
    on_charge: Callable[[], None] = lambda: None
    """Told of each charge, once it is in the file."""
    started: list[anyio.Event] = field(default_factory=lambda: [anyio.Event(), anyio.Event()])
    """The first and the second start of the tool's body."""
    may_charge: anyio.Event = field(default_factory=anyio.Event)
    may_return: anyio.Event = field(default_factory=anyio.Event)
    """Between the two the money has moved and ADK does not know it."""
    may_speak: anyio.Event = field(default_factory=anyio.Event)
    """Lets the model end its story."""
    thread_started: threading.Event = field(default_factory=threading.Event)
    thread_may_charge: threading.Event = field(default_factory=threading.Event)
    thread_charged: threading.Event = field(default_factory=threading.Event)

    @property
    def charges(self) -> int:
        """How often money moved."""
        return len(self.file.read_text("utf-8").splitlines()) if self.file.exists() else 0

    def release(self) -> None:
        """Let everything that waits go on."""
        for event in (self.may_charge, self.may_return, self.may_speak):
            event.set()
        self.thread_may_charge.set()

    def agent(self) -> LlmAgent:
        """Return the agent; nothing in it knows who serves it."""

        async def pay(amount: int) -> dict[str, int]:
            """Charge the card."""
            next(event for event in self.started if not event.is_set()).set()
            await self.may_charge.wait()
            self._charge(amount)
            await self.may_return.wait()
            return {"paid": amount}

        def pay_in_thread(amount: int) -> dict[str, int]:
            """Charge the card through a library that blocks."""
            self.thread_started.set()
            assert self.thread_may_charge.wait(20)
            self._charge(amount)
            self.thread_charged.set()
            return {"paid": amount}

        tools = [FunctionTool(tool, require_confirmation=True) for tool in (pay, pay_in_thread)]
        return LlmAgent(name=APP, model=Cashier(may_speak=self.may_speak), tools=list(tools))

    def _charge(self, amount: int) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{amount}\n")
            file.flush()
            os.fsync(file.fileno())
        self.on_charge()


class Cashier(BaseLlm):
    """Calls the tool it is asked for, then says what the tool's result says."""

    model: str = "cashier"
    may_speak: Any
    """An `anyio.Event`."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer the newest content."""
        newest = (llm_request.contents[-1].parts or [types.Part()])[-1]
        if newest.function_response is not None:
            said = f"Result: {json.dumps(newest.function_response.response)}"
        elif newest.text in {"pay", "pay_in_thread"}:
            call = types.FunctionCall(name=newest.text, args={"amount": AMOUNT})
            yield _response(types.Part(function_call=call))
            return
        elif newest.text == "tell a story":
            yield _response(types.Part(text="Once "), partial=True)
            await self.may_speak.wait()
            said = "Once upon a time."
        else:
            said = "Hello."
        yield _response(types.Part(text=said))


def _response(part: types.Part, *, partial: bool = False) -> LlmResponse:
    return LlmResponse(
        content=types.Content(role="model", parts=[part]),
        partial=partial,
        # ADK complains in the log about a model that does not say.
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=1, candidates_token_count=1, total_token_count=2
        ),
    )
