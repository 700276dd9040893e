"""The command `adk-stream`."""

from adk_stream_protocol.cli.commands import main

__all__ = ["main"]
