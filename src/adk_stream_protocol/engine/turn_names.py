"""The names that a turn of a live run goes by, in the session and in the ledger."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from adk_stream_protocol.held_calls.run_scope import LiveTurnIds
from adk_stream_protocol.identifiers import InvocationId, MessageId, ReplyId
from adk_stream_protocol.translation.history import stamp

__all__ = ["TurnNames", "now"]


def now() -> int:
    """Return the time in milliseconds since the epoch, by the clock of ADK's events."""
    return int(time.time() * 1000)


@dataclass(frozen=True, slots=True)
class TurnNames:
    """What a turn's events are stored under."""

    reply_id: ReplyId
    message_id: MessageId
    user_message_id: MessageId
    invocation_id: InvocationId
    origin: ReplyId | None = None
    """The first reply of the request; None: this is it."""
    created_at: int | None = None
    """When the turn began, in milliseconds since the epoch; None: it has not."""

    @classmethod
    def new(cls) -> TurnNames:
        """Return the names of a turn that nobody has named."""
        return cls(
            ReplyId(f"reply-{uuid.uuid4()}"),
            MessageId(f"msg-{uuid.uuid4()}"),
            MessageId(f"user-{uuid.uuid4()}"),
            InvocationId(f"e-{uuid.uuid4()}"),
        )

    def ids(self) -> LiveTurnIds:
        """Return what the scope of the run must know of them."""
        marks = stamp(
            user_message=self.user_message_id,
            message=self.message_id,
            reply=self.origin or self.reply_id,
            mode="live",
            created_at=self.created_at,
        )
        return LiveTurnIds(self.invocation_id, marks)
