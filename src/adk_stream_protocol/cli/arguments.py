"""What `adk-stream` can be asked for, and reading it from the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, Literal, NoReturn, TypeAlias

from typing_extensions import override

from adk_stream_protocol.cli.logs import LogFormat
from adk_stream_protocol.lifecycle import CallState
from adk_stream_protocol.server.player import Pace

__all__ = [
    "ApprovalsOptions",
    "CheckOptions",
    "MigrateOptions",
    "Options",
    "ReplayOptions",
    "ServeOptions",
    "parse_arguments",
]

_DATABASE: Final = "sqlite:///adk-stream.db"
_SERVER: Final = "http://127.0.0.1:8000"
_AGENT_HELP: Final = (
    "an ADK agent folder (agent.py with root_agent or app, as `adk web` takes it) or "
    "module:attribute; left out: the demo agent"
)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """`adk-stream serve`."""

    agent: str | None
    """None: the demo."""
    host: str
    port: int
    database: str
    model: str | None
    """The demo's model; None: the offline one."""
    delay: float | None
    """Seconds between two pieces of the offline model's text; None: the default."""
    log_level: str
    log_format: LogFormat = "text"
    record: str | None = None
    """Where all chats are recorded; None: as the environment says."""
    record_text: bool = False
    """Whether the recording keeps the words."""


@dataclass(frozen=True, slots=True)
class ApprovalsOptions:
    """`adk-stream approvals`."""

    action: Literal["list", "show", "explain", "approve", "deny", "resolve", "export"]
    server: str
    headers: tuple[tuple[str, str], ...]
    as_json: bool
    approval_id: str | None = None
    """None for `list` and `export`."""
    status: str | None = None
    """For `list`: only these; None: all."""
    reason: str | None = None
    edited: str | None = None
    """For `approve`: the arguments to run instead, as JSON."""
    shown_hash: str | None = None
    """For `approve`: the hash of the arguments that were shown, if they were edited before."""
    remember: bool = False
    """For `approve`: all later calls of the tool in the chat, too."""
    outcome: Literal["done", "failed"] | None = None
    """For `resolve`: how it ended."""
    result: str | None = None
    """For `resolve`: what the tool would have returned, as JSON."""
    since: str | None = None
    """For `export`: only what happened from then on."""
    with_arguments: bool = False
    """For `export`: the arguments themselves, too."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """`adk-stream check`."""

    agent: str | None
    """None: the demo."""


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """`adk-stream migrate`."""

    database: str


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """`adk-stream replay`."""

    file: str
    host: str
    port: int
    pace: Pace


Options: TypeAlias = ServeOptions | ApprovalsOptions | CheckOptions | MigrateOptions | ReplayOptions


class _Parser(argparse.ArgumentParser):
    """Complains in one line."""

    @override
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}. See: {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def parse_arguments(arguments: Sequence[str] | None = None) -> Options:
    """Return what was asked for; exits for `--help`, `--version` and what makes no sense."""
    parsed = _parser().parse_args(arguments)
    match parsed.command:
        case "serve":
            return ServeOptions(
                agent=parsed.agent,
                host=parsed.host,
                port=parsed.port,
                database=parsed.database,
                model=parsed.model,
                delay=parsed.delay,
                log_level=parsed.log_level.upper(),
                log_format=parsed.log_format,
                record=parsed.record,
                record_text=parsed.record_text,
            )
        case "check":
            return CheckOptions(parsed.agent)
        case "migrate":
            return MigrateOptions(parsed.database)
        case "replay":
            return ReplayOptions(parsed.file, parsed.host, parsed.port, parsed.pace)
        case _:
            return _approvals_options(parsed)


def _approvals_options(parsed: argparse.Namespace) -> ApprovalsOptions:
    status = getattr(parsed, "status", None)
    return ApprovalsOptions(
        action=parsed.action,
        server=parsed.server.rstrip("/"),
        headers=tuple(parsed.header),
        as_json=parsed.json,
        approval_id=getattr(parsed, "id", None),
        status=None if status == "all" else status,
        reason=getattr(parsed, "reason", None),
        remember=getattr(parsed, "remember", False),
        edited=getattr(parsed, "edited", None),
        shown_hash=getattr(parsed, "arguments_hash", None),
        outcome=getattr(parsed, "outcome", None),
        result=getattr(parsed, "result", None),
        since=getattr(parsed, "since", None),
        with_arguments=getattr(parsed, "with_arguments", False),
    )


def _parser() -> _Parser:
    parser = _Parser(
        prog="adk-stream",
        description="Serve any Google ADK agent to the Vercel AI SDK's useChat.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"adk-stream-protocol {version('adk-stream-protocol')}",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_serve(commands.add_parser("serve", help="serve an agent, with a page to talk to it"))
    _add_approvals(commands.add_parser("approvals", help="decide what a running server asks"))
    check = commands.add_parser("check", help="prove that this installation works, offline")
    check.add_argument("agent", nargs="?", metavar="AGENT", help=_AGENT_HELP)
    migrate = commands.add_parser("migrate", help="bring a database up to this release")
    _add_database(migrate)
    _add_replay(commands.add_parser("replay", help="serve a recording back to any client"))
    return parser


def _add_database(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--database",
        default=_DATABASE,
        metavar="URL",
        help="memory: | sqlite:///FILE | postgresql://USER:PASSWORD@HOST/NAME (%(default)s)",
    )


def _add_address(command: argparse.ArgumentParser) -> None:
    command.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    command.add_argument(
        "--port", type=_port, default=8000, help="port to listen on; 0: a free one (%(default)s)"
    )


def _add_replay(replay: argparse.ArgumentParser) -> None:
    replay.add_argument(
        "file", metavar="FILE", help="a recording, made by `serve --record` or by the client"
    )
    _add_address(replay)
    replay.add_argument(
        "--pace",
        choices=["recorded", "at-once"],
        default="recorded",
        help="when the pieces of a reply come (%(default)s)",
    )


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("agent", nargs="?", metavar="AGENT", help=_AGENT_HELP)
    _add_address(serve)
    _add_database(serve)
    serve.add_argument(
        "--model", metavar="NAME", help="run the demo on a Gemini model, such as gemini-2.5-flash"
    )
    serve.add_argument(
        "--delay",
        type=_seconds,
        metavar="SECONDS",
        help="pause between two words of the demo's offline model (0.02)",
    )
    serve.add_argument(
        "--record",
        metavar="FILE",
        help="write what is said on all chats to a new file, with texts masked; see: replay",
    )
    serve.add_argument(
        "--record-text",
        action="store_true",
        help="keep the words in the recording, and hide only what looks like a secret",
    )
    serve.add_argument("--log-level", choices=["debug", "info", "warning", "error"], default="info")
    serve.add_argument(
        "--log-format",
        choices=["text", "json"],
        default="text",
        help="json: one object per line, with the ids as fields (%(default)s)",
    )


def _add_approvals(approvals: argparse.ArgumentParser) -> None:
    common = _Parser(add_help=False)
    common.add_argument("--server", default=_SERVER, metavar="URL", help="(%(default)s)")
    common.add_argument(
        "--header",
        type=_header,
        action="append",
        default=[],
        metavar="'NAME: VALUE'",
        help="sent along, for a server that asks who you are; can be repeated",
    )
    common.add_argument("--json", action="store_true", help="print the server's own JSON")
    actions = approvals.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", parents=[common], help="list approvals")
    listing.add_argument(
        "--status",
        choices=["all", *(state.value for state in CallState)],
        default="pending",
        help="(%(default)s)",
    )
    show = actions.add_parser("show", parents=[common], help="show one approval")
    show.add_argument("id", metavar="ID")
    explain = actions.add_parser(
        "explain", parents=[common], help="tell the life of one approval in sentences"
    )
    explain.add_argument("id", metavar="ID")
    for name in ("approve", "deny"):
        decide = actions.add_parser(name, parents=[common], help=f"{name}; the chat continues")
        decide.add_argument("id", metavar="ID")
        decide.add_argument("--reason", help="told to the agent; at most 500 characters")
        if name == "approve":
            decide.add_argument(
                "--input",
                dest="edited",
                metavar="JSON",
                help="run it with these arguments instead, where the tool allows it",
            )
            decide.add_argument(
                "--arguments-hash",
                metavar="HASH",
                help="of the arguments you saw; needed where an earlier approver edited them",
            )
            decide.add_argument(
                "--remember",
                action="store_true",
                help="approve all later calls of the tool in this chat too, where it allows it",
            )
    _add_resolve(
        actions.add_parser(
            "resolve", parents=[common], help="say how a call ended whose status is unknown"
        )
    )
    export = actions.add_parser(
        "export", parents=[common], help="print the audit trail, one JSON object a line"
    )
    export.add_argument(
        "--since", metavar="TIME", help="such as 2026-11-01 or 2026-11-01T12:00:00Z (all)"
    )
    export.add_argument(
        "--with-arguments", action="store_true", help="the arguments too, not just their hash"
    )


def _add_resolve(resolve: argparse.ArgumentParser) -> None:
    resolve.add_argument("id", metavar="ID")
    outcome = resolve.add_mutually_exclusive_group(required=True)
    for name, what in (("done", "it took effect"), ("failed", "it did not")):
        outcome.add_argument(
            f"--{name}", dest="outcome", action="store_const", const=name, help=what
        )
    resolve.add_argument("--result", metavar="JSON", help="what the tool would have returned")
    resolve.add_argument("--reason", help="how you know; at most 500 characters")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; ports are 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 60")
    return seconds


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or not text.isprintable() or not text.isascii():
        # Not repeated here: it may hold a token.
        raise argparse.ArgumentTypeError("a header is written 'Name: value'")
    return name.strip(), value.strip()
