"""How a process that only serves collects its garbage."""

from __future__ import annotations

import gc
from typing import Final

__all__ = ["settle_heap"]

_YOUNG: Final = 20_000
"""How many objects are made before the young ones are looked through; Python's own is 700."""


def settle_heap() -> None:
    """Look no more through what was loaded for good, and less often through the rest.

    ADK and what it imports are some hundred thousand objects, which a server keeps to its end.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
