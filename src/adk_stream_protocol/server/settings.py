"""Every setting of the server, its default and what it is for."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from adk_stream_protocol.engine.live_runs import Modality
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.stores.sql import Keeping
from adk_stream_protocol.wire.requests import BusyPolicy

__all__ = ["Settings"]

_PREFIX = "ADK_STREAM_"
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be set. Times are in seconds, sizes in bytes.

    Each can be given as an environment variable, `ADK_STREAM_` and the name in capitals; lists
    are comma-separated.
    """

    approval_seconds: float = 3600.0
    """How long an approval waits before it expires."""
    turn_seconds: float = 600.0
    """How long a turn may run before it is stopped."""
    tool_seconds: float = 120.0
    """How long a tool may run before its turn ends without it and its outcome is unknown."""
    keep_alive_seconds: float = 15.0
    """How often an idle stream sends a comment, so that proxies keep it open."""
    reply_seconds: float = 3600.0
    """How long an ended reply can be resumed."""
    record_seconds: float = 90 * 86400.0
    """How long settled calls are kept, and so how far back the audit trail reaches."""
    lease_seconds: float = 30.0
    """How long a turn may be silent before another instance takes it over."""
    drain_seconds: float = 20.0
    """How long running turns may go on when the server is told to end."""
    send_seconds: float = 20.0
    """How long a WebSocket may take no frame before it is dropped; its replies can be resumed."""
    ping_seconds: float = 20.0
    """How often `adk-stream serve` pings a WebSocket, and how long it waits for the answer."""
    live_hold_seconds: float = 25.0
    """How long a call waits inside a live run; after that the run ends, and the call goes on
    waiting without it."""
    live_idle_seconds: float = 60.0
    """How long a live run goes on when nobody says anything."""
    live_leave_seconds: float = 5.0
    """How long a live run goes on when nobody has its chat open."""
    live_modality: Modality = "auto"
    """What live models answer with: `text`, `audio`, or `auto`: sound while somebody listens."""
    body_bytes: int = 1024 * 1024
    """The largest request without files."""
    body_with_files_bytes: int = 20 * 1024 * 1024
    """The largest request with files."""
    frame_bytes: int = 1024 * 1024
    """The largest frame of a WebSocket."""
    json_depth: int = 32
    """How deep a request's JSON may nest."""
    message_parts: int = 64
    """How many parts the newest user message may have."""
    text_bytes: int = 64 * 1024
    """The longest text part of the newest user message."""
    file_bytes: int = 5 * 1024 * 1024
    """The largest file of the newest user message."""
    busy: BusyPolicy = "interrupt"
    """What a message does to a reply that runs in its chat: `interrupt`, `queue`, `steer` or
    `reject`. A request may say otherwise."""
    leave_seconds: float = math.inf
    """How long a reply runs on without a reader before it is stopped; `inf`: to its end."""
    max_turns: int = 4
    """How many turns of one user may run at a time; those that were asked to stop do not count."""
    max_waiting: int = 20
    """How many messages may wait for one chat."""
    max_pending: int = 20
    """How many approvals may wait for one user."""
    max_sockets: int = 10
    """How many WebSockets one user may have open, in one process."""
    max_llm_calls: int = 25
    """How often a turn may call the model."""
    tool_threads: int = 8
    """How many sync tools may run at a time; they never block the event loop."""
    direct_text: bool = True
    """Whether pieces of text go from the model to the reply without passing through ADK one by one,
    and pieces of text or sound that a live model has ready at the same time go on as one, where
    neither the agent nor a plugin looks at each."""
    record: str = ""
    """The file to record all chats in; empty: none. It must not exist."""
    record_text: bool = False
    """Whether a recording keeps the words; secrets are hidden all the same."""
    metrics: bool = True
    """Whether `/metrics` is served."""
    allowed_origins: tuple[str, ...] = ()
    """Pages besides our own that may call this server, such as `https://app.example.com`."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names this server answers to; empty: any. `adk-stream serve` sets it.

    Pages of these hosts may call it through a proxy that changes the `Host`; if it is empty, pages
    of loopback may."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Return the settings that the environment gives; defaults for the rest.

        Raises:
            BadRequest: a variable's value is not of the setting's kind; the message names it.
        """
        given = os.environ if environment is None else environment
        values: dict[str, object] = {}
        for setting in dataclasses.fields(cls):
            name = f"{_PREFIX}{setting.name.upper()}"
            if name in given:
                values[setting.name] = _parsed(name, given[name], setting.default)
        return dataclasses.replace(cls(), **values)  # type: ignore[arg-type]  # parsed by kind

    def keeping(self) -> Keeping:
        """Return how long the stores keep what."""
        return Keeping(
            replies=self.reply_seconds, calls=self.record_seconds, lease=self.lease_seconds
        )


def _parsed(name: str, text: str, default: object) -> object:
    if isinstance(default, tuple):
        return tuple(item.strip() for item in text.split(",") if item.strip())
    if isinstance(default, str):
        return _parsed_text(name, text, default)
    if isinstance(default, bool):
        if text.strip().lower() not in _BOOLEANS:
            raise BadRequest(f"{name} must be true or false, not {text!r}.", code="bad_setting")
        return _BOOLEANS[text.strip().lower()]
    kind = int if isinstance(default, int) else float
    try:
        value = kind(text)
    except ValueError:
        raise BadRequest(f"{name} must be a number, not {text!r}.", code="bad_setting") from None
    if value <= 0:
        raise BadRequest(f"{name} must be more than 0, not {text!r}.", code="bad_setting")
    return value


def _parsed_text(name: str, text: str, default: str) -> str:
    for choices in (get_args(Modality), get_args(BusyPolicy)):
        if default in choices and text not in choices:
            known = f"{', '.join(choices[:-1])} or {choices[-1]}"
            raise BadRequest(f"{name} must be {known}, not {text!r}.", code="bad_setting")
    return text
