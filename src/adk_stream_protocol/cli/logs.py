"""Logs for people at a terminal. The library itself never configures logging; this command does.

Ids are shown, contents never: tracebacks come without the exception's message, and ADK's own
loggers, which tell what was said, are shown from WARNING on.
"""

from __future__ import annotations

import logging
import sys
import warnings
from types import TracebackType
from typing import Final

from typing_extensions import override

from adk_stream_protocol.errors import trace_of

__all__ = ["TerminalFormatter", "be_quiet", "show_logs"]

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
        ids = {name: value for name, value in vars(record).items() if name not in _STANDARD}
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


def be_quiet() -> None:
    """Show no logs and none of ADK's warnings about its own experiments."""
    warnings.filterwarnings("ignore", message=r".*\[EXPERIMENTAL\].*")
    logging.getLogger().handlers[:] = [logging.NullHandler()]


def show_logs(level: str) -> None:
    """Show logs on stderr from now on: ours from a level, everyone else's from WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(TerminalFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("google_adk", "google_genai", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns of each reply that was stopped before the model told its token count.
    logging.getLogger("google_adk.google.adk.telemetry").setLevel(logging.ERROR)
    logging.getLogger(_OURS).setLevel(level)
