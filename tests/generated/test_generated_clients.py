"""Clients that are generated from the live `/openapi.json` compile, and do what they are for."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import anyio
import pytest

from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"
PYTHON_TOOLS = HERE / ".venv/bin"
AI_SDK = HERE.parent / "conformance/node_modules"
PAGE = (HERE.parents[1] / "docs/reference/openapi.md").read_text("utf-8")

PATIENCE = 120
"""Seconds for one command, against hanging."""


async def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Return what a command prints; fails with all it says if it fails."""
    with anyio.fail_after(PATIENCE):
        done = await anyio.run_process(
            [str(word) for word in command],
            cwd=cwd,
            env={**os.environ, **environment},
            check=False,
        )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()


def example(language: str) -> str:
    """Return the example of the page about clients."""
    (code,) = re.findall(rf"^```{language}$(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(code)


async def described(stage: Stage, folder: Path) -> Path:
    """Return a file with the description that a running server gives of itself."""
    path = folder / "openapi.json"
    path.write_bytes((await stage.http.get("/openapi.json")).content)
    return path


def check_story(printed: str) -> None:
    """Check what a client saw; both do the same."""
    seen = json.loads(printed)
    replied = seen.pop("replied")
    assert '"type":"text-delta"' in replied
    assert replied.endswith("data: [DONE]\n\n")
    assert seen == {
        "chats": ["typed"],
        "roles": ["user", "assistant"],
        "parts": [["text"], ["step-start", "text"]],
        "tool": "pay",
        "decided": "denied",
        "conflict": "denied",
        "events": ["open", "deny"],
        "nowhere": "unknown_chat",
        "empty": "no_messages",
    }


async def test_a_client_of_openapi_typescript_compiles_and_runs(tmp_path: Path) -> None:
    node = shutil.which("node")
    assert node is not None, "Node is needed"
    modules = tmp_path / "node_modules"
    modules.mkdir()
    modules.joinpath("openapi-fetch").symlink_to(NODE_MODULES / "openapi-fetch")
    # Only their types are looked at.
    for name in ("ai6", "ai7"):
        modules.joinpath(name).symlink_to(AI_SDK / name)
    for name in ("client.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / name, tmp_path)
    tmp_path.joinpath("example.ts").write_text(example("ts"), "utf-8")
    tools = NODE_MODULES / "openapi-typescript/bin/cli.js", NODE_MODULES / "typescript/bin/tsc"
    async with staged() as stage:
        description = await described(stage, tmp_path)
        await run(node, tools[0], description, "--output", "schema.d.ts", cwd=tmp_path)
        await run(node, tools[1], "--project", tmp_path, cwd=tmp_path)
        printed = await run(node, "built/client.js", stage.url, cwd=tmp_path)
        assert not stage.payments
    check_story(printed)


async def test_a_client_of_openapi_python_client_is_typed_and_runs(tmp_path: Path) -> None:
    shutil.copy(HERE / "client.py", tmp_path)
    tmp_path.joinpath("example.py").write_text(example("text"), "utf-8")
    package = tmp_path / "adk_stream_protocol_client"
    generate: list[str | Path] = [PYTHON_TOOLS / "openapi-python-client", "generate"]
    # It finds ruff, which tidies up what it wrote, by name.
    found = {"PATH": f"{PYTHON_TOOLS}{os.pathsep}{os.environ['PATH']}"}
    mypy: list[str | Path] = [sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull]
    async with staged() as stage:
        description = await described(stage, tmp_path)
        # A warning is about something that it leaves out.
        generate += ["--fail-on-warning", "--meta", "none", "--output-path", package]
        await run(*generate, "--path", description, cwd=tmp_path, **found)
        # The frame around the models and calls is the generator's own, and not checked.
        checked: list[str | Path] = ["client.py", "example.py", package / "api", package / "models"]
        await run(*mypy, "--follow-imports", "silent", *checked, cwd=tmp_path)
        printed = await run(sys.executable, "client.py", stage.url, cwd=tmp_path)
        assert not stage.payments
    check_story(printed)
