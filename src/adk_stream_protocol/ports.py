"""Where the engine meets the stores: held calls, turns, logs, and hints that something changed.

Each port is a promise that two implementations keep (memory, and SQL behind the same tests).
All times are seconds since the epoch by the store's own clock.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from google.adk.events.event import Event
from google.genai import types

from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    MessageId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallState, HeldCall
from adk_stream_protocol.wire.chunks import ErrorChunk
from adk_stream_protocol.wire.entries import Entry
from adk_stream_protocol.wire.requests import BusyPolicy
from adk_stream_protocol.wire.values import JsonObject, JsonValue

__all__ = [
    "LOST",
    "AgentRun",
    "Attached",
    "Batch",
    "Began",
    "Busy",
    "Calls",
    "ChatChange",
    "ChatLabel",
    "ChatLabels",
    "Log",
    "Queued",
    "Ruling",
    "RunMode",
    "SteeringMessage",
    "Stores",
    "TurnRecord",
    "Turns",
    "Verdict",
    "Waiting",
    "WaitingRequest",
    "Wake",
    "turns_topic",
]

Ruling: TypeAlias = Literal["accepted", "repeat", "conflict"]
"""What became of an answer: it counts; it was given before; another one counts."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision on a held call, and who made it."""

    approved: bool
    by: str
    reason: str | None = None
    decision_id: str | None = None
    via: str = ""
    """Where it came from."""
    step: int = 0
    """How many steps were approved when it was made; it counts for the next one only."""
    final: bool = True
    """False: it approves a step, and more steps follow."""
    edited: JsonObject | None = None
    """The arguments to run instead; None: those shown."""
    edited_hash: str | None = None
    shown_hash: str | None = None
    """Of the arguments that an approver was shown; None: those that the model wrote."""
    remember: bool = False
    automatic: bool = False
    """A policy made it."""


class Calls(Protocol):
    """The rows of held calls: one truth for each."""

    async def now(self) -> float:
        """Return the store's time."""
        ...

    async def open(self, call: HeldCall) -> HeldCall:
        """Store a call that now waits; idempotent, the first row of an approval id stays."""
        ...

    async def get(self, approval_id: ApprovalId) -> HeldCall | None:
        """Return the call, or None."""
        ...

    async def of_chat(self, chat_id: ChatId) -> Sequence[HeldCall]:
        """Return all calls of a chat, oldest first."""
        ...

    async def of_owner(self, owner: UserId, state: CallState | None = None) -> Sequence[HeldCall]:
        """Return a user's calls, oldest first, in one state or all."""
        ...

    async def latest(
        self, chat_id: ChatId, invocation_id: InvocationId, call_id: CallId
    ) -> HeldCall | None:
        """Return the newest held call for a tool call of a turn.

        A call id alone does not name a call: some models count from zero in every response.
        """
        ...

    async def decide(self, approval_id: ApprovalId, verdict: Verdict) -> tuple[Ruling, HeldCall]:
        """Apply a decision if the call is pending, at that step, and not expired.

        An approval counts only for the arguments that were shown. One compare-and-set. The same
        decision id, or the same verdict, is a `repeat`; anything else is a `conflict`.
        """
        ...

    async def give(
        self, approval_id: ApprovalId, *, output: JsonValue, error: str | None
    ) -> tuple[Ruling, HeldCall]:
        """Record what the client made of a call it ran, if it is approved and unanswered."""
        ...

    async def claim(self, approval_id: ApprovalId, holder: ReplyId) -> HeldCall | None:
        """Take the right to run an approved call; None if it may not run (again).

        The holder is the reply whose turn runs it; that turn must still hold its chat.
        """
        ...

    async def finish(
        self, approval_id: ApprovalId, fence: int, *, result: JsonValue, error: str | None
    ) -> bool:
        """Record how a claimed call ended; False if the fence is not the current one."""
        ...

    async def lapse(self, approval_id: ApprovalId, fence: int) -> bool:
        """Record that nobody knows how a claimed call ended; False under an old fence."""
        ...

    async def lapse_orphans(self, chat_id: ChatId | None = None) -> Sequence[HeldCall]:
        """Mark the calls whose turn is over while they ran; return those marked just now.

        A call of an idempotent tool is released to run again, a few times; others lapse.

        Args:
            chat_id: only this chat's; None: all.
        """
        ...

    async def unknown(self, within: float, chat_id: ChatId | None = None) -> Sequence[HeldCall]:
        """Return the calls of which nobody knows how they ended, oldest first.

        Args:
            within: only those that were decided at most so many seconds ago.
            chat_id: only this chat's; None: all.
        """
        ...

    async def resolve(
        self, approval_id: ApprovalId, verdict: Verdict, *, result: JsonValue, error: str | None
    ) -> tuple[Ruling, HeldCall]:
        """Record what is now known of a call whose end was not; the verdict says who knows."""
        ...

    async def pending(self, limit: int) -> Sequence[HeldCall]:
        """Return the calls of all users that wait for a decision, oldest first."""
        ...

    async def page(
        self, after: HeldCall | None, limit: int, *, owner: UserId | None = None
    ) -> Sequence[HeldCall]:
        """Return the calls that follow one, oldest first; None: from the first.

        Args:
            after: the last call of the page before.
            limit: how many at most.
            owner: only this user's, and those in steps, which name others; None: all users'.
        """
        ...

    async def count_pending(self, owner: UserId | None = None) -> int:
        """Return how many calls wait for a decision: a user's, or all users'."""
        ...

    async def undelivered(self) -> Sequence[tuple[ChatId, UserId]]:
        """Return the chats with answers that ADK has not got, and whose they are."""
        ...

    async def purge(self, keep: float) -> int:
        """Forget the calls that were settled longer ago than that; return how many."""
        ...

    async def cancel(
        self, chat_id: ChatId, invocations: Iterable[InvocationId] | None = None
    ) -> Sequence[HeldCall]:
        """Cancel the calls of a chat that wait or are not yet claimed; return those cancelled.

        Answers among them that ADK has not got are withdrawn: it never will.
        """
        ...

    async def unremember(self, chat_id: ChatId) -> None:
        """Let no approval of a chat count for later calls any more."""
        ...

    async def abort(self, approval_id: ApprovalId) -> None:
        """Cancel one approved call that was not claimed: it will never run."""
        ...

    async def undeliver(self, approval_ids: Iterable[ApprovalId]) -> None:
        """Record that ADK did not get the answers after all; they can be delivered again."""
        ...

    async def expire(self) -> Sequence[HeldCall]:
        """Expire the calls whose time is over; return those expired just now."""
        ...

    async def next_expiry(self) -> float | None:
        """Return when the next open call expires, or None if none is open."""
        ...

    async def deliver(self, approval_ids: Iterable[ApprovalId], reply_id: ReplyId) -> None:
        """Record which reply carries the answers to ADK."""
        ...


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """The newest turn of a chat."""

    chat_id: ChatId
    owner: UserId
    reply_id: ReplyId
    key: str
    """What was asked: the same key again is the same request."""
    running: bool = True
    stopping: bool = False
    gently: bool = False
    """It stops for a later message: what a person approved before is still carried out."""
    lapsed: bool = False
    """It neither runs nor has it ended: its process died, or gave it up."""
    origin: ReplyId | None = None
    """The reply it stands in for, whose turn lapsed; None: it is the first of its request."""
    recoveries: int = 0
    """How many turns of its request lapsed before it."""
    steered: bool = False
    """Messages wait to steer it; only `renew` tells."""


@dataclass(frozen=True, slots=True)
class Began:
    """The caller holds the chat and must produce the reply."""

    turn: TurnRecord
    """As it was asked for; stopping, if what it takes the place of was."""
    previous: TurnRecord | None = None
    """What the chat's newest turn was before."""


@dataclass(frozen=True, slots=True)
class Attached:
    """The same request was made before; its reply is this one."""

    turn: TurnRecord


@dataclass(frozen=True, slots=True)
class Busy:
    """Another turn of the chat is running, or has lapsed and must be recovered first."""

    turn: TurnRecord


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """A request that was accepted while its chat was busy. It will be carried out."""

    chat_id: ChatId
    owner: UserId
    reply_id: ReplyId
    """The reply that answers it, unless it is steered into another one."""
    key: str
    """What is asked: the same key again is the same request."""
    request: JsonObject
    """The request itself, as `wire.requests` reads it."""
    mode: RunMode = "unary"
    """How the agent runs."""
    policy: BusyPolicy = "queue"
    """What it does to the reply that runs."""
    stopping: bool = False
    """It was stopped before its turn came: what it says is stored, and not answered."""
    taken_in: ReplyId | None = None
    """The reply that carries it out, its own or another; None: it waits."""


@dataclass(frozen=True, slots=True)
class Queued:
    """The request waits for its chat."""

    request: WaitingRequest
    """As it is stored: the same request may have been made before."""
    turn: TurnRecord
    """The chat's newest turn. It was asked to stop, if the request interrupts."""


class Turns(Protocol):
    """One writer per chat."""

    async def owner_of(self, chat_id: ChatId) -> UserId | None:
        """Return whose chat it is, or None if no turn was ever begun in it."""
        ...

    async def latest(self, chat_id: ChatId) -> TurnRecord | None:
        """Return the newest turn of the chat, or None."""
        ...

    async def restore(self, turn: TurnRecord, previous: TurnRecord | None) -> None:
        """Give the chat back as it was before a turn that could not be prepared."""
        ...

    async def begin(
        self,
        turn: TurnRecord,
        *,
        repeatable: bool,
        over: ReplyId | None = None,
        rewinds: bool = False,
        most: int | None = None,
        request: WaitingRequest | None = None,
        most_waiting: int | None = None,
        waited: bool = False,
    ) -> Began | Attached | Busy | Queued:
        """Take the chat for a turn, and note its request; all of it or nothing.

        Args:
            turn: the turn to begin.
            repeatable: whether a turn of the same key that has ended is begun anew.
            over: the lapsed turn's reply that this one takes the place of. What was asked of that
                one, to stop, is asked of this one.
            rewinds: whether it takes back earlier turns: then their requests are forgotten.
            most: how many turns of the owner may run, this one included, those that were asked to
                stop left out; None: any number.
            request: what waits for the chat if another turn runs or others wait already. If it
                interrupts, the turn that runs is asked to stop, and so are those that wait to
                interrupt. None: nothing waits.
            most_waiting: how many requests may wait for a chat; None: any number.
            waited: whether the turn carries out the request that waits under its reply's name:
                then it begins only if that still waits, else the chat is `Busy`.

        Raises:
            TooMany: so many run already, and none of them in this chat; or so many wait.
        """
        ...

    async def end(
        self,
        chat_id: ChatId,
        reply_id: ReplyId,
        *,
        failed: bool = False,
        carried: ReplyId | None = None,
        heard: Collection[ReplyId] = (),
    ) -> None:
        """Give the chat back; the request of a failed turn may be made again.

        What waited is touched only if the turn is still the chat's newest: another one may have
        taken its place, and needs it.

        Args:
            chat_id: the chat.
            reply_id: the turn's reply.
            failed: whether it failed.
            carried: the reply under whose name the turn took requests that had waited; its own is
                forgotten now. None: it took none.
            heard: which of the others the session has: they are forgotten, too. The rest waits
                again.
        """
        ...

    async def answered_in(self, chat_id: ChatId, key: str) -> ReplyId | None:
        """Return the reply that answers a request, or None if it is not known (any more)."""
        ...

    async def release(self, chat_id: ChatId, reply_id: ReplyId) -> None:
        """Let the turn lapse now, so that another process can recover it."""
        ...

    async def lapsed(self) -> Sequence[TurnRecord]:
        """Return the turns whose process died or gave them up."""
        ...

    async def ask_to_stop(
        self, chat_id: ChatId, *, reply_id: ReplyId | None = None
    ) -> TurnRecord | None:
        """Mark the running turn as stopping; return it, or None if none runs.

        Args:
            chat_id: the chat.
            reply_id: only if this is its reply; None: whichever runs.
        """
        ...

    async def forget_others(self, chat_id: ChatId, reply_id: ReplyId) -> None:
        """Forget the requests of a chat but the one that a reply answers; idempotent."""
        ...

    async def note_read(self, turns: Collection[TurnRecord]) -> None:
        """Record that the replies of turns that have ended were read to their end; idempotent.

        The same request again then begins a turn of its own.
        """
        ...

    async def renew(self, replies: Collection[ReplyId]) -> Sequence[TurnRecord]:
        """Keep the chats that this process took for these replies, unless they lapsed.

        Returns those kept, with what was asked of them.
        """
        ...

    async def note_readers(self, replies: Collection[ReplyId]) -> None:
        """Note that somebody reads these replies now."""
        ...

    async def unread(self, seconds: float) -> Sequence[TurnRecord]:
        """Return the running turns whose replies nobody has read for so long, in any process."""
        ...

    async def forget(self, chat_id: ChatId) -> None:
        """Forget the chat and what waits for it; its id is free again."""
        ...


class Waiting(Protocol):
    """The requests that were accepted while their chats were busy; `Turns.begin` adds them."""

    async def get(self, reply_id: ReplyId) -> WaitingRequest | None:
        """Return the request, or None once it was carried out or forgotten."""
        ...

    async def of_chat(self, chat_id: ChatId) -> Sequence[WaitingRequest]:
        """Return the requests that wait for a chat, in the order in which they came."""
        ...

    async def chats(self) -> Sequence[ChatId]:
        """Return the chats that requests wait for though no turn runs there or has lapsed."""
        ...

    async def steer(
        self, chat_id: ChatId, reply_id: ReplyId, *, carries: ReplyId
    ) -> Sequence[WaitingRequest]:
        """Take the requests that wait to steer a chat's turn, if it still runs; return them.

        From then on its reply is the one that answers them.

        Args:
            chat_id: the chat.
            reply_id: the turn's reply.
            carries: the reply under whose name they are taken: the first of the turn's request.
        """
        ...

    async def carried(self, reply_id: ReplyId) -> Sequence[WaitingRequest]:
        """Return the requests that a reply has taken, in the order in which they came."""
        ...

    async def put_back(self, reply_id: ReplyId, requests: Collection[ReplyId]) -> None:
        """Let some of the requests wait again that a reply has taken."""
        ...

    async def stop(self, chat_id: ChatId, *, reply_id: ReplyId | None = None) -> int:
        """Mark the requests that wait for a chat as stopped; return how many were not before.

        Args:
            chat_id: the chat.
            reply_id: only this one; None: all.
        """
        ...


@dataclass(frozen=True, slots=True)
class ChatLabel:
    """What a person set for a chat, beside what was said in it."""

    title: str = ""
    """Empty: the chat has the title it began with."""
    archived: bool = False


@dataclass(frozen=True, slots=True)
class ChatChange:
    """What of a label is changed."""

    title: str | None = None
    """None: it stays; empty: the chat has the title it began with."""
    archived: bool | None = None
    """None: it stays."""


class ChatLabels(Protocol):
    """The labels of chats. They are not in ADK's sessions, which only a turn may write to."""

    async def get(self, chat_id: ChatId, owner: UserId) -> ChatLabel:
        """Return a chat's label; one that nobody set is empty."""
        ...

    async def of_owner(self, owner: UserId) -> Mapping[ChatId, ChatLabel]:
        """Return the labels that a user has set."""
        ...

    async def change(self, chat_id: ChatId, owner: UserId, change: ChatChange) -> ChatLabel:
        """Change a label, and return it; changes of different fields do not undo each other."""
        ...

    async def forget(self, chat_id: ChatId, owner: UserId) -> None:
        """Forget a chat's label; its id is free again."""
        ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries of a log that were ready, and whether nothing will follow them."""

    entries: Sequence[Entry]
    ended: bool


LOST: Final = ErrorChunk(
    "The server was interrupted while this reply ran; what its tools did may not be known. Reload "
    "the chat to see where it stands."
)
"""What a reply ends with whose turn was cut off.

A stock client takes an empty end for an answer and sends again, for ever.
"""


class Log(Protocol):
    """The entries of each reply, numbered from 0 without gaps; the one way out of a run."""

    async def open(self, reply_id: ReplyId) -> None:
        """Begin a reply's log."""
        ...

    async def append(self, reply_id: ReplyId, entries: Sequence[Entry]) -> None:
        """Add entries; never waits for a reader, and for nothing if they are only text."""
        ...

    async def end(self, reply_id: ReplyId) -> None:
        """Write the end marker; nothing can follow."""
        ...

    async def leave(self, reply_id: ReplyId) -> None:
        """Write no more of a reply that this process cannot end; its readers see `LOST`."""
        ...

    async def written(self, reply_id: ReplyId) -> Sequence[Entry]:
        """Return what a reader can see by now, without waiting; nothing if there is no log."""
        ...

    async def read(self, reply_id: ReplyId, after: int) -> Batch | None:
        """Return what follows the first `after` entries, waiting until there is something.

        Canceling this is safe: nothing is lost, read again from the same place. Returns None if
        the log does not exist (any more).
        """
        ...


class Wake(Protocol):
    """Hints that something changed. A hint may be lost; who waits also looks by itself."""

    def hint(self, topic: str) -> None:
        """Wake whoever waits for the topic."""
        ...

    async def wait(self, topic: str, timeout: float | None) -> None:  # noqa: ASYNC109  # a bound, not a failure
        """Return at the next hint, or after the timeout at the latest."""
        ...


RunMode: TypeAlias = Literal["unary", "live"]
"""How ADK executes the agent: `run_async`, or `run_live`."""


def turns_topic(chat_id: ChatId) -> str:
    """Return the topic of hints that a turn began in a chat."""
    return f"turns:{chat_id}"


@dataclass(frozen=True, slots=True)
class SteeringMessage:
    """A message that the user sent into a running turn."""

    reply_id: ReplyId
    """The request that brought it."""
    message_id: MessageId
    content: types.Content


class AgentRun(Protocol):
    """One execution of the agent, unary or live, or one turn of a live one."""

    def events(self) -> AsyncGenerator[Event, None]:
        """Yield ADK's events in order."""
        ...

    def hear(self, message: SteeringMessage) -> bool:
        """Give the model a message while it works; False: it is not that kind of run, or over."""
        ...

    def stop(self) -> None:
        """Ask the run to end; a tool that is running is let finish first."""
        ...

    def abandon(self) -> None:
        """End the run now, though a tool still runs."""
        ...


async def _nothing_to_prepare() -> int:
    """Memory needs no tables."""
    return 0


async def _nothing_to_close() -> None:
    """Memory holds no connections."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Everything the engine remembers."""

    calls: Calls
    turns: Turns
    waiting: Waiting
    log: Log
    wake: Wake
    labels: ChatLabels
    lease: float = 30.0
    """Seconds after which a turn lapses whose process does not renew it."""
    prepare: Callable[[], Awaitable[int]] = _nothing_to_prepare
    """Makes or upgrades what the stores live in; idempotent. Returns the version it was of."""
    close: Callable[[], Awaitable[None]] = _nothing_to_close
    """Lets go of what `prepare` opened; idempotent. `serving` does it at its end."""
    serving: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Prepares the stores and keeps them open for as long as the server runs."""
