from __future__ import annotations

import json
import logging

import pytest
from opentelemetry import trace

from adk_stream_protocol.cli.logs import JsonFormatter, TerminalFormatter, warn


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


def parsed(record: logging.LogRecord) -> dict[str, object]:
    told = JsonFormatter().format(record)
    assert "\n" not in told
    found: dict[str, object] = json.loads(told)
    return found


def test_a_line_of_json_has_the_ids_as_fields() -> None:
    record = logging.LogRecord("adk_stream_protocol.engine", 20, "", 0, "turn %s", ("ended",), None)
    vars(record).update(chat="c\n1", reply="r1", created=1_800_000_000.5)
    assert parsed(record) == {
        "time": "2027-01-15T08:00:00.500+00:00",
        "level": "INFO",
        "logger": "adk_stream_protocol.engine",
        "message": "turn ended",
        "chat": "c\n1",
        "reply": "r1",
    }


def test_json_shows_neither_what_others_add_nor_the_message_of_an_exception() -> None:
    with pytest.raises(ValueError, match="invalid literal") as raised:
        int("4711 secrets")
    failure = (raised.type, raised.value, raised.tb)
    record = logging.LogRecord("google_adk.models", 40, "", 0, "failed", (), failure)
    vars(record).update(contents="secret", odd=object())
    line = parsed(record)
    assert set(line) == {"time", "level", "logger", "message", "exception"}
    assert str(line["exception"]).startswith("ValueError\n")
    assert "4711" not in str(line)


def test_an_extra_that_is_no_json_is_written_as_text() -> None:
    record = logging.LogRecord("adk_stream_protocol", 20, "", 0, "odd", (), None)
    vars(record).update(state={1})
    assert parsed(record)["state"] == "{1}"


def test_a_line_within_a_span_names_it() -> None:
    context = trace.SpanContext(trace_id=0xABC, span_id=0xDEF, is_remote=False)
    record = logging.LogRecord("adk_stream_protocol", 20, "", 0, "turn started", (), None)
    with trace.use_span(trace.NonRecordingSpan(context)):
        line = parsed(record)
    assert line["trace_id"] == "00000000000000000000000000000abc"
    assert line["span_id"] == "0000000000000def"


def test_a_warning_has_the_form_of_the_logs_around_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    warn("everybody is one user", "text")
    assert capsys.readouterr().err == "WARNING: everybody is one user\n"
    warn("everybody is one user", "json")
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["message"]) == ("WARNING", "everybody is one user")
