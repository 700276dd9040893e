"""How soon a thread beside a busy event loop gets to run."""

from __future__ import annotations

import sys
from typing import Final

__all__ = ["switch_soon"]

_SOON: Final = 0.0001
"""Seconds; shorter than what the event loop does between two looks at its sockets."""


def switch_soon() -> None:
    """Let threads have Python's lock soon after they ask for it: SQLite's, and those of tools.

    A busy event loop gives the lock up whenever it looks at its sockets, and has it back before
    another thread is awake, whose wait then begins anew. Python's own patience of 5 ms never runs
    out that way: writing a batch of the log took 400 ms beside one chat that streams.
    """
    sys.setswitchinterval(_SOON)
