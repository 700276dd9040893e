from __future__ import annotations

import logging

import pytest

from adk_stream_protocol.cli.logs import TerminalFormatter


def line(name: str, message: str, *arguments: object, **extra: object) -> str:
    record = logging.LogRecord(name, logging.INFO, "", 0, message, arguments, None)
    vars(record).update(extra)
    return TerminalFormatter().format(record).partition(" ")[2]


def test_ids_follow_the_message() -> None:
    told = line("adk_stream_protocol.engine", "turn %s", "started", chat="c1", reply="r1")
    assert told == "INFO    turn started chat=c1 reply=r1"


def test_ids_come_before_a_trace() -> None:
    told = line("adk_stream_protocol.engine", "failed: %s", "KeyError\n  frame", error="e1")
    assert told == "INFO    failed: KeyError error=e1\n  frame"


def test_what_others_add_is_not_shown() -> None:
    assert (
        line("google_adk.models", "sent", contents="secret") == "INFO    sent (google_adk.models)"
    )


def test_an_exception_is_shown_without_its_message() -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("4711 secrets")
    failure = (raised.type, raised.value, raised.tb)
    record = logging.LogRecord("uvicorn.error", 40, "", 0, "failed", (), failure)
    told = TerminalFormatter().format(record)
    assert "ValueError" in told
    assert "test_logs.py" in told
    assert "invalid literal" not in told
