"""Plays a case: kills come as planned, and a person goes on until all is told and at rest."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

from faults.agent import SAID, STILL_THERE
from faults.case import Case, Outcome
from faults.checks import Ending, check, is_told
from faults.life import DiedByItself, Leash, Life, Place, Seen, begin
from faults.points import Kill, Phase, Point
from faults.user import Cut, Heard, Hung, Json, User

__all__ = ["Story", "World"]

_LONGEST: Final = 60.0
"""Seconds after which a chat that is not at rest is stuck."""
_LOOK: Final = 0.05
"""Seconds between two looks."""
_LATE: Final = 3.0
"""Seconds that a kill may come after the reader has seen the end."""


class World:
    """A place and the server that lives there now."""

    def __init__(self, place: Place, leash: Leash) -> None:
        self.place = place
        self._leash = leash
        # The living server; None until the first is needed, and after each death.
        self.life: Life | None = None

    def alive(self, kill: Kill | None = None) -> Life:
        """Return the living server, started if there is none."""
        if self.life is None:
            self.life = begin(self.place, kill, self._leash)
        return self.life

    def end(self) -> None:
        """End what lives."""
        if self.life is not None:
            self.life.end()
            self.life = None


class Story:
    """Plays a case in a world, and says what was wrong."""

    def __init__(self, world: World, case: Case) -> None:
        self._world = world
        self._case = case
        self._chat = f"chat-{uuid.uuid4().hex}"
        port = world.alive().port
        self._user = User(f"user-{uuid.uuid4().hex}", self._chat, port, over=case.over)
        self._outcome = Outcome()
        # The server has acknowledged the message: a chunk of its reply has come.
        self._heard_of_message = False
        # The id of each decision, by approval: the same again when it is made again.
        self._decisions: dict[str, str] = {}
        # The approvals whose decision the server has acknowledged with 200.
        self._acknowledged: set[str] = set()
        # How many calls were running in a moment of death.
        self._running = 0
        # When it is too late, by the monotonic clock; each kill gives more time.
        self._due = 0.0
        # The phase whose kill is awaited; None if none is.
        self._armed: Phase | None = None

    def play(self) -> Outcome:
        """Tell the story to its end, kills and all."""
        began = time.monotonic()
        self._due = began + _LONGEST
        try:
            self._tell()
        except (Cut, Hung) as error:
            self._outcome.stuck.append(f"{type(error).__name__}: {error}")
        except DiedByItself as error:
            self._world.life = None
            self._outcome.stuck.append(str(error))
        finally:
            self._user.leave()
        self._outcome.seconds = time.monotonic() - began
        return self._outcome

    # The story

    def _tell(self) -> None:
        self._ask()
        messages = self._messages()
        while not (is_told(messages) and self._is_disarmed() and self._is_at_rest()):
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
            self._until_left()
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
            self._until_left()
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
        elif heard.status:
            self._outcome.losses.append(f"an answer was refused: {heard}")

    def _decide_by_rest(self, approval_id: str) -> None:
        decision = self._decisions.setdefault(approval_id, uuid.uuid4().hex)
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
        if rows is None or any(turn["running"] for turn in rows["turns"]):
            return False
        return self._case.over != "left" or rows["lives"] == 0

    def _until_left(self) -> None:
        """Wait until the live run has ended that nobody has open any more."""
        if self._case.over != "left":
            return
        rows = self._look(self._user.rows)
        while rows is not None and rows["lives"] and time.monotonic() < self._due:
            rows = self._look(self._user.rows)

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
        while self._look(lambda: self._user.trap(asdict(kill))) is None:
            pass  # A second kill came first; the next server is armed.
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
        self._running += self._ran(seen)
        again = self._case.kill_in("recover") if self._armed is not None else None
        self._armed = None
        self._user.port = self._world.alive(again).port
        self._due = time.monotonic() + _LONGEST
        return True

    def _ran(self, seen: Seen) -> int:
        """Return how many calls were claimed and not finished in the moment of death."""
        return seen.get((Point.CLAIM, "after"), 0) - seen.get((Point.FINISH, "after"), 0)

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

    # The end

    def _check(self) -> None:
        """Gather what is left, and hold it against what must be."""
        ending = Ending(
            case=self._case,
            running=self._running,
            resumed=self._user.resume(),
            messages=self._user.messages(),
            calls=self._user.rows()["calls"],
            effects=self._world.place.book.effects(self._chat),
            decided_again=self._decide_again(),
            said_more=self._say_more(),
        )
        check(ending, self._outcome)

    def _decide_again(self) -> list[tuple[int, int]]:
        """Decide each call again, the same way and the other; return the statuses."""
        verdict, decide = self._case.verdict, self._user.decide
        ids = [approval["id"] for approval in self._user.approvals()]
        return [(decide(each, verdict), decide(each, not verdict)) for each in ids]

    def _say_more(self) -> Heard:
        heard = self._user.say(STILL_THERE, f"last-in-{self._chat}")
        while heard.status == 409 and time.monotonic() < self._due:
            self._pause()
            heard = self._user.say(STILL_THERE, f"last-in-{self._chat}")
        return heard


def _requests(message: Json) -> list[str]:
    """Return the approvals that a message asks for."""
    asking = [part for part in message["parts"] if part.get("state") == "approval-requested"]
    return [part["approval"]["id"] for part in asking]
