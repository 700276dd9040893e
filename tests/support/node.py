"""Where Node finds the scripts that talk to the real `ai` packages."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["CLIENT_BUILD", "NODE_DIR", "node"]

NODE_DIR = Path(__file__).parents[1] / "conformance"
CLIENT_BUILD = Path(__file__).parents[2] / "client/transport/dist"


def node(script: str, *arguments: str) -> list[str]:
    """Return the command that runs one of the scripts."""
    node = shutil.which("node")
    if node is None:
        raise RuntimeError("the conformance tests need `node` (20 or newer) on the PATH")
    if not (NODE_DIR / "node_modules").is_dir():
        raise RuntimeError(f"the `ai` packages are missing in {NODE_DIR}; run `make install`")
    if not CLIENT_BUILD.is_dir():
        raise RuntimeError(f"the client is not built in {CLIENT_BUILD}; run `make install`")
    return [node, script, *arguments]
