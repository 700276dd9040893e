"""Pages of front ends that nobody here wrote, and the server behind them."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio
from google.adk.agents.llm_agent import LlmAgent
from playwright.async_api import Locator, Page, Request, expect
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import create_app
from support.scripted import ScriptedModel
from support.serving import serving
from support.stage import Stage

__all__ = [
    "FRONT_ENDS",
    "PAGES",
    "PATIENCE_MS",
    "ClientPage",
    "FrontEnd",
    "Open",
    "PageServer",
    "new_id",
    "page_server",
]

PATIENCE_MS: Final = 60_000

PAGES: Final = Path(__file__).parents[1] / "clients/dist"


@dataclass(frozen=True)
class FrontEnd:
    """A page, by its folder below `tests/clients/pages` and the `ai` it was built with."""

    page: str
    line: str
    names_chats: bool = True
    """Whether the page's address names the chat from the beginning."""
    edits_in_place: bool = False
    """Whether an edited message is written where it stood, and not where new ones are."""
    query: str = ""
    """What else the address says."""

    def __str__(self) -> str:
        return f"{self.page}-{self.line}"

    def path(self) -> str:
        """Return where the page is served, with a chat that is new."""
        query = f"?chat={new_id()}{self.query}" if self.names_chats else ""
        return f"/clients/{self.line}/{self.page}/{query}"


FRONT_ENDS: Final = (
    FrontEnd("react", "ai7"),
    FrontEnd("react6", "ai6"),
    FrontEnd("vue", "ai7"),
    FrontEnd("vue6", "ai6"),
    FrontEnd("svelte", "ai7"),
    FrontEnd("svelte", "ai6"),
    FrontEnd("angular", "ai7"),
    FrontEnd("elements", "ai7"),
    FrontEnd("assistant", "ai7", names_chats=False, edits_in_place=True),
)


@dataclass
class PageServer:
    """A running server with the pages on its own origin, and the same pages on another one."""

    url: str
    other_origin: str
    stage: Stage

    def reset(self) -> None:
        """Make everything wait again that an earlier story let go on."""
        stage = self.stage
        stage.payments.clear()
        stage.more = anyio.Event()
        stage.tool_started, stage.tool_may_end = threading.Event(), threading.Event()
        stage.model.script = stage.script()
        stage.model.prompts.clear()


def _user_of(connection: HTTPConnection) -> str | None:
    _, _, token = connection.headers.get("authorization", "").partition("Bearer ")
    return token or connection.cookies.get("user")


@asynccontextmanager
async def page_server() -> AsyncIterator[PageServer]:
    """Serve the agent of the stories and all pages that were built."""
    assert PAGES.is_dir(), "The pages are not built: make install"
    pages = StaticFiles(directory=PAGES, html=True)
    stage = Stage()
    stage.model = ScriptedModel(script=stage.script())
    agent = LlmAgent(name="stage", model=stage.model, tools=list(stage.tools()))
    async with serving(Starlette(routes=[Mount("/clients", pages)])) as other_origin:
        settings = Settings(allowed_origins=(other_origin,))
        app = create_app(agent, identify=_user_of, settings=settings)
        app.mount("/clients", pages)
        async with serving(app) as url:
            try:
                yield PageServer(url, other_origin, stage)
            finally:
                stage.go_on()


@dataclass
class ClientPage:
    """A front end in a browser, used as a person uses it."""

    page: Page
    front_end: FrontEnd
    posts: list[str] = field(default_factory=list)
    """The bodies of all chat requests so far."""

    def watch(self) -> None:
        """Note what the page posts from now on."""
        self.page.on("request", self._on_request)

    def _on_request(self, request: Request) -> None:
        if request.method == "POST" and re.search(r"/(api/chat|stream)(\?|$)", request.url):
            self.posts.append(request.post_data or "")

    async def send(self, text: str) -> None:
        """Type a message and send it."""
        await self.page.get_by_role("textbox", name="Message", exact=True).fill(text)
        await self.button("Send").click()

    async def edit(self, earlier: str, text: str) -> None:
        """Put another message in the place of an earlier one."""
        message = self.message("user").filter(has_text=earlier)
        await message.get_by_role("button", name="Edit").click()
        if self.front_end.edits_in_place:
            await self.page.get_by_role("textbox", name="Edited message").fill(text)
            await self.button("Save").click()
        else:
            await self.send(text)

    @property
    def chat_id(self) -> str:
        """The chat that the page's address names."""
        return parse_qs(urlsplit(self.page.url).query)["chat"][0]

    def button(self, name: str) -> Locator:
        """Return a button."""
        return self.page.get_by_role("button", name=name, exact=True)

    def message(self, role: str) -> Locator:
        """Return the messages of a role."""
        return self.page.get_by_role("article", name=role, exact=True)

    def tool(self, name: str) -> Locator:
        """Return the calls of a tool."""
        return self.page.get_by_role("group", name=name, exact=True)

    async def sees(self, text: str) -> None:
        """Wait until the last message of the agent holds a text."""
        await expect(self.message("assistant").last).to_contain_text(text)

    async def sees_states(self, name: str, *states: str) -> None:
        """Wait until the calls of a tool are in these states, in order."""
        await expect(self.tool(name)).to_contain_text([f": {state}" for state in states])
        await expect(self.tool(name)).to_have_count(len(states))

    async def is_done(self) -> None:
        """Wait until nothing runs, and there is no error."""
        await expect(self.page.get_by_role("main")).to_have_attribute("aria-busy", "false")
        await expect(self.page.get_by_role("alert")).to_have_count(0)

    async def transcript(self) -> list[str]:
        """Return all messages as they are shown."""
        return [
            f"{await message.get_attribute('aria-label')}: {await message.inner_text()}"
            for message in await self.page.get_by_role("article").all()
        ]

    async def tools_run(self) -> list[str]:
        """Return which tools ran in the page since it was loaded."""
        found: list[str] = await self.page.evaluate("window.ran")
        return found

    async def reload(self) -> None:
        """Load the page anew."""
        await self.page.reload()
        await self.page.get_by_role("main").wait_for()

    async def is_the_same_after_a_reload(self) -> None:
        """Check that what was streamed is what is kept, and that reading it runs nothing."""
        await self.is_done()
        shown = await self.transcript()
        posts = len(self.posts)
        await self.reload()
        await expect(self.page.get_by_role("article")).to_have_count(len(shown))
        await self.is_done()
        assert await self.transcript() == shown
        assert await self.tools_run() == []
        assert len(self.posts) == posts


Open: TypeAlias = Callable[..., Awaitable[ClientPage]]


def new_id() -> str:
    """Return a name that nobody has."""
    return uuid.uuid4().hex
