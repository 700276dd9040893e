"""What stands between a page and the agent's server: Vite's proxy, the routes of a Next.js app."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from playwright.async_api import expect

from support.clients import FrontEnd, Open, PageServer, new_id
from support.stage import user_message

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
REACT = FrontEnd("react", "ai7")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def running(script: str, *arguments: str, server: PageServer) -> AsyncIterator[Process]:
    """Run a script of Node that is told where the agent's server is."""
    node = shutil.which("node")
    assert node is not None, "the tests need node"
    environment = os.environ | {"AGENT_SERVER": server.url, "NO_COLOR": "1"}
    command = [node, script, *arguments]
    async with await anyio.open_process(command, cwd=HERE, env=environment) as process:
        try:
            yield process
        finally:
            process.terminate()


async def line_of(process: Process, pattern: str) -> str:
    """Wait for a line of its output, and return what the pattern finds in it."""
    assert process.stdout is not None
    lines = BufferedByteReceiveStream(process.stdout)
    with anyio.fail_after(60):
        while True:
            line = (await lines.receive_until(b"\n", 10_000)).decode()
            if found := re.search(pattern, line):
                return found[0]


@pytest.fixture(scope="module")
async def setups(served_pages: PageServer) -> AsyncIterator[Mapping[str, str]]:
    """The addresses of a Next.js app in three set-ups."""
    async with running("dist/next/serve.js", server=served_pages) as process:
        yield json.loads(await line_of(process, r"{.*}"))


async def test_vites_proxy_passes_everything_on_in_its_short_form(
    open_page: Open, server: PageServer
) -> None:
    options = ("--config", "vite/vite.config.ts", "--base", "/clients/", "--outDir", "dist")
    where = ("--host", "127.0.0.1", "--port", str(free_port()), "--strictPort")
    vite = "node_modules/vite/bin/vite.js"
    async with running(vite, "preview", *options, *where, server=server) as process:
        url = await line_of(process, r"http://127\.0\.0\.1:\d+")
        client = await open_page(REACT, url=url)
        await client.send("long")
        await client.sees("One.")
        server.stage.more.set()
        await client.sees("One. Two.")
        await client.is_done()
        await client.send("pay")
        await client.button("Approve").click()
        await client.sees("Told.")
        await client.is_the_same_after_a_reload()
    assert server.stage.payments == [5]


@pytest.mark.parametrize("page", [REACT, FrontEnd("react6", "ai6")], ids=str)
async def test_a_route_that_forwards_passes_everything_on_as_it_comes(
    open_page: Open, server: PageServer, setups: Mapping[str, str], page: FrontEnd
) -> None:
    client = await open_page(page, url=setups["forward"])
    await client.send("long")
    await client.sees("One.")
    await client.reload()
    await client.sees("One.")
    server.stage.more.set()
    await client.sees("One. Two.")
    await client.is_done()
    await client.send("pay")
    await client.button("Approve").click()
    await client.sees("Told.")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [5]


async def test_who_hangs_up_on_the_route_can_go_on(
    open_page: Open, setups: Mapping[str, str]
) -> None:
    client = await open_page(REACT, url=setups["forward"])
    await client.send("long")
    await client.sees("One.")
    await client.button("Stop").click()
    await client.is_done()
    await client.send("hi")
    await client.sees("Hello.")
    await client.is_the_same_after_a_reload()


async def test_a_route_that_merges_adds_its_own_part_to_the_reply(
    open_page: Open, server: PageServer, setups: Mapping[str, str]
) -> None:
    client = await open_page(REACT, url=setups["merge"])
    body = {"id": new_id(), "messages": [user_message("hi")], "trigger": "submit-message"}
    reply = await client.page.request.post(f"{setups['merge']}/api/chat", data=body)
    types = re.findall(r'"type":"([^"]+)"', await reply.text())
    assert [types[0], types[1], types[-1]] == ["data-greeting", "start", "finish"]
    await client.send("pay")
    await client.button("Approve").click()
    await client.sees("Told.")
    await client.sees_states("pay", "output-available")
    await client.is_the_same_after_a_reload()
    assert server.stage.payments == [5]
    assert len(client.posts) == 2


async def test_a_route_with_a_database_of_its_own_keeps_the_same_messages(
    open_page: Open, server: PageServer, setups: Mapping[str, str]
) -> None:
    client = await open_page(REACT, url=setups["persist"])
    await client.send("pay")
    await client.sees_states("pay", "approval-requested")
    await client.is_the_same_after_a_reload()
    await client.button("Approve").click()
    await client.sees("Told.")
    await client.is_done()
    await client.send("hi")
    await client.sees("Hello.")
    await expect(client.message("assistant")).to_have_count(2)
    await client.is_the_same_after_a_reload()
    path = f"/api/chats/{client.chat_id}"
    kept = await (await client.page.request.get(server.url + path)).json()
    own = await (await client.page.request.get(setups["persist"] + path)).json()
    assert [each["id"] for each in own["messages"]] == [each["id"] for each in kept["messages"]]
