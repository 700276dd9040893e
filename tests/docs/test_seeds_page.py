"""The page about the seed documents: complete, and every file that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/seeds.md"

COMPONENTS = [
    "BidiEventSender",
    "BidiEventReceiver",
    "ConfirmationInterceptor",
    "ApprovalQueue",
    "FrontendToolDelegate",
    "ADK AG Runner",
    "Stream Protocol",
    "_handle_confirmation_if_needed()",
    "pending_confirmation",
    "confirmation_id_mapping",
    "pending_long_running_calls",
    "sendToolResult",
    "handleConfirmation",
    "adk_compat.py",
]
EVENTS = [
    "message",
    "tool_result",
    "addToolOutput()",
    "tool-input-start",
    "tool-input-available",
    "adk_request_confirmation",
    "tool-output-available",
    "tool-output-error",
    "[DONE]",
    "interrupt",
    "ping",
    "audio_chunk",
    "audio_control",
]
QUESTIONS = ["Event type naming", "Error handling", "Timeout behavior", "ID mapper integration"]


def section(heading: str) -> str:
    pattern = rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)"
    found = re.search(pattern, PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, heading
    return found[1]


def first_cells(text: str) -> str:
    return "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_component_of_the_seeds_has_a_row(name: str) -> None:
    assert f"`{name}`" in first_cells(section("Components"))


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_of_the_seeds_has_a_row(name: str) -> None:
    assert f"`{name}`" in first_cells(section("Events"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_open_question_has_an_answer(question: str) -> None:
    rows = section("The four open questions of the draft").splitlines()
    (row,) = [row for row in rows if row.startswith(f"| {question}")]
    assert all(cell.strip() for cell in row.strip("|").split("|"))


def test_every_file_that_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:src|tests|docs|client)/[^`\s]+)`", PAGE.read_text("utf-8"))
    assert len(named) > 30
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_tests_of_the_checklists_are_there() -> None:
    tests = (ROOT / "tests/transports/test_envelope.py").read_text("utf-8")
    for number in ("1", "2", "3_to_5", "6", "7"):
        assert f"async def test_{number}_" in tests
