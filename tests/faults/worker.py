"""A process that plays cases: one JSON line in, one out. It imports everything once and then forks.

    python -m faults.worker FOLDER [POSTGRES]

FOLDER is where its databases live; POSTGRES is a running server as JSON, if cases want one.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import uuid
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from faults.busy_story import BusyStory
from faults.case import Case
from faults.life import Place
from faults.story import Story, World
from faults.survey import scout, survey
from support.postgres import PostgresServer

__all__ = ["Worker"]

_OFTEN: Final = 50
"""How many cases share a database: it must not grow for ever, and making one takes time."""


class Worker:
    """Plays cases, each in a world that others have used before."""

    def __init__(self, folder: Path, postgres: PostgresServer | None) -> None:
        self._folder = folder
        self._postgres = postgres
        self._leash = os.pipe()
        # By kind of database, and how many cases it may still serve.
        self._worlds: dict[str, tuple[World, int]] = {}

    def play(self, case: Case) -> dict[str, Any]:
        """Play a case and return its outcome as JSON."""
        world = self._world(case.database)
        outcome = (Story if case.busy is None else BusyStory)(world, case).play()
        told = asdict(outcome)
        if outcome.violations:
            # What is broken must not break the next story; its files stay to be looked at.
            told["folder"] = str(world.place.folder)
            self._leave(case.database)
        return told

    def survey(self, case: Case) -> list[tuple[str, str, str, int]]:
        """Return phase, point, moment and count of what a case without kills meets."""
        met = survey(self._world(case.database), case)
        return [
            (phase, point.value, moment, count)
            for phase, seen in met.items()
            for (point, moment), count in seen.items()
        ]

    def warm_up(self) -> None:
        """Import what a server would import while it serves its first story."""
        names = scout(self._world("sqlite"))
        for name in names:
            with suppress(ImportError):
                importlib.import_module(name)
        self.end()
        # The forked servers share what is imported; a collector that touches it would copy it.
        gc.collect()
        gc.freeze()

    def end(self) -> None:
        """End all servers."""
        for database in list(self._worlds):
            self._leave(database)

    def _world(self, database: str) -> World:
        world, left = self._worlds.get(database, (None, 0))
        if world is None or left == 0:
            self._leave(database)
            world, left = World(self._place(database), self._leash), _OFTEN
        self._worlds[database] = world, left - 1
        return world

    def _leave(self, database: str) -> None:
        if database in self._worlds:
            self._worlds.pop(database)[0].end()

    def _place(self, database: str) -> Place:
        name = f"{database}-{uuid.uuid4().hex[:12]}"
        folder = self._folder / name
        folder.mkdir()
        if database == "sqlite":
            return Place(folder)
        assert self._postgres is not None, "a case on Postgres needs a server"
        return Place(folder, self._postgres.create(name))


def main(folder: str, postgres: str = "") -> None:
    """Play what comes in until nothing comes."""
    server = None
    if postgres:
        told = json.loads(postgres)
        server = PostgresServer(Path(told["bin"]), Path(told["data"]), told["port"])
    worker = Worker(Path(folder), server)
    worker.warm_up()
    try:
        for line in sys.stdin:
            asked = json.loads(line)
            case = Case.from_json(asked["case"])
            answer = worker.survey(case) if asked.get("survey") else worker.play(case)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    finally:
        worker.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
