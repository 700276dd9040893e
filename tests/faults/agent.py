"""The agent of the fault stories: its tools leave marks in files, which no kill takes back."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import anyio
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from adk_stream_protocol import ToolRule
from faults.points import Point
from faults.trap import Trap
from support.scripted import Script, ScriptedModel, call

__all__ = [
    "NOW",
    "PAY",
    "RULES",
    "SAID",
    "STILL_THERE",
    "TALK",
    "TALK_ON",
    "THEN",
    "TOLD",
    "WORK",
    "YES",
    "Book",
    "Tool",
    "agent",
]

Tool: TypeAlias = Literal["plain", "idempotent", "ungated", "both"]

RULES: Final[Mapping[str, ToolRule]] = {"pay_once": ToolRule(idempotent=True)}

SAID: Final[Mapping[Tool, str]] = {
    "plain": "Pay.",
    "idempotent": "Pay once.",
    "ungated": "Note it.",
    "both": "Pay both.",
}
_LOOK: Final = 0.01
"""Seconds between two looks at the gate."""
TOLD: Final = "All is told."
STILL_THERE: Final = "Still there?"
YES: Final = "Yes, I am."

TALK: Final = "Talk."
"""What is answered with "One. " and, once the gate is open, "Two."."""
TALK_ON: Final = "Talk on."
"""The same, with "Uno. " and "Dos."."""
WORK: Final = "Work."
"""What a tool is called for that waits at the gate."""
PAY: Final = "Pay slowly."
"""What a tool is called for that waits at the gate once it is approved."""
NOW: Final = "And now?"
THEN: Final = "And then?"


def _script(book: Book) -> Script:
    return {
        "Pay.": [["Paying. ", call("pay", amount=5)], ["All is ", "told."]],
        "Pay once.": [["Paying. ", call("pay_once", amount=5)], ["All is ", "told."]],
        "Note it.": [["Noting. ", call("note", amount=5)], ["All is ", "told."]],
        "Pay both.": [[call("pay", amount=1), call("pay_once", amount=2)], ["All is ", "told."]],
        TALK: [["One. ", book.opened, "Two."]],
        TALK_ON: [["Uno. ", book.opened, "Dos."]],
        PAY: [["Paying. ", call("pay_slowly", amount=5)], ["All is ", "told."]],
        WORK: [["Working. ", call("work", amount=5)], ["All is ", "told."]],
        NOW: [["Here ", "it is."]],
        THEN: [["That ", "is all."]],
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

    def close(self) -> None:
        """Close the gate: whoever comes there waits."""
        self._gate.touch()

    def open(self) -> None:
        """Open the gate."""
        self._gate.unlink(missing_ok=True)

    @property
    def _gate(self) -> Path:
        return self.folder / "gate is closed"

    async def opened(self) -> None:
        """Return when the gate is open. It is a file: whoever opens it is another process."""
        while self._gate.exists():  # noqa: ASYNC110  # no event reaches from there to here
            await anyio.sleep(_LOOK)

    def wait(self) -> None:
        """Return when the gate is open, in a thread."""
        never = threading.Event()
        while self._gate.exists():
            never.wait(_LOOK)

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

    def pay_slowly(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Pay once the gate is open."""
        book.wait()
        trap.at(Point.EFFECT, "before")
        book.did("pay_slowly", *_ids(tool_context))
        trap.at(Point.EFFECT, "after")
        return {"paid": amount}

    def work(amount: int, tool_context: ToolContext) -> dict[str, Any]:
        """Work as long as the gate is closed; nobody is asked."""
        book.wait()
        trap.at(Point.EFFECT, "before")
        book.did("work", *_ids(tool_context))
        trap.at(Point.EFFECT, "after")
        return {"worked": amount}

    return LlmAgent(
        name="faults",
        model=ScriptedModel(script=_script(book)),
        tools=[
            FunctionTool(pay, require_confirmation=True),
            FunctionTool(pay_once, require_confirmation=True),
            FunctionTool(pay_slowly, require_confirmation=True),
            note,
            work,
        ],
    )


def _ids(context: ToolContext) -> tuple[str, str]:
    return context.session.id, context.function_call_id or ""
