"""Logs for people at a terminal, or for machines. The library itself never configures logging.

Ids are shown, contents never: tracebacks come without the exception's message, and ADK's own
loggers, which tell what was said, are shown from WARNING on.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Literal, TypeAlias

from typing_extensions import override

from adk_stream_protocol.errors import trace_of
from adk_stream_protocol.telemetry import span_ids

__all__ = ["JsonFormatter", "LogFormat", "TerminalFormatter", "be_quiet", "show_logs", "warn"]

LogFormat: TypeAlias = Literal["text", "json"]

_OURS: Final = "adk_stream_protocol"
_STANDARD: Final = frozenset(
    vars(logging.LogRecord("", 0, "", 0, "", (), None)) | {"message": "", "asctime": ""}
)


class TerminalFormatter(logging.Formatter):
    """`12:34:56 INFO turn started chat=... turn=...`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", datefmt="%H:%M:%S")

    @override
    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        if not record.name.startswith(_OURS):
            return f"{line} ({record.name})"
        ids = _extras(record)
        first, newline, rest = line.partition("\n")
        return " ".join([first, *(f"{k}={v}" for k, v in ids.items())]) + newline + rest

    @override
    def formatException(
        self,
        ei: (
            tuple[type[BaseException], BaseException, TracebackType | None]
            | tuple[None, None, None]
        ),
    ) -> str:
        return "" if ei[1] is None else trace_of(ei[1]).rstrip()


class JsonFormatter(logging.Formatter):
    """`{"time": ..., "level": "INFO", "logger": ..., "message": "turn started", "chat": ...}`."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.name.startswith(_OURS):
            line |= _extras(record)
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["exception"] = trace_of(record.exc_info[1])
        # One line whatever is in it: line breaks are escaped, and nothing fails to be written.
        return json.dumps({**line, **span_ids()}, default=str)


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def warn(text: str, style: LogFormat) -> None:
    """Say something on stderr that no log level hides, in the form of the logs around it."""
    if style == "json":
        record = logging.LogRecord(_OURS, logging.WARNING, "", 0, text, (), None)
        print(JsonFormatter().format(record), file=sys.stderr, flush=True)
    else:
        print(f"WARNING: {text}", file=sys.stderr, flush=True)


def be_quiet() -> None:
    """Show no logs and none of ADK's warnings about its own experiments."""
    warnings.filterwarnings("ignore", message=r".*\[EXPERIMENTAL\].*")
    logging.getLogger().handlers[:] = [logging.NullHandler()]


def show_logs(level: str, style: LogFormat = "text") -> None:
    """Show logs on stderr from now on: ours from a level, everyone else's from WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TerminalFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("google_adk", "google_genai", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns of each reply that was stopped before the model told its token count.
    logging.getLogger("google_adk.google.adk.telemetry").setLevel(logging.ERROR)
    logging.getLogger(_OURS).setLevel(level)
