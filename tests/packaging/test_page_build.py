"""The committed page: it is what the source builds to, and no larger than it may be."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UI = ROOT / "client/ui"
PAGE = ROOT / "src/adk_stream_protocol/server/static"
LARGEST = 350_000
"""Bytes, packed, of everything that the page loads."""


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def test_the_committed_page_is_what_its_source_builds_to(tmp_path: Path) -> None:
    npx = shutil.which("npx")
    assert npx is not None, "Node is needed to work on the page"
    command = [npx, "vite", "build", "--outDir", str(tmp_path), "--logLevel", "warn"]
    subprocess.run(command, cwd=UI, check=True, timeout=120)  # noqa: S603  # our own tools
    built, committed = files_of(tmp_path), files_of(PAGE)
    assert sorted(built) == sorted(committed), "The page is stale: run `make ui`, and commit it."
    stale = [name for name, content in built.items() if content != committed[name]]
    assert not stale, "The page is stale: run `make ui`, and commit it."


def test_the_page_is_small() -> None:
    loaded = [content for name, content in files_of(PAGE).items() if name != "licenses.md"]
    packed = sum(len(gzip.compress(content)) for content in loaded)
    assert packed < LARGEST


@pytest.mark.parametrize("name", sorted(files_of(PAGE)))
def test_the_page_loads_nothing_from_another_host(name: str) -> None:
    text = (PAGE / name).read_text()
    loads = re.findall(
        r"""(?:src|href)=["'](https?:[^"']+)|@import\s|url\((?:["']?)https?:""", text
    )
    assert not loads
