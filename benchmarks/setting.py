"""What a sample may use. It reaches the sample's process as JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Scale", "Setting"]

Scale: TypeAlias = Literal["full", "tiny"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A folder, the address of a server, and how much is to be done."""

    folder: str
    """Empty; on the disk that the figures are about."""
    scale: Scale
    url: str = ""
    """A fresh database on the server that the variant needs; empty: it needs none."""
    server: int = 0
    """The server's process, whose CPU time is told beside the sample's own; 0: none."""

    def sized(self, full: int, tiny: int) -> int:
        """Return how many of something this scale asks for."""
        return full if self.scale == "full" else tiny

    @property
    def file(self) -> Path:
        """A place for a SQLite file."""
        return Path(self.folder) / "bench.db"

    def to_json(self) -> str:
        """Return the setting as text."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Setting:
        """Return what `to_json` wrote."""
        return cls(**json.loads(text))
