"""`adk-stream serve`."""

from __future__ import annotations

import dataclasses
import os
import socket
import threading
from importlib.metadata import version
from pathlib import Path

import anyio
from google.adk.agents.base_agent import BaseAgent
from google.adk.apps.app import App

from adk_stream_protocol.cli.agents import (
    DEMO_RULES,
    demo_agent,
    gemini_demo_agent,
    load_agent,
    model_text,
)
from adk_stream_protocol.cli.arguments import ServeOptions
from adk_stream_protocol.cli.heap import settle_heap
from adk_stream_protocol.cli.listening import Server, address_of, listen
from adk_stream_protocol.cli.logs import be_quiet, show_logs, warn
from adk_stream_protocol.cli.switching import switch_soon
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.databases import OpenDatabase, open_database
from adk_stream_protocol.server.guard import LOOPBACK
from adk_stream_protocol.server.recorder import check_new
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app, turns_of
from adk_stream_protocol.stores.opening import database_text, parse_database

__all__ = ["serve"]

_DELAY = 0.02
_THREADS = 2.0
"""Seconds that the threads of tools have after everything else has ended."""


def serve(options: ServeOptions) -> int:
    """Serve until interrupted.

    Raises:
        BadRequest: the agent, database or address is not usable; nothing was served.
    """
    be_quiet()
    _check(options)
    settings = _settings(options)
    database = parse_database(options.database)
    agent = _agent(options)
    with listen(options.host, options.port) as listener:

        async def run() -> None:
            async with open_database(database, settings.keeping()) as opened:
                show_logs(options.log_level, options.log_format)
                has_cut_off = await _serve(agent, opened, settings, listener, options)
            if has_cut_off:
                _leave_threads()

        anyio.run(run)
    return 0


def _check(options: ServeOptions) -> None:
    if options.agent is not None and options.model is not None:
        raise BadRequest(
            "--model is for the demo; an agent of your own names its model itself. Leave out "
            "--model, or AGENT."
        )
    if options.delay is not None and (options.agent is not None or options.model is not None):
        raise BadRequest("--delay is for the demo's offline model. Leave it out.")


def _settings(options: ServeOptions) -> Settings:
    settings = Settings.from_environment()
    if options.record is not None:
        settings = dataclasses.replace(settings, record=options.record)
    if options.record_text:
        settings = dataclasses.replace(settings, record_text=True)
    if settings.record:
        check_new(Path(settings.record))
    elif options.record_text:
        raise BadRequest("--record-text is for --record FILE. Name the file, too.")
    if settings.allowed_hosts:
        return settings
    hosts = tuple(sorted(LOOPBACK | {options.host.lower()}))
    return dataclasses.replace(settings, allowed_hosts=hosts)


def _agent(options: ServeOptions) -> BaseAgent | App:
    if options.agent is not None:
        return load_agent(options.agent)
    if options.model is not None:
        return gemini_demo_agent(options.model)
    return demo_agent(delay=_DELAY if options.delay is None else options.delay)


async def _serve(
    agent: BaseAgent | App,
    opened: OpenDatabase,
    settings: Settings,
    listener: socket.socket,
    options: ServeOptions,
) -> bool:
    """Serve; return whether turns were cut off at the end."""
    try:
        app = create_app(
            agent,
            tools=DEMO_RULES if options.agent is None else None,
            settings=settings,
            services=Services(sessions=opened.sessions),
            stores=opened.stores,
        )
    except ValueError as error:
        said = " ".join(str(error).split())
        raise BadRequest(f"The agent {agent.name} cannot be served: {said}") from error

    def up() -> None:
        for line in _welcome(agent, listener, options, settings):
            print(line, flush=True)
        for text in _warnings(settings, options):
            warn(text, options.log_format)

    server = Server(app, turns=turns_of(app), settings=settings, up=up)
    settle_heap()
    switch_soon()
    await server.serve_until_told(listener)
    return server.has_cut_off


def _leave_threads() -> None:
    # A tool that hangs in a thread cannot be cancelled, and Python would wait for it. Everything
    # is closed by now, and its call's outcome is recorded as not known.
    end = threading.Timer(_THREADS, os._exit, [0])
    end.daemon = True
    end.start()


def _welcome(
    agent: BaseAgent | App, listener: socket.socket, options: ServeOptions, settings: Settings
) -> list[str]:
    address = address_of(listener, options.host)
    model = model_text(agent)
    is_offline = options.agent is None and options.model is None
    note = " (a small rule-based model: no key, no network)" if is_offline else ""
    return [
        f"adk-stream-protocol {version('adk-stream-protocol')}",
        f"  agent     {agent.name}",
        *([f"  model     {model}{note}"] if model else []),
        f"  database  {database_text(parse_database(options.database))}",
        *([f"  recording {_recording_text(settings)}"] if settings.record else []),
        f"  API       {address}/docs",
        f"Open {address}/ and say something. Stop with Ctrl+C.",
    ]


def _recording_text(settings: Settings) -> str:
    what = "what people say is in it" if settings.record_text else "texts are masked"
    return f"{settings.record} ({what})"


def _warnings(settings: Settings, options: ServeOptions) -> list[str]:
    if options.host in LOOPBACK:
        return []
    hosts = ", ".join(settings.allowed_hosts)
    return [
        f"{options.host} can be reached by others, and everybody is one user: all see "
        "the same chats and can approve the same calls. For people who are not you, use "
        "create_app(agent, identify=...).",
        f"requests are answered for the host names {hosts} only. Set "
        "ADK_STREAM_ALLOWED_HOSTS=name,name to change that.",
    ]
