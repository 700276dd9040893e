"""The page at `/`: what is sent, what it may load, and that it hides nothing."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import httpx
import pytest

from adk_stream_protocol.cli.text import visible
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

STATIC = Path(__file__).parents[2] / "src/adk_stream_protocol/server/static"
FILES = {
    "/": "text/html; charset=utf-8",
    "/page.css": "text/css; charset=utf-8",
    "/page.js": "text/javascript; charset=utf-8",
}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


async def fetched(stage: Stage) -> dict[str, httpx.Response]:
    return {path: await stage.http.get(path) for path in FILES}


async def test_each_file_is_sent_as_what_it_is(stage: Stage) -> None:
    responses = await fetched(stage)

    assert {path: got.headers["content-type"] for path, got in responses.items()} == FILES
    for path, response in responses.items():
        assert response.status_code == 200, path
        assert response.headers["x-content-type-options"] == "nosniff"
        head = await stage.http.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["etag"] == response.headers["etag"]


async def test_a_file_that_did_not_change_is_not_sent_again(stage: Stage) -> None:
    for path, response in (await fetched(stage)).items():
        tag = response.headers["etag"]
        assert response.headers["cache-control"] == "no-cache"
        for known in (tag, f'"other", W/{tag}'):
            again = await stage.http.get(path, headers={"if-none-match": known})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
        changed = await stage.http.get(path, headers={"if-none-match": '"other"'})
        assert changed.status_code == 200


async def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere(stage: Stage) -> None:
    policy = (await stage.http.get("/")).headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_the_page_holds_to_its_policy(stage: Stage) -> None:
    responses = await fetched(stage)
    html = responses["/"].text

    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<style|\sstyle=|\son\w+=", html)
    assert set(re.findall(r'(?:src|href)="([^"]+)"', html)) - {"docs"} == {
        "page.css",
        "page.js",
        next(url for url in re.findall(r'href="([^"]+)"', html) if url.startswith("data:image")),
    }
    for path, response in responses.items():
        addresses = set(re.findall(r"https?://[\w.]+", response.text))
        assert addresses <= {"http://www.w3.org"}, path


async def test_the_script_never_makes_html_of_text() -> None:
    script = (STATIC / "page.js").read_text()
    makers = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
    assert [maker for maker in makers if maker in script] == []


async def test_the_page_shows_hidden_characters_as_the_command_line_does() -> None:
    texts = [
        "plain text, 日本語 and émoji 🎉",
        "Bob\u202eevil",
        "zero\u200bwidth\u200djoiner\ufeff",
        "tag\U000e0041 selector\ufe0f\U000e0101",
        "bell\x07 escape\x1b delete\x7f next\x85",
        "filler\u3164\u115f\u2800 line\u2028 soft\u00ad",
    ]
    assert await shown_by_the_page(texts) == [visible(text) for text in texts]
    # On a card a line break is a line break; in a terminal's one line it is not.
    assert await shown_by_the_page(["two\nlines\tand\rmore"]) == ["two\nlines\tand⟦U+000D⟧more"]


async def shown_by_the_page(texts: list[str]) -> list[str]:
    node = shutil.which("node")
    assert node is not None, "the tests need Node"
    head = (STATIC / "page.js").read_text().partition("// Talking to the server.")[0]
    program = f"{head}\nconsole.log(JSON.stringify({json.dumps(texts)}.map(visible)));"
    with anyio.fail_after(20):
        done = await anyio.run_process([node, "-"], input=program.encode())
    shown: list[str] = json.loads(done.stdout)
    return shown
