"""Every exception of the package.

    AdkStreamError
    ├── ClientFault                  they broke the protocol; the message is safe to show
    │   ├── BadRequest               the request cannot be understood              400
    │   │   └── BadFrame             a frame of a WebSocket cannot be understood   400
    │   ├── Forbidden                not from here (origin, host), or not for you  403
    │   │   └── NotYours             a call that others decide                     403
    │   ├── NotFound                 no such chat, call or reply, or not yours     404
    │   ├── Conflict                 the real state is another one                 409
    │   │   └── ChatBusy             a turn is running in this chat                409
    │   ├── TooLarge                 over a size limit                             413
    │   ├── UnsupportedMedia         not JSON, or a file type that is not allowed  415
    │   └── TooMany                  over a per-user limit                         429
    └── ServerFault                  we broke; the client sees `public_message`
        ├── ReplyFailed              a reply broke before any of it was sent       500
        ├── StoreLost                the database cannot be reached right now      503
        └── NotRunning               the server was not started, or is stopping    503
            └── Draining             the server ends; others take over             503

A `ClientFault` says what was wrong and what to do. A `ServerFault` keeps its cause for the log.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

__all__ = [
    "AdkStreamError",
    "BadFrame",
    "BadRequest",
    "ChatBusy",
    "ClientFault",
    "Conflict",
    "Draining",
    "Forbidden",
    "NotFound",
    "NotRunning",
    "NotYours",
    "ReplyFailed",
    "ServerFault",
    "StoreLost",
    "TooLarge",
    "TooMany",
    "UnsupportedMedia",
    "telling_loss",
    "trace_of",
]


class AdkStreamError(Exception):
    """The root of everything this package raises on purpose."""

    status: ClassVar[int] = 500
    default_code: ClassVar[str] = "internal"
    retry_after: ClassVar[int | None] = None
    """After how many seconds the same request may succeed; None: that is not known."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code

    @property
    def public_message(self) -> str:
        """The text a client may see."""
        return self.message


class ClientFault(AdkStreamError):
    """The client broke the protocol; its message says what was wrong and what to do."""

    status = 400
    default_code = "bad_request"


class BadRequest(ClientFault):
    """The request cannot be understood, or asks for something that makes no sense."""


class BadFrame(BadRequest):
    """A frame of a WebSocket cannot be understood."""

    default_code = "bad_frame"

    def __init__(
        self, message: str, *, request_id: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.request_id = request_id
        """The request that the frame names; None: it names none."""


class Forbidden(ClientFault):
    """The request comes from a page or host that may not call this server."""

    status = 403
    default_code = "forbidden"


class NotYours(Forbidden):
    """The caller may see the call, and others decide it."""

    default_code = "not_yours"


class NotFound(ClientFault):
    """The thing does not exist, or belongs to another user; a caller cannot tell which."""

    status = 404
    default_code = "not_found"


class Conflict(ClientFault):
    """The request contradicts what is already so."""

    status = 409
    default_code = "conflict"


class ChatBusy(Conflict):
    """Another turn of this chat is running."""

    default_code = "chat_busy"


class TooLarge(ClientFault):
    """A body, part or file is over its limit."""

    status = 413
    default_code = "too_large"


class UnsupportedMedia(ClientFault):
    """The body is not JSON, or a file's type is not allowed."""

    status = 415
    default_code = "unsupported_media"


class TooMany(ClientFault):
    """The user has too many turns or approvals open."""

    status = 429
    default_code = "too_many"


class ServerFault(AdkStreamError):
    """We broke; the cause is for the log, and the client sees a public text."""

    def __init__(self, message: str, *, public_message: str, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self._public_message = public_message

    @property
    def public_message(self) -> str:
        return self._public_message


class ReplyFailed(ServerFault):
    """A reply broke, or was lost; its turn has logged why, and says what the client may know."""

    status = 500
    default_code = "reply_failed"


class StoreLost(ServerFault):
    """The database went away, or takes no connections; what it has stored is not lost."""

    status = 503
    default_code = "store_lost"
    retry_after = 5

    def __init__(
        self,
        message: str = "The database cannot be reached.",
        *,
        public_message: str = "The database cannot be reached. Send the same again in a moment.",
        code: str | None = None,
    ) -> None:
        super().__init__(message, public_message=public_message, code=code)


class NotRunning(ServerFault):
    """The server's lifespan has not started, or the server is stopping."""

    status = 503
    default_code = "not_running"


class Draining(NotRunning):
    """The server was told to end: running turns finish, and no new one begins here."""

    default_code = "draining"
    retry_after = 5

    def __init__(
        self,
        message: str = "The server is draining.",
        *,
        public_message: str = "This server is about to end. Send the same again in a moment.",
        code: str | None = None,
    ) -> None:
        super().__init__(message, public_message=public_message, code=code)


_LOST_STATES: Final = ("08", "57P", "53300")
"""The connection broke; the server is shut down or starts; it takes no more connections."""


@contextmanager
def telling_loss() -> Iterator[None]:
    """Raise `StoreLost` if the statements of the block find no database.

    SQLAlchemy's errors are known by what they carry: ADK's session services raise them too, and
    whoever calls those knows no SQL.
    """
    try:
        yield
    except Exception as error:
        if _is_loss(error):
            raise StoreLost from error
        raise


def _is_loss(error: Exception) -> bool:
    if isinstance(error, OSError):
        # The driver's own, of a server that takes no connections or does not answer.
        return True
    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    return bool(getattr(error, "connection_invalidated", False)) or state.startswith(_LOST_STATES)


def trace_of(error: BaseException) -> str:
    """Return where an exception came from, fit for a log: its type and frames, and its causes'.

    Its message is left out: a tool's or a model's exception may quote arguments or text.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = "".join(f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    told = f"{type(error).__name__}{places}"
    return told if error.__cause__ is None else f"{told}\nbecause of {trace_of(error.__cause__)}"
