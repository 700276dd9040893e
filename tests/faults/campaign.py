"""The long campaign: kills by chance until there were enough, and what came of them.

    python -m faults.campaign [--kills N] [--minutes M] [--seed S] [--workers W]
                              [--over sse|live|left] [--story approval|busy] [--page FILE]
    python -m faults.campaign --case JSON [--times N]

It exits with 1 if anything was doubled, stuck or lost, or if a planned kill never came. Each such
case stands in the file `.faults/SEED.jsonl`; `--case` plays one of them again, alone.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from random import Random, SystemRandom
from typing import Any, Final, get_args

import anyio

from faults.case import Case, Over
from faults.chance import Map, by_chance, kinds, least
from faults.crew import Crew
from faults.life import Seen
from faults.points import BUSY, LIVE, Phase, Point
from faults.tally import Tally
from support.postgres import PostgresServer, postgres_server

_ROOT: Final = Path(__file__).parents[2]
_STOP: Final = threading.Event()
"""Set once someone has asked the command to end."""
_TELLINGS: Final = 2
"""How often each kind of story is told before a kill is planned in it."""
_RESULT: Final = re.compile(r"(?<=<!-- result -->\n).*(?=<!-- end of result -->)", re.DOTALL)


def main() -> int:
    """Run the command; return its exit status."""
    options = _options()
    # Whoever stops it still gets the result so far, and no database server is left behind.
    for told in (signal.SIGTERM, signal.SIGINT):
        signal.signal(told, lambda *_: _STOP.set())
    folder = Path(tempfile.mkdtemp(prefix="adk-stream-faults-", dir=_fast()))
    with postgres_server() as postgres:
        if options.case:
            failed = anyio.run(_again, options, folder, postgres)
        else:
            failed = anyio.run(_campaign, options, folder, postgres)
    if not failed:
        shutil.rmtree(folder)
    else:
        _say(f"The databases and logs of what failed are in {folder}.")
    return 1 if failed else 0


async def _again(options: argparse.Namespace, folder: Path, postgres: PostgresServer) -> bool:
    """Play one case, with all there is to say about it."""
    failed = False

    def told(_case: Case, outcome: Any) -> None:
        nonlocal failed
        failed |= bool(outcome["doubles"] or outcome["stuck"] or outcome["losses"])
        _say(json.dumps(outcome, indent=2))

    cases = [Case.from_json(json.loads(options.case))] * options.times
    await Crew(folder, postgres, size=1).play(cases, told)
    return failed


async def _campaign(options: argparse.Namespace, folder: Path, postgres: PostgresServer) -> bool:
    seed = options.seed or SystemRandom().randrange(10**9)
    _say(f"seed {seed}")
    crew = Crew(folder, postgres, size=options.workers)
    known = await _survey(crew, options.over or get_args(Over), options.story)
    tally, began = Tally(), time.monotonic()

    def enough() -> Iterator[Case]:
        for case in by_chance(known, Random(seed)):  # noqa: S311  # to be repeatable
            over = time.monotonic() > began + 60 * options.minutes
            if over or _STOP.is_set() or tally.total.kills >= options.kills:
                return
            yield case

    def told(case: Case, outcome: Any) -> None:
        known_failures = len(tally.failures)
        tally.add(case, outcome)
        for failure in tally.failures[known_failures:]:
            _say(json.dumps(failure)[:2000])
        if tally.cases % 100 == 0:
            total, seconds = tally.total, time.monotonic() - began
            _say(f"{tally.cases} cases, {total}, {tally.cases / seconds:.2f} cases/s")

    await crew.play(enough(), told)
    seconds = time.monotonic() - began
    return _report(tally, seed, seconds, met=_to_be_met(options), page=options.page)


def _to_be_met(options: argparse.Namespace) -> set[Point]:
    """Return the points that a campaign has to meet."""
    met = set(Point) if options.over != ["sse"] else set(Point) - LIVE
    if options.story == "busy":
        met &= BUSY
    elif options.story == "approval":
        met -= BUSY
    return met


async def _survey(crew: Crew, over: Collection[Over], story: str | None) -> Map:
    """Tell every kind of story without kills, and learn what is met in it."""
    met: dict[Case, list[dict[Phase, Seen]]] = {}

    def told(case: Case, answer: Any) -> None:
        phases: dict[Phase, Seen] = {}
        for phase, point, moment, count in answer:
            phases.setdefault(phase, {})[Point(point), moment] = count
        met.setdefault(case, []).append(phases)

    asked = [kind for kind in kinds(("sqlite", "postgres")) if kind.over in over]
    if story is not None:
        asked = [kind for kind in asked if (kind.busy is not None) == (story == "busy")]
    await crew.survey(asked * _TELLINGS, told)
    return {case: least(list(surveys)) for case, surveys in met.items()}


def _report(tally: Tally, seed: int, seconds: float, *, met: set[Point], page: Path | None) -> bool:
    total = tally.total
    _say(tally.details())
    kept = _ROOT / ".faults" / f"{seed}.jsonl"
    if tally.failures:
        kept.parent.mkdir(exist_ok=True)
        kept.write_text("".join(f"{json.dumps(failure)}\n" for failure in tally.failures))
        _say(f"{len(tally.failures)} cases failed; they are in {kept}.")
    never = met - {key[0] for key, count in tally.counts.items() if count.kills}
    _say(f"{total.kills} kills in {tally.cases} cases, {tally.cases / seconds:.2f} cases/s")
    if never:
        _say(f"never killed at: {', '.join(sorted(never))}")
    failed = bool(tally.failures or never)
    if page is not None:
        summary = (
            f"{total.kills} kills in {tally.cases} stories, {tally.again} of them while the server "
            f"was coming back from another kill; seed {seed}: {total.doubles} double effects, "
            f"{total.stuck} stuck chats, {total.losses} losses.\n"
        )
        result = f"\n{summary}\n{tally.tables()}\n\n"
        page.write_text(_RESULT.sub(lambda _: result, page.read_text("utf-8")), "utf-8")
    return failed


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=5000)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop then at the latest")
    parser.add_argument("--seed", type=int, default=0, help="0: a new one")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--over", action="append", choices=get_args(Over), help="only these")
    parser.add_argument("--story", choices=("approval", "busy"), help="only these")
    parser.add_argument("--page", type=Path, help="where the result is written")
    parser.add_argument("--case", help="one case to play, as JSON")
    parser.add_argument("--times", type=int, default=1)
    return parser.parse_args()


def _fast() -> str | None:
    """Return a folder in memory, if there is one: a killed process loses nothing there either."""
    shared = Path("/dev/shm")  # noqa: S108  # of the system, and the name inside it is ours
    return str(shared) if shared.is_dir() else None


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
