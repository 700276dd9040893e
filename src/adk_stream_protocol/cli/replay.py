"""`adk-stream replay`."""

from __future__ import annotations

import dataclasses
import socket
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from adk_stream_protocol.cli.arguments import ReplayOptions
from adk_stream_protocol.cli.listening import Server, address_of, listen
from adk_stream_protocol.cli.logs import be_quiet, show_logs
from adk_stream_protocol.engine.drain import Drain
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.playback import Playlist, playlist_of
from adk_stream_protocol.recording import Recording, read_recording
from adk_stream_protocol.server.guard import LOOPBACK
from adk_stream_protocol.server.replay import create_replay
from adk_stream_protocol.server.settings import Settings

__all__ = ["replay"]


@dataclass(frozen=True, slots=True)
class _NoTurns:
    """Nothing has to end before the server can: open streams are cut soon."""

    drain: Drain = field(default_factory=lambda: Drain(0.5))

    async def drained(self) -> bool:
        self.drain.begin()
        return True


def replay(options: ReplayOptions) -> int:
    """Serve a recording until interrupted.

    Raises:
        BadRequest: the file or the address is not usable; nothing was served.
    """
    be_quiet()
    settings = Settings.from_environment()
    if not settings.allowed_hosts:
        hosts = tuple(sorted(LOOPBACK | {options.host.lower()}))
        settings = dataclasses.replace(settings, allowed_hosts=hosts)
    recording = _read(Path(options.file))
    playlist = _playlist(Path(options.file), recording)
    app = create_replay(playlist, pace=options.pace, settings=settings)
    with listen(options.host, options.port) as listener:

        def up() -> None:
            for line in _welcome(recording, playlist, options, listener):
                print(line, flush=True)

        async def run() -> None:
            show_logs("INFO", "text")
            server = Server(app, turns=_NoTurns(), settings=settings, up=up)
            await server.serve_until_told(listener)

        anyio.run(run)
    return 0


def _read(path: Path) -> Recording:
    try:
        # Not `splitlines`: JSON may hold other line ends, such as U+2028.
        return read_recording(path.read_text("utf-8").split("\n"))
    except OSError as error:
        raise BadRequest(
            f"{path} cannot be read: {error.strerror}.", code="bad_recording"
        ) from None
    except UnicodeDecodeError:
        raise BadRequest(f"{path} is no recording: not UTF-8.", code="bad_recording") from None
    except BadRequest as error:
        raise _of_file(path, error) from None


def _playlist(path: Path, recording: Recording) -> Playlist:
    try:
        return playlist_of(recording)
    except BadRequest as error:
        raise _of_file(path, error) from None


def _of_file(path: Path, error: BadRequest) -> BadRequest:
    return BadRequest(f"{path} cannot be replayed. {error.message}", code=error.code)


def _welcome(
    recording: Recording, playlist: Playlist, options: ReplayOptions, listener: socket.socket
) -> list[str]:
    header = recording.header
    masked = ", texts are masked" if header.redacted else ""
    address = address_of(listener, options.host)
    return [
        f"replay of {options.file}",
        f"  recorded  {header.started_at} by {header.by}{masked}",
        f"  chats     {len(playlist.chats)}",
        f"  replies   {len(playlist.replies)}, {_PACES[options.pace]}",
        f"Open {address}/ and say something. Stop with Ctrl+C.",
    ]


_PACES = {"recorded": "at the pace they had", "at-once": "each at once"}
