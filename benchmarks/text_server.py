"""`python -m benchmarks.text_server VARIANT`: one of the servers, in a process of its own.

The setting comes as JSON on standard input. Its address is printed when it is up; it ends when its
standard input does.
"""

from __future__ import annotations

import sys

import anyio
import anyio.to_thread

from adk_stream_protocol.cli.heap import settle_heap
from adk_stream_protocol.cli.switching import switch_soon
from benchmarks.setting import Setting
from benchmarks.text_apps import OURS, text_app
from benchmarks.web import served_app


async def _serve(variant: str) -> None:
    setting = Setting.from_json(sys.stdin.readline())
    async with text_app(variant, setting) as app, served_app(app) as url:
        if variant in OURS:
            # As `adk-stream serve` does.
            settle_heap()
            switch_soon()
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await anyio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    anyio.run(_serve, sys.argv[1])
