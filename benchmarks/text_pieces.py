"""What a model says, as fast as it is taken or at a pace.

`text 2000` is answered in 2,000 pieces. `paced 100 30` is answered in 100 pieces, 30 a second; each
piece says when it was due, so that whoever reads it knows how late it is. It imports nothing but
Python's own: servers that know neither ADK nor us run it, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

__all__ = ["pieces"]

_AFTER_TOOL: Final = 50


async def pieces(asked: str) -> AsyncIterator[str]:
    """Yield the pieces that are asked for."""
    kind, *numbers = asked.split()
    count = int(numbers[0]) if numbers else _AFTER_TOOL
    began = time.monotonic()
    for number in range(count):
        if kind == "paced":
            due = began + number / float(numbers[1])
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            yield f"due{due:.6f} "
        else:
            # As from a socket: others get a turn in between.
            await asyncio.sleep(0)
            yield f"word{number} "
