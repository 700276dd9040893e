"""Apps on loopback, with routes that tell what their process has used."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx
from fastapi import FastAPI

from benchmarks.memory import resident
from support.serving import serving

__all__ = ["Usage", "served_app"]

_CPU: Final = "/bench/cpu"
_MEMORY: Final = "/bench/memory"


@asynccontextmanager
async def served_app(app: FastAPI) -> AsyncIterator[str]:
    """Serve an app from this process; yield its address."""

    @app.get(_CPU)
    async def cpu() -> float:
        return time.process_time()

    @app.get(_MEMORY)
    async def memory() -> float:
        return resident()

    async with serving(app) as url:
        yield url


class Usage:
    """What the server's process has used, asked by another one."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def cpu(self) -> float:
        """Return the seconds of CPU time since it began."""
        return await self._asked(_CPU)

    async def memory(self) -> float:
        """Return the bytes that are resident."""
        return await self._asked(_MEMORY)

    async def _asked(self, path: str) -> float:
        response = await self._http.get(path)
        return float(response.raise_for_status().json())
