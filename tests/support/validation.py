"""Asks the real `ai` packages whether messages are valid, in one process for all tests.

Every story is asked about: what its pages showed, what the server has stored of its chats, and what
a page gets that resumes them. `tests/conformance/validate.mjs` does the asking.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import anyio.to_thread

from support.node import NODE_DIR, node

__all__ = ["check_messages", "check_streams"]

Messages = Sequence[Mapping[str, Any]]


class _Validator:
    """One `validate.mjs`, started when it is needed first."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def ask(self, questions: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return what is wrong, in words that name the version and the check."""
        with self._lock:
            process = self._process = self._process or _started()
            assert process.stdin is not None
            assert process.stdout is not None
            problems: list[str] = []
            for number, question in enumerate(questions):
                process.stdin.write(f"{json.dumps({'n': number, **question})}\n")
                process.stdin.flush()
                answer: dict[str, Any] = json.loads(process.stdout.readline())
                assert answer["n"] == number
                problems += answer["problems"]
        return problems


def _started() -> subprocess.Popen[str]:
    process = subprocess.Popen(  # noqa: S603 - our own script, no shell
        node("validate.mjs"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=NODE_DIR,
        encoding="utf-8",
    )

    def end() -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait()
        process.stdout.close()

    atexit.register(end)
    return process


_validator = _Validator()


async def check_messages(lists: Iterable[Messages]) -> None:
    """Check lists of messages, as pages show them and as the server stores them."""
    unique = {json.dumps(messages): messages for messages in lists if messages}
    await _check([{"messages": messages} for messages in unique.values()])


async def check_streams(
    streams: Iterable[Sequence[Mapping[str, Any]]],
    *,
    only: Literal["ai7", "ai7 newest"] | None = None,
) -> None:
    """Check what pages make of streams, each from its beginning.

    Args:
        streams: the chunks of each.
        only: the line of the AI SDK that they are for, or its newest version; None: all of them.
    """
    await _check([{"chunks": list(chunks), "only": only} for chunks in streams if chunks])


async def _check(questions: list[dict[str, Any]]) -> None:
    if questions:
        # The server under test runs in this thread.
        problems = await anyio.to_thread.run_sync(_validator.ask, questions)
        assert not problems, "\n\n".join(problems)
