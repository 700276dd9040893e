"""Rounds of alternating samples, and what is said of them: the median and how far they spread."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.setting import Setting

__all__ = ["Benchmark", "Figure", "Results", "Sample", "order_of", "percentile", "summed_up"]

Sample: TypeAlias = dict[str, float]
"""What one process measured, by name."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of one variant over all rounds."""

    median: float
    low: float
    high: float


Results: TypeAlias = Mapping[str, Mapping[str, Figure]]
"""The figures by variant and by measure."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What is compared, how one sample is taken, and how the outcome is told."""

    name: str
    variants: Sequence[str]
    measure: Callable[[str, Setting], Awaitable[Sample]]
    tell: Callable[[Results], str]
    """Returns the outcome as Markdown; variants that could not run are missing."""
    has_own_server: bool = False
    """What is measured is a process of its own already; a sample's would only take time."""
    draw: Callable[[Results], str] | None = None
    """Returns the outcome as SVG; None: it is only told."""


def order_of(variants: Sequence[str], rounds: int) -> Iterator[tuple[int, str]]:
    """Yield each variant once per round; each round begins one variant later than the last."""
    for number in range(rounds):
        first = number % len(variants)
        for variant in (*variants[first:], *variants[:first]):
            yield number, variant


def summed_up(samples: Sequence[Sample]) -> dict[str, Figure]:
    """Return the figures of one variant's samples."""
    return {
        name: Figure(statistics.median(values), min(values), max(values))
        for name in samples[0]
        for values in [[sample[name] for sample in samples]]
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of the values does not exceed: one that was measured."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
