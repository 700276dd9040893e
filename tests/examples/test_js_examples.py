"""The examples in TypeScript: their types always, and all of them where the network may be used.

`ADK_STREAM_TEST_EXAMPLES=1` installs, builds and starts them, and pays through the page's origin.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from support.examples import EXAMPLES, started
from support.socket import chunks_of, opened
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio

CLIENT = EXAMPLES.parent / "client"
INSTALLED = CLIENT / "ui/node_modules"
NAMES = ("react-ai6", "nextjs")
PAY = "Send 50 dollars to Hanako"

in_full = pytest.mark.skipif(
    os.environ.get("ADK_STREAM_TEST_EXAMPLES") != "1",
    reason="needs the network and minutes: set ADK_STREAM_TEST_EXAMPLES=1",
)


def run(*command: str, cwd: Path) -> None:
    program = shutil.which(command[0])
    assert program is not None, f"the tests need {command[0]}"
    done = subprocess.run(  # noqa: S603  # our own tools, no shell
        [program, *command[1:]], cwd=cwd, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("name", "source"), [("react-ai6", "src/Page.tsx"), ("nextjs", "app/chat.tsx")]
)
def test_the_types_fit(name: str, source: str, tmp_path: Path) -> None:
    # With the packages of the page: what is used of ai is the same in 6 and 7.
    given = json.loads((EXAMPLES / name / "tsconfig.json").read_text())["compilerOptions"]
    kept = {key: given[key] for key in ("lib", "module", "moduleResolution", "jsx", "strict")}
    paths = {
        "ai": [f"{INSTALLED}/ai"],
        "@ai-sdk/react": [f"{INSTALLED}/@ai-sdk/react"],
        "adk-stream-client": [f"{CLIENT}/transport/src/index.ts"],
        "react": [f"{INSTALLED}/@types/react"],
        "react/*": [f"{INSTALLED}/@types/react/*"],
    }
    options = {**kept, "target": "es2022", "skipLibCheck": True, "noEmit": True, "types": []}
    project = {
        "compilerOptions": {**options, "paths": paths},
        "files": [str(EXAMPLES / name / source)],
    }
    (tmp_path / "tsconfig.json").write_text(json.dumps(project))
    run(str(INSTALLED / ".bin/tsc"), "--project", str(tmp_path), cwd=tmp_path)


@in_full
@pytest.mark.parametrize("name", NAMES)
def test_it_installs_and_builds(name: str) -> None:
    run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", cwd=EXAMPLES / name)
    run("npm", "run", "build", cwd=EXAMPLES / name)


@in_full
@pytest.mark.parametrize("name", NAMES)
async def test_a_payment_is_made_through_the_page(name: str) -> None:
    port, server = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    ports = {"PORT": str(port), "SERVER_PORT": str(server)}
    # Both say where they are; the server may be up before or after.
    ready = rf"(?s)127\.0\.0\.1:{port}.*Stop with|Stop with.*127\.0\.0\.1:{port}"
    async with (
        started(name, ready, patience=120, **ports),
        httpx.AsyncClient(base_url=url, timeout=60, headers={"origin": url}) as http,
    ):
        page = await http.get("/")
        body = {"id": "c", "messages": [user_message(PAY)]}
        asked = Answered.of(await http.post("/api/chat", json=body))
        paid = Answered.of(await http.post("/api/chat", json=asked.approving("c", True)))
        # Vite passes sockets on; Next.js does not, so its page opens the server's.
        place = url if name == "react-ai6" else f"http://127.0.0.1:{server}"
        async with opened(place, route="live", headers={"origin": url}) as line:
            await line.say("1", "c2", PAY)
            live = chunks_of(await line.all("1"))

    assert (page.status_code, "text/html" in page.headers["content-type"]) == (200, True)
    assert "Hanako" in paid.text
    assert "tool-approval-request" in [chunk["type"] for chunk in live]
