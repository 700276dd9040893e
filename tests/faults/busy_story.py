"""Plays a story of a busy chat: what a person does while a reply runs, kills and all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from typing_extensions import override

from faults.agent import NOW, PAY, TALK, TALK_ON, THEN, WORK
from faults.busy_checks import BusyEnding, check_busy, first_of, is_complete
from faults.case import Busy, Case
from faults.life import Seen
from faults.points import Point
from faults.story import Story, World
from faults.user import Heard, Json, Stream

__all__ = ["BusyStory"]

_STOPS: Final = 4
"""How often a person stops who stops again and again."""


_GOES_ON: Final = frozenset({"regenerate", "queue", "steer", "tabs", "thanks"})
"""The stories whose answers come to the gate; in the others they are stopped there."""


class BusyStory(Story):
    """A person who does not wait for an answer."""

    def __init__(self, world: World, case: Case) -> None:
        super().__init__(world, case)
        assert case.busy is not None
        self._busy: Busy = case.busy
        # What was asked for and accepted, and the reply to it.
        self._asked: list[tuple[Json, Stream]] = []
        # The request that approves the call which waits.
        self._approving: Json = {}

    @override
    def _tell(self) -> None:
        self._world.place.book.close()
        try:
            self._begin()
            with self._phase("busy"):
                _KINDS[self._busy](self)
                if self._busy in _GOES_ON:
                    self._world.place.book.open()
                self._read()
            self._listen_again()
            self._until_complete()
        finally:
            self._world.place.book.open()
            for _, stream in self._asked:
                stream.leave()

    # Before the server can die

    def _begin(self) -> None:
        """Have a reply run, or a call wait."""
        if self._busy == "tabs":
            return
        if self._busy == "thanks":
            self._user.say(PAY, self._name(0))
            asking = self._user.messages()[-1]
            self._approving = self._user.answering(asking, verdict=True)
            return
        first = first_of(self._case)
        stream = self._user.send(self._saying(first, 0))
        shown = stream.until("tool-input-available" if first == WORK else "One.")
        assert shown, stream.heard
        self._asked.append(({}, stream))

    def _name(self, number: int) -> str:
        return f"said-{number}-in-{self._chat}"

    def _saying(self, text: str, number: int, **more: Any) -> Json:
        parts = [{"type": "text", "text": text}]
        return {"messages": [{"id": self._name(number), "role": "user", "parts": parts}], **more}

    # What the person does

    def _request(self, body: Json) -> Stream:
        """Send a request until it is accepted: it waits then, and is not to be lost."""
        while True:
            try:
                stream = self._user.send(body)
            except OSError:
                self._must_be_dead()
                continue
            status = stream.begin()
            if status:
                break
            self._must_be_dead()
        if status != 200:
            self._outcome.stuck.append(f"refused with {status}: {stream.heard.body}")
        self._asked.append((body, stream))
        return stream

    def _hang_up(self) -> None:
        self._asked[-1][1].leave()

    def _stop_then_ask(self) -> None:
        self._hang_up()
        self._request(self._saying(NOW, 1))

    def _stop_then_regenerate(self) -> None:
        self._hang_up()
        self._request({**self._saying(TALK, 0), "trigger": "regenerate-message"})

    def _stop_then_edit(self) -> None:
        self._hang_up()
        self._request(self._saying(NOW, 0, messageId=self._name(0)))

    def _interrupt(self) -> None:
        self._request(self._saying(NOW, 1))

    def _queue(self) -> None:
        self._request(self._saying(NOW, 1, busy="queue"))
        self._request(self._saying(THEN, 2, busy="queue"))

    def _steer(self) -> None:
        self._request(self._saying(NOW, 1, busy="steer"))
        while time.monotonic() < self._due:
            rows = self._look(self._user.rows)
            if rows is None or rows["steerable"] or not _waits(rows):
                return
            self._pause()

    def _ask_in_two_tabs(self) -> None:
        left = [self._saying(TALK, 1), self._saying(TALK_ON, 2)]
        while left and time.monotonic() < self._due:
            try:
                streams = [(body, self._user.send(body)) for body in left]
            except OSError:
                self._must_be_dead()
                continue
            left = [body for body, stream in streams if not self._is_heard(stream)]
            self._asked += [(body, stream) for body, stream in streams if body not in left]

    def _is_heard(self, stream: Stream) -> bool:
        """Whether the server has begun to answer: one of the two does not wait."""
        stream.until('"type"')
        self._bury_if_cut(stream.heard)
        # An error is no promise: a person who sees one sends again.
        return any(chunk["type"] != "error" for chunk in stream.heard.chunks)

    def _stop_again_and_again(self) -> None:
        for number in range(1, _STOPS):
            self._hang_up()
            stream = self._request(self._saying(TALK, number))
            if not stream.until("One."):
                self._bury_if_cut(stream.heard)
        self._hang_up()
        self._request(self._saying(NOW, _STOPS))

    def _stop_all(self) -> None:
        self._request(self._saying(NOW, 1, busy="queue"))
        while self._look(self._user.stop) is None:
            pass

    def _approve_and_write(self) -> None:
        self._request(self._approving)
        self._request(self._saying(NOW, 1))

    # How it ends

    def _read(self) -> None:
        """Read all replies that the person has not left, to their end or the cut."""
        for _, stream in self._asked:
            self._bury_if_cut(stream.rest())

    def _bury_if_cut(self, heard: Heard) -> None:
        """Note a death; a reply whose server died earlier was cut, too."""
        if not heard.done:
            self._bury()

    @override
    def _ran(self, seen: Seen) -> int:
        # Two things are done at once: the database may have a COMMIT whose answer nobody got.
        return seen.get((Point.CLAIM, "between"), 0) - seen.get((Point.FINISH, "after"), 0)

    def _listen_again(self) -> None:
        """Send again what was cut, if the person does that."""
        if self._case.manner != "insistent":
            return
        for body, stream in list(self._asked):
            if body and not stream.heard.done:
                self._request(body).rest()

    def _until_complete(self) -> None:
        while not (self._is_complete() and self._is_disarmed() and self._is_at_rest()):
            if time.monotonic() > self._due:
                self._outcome.stuck.append(f"not at rest in time: {self._view()}")
                return
            if self._case.manner == "stock":
                self._stream(self._user.resume)
            self._pause()
        self._check()

    def _is_complete(self) -> bool:
        return is_complete(self._case, self._messages())

    @override
    def _is_at_rest(self) -> bool:
        rows = self._look(self._user.rows)
        return rows is not None and not rows["waiting"] and super()._is_at_rest()

    @override
    def _check(self) -> None:
        heard = [] if self._outcome.kills else [stream.heard for _, stream in self._asked]
        ending = BusyEnding(
            case=self._case,
            running=self._running,
            resumed=self._user.resume(),
            messages=self._user.messages(),
            rows=self._user.rows(),
            effects=self._world.place.book.effects(self._chat),
            said_more=self._say_more(),
            heard=heard,
        )
        check_busy(ending, self._outcome)


_KINDS: Final[Mapping[Busy, Callable[[BusyStory], None]]] = {
    "ask": BusyStory._stop_then_ask,
    "regenerate": BusyStory._stop_then_regenerate,
    "edit": BusyStory._stop_then_edit,
    "interrupt": BusyStory._interrupt,
    "queue": BusyStory._queue,
    "steer": BusyStory._steer,
    "tabs": BusyStory._ask_in_two_tabs,
    "stops": BusyStory._stop_again_and_again,
    "stop": BusyStory._stop_all,
    "thanks": BusyStory._approve_and_write,
}


def _waits(rows: Json) -> bool:
    return any(row["taken_in"] is None for row in rows["waiting"])
