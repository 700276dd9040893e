"""axe-core, which finds what would keep people from using a page."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.async_api import Page

__all__ = ["barriers"]

_AXE = Path(__file__).parents[2] / "client/ui/node_modules/axe-core/axe.min.js"
_GRAVE = frozenset({"serious", "critical"})


@functools.cache
def _axe() -> str:
    assert _AXE.is_file(), "axe-core is not installed: cd client/ui && npm ci"
    return _AXE.read_text()


async def barriers(page: Page) -> Sequence[str]:
    """Return the serious and critical findings on a page as it is now: rule, element and why."""
    # The page's policy forbids script elements; what a debugger runs it does not.
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_axe())
    found: dict[str, Any] = await page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        f"{rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in _GRAVE
        for node in rule["nodes"]
    ]
