"""The built wheel, installed where there is neither Node nor our source: it serves the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import anyio
import httpx
import pytest
from anyio.streams.text import TextReceiveStream

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/adk_stream_protocol"


def run(*command: str | Path) -> None:
    done = subprocess.run(  # noqa: S603  # our own tools, no shell
        [str(word) for word in command], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", made, ROOT)
    return next(made.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel; what it depends on is borrowed from the tests' own."""
    place = tmp_path_factory.mktemp("installed")
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin/python"
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel
    )
    # A folder that is named in a .pth file is searched last, and its own .pth files, one of which
    # leads to our source, are not read.
    library = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (library / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return place


def test_the_wheel_holds_the_page_and_nothing_but_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    page = {
        f"adk_stream_protocol/{file.relative_to(SOURCE).as_posix()}"
        for file in (SOURCE / "server/static").rglob("*")
        if file.is_file()
    }
    assert "adk_stream_protocol/server/static/index.html" in page
    assert page <= names
    assert "adk_stream_protocol/chunks.schema.json" in names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"adk_stream_protocol"}
    assert not [name for name in names if name.endswith((".ts", ".tsx", ".map", ".pyc"))]


async def test_an_installed_server_shows_its_page_without_node(
    installed: Path, tmp_path: Path
) -> None:
    command = installed / "bin/adk-stream"
    environment = {"PATH": str(installed / "bin"), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    told = ""
    with anyio.fail_after(60):
        async with await anyio.open_process(
            [str(command), "serve", "--port", "0", "--database", "memory:"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=None,
        ) as server:
            try:
                assert server.stdout is not None
                async for piece in TextReceiveStream(server.stdout):
                    told += piece
                    if "Stop with Ctrl+C." in told:
                        break
                url = told.rpartition("Open ")[2].partition("/ and")[0]
                async with httpx.AsyncClient(base_url=url) as http:
                    page = await http.get("/")
                    named = re.findall(r'(?:src|href)="(?!data:|docs)([^"]+)"', page.text)
                    files = [await http.get(f"/{name}") for name in named]
            finally:
                server.terminate()

    assert page.status_code == 200
    assert page.content == (SOURCE / "server/static/index.html").read_bytes()
    assert len(named) >= 2
    assert [file.status_code for file in files] == [200] * len(named)


def test_what_is_served_is_what_was_installed(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603  # our own tools, no shell
        [
            str(installed / "bin/python"),
            "-c",
            "import adk_stream_protocol, shutil; "
            "print(adk_stream_protocol.__file__, shutil.which('node'))",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name == "HOME"}
        | {"PATH": str(installed / "bin")},
    )
    place, node = done.stdout.split()
    assert Path(place).is_relative_to(installed)
    assert node == "None"
