"""Rounds of alternating samples, and what is said of them: the median and how far they spread."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.setting import Setting

__all__ = [
    "Benchmark",
    "Figure",
    "Results",
    "Sample",
    "orders_of",
    "percentile",
    "summed_up",
    "turned",
]

Sample: TypeAlias = dict[str, float]
"""What one process measured, by name."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of one variant over all rounds."""

    values: tuple[float, ...]
    """By round."""

    @property
    def median(self) -> float:
        """The value in the middle."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The lowest."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The highest."""
        return max(self.values)

    def of(self, floor: Figure) -> Figure:
        """Return how many times another figure it is, each round by itself.

        A machine may be twice as fast in one round as in the next; what was measured side by side
        says what it costs.
        """
        return Figure(
            tuple(mine / its for mine, its in zip(self.values, floor.values, strict=True))
        )


Results: TypeAlias = Mapping[str, Mapping[str, Figure]]
"""The figures by variant and by measure."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What is compared, how one sample is taken, and how the outcome is told."""

    name: str
    variants: Sequence[str]
    measure: Callable[[str, Setting], Awaitable[Sample]] | None
    """Takes one sample; None: samples of a round are taken side by side."""
    tell: Callable[[Results], str]
    """Returns the outcome as Markdown; variants that could not run are missing."""
    measure_round: Callable[[Mapping[str, Setting]], Awaitable[Mapping[str, Sample]]] | None = None
    """Takes a sample of each variant, step by step: their servers are all up."""
    draw: Callable[[Results], str] | None = None
    """Returns the outcome as SVG; None: it is only told."""


def orders_of(variants: Sequence[str], rounds: int) -> Iterator[Sequence[str]]:
    """Yield the variants in each round's order; each begins one variant later than the last."""
    for number in range(rounds):
        yield turned(variants, number)


def turned(variants: Sequence[str], by: int) -> Sequence[str]:
    """Return the variants in their order, beginning with another."""
    first = by % len(variants)
    return (*variants[first:], *variants[:first])


def summed_up(samples: Sequence[Sample]) -> dict[str, Figure]:
    """Return the figures of one variant's samples."""
    return {name: Figure(tuple(sample[name] for sample in samples)) for name in samples[0]}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of the values does not exceed: one that was measured."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
