"""Plain functions among the tools of a live run leave the event loop alone.

ADK does that by itself in unary runs. In live ones its setting for it moves *every* tool to a
loop of its own, also those that are at home on ours. So the one private name of ADK that this
package uses, and why: ADR-0011.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["off_the_loop"]

_use: Callable[[ThreadPoolExecutor], AbstractContextManager[Any]] | None
try:
    from google.adk.utils._sync_runner import _use_executor_for_sync_callables as _use
except ImportError:
    # Such tools then block the loop, as they do in ADK's own live server.
    _use = None


def off_the_loop(threads: ThreadPoolExecutor) -> AbstractContextManager[Any]:
    """Run plain functions that are tools in threads, in this task and those it starts."""
    return nullcontext() if _use is None else _use(threads)
