"""One sample: a process of its own, so that its CPU time and memory are nobody else's."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Final

import anyio

from benchmarks.rounds import Benchmark, Sample
from benchmarks.setting import Setting

__all__ = ["measure_beside", "measure_here", "sample_of"]

_ROOT: Final = Path(__file__).parents[1]


def sample_of(benchmark: Benchmark, variant: str, setting: Setting) -> Sample:
    """Take one sample."""
    return anyio.run(measure_beside, benchmark, variant, setting)


async def measure_beside(benchmark: Benchmark, variant: str, setting: Setting) -> Sample:
    """Measure in a process of its own, while this one may do something else.

    What is tiny only shows that it runs, so this process does for it.
    """
    assert benchmark.measure is not None
    if setting.scale == "tiny":
        return await benchmark.measure(variant, setting)
    paths = [_ROOT / "src", _ROOT / "tests", _ROOT]
    done = await anyio.run_process(
        [sys.executable, "-m", "benchmarks", "sample", benchmark.name, variant],
        input=setting.to_json().encode(),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        stderr=None,
    )
    sample: Sample = json.loads(done.stdout)
    return sample


def measure_here(benchmark: Benchmark, variant: str) -> None:
    """Be that process."""
    setting = Setting.from_json(sys.stdin.read())
    assert benchmark.measure is not None
    sample = anyio.run(benchmark.measure, variant, setting)
    sys.stdout.write(json.dumps(sample))
