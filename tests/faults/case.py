"""One case: a story in a chat, the kills in it, and how a person goes on until all is told."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from faults.agent import SAID, STILL_THERE, TOLD, YES, Tool
from faults.life import DiedByItself, Life, Place, Seen, begin, seen_of
from faults.points import Kill, Phase, Point
from faults.user import Cut, Heard, Hung, Json, User

__all__ = ["Case", "Manner", "Outcome", "Story", "World", "scout", "survey"]

Manner: TypeAlias = Literal["stock", "insistent", "patient"]
"""What the client does after a cut: reload and resume; send the same again; or just look."""

_LONGEST: Final = 60.0
"""Seconds after which a chat that is not at rest is stuck."""
_LOOK: Final = 0.05
"""Seconds between two looks."""
_LATE: Final = 3.0
"""Seconds that a kill may come after the reader has seen the end."""


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

    def __str__(self) -> str:
        kills = ", ".join(map(str, self.kills))
        verdict = "approved" if self.verdict else "denied"
        return f"{kills}: {self.tool}, {verdict} by {self.route}, {self.manner}, {self.database}"

    def kill_in(self, phase: Phase) -> Kill | None:
        """Return the kill of a phase, or None."""
        return next((kill for kill in self.kills if kill.phase == phase), None)

    def to_json(self) -> Json:
        """Return the case as it can be given to a worker again."""
        return asdict(self)

    @classmethod
    def from_json(cls, told: Json) -> Case:
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


class World:
    """A place and the server that lives there now."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.leash = os.pipe()
        self.life: Life | None = None

    def alive(self, kill: Kill | None = None) -> Life:
        """Return the living server, started if there is none."""
        if self.life is None:
            self.life = begin(self.place, kill, self.leash)
        return self.life

    def end(self) -> None:
        """End what lives."""
        if self.life is not None:
            self.life.end()
            self.life = None
        for end in self.leash:
            os.close(end)


class Story:
    """Plays a case in a world, and says what was wrong."""

    def __init__(self, world: World, case: Case) -> None:
        self._world = world
        self._case = case
        self._chat = f"chat-{uuid.uuid4().hex}"
        self._user = User(f"user-{uuid.uuid4().hex}", self._chat, world.alive().port)
        self._outcome = Outcome()
        self._heard_of_message = False
        """The server has acknowledged the message."""
        self._decided: dict[str, str] = {}
        """Decision ids by approval: what the server has acknowledged, once it has."""
        self._acknowledged: set[str] = set()
        self._windows = 0
        """How many calls were running in a moment of death."""
        self._due = 0.0
        self._armed: Phase | None = None
        """The phase whose kill is awaited; None if none is."""

    def play(self) -> Outcome:
        """Tell the story to its end, kills and all."""
        began = time.monotonic()
        self._due = began + _LONGEST
        try:
            self._tell()
        except Hung as error:
            self._outcome.stuck.append(f"hung: {error}")
        except DiedByItself as error:
            self._world.life = None
            self._outcome.stuck.append(str(error))
        self._outcome.seconds = time.monotonic() - began
        return self._outcome

    # The story

    def _tell(self) -> None:
        self._ask()
        messages = self._messages()
        while not (_is_told(messages) and self._is_disarmed() and self._is_at_rest()):
            if time.monotonic() > self._due:
                self._outcome.stuck.append(f"not at rest in time: {self._view()}")
                return
            self._go_on(messages)
            self._pause()
            messages = self._messages()
        self._check()

    def _ask(self) -> None:
        with self._phase("ask"):
            heard = self._say()
        if not heard.done and self._case.manner == "insistent":
            self._say()

    def _say(self) -> Heard:
        heard = self._stream(lambda: self._user.say(SAID[self._case.tool], self._message_id))
        # An error is no promise: a person who sees one sends again.
        self._heard_of_message |= any(chunk["type"] != "error" for chunk in heard.chunks)
        return heard

    @property
    def _message_id(self) -> str:
        return f"said-in-{self._chat}"

    def _go_on(self, messages: list[Json]) -> None:
        """Do the next thing that a person would do."""
        approvals = self._look(self._user.approvals) or []
        waiting = [call["id"] for call in approvals if call["status"] == "pending"]
        asking = [message for message in messages if _requests(message)]
        if not messages and not self._heard_of_message:
            self._say()
        elif waiting and asking:
            self._answer(asking[-1], waiting)
        elif self._case.manner == "stock":
            self._stream(self._user.resume)

    def _answer(self, message: Json, waiting: list[str]) -> None:
        lost = self._acknowledged.intersection(waiting)
        if lost:
            self._outcome.losses.append(f"acknowledged, but pending again: {lost}")
        with self._phase("answer"):
            self._decide(message, waiting)
        if self._case.manner == "insistent":
            self._decide(message, waiting)

    def _decide(self, message: Json, waiting: list[str]) -> None:
        """Answer all that waits."""
        if self._case.route == "rest":
            for approval_id in waiting:
                self._decide_by_rest(approval_id)
            return
        heard = self._stream(lambda: self._user.answer(message, self._case.verdict))
        if heard.status == 200:
            self._acknowledged.update(waiting)
        elif heard.status and set(_requests(message)) <= set(waiting):
            self._outcome.losses.append(f"an answer was refused: {heard}")

    def _decide_by_rest(self, approval_id: str) -> None:
        decision = self._decided.setdefault(approval_id, uuid.uuid4().hex)
        verdict = self._case.verdict
        status = self._look(lambda: self._user.decide(approval_id, verdict, decision))
        if status == 200:
            self._acknowledged.add(approval_id)
        elif status is not None:
            self._outcome.losses.append(f"a decision was answered {status}")

    def _messages(self) -> list[Json]:
        return self._look(self._user.messages) or []

    def _is_at_rest(self) -> bool:
        rows = self._look(self._user.rows)
        return rows is not None and not any(turn["running"] for turn in rows["turns"])

    def _is_disarmed(self) -> bool:
        """Whether no trap is left that what follows could spring."""
        if self._case.kill_in("recover") is None:
            return True
        return self._look(lambda: self._user.trap(None)) is not None

    def _view(self) -> Json:
        """Return how things stand, for whoever must find out why."""
        return {
            "messages": self._look(self._user.messages),
            "approvals": self._look(self._user.approvals),
            "rows": self._look(self._user.rows),
            "effects": self._world.place.book.effects(self._chat),
        }

    # Kills

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        """Do something with the trap set, if it is this phase's first time."""
        kill = self._case.kill_in(phase)
        came = {kill.phase for kill in self._outcome.kills}
        if kill is None or phase in came:
            yield
            return
        self._user.trap(asdict(kill))
        self._armed = phase
        yield
        if self._armed is not None:
            self._bury(within=_LATE)
        if self._armed is not None:
            # The rest of the story must not spring it.
            self._armed = None
            self._user.trap(None)

    def _bury(self, within: float = 0.0) -> bool:
        """If the server has died, note how, and start another on the same database."""
        life = self._world.alive()
        if not life.is_over(within):
            return False
        seen = life.seen()
        self._world.life = None
        kill = self._case.kill_in(self._armed or "recover")
        assert kill is not None, "only a trap kills"
        self._outcome.kills.append(kill)
        self._windows += _running(seen)
        again = self._case.kill_in("recover") if self._armed is not None else None
        self._armed = None
        self._user.port = self._world.alive(again).port
        self._due = time.monotonic() + _LONGEST
        return True

    def _pause(self) -> None:
        """Let a moment pass, unless the server dies in it."""
        self._bury(within=_LOOK)

    def _look(self, ask: Callable[[], Any]) -> Any:
        """Ask the server; None if it died instead."""
        try:
            return ask()
        except Cut:
            self._must_be_dead()
            return None

    def _stream(self, ask: Callable[[], Heard]) -> Heard:
        heard = ask()
        if not heard.done:
            self._must_be_dead()
        return heard

    def _must_be_dead(self) -> None:
        if not self._bury(within=_LATE):
            self._outcome.losses.append("a server that lives cut a connection")

    # What must hold

    def _check(self) -> None:
        self._check_rest()
        messages = self._user.messages()
        if not _is_told(messages):
            self._outcome.doubles.append(f"the answer is not shown once: {messages}")
        said = [message for message in messages if message["role"] == "user"]
        if len(said) != 1:
            self._outcome.losses.append(f"the message is {len(said)} times in the history")
        parts = [part for message in messages for part in message["parts"] if "toolCallId" in part]
        self._check_effects(parts)
        self._check_ledger(parts)
        self._check_chat()

    def _check_rest(self) -> None:
        heard = self._user.resume()
        if not heard.done:
            self._outcome.stuck.append("the last reply does not end")

    def _check_effects(self, parts: list[Json]) -> None:
        effects = self._world.place.book.effects(self._chat)
        wanted = {"plain": {"pay"}, "idempotent": {"pay_once"}, "ungated": {"note"}}.get(
            self._case.tool, {"pay", "pay_once"}
        )
        for tool in wanted:
            count = sum(1 for name, _ in effects if name == tool)
            if count > 1:
                self._outcome.doubles.append(f"{tool} had {count} effects")
            if not self._case.verdict and count and tool != "note":
                self._outcome.doubles.append(f"{tool} ran though it was denied")
        for part in parts:
            had = any(call_id == part["toolCallId"] for _, call_id in effects)
            if part["state"] == "output-available" and not had:
                self._outcome.losses.append("a result is shown of a tool that did nothing")
            if part["state"] not in {"output-available", "output-error", "output-denied"}:
                self._outcome.losses.append(f"a tool call was left {part['state']}")

    def _check_ledger(self, parts: list[Json]) -> None:
        rows = self._user.rows()
        shown = {part["toolCallId"]: part["state"] for part in parts}
        effects = {call_id for _, call_id in self._world.place.book.effects(self._chat)}
        unknown = [row for row in rows["calls"] if row["state"] == "unknown"]
        self._outcome.unknown = len(unknown)
        if len(unknown) > self._windows:
            self._outcome.losses.append("unknown, though no call ran when the server died")
        for row in rows["calls"]:
            self._check_row(row, shown.get(row["call_id"], "nothing"), row["call_id"] in effects)
        asked = {row["call_id"] for row in rows["calls"]}
        for call_id in set(shown) - asked if self._case.tool != "ungated" else ():
            self._outcome.unasked += 1
            if call_id in effects or shown[call_id] != "output-error":
                self._outcome.losses.append(f"{shown[call_id]}, but nobody was asked")
        expected = 2 if self._case.tool == "both" else 1
        if len(shown) != expected or not asked <= set(shown):
            self._outcome.losses.append(f"{len(shown)} calls in the history, {len(asked)} asked")

    def _check_row(self, row: Json, shown: str, had: bool) -> None:
        match row["state"]:
            case "done":
                ok = self._case.verdict and had and shown == "output-available"
            case "denied":
                ok = not self._case.verdict and not had and shown == "output-denied"
            case "unknown":
                ok = row["tool_name"] != "pay_once" and shown == "output-error"
            case _:
                ok = False
        if not ok:
            told = f"{row['tool_name']} is {row['state']}, shown {shown}, effect {had}"
            self._outcome.losses.append(told)

    def _check_chat(self) -> None:
        """A settled call stays settled, and the chat takes a new message."""
        for approval in self._user.approvals():
            same = self._user.decide(approval["id"], self._case.verdict)
            other = self._user.decide(approval["id"], not self._case.verdict)
            if (same, other) != (200, 409):
                self._outcome.losses.append(f"settled, but decided again: {same}, {other}")
        heard = self._user.say(STILL_THERE, f"last-in-{self._chat}")
        while heard.status == 409 and time.monotonic() < self._due:
            self._pause()
            heard = self._user.say(STILL_THERE, f"last-in-{self._chat}")
        if heard.text != YES:
            self._outcome.stuck.append(f"a new message was answered {heard}")


def _is_told(messages: list[Json]) -> bool:
    """Whether the answer is there, and once."""
    if not messages or messages[-1]["role"] != "assistant":
        return False
    said = "".join(part.get("text", "") for part in messages[-1]["parts"])
    return said.endswith(TOLD) and said.count(TOLD) == 1


def _requests(message: Json) -> list[str]:
    """Return the approvals that a message asks for."""
    asking = [part for part in message["parts"] if part.get("state") == "approval-requested"]
    return [part["approval"]["id"] for part in asking]


def _running(seen: Seen) -> int:
    """Return how many calls were claimed and not finished."""
    return seen.get((Point.CLAIM, "after"), 0) - seen.get((Point.FINISH, "after"), 0)


def survey(world: World, case: Case) -> dict[Phase, Seen]:
    """Play a case's story without kills; return how often each point is met in each phase."""
    surveyor = _Surveyor(world, replace(case, kills=()))
    outcome = surveyor.play()
    assert not outcome.violations, f"without any kill: {outcome}"
    return surveyor.met


class _Surveyor(Story):
    """Counts instead of killing."""

    def __init__(self, world: World, case: Case) -> None:
        super().__init__(world, case)
        self.met: dict[Phase, Seen] = {}
        self._now: Phase | None = None
        """The phase that is counted; None before the first."""

    @contextmanager
    def _phase(self, phase: Phase) -> Iterator[None]:
        if phase not in self.met:
            self._count(phase)
        yield

    def _check(self) -> None:
        self._check_rest()
        self._count(None)
        super()._check()

    def _count(self, following: Phase | None) -> None:
        seen = seen_of(self._user.trap(None)["seen"])
        if self._now is not None:
            self.met[self._now] = seen
        self._now = following
        if following is not None:
            self.met[following] = {}


def scout(world: World) -> list[str]:
    """Play a story and return what the server had imported by its end: ADK imports much late."""
    survey(world, Case(()))
    return User("scout", "scout", world.alive().port).modules()
