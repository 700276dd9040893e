"""The agent of the fault stories: its tools leave marks in files, which no kill takes back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from adk_stream_protocol import ToolRule
from faults.points import Point
from faults.trap import Trap
from support.scripted import Script, ScriptedModel, call

__all__ = ["RULES", "SAID", "STILL_THERE", "TOLD", "YES", "Book", "Tool", "agent"]

Tool: TypeAlias = Literal["plain", "idempotent", "ungated", "both"]

RULES: Final[Mapping[str, ToolRule]] = {"pay_once": ToolRule(idempotent=True)}

SAID: Final[Mapping[Tool, str]] = {
    "plain": "Pay.",
    "idempotent": "Pay once.",
    "ungated": "Note it.",
    "both": "Pay both.",
}
TOLD: Final = "All is told."
STILL_THERE: Final = "Still there?"
YES: Final = "Yes, I am."

_SCRIPT: Final[Script] = {
    "Pay.": [["Paying. ", call("pay", amount=5)], ["All is ", "told."]],
    "Pay once.": [["Paying. ", call("pay_once", amount=5)], ["All is ", "told."]],
    "Note it.": [["Noting. ", call("note", amount=5)], ["All is ", "told."]],
    "Pay both.": [[call("pay", amount=1), call("pay_once", amount=2)], ["All is ", "told."]],
    STILL_THERE: [["Yes, ", "I am."]],
}


@dataclass(frozen=True, slots=True)
class Book:
    """What the tools did, in a folder."""

    folder: Path

    def did(self, tool: str, chat: str, call_id: str) -> None:
        """Write down that a tool ran: one line, on disk before this returns."""
        line = f"{tool} {chat} {call_id}\n"
        file = os.open(self.folder / "effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(file, line.encode())
        os.fsync(file)
        os.close(file)

    def once(self, tool: str, chat: str, call_id: str) -> None:
        """Do it unless it was done under the same key: the file itself is the effect."""
        key = self.folder / f"{tool} {chat} {call_id}"
        with suppress(FileExistsError):
            os.close(os.open(key, os.O_CREAT | os.O_EXCL))

    def effects(self, chat: str) -> list[tuple[str, str]]:
        """Return the effects in a chat: tool and call."""
        file = self.folder / "effects"
        lines = file.read_text().splitlines() if file.exists() else []
        keys = [path.name for path in self.folder.glob(f"* {chat} *")]
        words = [line.split() for line in (*lines, *keys)]
        return [(tool, call_id) for tool, where, call_id in words if where == chat]


def agent(book: Book, trap: Trap) -> LlmAgent:
    """Return the agent; its tools pass the trap before and after their effect."""

    def pay(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pay."""
        trap.at(Point.EFFECT, "before")
        book.did("pay", *_ids(tool_context))
        trap.at(Point.EFFECT, "after")
        return {"paid": amount}

    def pay_once(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pay, under a key."""
        trap.at(Point.EFFECT, "before")
        book.once("pay_once", *_ids(tool_context))
        trap.at(Point.EFFECT, "after")
        return {"paid": amount}

    def note(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Note an amount; nobody is asked."""
        trap.at(Point.EFFECT, "before")
        book.did("note", *_ids(tool_context))
        trap.at(Point.EFFECT, "after")
        return {"noted": amount}

    return LlmAgent(
        name="faults",
        model=ScriptedModel(script=_SCRIPT),
        tools=[
            FunctionTool(pay, require_confirmation=True),
            FunctionTool(pay_once, require_confirmation=True),
            note,
        ],
    )


def _ids(context: ToolContext) -> tuple[str, str]:
    return context.session.id, context.function_call_id or ""
