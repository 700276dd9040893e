"""The page at `/`: what is sent, what it may load, and that it hides nothing."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from adk_stream_protocol.cli.text import visible
from adk_stream_protocol.server.page import page_routes
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

STATIC = Path(__file__).parents[2] / "src/adk_stream_protocol/server/static"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".md": "text/markdown; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


def address_of(file: Path, static: Path = STATIC) -> str:
    path = file.relative_to(static).as_posix()
    return "/" if path == "index.html" else f"/{path}"


FILES = {address_of(file): file for file in sorted(STATIC.rglob("*")) if file.is_file()}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


@pytest.fixture
async def built(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A page as Vite builds it, under a prefix of somebody's app."""
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("SECRET")
    (static / ".hidden").write_text("SECRET")
    (static / "index.html").write_text('<script src="./assets/index-4f2a.js"></script>')
    (static / "assets/index-4f2a.js").write_text("let much = 1;\n" * 1000)
    (static / "assets/font-77aa.woff2").write_bytes(b"wOF2")
    (static / "assets/mark-0b1c.svg").write_text("<svg/>")
    app, page = FastAPI(), FastAPI()
    page.include_router(page_routes(static))
    app.mount("/agent", page)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as http:
        yield http


async def fetched(stage: Stage) -> dict[str, httpx.Response]:
    return {path: await stage.http.get(path) for path in FILES}


async def test_each_file_is_sent_as_what_it_is(stage: Stage) -> None:
    for path, response in (await fetched(stage)).items():
        assert response.status_code == 200, path
        assert response.content == FILES[path].read_bytes()
        assert response.headers["content-type"] == KINDS[FILES[path].suffix]
        assert response.headers["x-content-type-options"] == "nosniff"
        head = await stage.http.head(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["etag"] == response.headers["etag"]


async def test_a_file_that_did_not_change_is_not_sent_again(stage: Stage) -> None:
    for path, response in (await fetched(stage)).items():
        tag = response.headers["etag"]
        for known in (tag, f'"other", W/{tag}'):
            again = await stage.http.get(path, headers={"if-none-match": known})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == tag
        changed = await stage.http.get(path, headers={"if-none-match": '"other"'})
        assert changed.status_code == 200


async def test_who_takes_gzip_gets_less_and_others_get_it_plain(built: httpx.AsyncClient) -> None:
    script = "/agent/assets/index-4f2a.js"
    packed = await built.get(script, headers={"accept-encoding": "br, gzip;q=0.8"})
    plain = await built.get(script, headers={"accept-encoding": "br, gzip;q=0"})

    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) // 10
    assert "content-encoding" not in plain.headers
    assert packed.text == plain.text == "let much = 1;\n" * 1000
    assert packed.headers["vary"] == plain.headers["vary"] == "accept-encoding"
    assert packed.headers["etag"] != plain.headers["etag"]
    font = await built.get("/agent/assets/font-77aa.woff2", headers={"accept-encoding": "gzip"})
    assert (font.headers["content-type"], font.content) == ("font/woff2", b"wOF2")
    assert "content-encoding" not in font.headers


async def test_only_what_has_a_hash_in_its_name_is_kept_unasked(built: httpx.AsyncClient) -> None:
    page = await built.get("/agent/")
    named = re.findall(r'src="\./([^"]+)"', page.text)

    assert page.headers["cache-control"] == "no-cache"
    assert named == ["assets/index-4f2a.js"]
    for name in (*named, "assets/mark-0b1c.svg"):
        asset = await built.get(f"/agent/{name}")
        assert asset.status_code == 200
        assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_nothing_outside_is_sent(built: httpx.AsyncClient) -> None:
    for path in (
        "/agent/../secret.txt",
        "/agent/assets/../../secret.txt",
        "/agent/assets/%2e%2e/%2e%2e/secret.txt",
        "/agent/..%2fsecret.txt",
        "/agent//etc/passwd",
        "/agent/assets/",
        "/agent/.hidden",
        "/agent/index.html/../.hidden",
    ):
        refused = await built.get(path)
        assert refused.status_code == 404, path
        assert "SECRET" not in refused.text


async def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere(stage: Stage) -> None:
    headers = (await stage.http.get("/")).headers
    policy = headers["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))

    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["img-src"] == rules["media-src"] == "'self' data: blob:"
    assert "unsafe" not in policy
    assert "http" not in policy
    allowed = dict(rule.split("=") for rule in headers["permissions-policy"].split(", "))
    assert {name for name, who in allowed.items() if who != "()"} == {"microphone", "geolocation"}
    assert allowed["microphone"] == allowed["geolocation"] == "(self)"


async def test_the_page_holds_to_its_policy(stage: Stage) -> None:
    html = (await stage.http.get("/")).text

    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert not re.search(r"<style|\sstyle=|\son\w+=", html)
    named = {url for url in re.findall(r'(?:src|href)="([^"]+)"', html) if url[:5] != "data:"}
    assert not any(url.startswith("/") for url in named), "it works under a prefix as well"
    assert {f"/{url.removeprefix('./')}" for url in named - {"docs"}} <= set(FILES)
    for path, file in FILES.items():
        if file.suffix in {".html", ".css"}:
            addresses = set(re.findall(r"https?://[\w.]+", file.read_text("utf-8")))
            assert addresses <= {"http://www.w3.org"}, path


async def test_the_page_never_makes_html_of_text() -> None:
    makers = (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "rehype-raw",
    )
    source = Path(__file__).parents[2] / "client/ui/src"
    found = [
        (file.name, maker)
        for file in source.rglob("*.ts*")
        for maker in makers
        if maker.lower() in file.read_text().lower()
    ]
    assert not found


async def test_the_command_line_shows_hidden_characters_as_the_page_does() -> None:
    # The page reads the same file, in client/ui/tests/visible.test.ts.
    pairs = json.loads((Path(__file__).parents[1] / "golden/hidden-characters.json").read_text())
    assert [visible(pair["text"]) for pair in pairs] == [pair["shown"] for pair in pairs]
