"""Where `adk-stream` begins and ends: arguments in, exit code out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import assert_never

from adk_stream_protocol.cli.approvals import approvals
from adk_stream_protocol.cli.arguments import (
    ApprovalsOptions,
    CheckOptions,
    MigrateOptions,
    Options,
    ReplayOptions,
    ServeOptions,
    parse_arguments,
)
from adk_stream_protocol.cli.check import check
from adk_stream_protocol.cli.migrate import migrate
from adk_stream_protocol.cli.replay import replay
from adk_stream_protocol.cli.serve import serve
from adk_stream_protocol.errors import ClientFault

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    0: done. 1: it could not be done. 2: what was asked for makes no sense, said in one line.
    """
    options = parse_arguments(arguments)
    try:
        return _run(options)
    except ClientFault as fault:
        print(f"adk-stream: {fault.message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _run(options: Options) -> int:
    match options:
        case ServeOptions():
            return serve(options)
        case ApprovalsOptions():
            return approvals(options)
        case CheckOptions():
            return check(options)
        case MigrateOptions():
            return migrate(options)
        case ReplayOptions():
            return replay(options)
        case _:
            assert_never(options)
