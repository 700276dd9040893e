"""Writes down what is said on the chat routes, beside the chats and never in their way."""

from __future__ import annotations

import datetime
import logging
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import FileIO
from itertools import count
from pathlib import Path
from typing import Final

import anyio
from anyio.to_thread import run_sync

from adk_stream_protocol.bell import Bell
from adk_stream_protocol.errors import AdkStreamError, BadRequest, trace_of
from adk_stream_protocol.identifiers import ChatId, RequestId
from adk_stream_protocol.recording import (
    BY_SERVER,
    Header,
    Line,
    Said,
    header_text,
    line_of,
    line_text,
)
from adk_stream_protocol.redaction import Redaction
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.translation.cards import time_text
from adk_stream_protocol.transports.taping import Tape
from adk_stream_protocol.wire.frames import UNNUMBERED, Failed, Send

__all__ = ["Recorder", "check_new", "taken"]

logger = logging.getLogger(__name__)

_MOST: Final = 8192
"""How many lines wait to be written at most; those beyond are left out and counted."""
_MODE: Final = 0o600


def check_new(path: Path) -> None:
    """Return if a recording can be made there.

    Raises:
        BadRequest: there is a file, or no folder.
    """
    if path.exists():
        raise BadRequest(
            f"{path} exists. A recording is never added to: delete the file, or name another.",
            code="bad_recording",
        )
    if not path.parent.is_dir():
        raise BadRequest(f"There is no folder {path.parent}. Make it first.", code="bad_recording")


@contextmanager
def taken(tape: Tape | None, said: Said, chat: ChatId | None) -> Iterator[None]:
    """Note a request, and why it is refused if the block refuses it."""
    if tape is None:
        yield
        return
    tape(said, chat)
    try:
        yield
    except AdkStreamError as error:
        tape(Failed(UNNUMBERED, error.public_message), chat)
        raise


@dataclass(frozen=True, slots=True)
class _Noted:
    at: float
    said: Said
    chat: ChatId | None
    request: str | None


class Recorder:
    """One recording, from when the server begins to when it ends."""

    def __init__(self, path: Path, *, keep_text: bool = False, most: int = _MOST) -> None:
        self._path = path
        self._keep_text = keep_text
        self._most = most
        self._redaction = Redaction(keep_text=keep_text)
        self._connections = count(1)
        self._waiting: deque[_Noted] = deque()
        # How many were left out since something was last written.
        self._left_out = 0
        self._more = Bell()
        # When the recording began; None: it has not, or it has ended.
        self._began: float | None = None

    @classmethod
    def of(cls, settings: Settings) -> Recorder | None:
        """Return what the settings ask for; None: nothing."""
        if not settings.record:
            return None
        return cls(Path(settings.record), keep_text=settings.record_text)

    def tape(self) -> Tape:
        """Return what takes down one connection, or one request."""
        return partial(self._note, f"r{next(self._connections)}")

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Record until the block ends.

        Raises:
            BadRequest: the file cannot be made.
        """
        with _created(self._path) as file:
            started = time_text(datetime.datetime.now(datetime.UTC).timestamp())
            _put(file, header_text(Header(BY_SERVER, started, redacted=not self._keep_text)))
            self._began = time.monotonic()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write_all, file)
                try:
                    yield
                finally:
                    # What was said last is still written.
                    self._began = None
                    self._more.ring()

    def _note(
        self,
        connection: str,
        said: Said,
        chat: ChatId | None,
        request: RequestId | None = UNNUMBERED,
    ) -> None:
        if self._began is None:
            return
        if len(self._waiting) >= self._most:
            self._left_out += 1
            return
        if isinstance(said, Send):
            # All messages of a long chat are not to wait here.
            last = replace(said.request, messages=said.request.messages[-1:])
            said = replace(said, request=last)
        name = None if request is None else "-".join(filter(None, (connection, request)))
        self._waiting.append(_Noted(time.monotonic() - self._began, said, chat, name))
        self._more.ring()

    async def _write_all(self, file: FileIO) -> None:
        thread = anyio.CapacityLimiter(1)
        while self._began is not None or self._waiting:
            if not self._waiting:
                await self._more.wait()
                continue
            batch, self._waiting = self._waiting, deque()
            left_out, self._left_out = self._left_out, 0
            try:
                await run_sync(self._write, file, batch, left_out, limiter=thread)
            except Exception as error:  # noqa: BLE001  # the edge: a full disk ends no chat
                logger.error("recording ended: %s", trace_of(error))  # noqa: TRY400
                self._began = None
                self._waiting.clear()
                return
            if left_out:
                logger.warning("recording left out lines", extra={"lines": left_out})

    def _write(self, file: FileIO, batch: deque[_Noted], left_out: int) -> None:
        texts: list[str] = []
        for noted in batch:
            line = line_of(noted.said, noted.at, chat=noted.chat, request=noted.request)
            if line is not None:
                texts.append(line_text(self._redaction.line(line)))
        if left_out:
            at = round(batch[-1].at, 3)
            texts.append(line_text(Line(at, "out", "left-out", fields={"lines": left_out})))
        _put(file, "".join(texts))


def _created(path: Path) -> FileIO:
    check_new(path)
    try:
        # Nobody else may read it; and never one that is there, or a link to one.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except OSError as error:
        raise BadRequest(
            f"{path} cannot be made: {error.strerror}. Name another.", code="bad_recording"
        ) from None
    # Without a buffer: closing it writes nothing, and so cannot fail on a full disk.
    return FileIO(handle, "w")


def _put(file: FileIO, text: str) -> None:
    unwritten = memoryview(text.encode("utf-8", "replace"))
    while unwritten:
        unwritten = unwritten[file.write(unwritten) or 0 :]
