"""Drafts: turns that were asked for, as far as a request can say it."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from adk_stream_protocol.identifiers import ApprovalId, ChatId, ReplyId, UserId
from adk_stream_protocol.ports import RunMode, TurnRecord, WaitingRequest
from adk_stream_protocol.wire.requests import BusyPolicy
from adk_stream_protocol.wire.values import JsonObject

if TYPE_CHECKING:
    from adk_stream_protocol.engine.turn import Turn

__all__ = ["ANSWERS", "BARE", "REGENERATE", "Draft"]

ANSWERS: Final = "answers:"
"""How the keys of turns begin that deliver answers; the ids of the approvals follow."""

BARE: Final = "bare:"
"""How the keys of requests begin that say nothing but a message: see `Say.is_bare`."""

REGENERATE: Final = "regenerate:"
"""How the keys of requests for another answer begin."""


async def _nothing_to_settle(_draft: Draft, _turn: Turn) -> None:
    """Most turns deliver no answers."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A turn that was asked for."""

    chat_id: ChatId
    owner: UserId
    key: str
    """Names what is asked, so that a repeated request is recognised."""
    prepare: Callable[[Draft], Awaitable[Turn]]
    settle: Callable[[Draft, Turn], Awaitable[None]] = _nothing_to_settle
    """Called when the turn is over, before the chat is free."""
    repeatable: bool = False
    """True: the same may be asked again once it has ended."""
    delivers: tuple[ApprovalId, ...] = ()
    """The held calls whose answers this turn gives to ADK."""
    over: ReplyId | None = None
    """The lapsed turn's reply that this one takes the place of; None: the chat is free."""
    origin: ReplyId | None = None
    """The first reply of the request, if this one makes up for it."""
    recoveries: int = 0
    """How many turns of the request lapsed before this one."""
    mode: RunMode | None = None
    """How the agent runs; None: as it did in the turn that goes on."""
    previous: ReplyId | None = None
    """The reply of the turn before, once the chat is taken; None: there was none."""
    rewinds: bool = False
    """Whether it takes back earlier turns, and with them what they answered."""
    has_place: bool = False
    """Whether it says where in its chat it stands, so that it cannot stand in a reply that runs."""
    request: JsonObject | None = None
    """The request itself, if it may wait for its chat; None: it may not."""
    waited: bool = False
    """Whether it carries out a request that waited for its chat under the name of its reply."""
    stopped: bool = False
    """Whether it was stopped before it began."""
    reply_id: ReplyId = field(default_factory=lambda: ReplyId(f"reply-{uuid.uuid4()}"))

    def record(self) -> TurnRecord:
        """Return the row that takes the chat."""
        return TurnRecord(
            self.chat_id,
            self.owner,
            self.reply_id,
            self.key,
            origin=self.origin,
            recoveries=self.recoveries,
        )

    def waiting(self, policy: BusyPolicy) -> WaitingRequest | None:
        """Return what is stored if its chat is busy; None: it does not wait."""
        if self.request is None or policy == "reject":
            return None
        return WaitingRequest(
            self.chat_id,
            self.owner,
            self.reply_id,
            self.key,
            request=self.request,
            mode=self.mode or "unary",
            # Only what adds to the conversation can go into a reply that runs.
            policy="queue" if policy == "steer" and (self.rewinds or self.has_place) else policy,
        )

    @property
    def carries(self) -> ReplyId:
        """The reply under whose name its turn takes requests that waited."""
        return self.origin or self.reply_id

    def ids(self) -> dict[str, object]:
        """Return what a log line says of the turn."""
        return {"chat": self.chat_id, "reply": self.reply_id}
