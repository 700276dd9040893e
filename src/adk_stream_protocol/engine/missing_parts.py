"""Parts of ADK that are not installed."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Final

__all__ = ["note_missing_parts"]

_REMOTE: Final = "google.adk.agents.remote_a2a_agent"


def note_missing_parts() -> None:
    """Let Python remember that ADK's part for A2A cannot be imported, if it cannot.

    ADK 2.13 tries to at every turn, which runs that part up to the import that fails. `None` is
    Python's own mark for this, and an `import` still fails with `ModuleNotFoundError`.
    """
    if find_spec("a2a") is None:
        sys.modules.setdefault(_REMOTE, None)  # type: ignore[arg-type]  # None is allowed there
