"""Servers that are up at the same time and measured in turns, so that noise meets all of them."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TypeAlias

from benchmarks.rounds import Sample, turned
from benchmarks.setting import Setting
from benchmarks.text_bench import TextBench, text_bench

__all__ = ["Step", "side_by_side"]

Step: TypeAlias = Callable[[TextBench, Setting], Awaitable[Sample]]
"""Measures something of one server."""


async def side_by_side(
    settings: Mapping[str, Setting], steps: Sequence[tuple[Step, int]]
) -> Mapping[str, Sample]:
    """Take each step with every server before the next step, as often as it says.

    What one server is not asked to do costs it nothing: the others wait for requests. A sample is
    the median of a step's times.
    """
    async with AsyncExitStack() as until_end:
        benches = {
            variant: await until_end.enter_async_context(text_bench(variant, setting))
            for variant, setting in settings.items()
        }
        samples: dict[str, Sample] = {variant: {} for variant in benches}
        for step, times in steps:
            taken: dict[str, list[Sample]] = {variant: [] for variant in benches}
            for number in range(times):
                for variant in turned(tuple(benches), number):
                    taken[variant].append(await step(benches[variant], settings[variant]))
            sys.stderr.write(".")
            for variant, each in taken.items():
                samples[variant] |= _usual(each)
        sys.stderr.write("\n")
        return samples


def _usual(samples: Sequence[Sample]) -> Sample:
    return {name: statistics.median([each[name] for each in samples]) for name in samples[0]}
