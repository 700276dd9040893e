"""`python -m benchmarks`: run benchmarks and write what they found."""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import anyio

from benchmarks.encoding import ENCODING
from benchmarks.idle_sockets import IDLE_SOCKETS, SOCKET_OPENER
from benchmarks.idle_streams import IDLE_STREAMS, STREAM_OPENER
from benchmarks.live import LIVE, LIVE_CLIENT
from benchmarks.live_waiting import LIVE_WAITING
from benchmarks.machine import machine_text
from benchmarks.paced_load import PACED_LOAD
from benchmarks.page import write_section
from benchmarks.pending import FILLER, PENDING
from benchmarks.rounds import Benchmark, Results, Sample, orders_of, summed_up
from benchmarks.sampling import measure_here, sample_of
from benchmarks.servers import Servers
from benchmarks.setting import Scale, Setting
from benchmarks.text import TEXT
from benchmarks.text_growth import TEXT_GROWTH
from benchmarks.token_log import TOKEN_LOG
from benchmarks.turn_cost import TURN_COST
from benchmarks.wake_up import DECIDER, WAKE_UP

_ALL: Final = {
    each.name: each
    for each in (
        *(TEXT, PACED_LOAD, TEXT_GROWTH, ENCODING, IDLE_STREAMS),
        *(TOKEN_LOG, WAKE_UP, PENDING, TURN_COST),
        *(LIVE, LIVE_WAITING, IDLE_SOCKETS),
    )
}
_HELPERS: Final = {
    each.name: each for each in (DECIDER, FILLER, LIVE_CLIENT, SOCKET_OPENER, STREAM_OPENER)
}
"""Second processes of a sample; they are run as samples are."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run it."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["sample"]:
        _, name, variant = words
        measure_here({**_ALL, **_HELPERS}[name], variant)
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(_ALL)}; all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", choices=("full", "tiny"), default="full")
    parser.add_argument("--variants", nargs="+", default=(), help="only these")
    parser.add_argument("--page", type=Path, help="write the sections of this page, too")
    options = parser.parse_args(words)
    if not set(options.names) <= set(_ALL):
        parser.error(f"a NAME is one of {', '.join(_ALL)}")
    if options.page is not None:
        write_section(options.page, "machine", machine_text())
    with ExitStack() as until_end:
        # Not in memory, as /tmp may be: a commit must reach the disk.
        here = until_end.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp"))
        servers = Servers(Path(here), until_end)
        for name in options.names or _ALL:
            benchmark = _only(_ALL[name], options.variants)
            results = _run(benchmark, servers, rounds=options.rounds, scale=options.scale)
            told = f"{_caption(options.rounds)}\n\n{_ALL[name].tell(results)}"
            sys.stdout.write(f"\n# {name}\n\n{told}\n")
            if options.page is not None:
                write_section(options.page, name, told)
                if benchmark.draw is not None:
                    picture = options.page.with_name(f"{options.page.stem}-{name}.svg")
                    picture.write_text(benchmark.draw(results), "utf-8")


def _only(benchmark: Benchmark, variants: Collection[str]) -> Benchmark:
    among = [each for each in benchmark.variants if not variants or each in variants]
    return replace(benchmark, variants=among)


def _run(benchmark: Benchmark, servers: Servers, *, rounds: int, scale: Scale) -> Results:
    samples: dict[str, list[Sample]] = {}
    variants = [variant for variant in benchmark.variants if servers.has(variant)]
    for variant in benchmark.variants:
        if variant not in variants:
            sys.stderr.write(f"{benchmark.name}: {variant} is not installed, so not measured\n")
    for number, order in enumerate(orders_of(variants, rounds)):
        sys.stderr.write(f"{benchmark.name}: round {number + 1} of {rounds}\n")
        for variant, sample in _round(benchmark, servers, order, scale).items():
            samples.setdefault(variant, []).append(sample)
    # Told in the order they are listed in, whichever came first.
    return {variant: summed_up(samples[variant]) for variant in variants}


def _round(
    benchmark: Benchmark, servers: Servers, order: Sequence[str], scale: Scale
) -> Mapping[str, Sample]:
    with ExitStack() as until_end:

        def setting_of(variant: str) -> Setting:
            folder = until_end.enter_context(tempfile.TemporaryDirectory(dir=servers.folder))
            return until_end.enter_context(servers.setting(variant, Setting(folder, scale)))

        if benchmark.measure_round is not None:
            settings = {variant: setting_of(variant) for variant in order}
            return anyio.run(benchmark.measure_round, settings)
        samples: dict[str, Sample] = {}
        for variant in order:
            sys.stderr.write(f"{benchmark.name}: {variant}\n")
            samples[variant] = sample_of(benchmark, variant, setting_of(variant))
        return samples


def _caption(rounds: int) -> str:
    today = datetime.datetime.now(datetime.UTC).date()
    counted = "1 round" if rounds == 1 else f"{rounds} rounds"
    return f"Measured {today}, {counted}: the median, and in brackets the lowest and the highest."


if __name__ == "__main__":
    main()
