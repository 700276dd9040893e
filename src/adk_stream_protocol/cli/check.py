"""`adk-stream check`: proves that an installation works, without a key and without a network."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Awaitable, Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import anyio
import httpx
from fastapi import FastAPI
from google.adk.agents.base_agent import BaseAgent
from google.adk.apps.app import App

from adk_stream_protocol.cli.agents import demo_agent, load_agent, model_text
from adk_stream_protocol.cli.arguments import CheckOptions
from adk_stream_protocol.cli.check_talk import Talk, Wrong
from adk_stream_protocol.cli.check_tools import tool_lines
from adk_stream_protocol.cli.listening import Server, address_of, listen
from adk_stream_protocol.cli.logs import be_quiet
from adk_stream_protocol.demo.agent import PaymentBook
from adk_stream_protocol.errors import ClientFault
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import create_app, turns_of

__all__ = ["check"]

_PACKAGES: Final = ("adk-stream-protocol", "google-adk", "google-genai", "fastapi", "uvicorn")
_SECONDS: Final = 30.0
_REINSTALL: Final = "Install again: pip install adk-stream-protocol."
_CORRECT: Final = "Correct the agent, then check again."
_ENVIRONMENT: Final = "Check the ADK_STREAM_ variables, and that nothing blocks 127.0.0.1."
_TELL_US: Final = "Please report this, with the versions above."


def check(options: CheckOptions) -> int:
    """Print what works, and return 0 if all of it does."""
    be_quiet()
    report = _Report()
    anyio.run(_check, _Subject(options.agent), report)
    print("Everything works." if report.good else "Not everything works; see FAILED above.")
    return 0 if report.good else 1


class _Report:
    """Prints what was found, and remembers whether all of it was good."""

    def __init__(self) -> None:
        self.good = True  # False from the first failure on

    async def step(self, what: str, do: Callable[[], Awaitable[str]], *, advice: str) -> None:
        """Print `ok`, or `FAILED` and what to do; after a failure nothing more is tried."""
        if not self.good:
            return
        try:
            with anyio.fail_after(_SECONDS):
                found = await do()
        except (Wrong, ClientFault) as wrong:
            self._failed(what, str(wrong), advice)
        except TimeoutError:
            self._failed(what, f"nothing came for {_SECONDS:.0f} seconds", advice)
        except Exception as error:  # noqa: BLE001  # the edge: a line, not a traceback
            self._failed(what, f"{type(error).__name__}: {error}", advice)
        else:
            first, *rest = found.split("; ")
            print("\n          ".join([f"ok      {what}: {first}", *rest]), flush=True)

    def _failed(self, what: str, why: str, advice: str) -> None:
        self.good = False
        said = " ".join(why.split()).rstrip(".")
        print(f"FAILED  {what}: {said}. {advice}", flush=True)


class _Subject:
    """What is checked."""

    def __init__(self, reference: str | None) -> None:
        self.reference = reference
        self.payments = PaymentBook()
        self._agent: BaseAgent | App | None = None  # None until it is loaded
        self._app: FastAPI | None = None  # None until it is built

    @property
    def agent(self) -> BaseAgent | App:
        assert self._agent is not None
        return self._agent

    @property
    def app(self) -> FastAPI:
        assert self._app is not None
        return self._app

    async def load(self) -> str:
        if self.reference is None:
            self._agent = demo_agent(delay=0, payments=self.payments)
        else:
            self._agent = load_agent(self.reference)
        return ", ".join(filter(None, [self.agent.name, model_text(self.agent)]))

    async def tools(self) -> str:
        return "; ".join(await tool_lines(self.agent)) or "none"

    async def build(self) -> str:
        # Whatever host names the server is given elsewhere, here it is asked by its address.
        settings = dataclasses.replace(Settings.from_environment(), allowed_hosts=())
        self._app = create_app(self.agent, settings=settings)
        return f"{len(self.app.openapi()['paths'])} routes"


async def _check(subject: _Subject, report: _Report) -> None:
    await report.step("versions", _versions, advice=_REINSTALL)
    await report.step("agent", subject.load, advice=_CORRECT)
    if subject.reference is not None:
        await report.step("tools", subject.tools, advice=_CORRECT)
    await report.step("app", subject.build, advice=_ENVIRONMENT)
    if report.good:
        await _check_server(subject, report)


async def _check_server(subject: _Subject, report: _Report) -> None:
    up = anyio.Event()
    with listen("127.0.0.1", 0) as listener:
        server = Server(subject.app, turns=turns_of(subject.app), up=up.set)

        async def serve() -> None:
            await server.serve_until_told(listener)
            up.set()  # It may never have come up; then the next request tells.

        url = address_of(listener, "127.0.0.1")
        async with (
            anyio.create_task_group() as tasks,
            httpx.AsyncClient(base_url=url, timeout=_SECONDS, trust_env=False) as http,
        ):
            tasks.start_soon(serve)
            await up.wait()
            talk = Talk(http, subject.payments)
            await report.step("server", talk.health, advice=_ENVIRONMENT)
            for what, do in talk.steps() if subject.reference is None else ():
                await report.step(what, do, advice=_TELL_US)
            server.should_exit = True


async def _versions() -> str:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            raise Wrong(f"{package} is not installed") from None
    return ", ".join([*found, f"Python {platform.python_version()}"])
