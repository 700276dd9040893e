"""Bars as an SVG of plain text, readable on light and on dark paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["Bars", "bars"]

_WIDTH: Final = 760
_LEFT: Final = 250
_ROW: Final = 20
_HEAD: Final = 34
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}.head{font-weight:600}"
    ".bar{fill:#8c959f}.ours{fill:#0969da}.one{stroke:#cf222e;stroke-dasharray:3 3}"
)


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one workload, by who they are of."""

    told: str
    values: Mapping[str, float]


def bars(title: str, groups: Sequence[Bars]) -> str:
    """Draw groups of bars on one scale, with a line at 1; ours begin with a `/`."""
    most = max(value for group in groups for value in group.values.values())
    scale = (_WIDTH - _LEFT - 60) / max(most, 1.0)
    drawn: list[str] = []
    y = _HEAD
    for group in groups:
        y += 12
        drawn.append(f'<text class="head" x="8" y="{y + 14}">{escape(group.told)}</text>')
        y += _ROW
        top = y
        for name, value in group.values.items():
            kind = "bar ours" if name.startswith("/") else "bar"
            end = _LEFT + value * scale
            drawn += [
                f'<text x="{_LEFT - 8}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
                f'<rect class="{kind}" x="{_LEFT}" y="{y + 3}" '
                f'width="{value * scale:.1f}" height="14"/>',
                f'<text x="{end + 6:.1f}" y="{y + 14}">{value:.2f}</text>',
            ]
            y += _ROW
        one = _LEFT + scale
        drawn.append(f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="{top}" y2="{y}"/>')
    height = y + 12
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<text class="head" x="8" y="22">{escape(title)}</text>',
            *drawn,
            "</svg>\n",
        ]
    )
