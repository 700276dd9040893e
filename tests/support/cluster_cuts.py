"""Replies that were cut, as the real `ai` clients assemble them. Node is started once."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

__all__ = ["Assembled", "CutReply", "assemble"]

_SCRIPT = Path(__file__).parents[1] / "cluster" / "assemble.mjs"


@dataclass(frozen=True)
class CutReply:
    """The bytes of a reply, and after how many of them its readers were cut off."""

    name: str
    whole: bytes
    cuts: Sequence[int]
    posted: bool
    """Whether readers were cut off from the response to a POST; else from a resumed stream."""

    def line(self) -> str:
        """Return what the script reads."""
        return json.dumps(
            {
                "name": self.name,
                "whole": base64.b64encode(self.whole).decode(),
                "cuts": list(self.cuts),
                "posted": self.posted,
            }
        )


@dataclass(frozen=True)
class Assembled:
    """What one version made of a reply, uncut, and of which cuts it made something else."""

    name: str
    version: str
    message: dict[str, Any] | None
    different: list[dict[str, Any]]


async def assemble(replies: Sequence[CutReply]) -> list[Assembled]:
    """Read every reply with every version, whole and cut everywhere it was."""
    node = shutil.which("node")
    assert node is not None, "these tests need `node` (20 or newer) on the PATH"
    done = await anyio.run_process(
        [node, str(_SCRIPT)],
        input="".join(f"{reply.line()}\n" for reply in replies).encode(),
        stderr=None,
    )
    # Not `splitlines`: JSON may hold other line ends, such as U+2028.
    return [Assembled(**json.loads(line)) for line in done.stdout.decode().split("\n") if line]
