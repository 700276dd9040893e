"""The examples, started as their READMEs say."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.streams.text import TextReceiveStream

__all__ = ["EXAMPLES", "started"]

EXAMPLES = Path(__file__).parents[2] / "examples"

_COLOURS = re.compile(r"\x1b\[[\d;]*m")


@asynccontextmanager
async def started(
    name: str, ready: str, *, patience: float = 60, **environment: str
) -> AsyncIterator[str]:
    """Run an example's one command until the block ends; yield what it said when it was ready.

    Args:
        name: of the example.
        ready: a pattern of what it says then.
        patience: how many seconds it may take.
        environment: variables to set.
    """
    variables: Mapping[str, str] = {**os.environ, "PYTHON": sys.executable, **environment}
    process = await anyio.open_process(
        [str(EXAMPLES / name / "start")],
        env=variables,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        # It starts others: all of them are to end.
        start_new_session=True,
    )
    async with process:
        try:
            assert process.stdout is not None
            told = ""
            with anyio.fail_after(patience):
                async for piece in TextReceiveStream(process.stdout, errors="replace"):
                    told = _COLOURS.sub("", told + piece)
                    if found := re.search(ready, told):
                        break
                else:
                    raise AssertionError(f"it ended before it was ready: {told}")
            yield found[0]
        finally:
            os.killpg(process.pid, signal.SIGKILL)
