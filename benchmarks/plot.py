"""Bars and curves as an SVG of plain text, readable on light and on dark paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["Bars", "Curves", "bars", "curves"]

_WIDTH: Final = 760
_LEFT: Final = 250
_ROW: Final = 20
_HEAD: Final = 34
_CURVE: Final = 110
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#57606a}.head{font-weight:600}"
    ".bar{fill:#8c959f}.ours{fill:#0969da}.one{stroke:#cf222e;stroke-dasharray:3 3}"
    ".curve{fill:none;stroke:#8c959f;stroke-width:2}.curve.ours{stroke:#0969da}"
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
    return _svg(title, drawn, height=y + 12)


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves of one workload, by who they are of: a value for each size."""

    told: str
    sizes: Sequence[int]
    values: Mapping[str, Sequence[float]]


def curves(title: str, groups: Sequence[Curves]) -> str:
    """Draw curves, each group on a scale of its own that begins at 0, with a line at 1."""
    drawn: list[str] = []
    y = _HEAD
    for group in groups:
        y += 12
        drawn.append(f'<text class="head" x="8" y="{y + 14}">{escape(group.told)}</text>')
        top, bottom = y + 30, y + 30 + _CURVE
        most = max(1.2, *(value for curve in group.values.values() for value in curve))
        across = (_WIDTH - _LEFT - 90) / (group.sizes[-1] - group.sizes[0])
        xs = [90 + (size - group.sizes[0]) * across for size in group.sizes]
        # The number at the line would lie on that at the bottom.
        for value in (0.0, most) if most > 8 else (0.0, 1.0, most):
            at = bottom - value / most * _CURVE
            drawn.append(f'<text x="80" y="{at + 4:.1f}" text-anchor="end">{value:.2f}</text>')
        one = bottom - _CURVE / most
        drawn.append(
            f'<line class="one" x1="{xs[0]}" x2="{xs[-1]:.1f}" y1="{one:.1f}" y2="{one:.1f}"/>'
        )
        for x, size in zip(xs, group.sizes, strict=True):
            drawn.append(
                f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{size:,}</text>'
            )
        # Names that would lie on each other stand below each other.
        lowest = top - 18.0
        ends = sorted(group.values.items(), key=lambda each: -each[1][-1])
        for name, values in ends:
            kind = "curve ours" if name.startswith("/") else "curve"
            ys = [bottom - value / most * _CURVE for value in values]
            points = " ".join(f"{x:.1f},{at:.1f}" for x, at in zip(xs, ys, strict=True))
            lowest = max(lowest + 16, ys[-1] + 4)
            drawn += [
                f'<polyline class="{kind}" points="{points}"/>',
                f'<text x="{xs[-1] + 8:.1f}" y="{lowest:.1f}">'
                f"{escape(name)}: {values[-1]:.2f}</text>",
            ]
        y = bottom + 28
    return _svg(title, drawn, height=y + 12)


def _svg(title: str, drawn: Sequence[str], *, height: int) -> str:
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
