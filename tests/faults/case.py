"""One case: which kills in which story; and what can become of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

from faults.agent import Tool
from faults.points import Kill, Phase, Point

__all__ = ["Busy", "Case", "Manner", "Outcome", "Over"]

Manner: TypeAlias = Literal["stock", "insistent", "patient"]
"""What the client does after a cut: reload and resume; send the same again; or just look."""

Over: TypeAlias = Literal["sse", "live", "left"]
"""How the story is told: over SSE; over a live socket that stays open, so that calls wait inside
the run; or over one that is closed after each reply, so that the run ends before the answer."""


Busy: TypeAlias = Literal[
    "ask",
    "regenerate",
    "edit",
    "interrupt",
    "queue",
    "steer",
    "tabs",
    "stops",
    "stop",
    "thanks",
]
"""What a person does while a reply runs.

Three stop it, as a page does that hangs up, and then ask, regenerate or edit. Others ask while it
is shown, queue two messages, steer it, ask in two tabs at once, stop four times, stop it and what
waits, or approve a call and write at once.
"""


@dataclass(frozen=True, slots=True)
class Case:
    """What happens in a story."""

    kills: tuple[Kill, ...]
    """One per phase at most."""
    database: Literal["sqlite", "postgres"] = "sqlite"
    tool: Tool = "plain"
    verdict: bool = True
    route: Literal["chat", "rest"] = "chat"
    manner: Manner = "stock"
    over: Over = "sse"
    busy: Busy | None = None
    """The story of a busy chat that is told instead; None: the one of an approval."""

    def __str__(self) -> str:
        kills = ", ".join(map(str, self.kills))
        if self.busy is not None:
            return f"{kills}: busy, {self.busy}, {self.manner}, {self.database}, {self.over}"
        verdict = "approved" if self.verdict else "denied"
        told = f"{self.manner}, {self.database}, {self.over}"
        return f"{kills}: {self.tool}, {verdict} by {self.route}, {told}"

    def kill_in(self, phase: Phase) -> Kill | None:
        """Return the kill of a phase, or None."""
        return next((kill for kill in self.kills if kill.phase == phase), None)

    def to_json(self) -> dict[str, Any]:
        """Return the case as it can be given to a worker again."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Case:
        """Return the case that `to_json` told."""
        kills = tuple(Kill(**{**kill, "point": Point(kill["point"])}) for kill in told["kills"])
        return cls(**{**told, "kills": kills})


@dataclass(slots=True)
class Outcome:
    """What became of a case."""

    kills: list[Kill] = field(default_factory=list)
    """Those that came."""
    doubles: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)
    unknown: int = 0
    """Calls of which nobody knows what they did, and everybody is told so."""
    unasked: int = 0
    """Calls that were given up before anyone was asked: not run, and everybody is told so."""
    seconds: float = 0.0

    @property
    def violations(self) -> list[str]:
        """Everything that must not be."""
        return [*self.doubles, *self.stuck, *self.losses]
