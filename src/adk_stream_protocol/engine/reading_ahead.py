"""Reading a live model before ADK asks for more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

import anyio
from google.adk.models.llm_response import LlmResponse

from adk_stream_protocol.bell import Bell

__all__ = ["Ahead", "Start"]

_AHEAD: Final = 64
"""How many pieces are read ahead at most."""

Start: TypeAlias = Callable[[Callable[[], Coroutine[Any, Any, None]]], object]
"""Starts a task that ends with the run at the latest."""

KindT = TypeVar("KindT")


class Ahead(Generic[KindT]):
    """Responses that were read before they were asked for."""

    def __init__(
        self,
        responses: AsyncGenerator[LlmResponse, None],
        kind_of: Callable[[LlmResponse], KindT | None],
    ) -> None:
        """Read a model.

        Args:
            responses: what it says.
            kind_of: says what a piece can be joined with; None: with nothing.
        """
        self._responses = responses
        self._kind_of = kind_of
        self.ready: deque[tuple[LlmResponse, KindT | None]] = deque()
        """What was read and not taken, each with its kind."""
        self._came = Bell()
        self._taken = Bell()
        self._reader: asyncio.Task[object] | None = None  # None until it begins
        self._is_closed = False
        self._ended = anyio.Event()
        self._failure: BaseException | None = None  # Why the model ended; None: it was done

    async def read(self) -> None:
        """Read until the model is done; ahead of whoever takes, while it says plain pieces."""
        self._reader = asyncio.current_task()
        assert self._reader is not None
        try:
            if not self._is_closed:
                await self._read()
        except asyncio.CancelledError as error:
            # Nobody may take it for the end of what the model says.
            self._failure = error
            if self._is_closed:
                self._reader.uncancel()
            elif self._reader.cancelling():
                raise
        except Exception as error:  # noqa: BLE001  # whoever takes raises it
            self._failure = error
        finally:
            self._ended.set()
            self._came.ring()

    async def _read(self) -> None:
        later = asyncio.get_running_loop().call_soon
        # The first is told at once: nobody waits longer than who has heard nothing yet.
        tell: Callable[[], object] = self._came.ring
        async with aclosing(self._responses) as responses:
            async for response in responses:
                if self._is_closed:
                    # It has more to say to being cancelled; nobody listens.
                    return
                if not self.ready:
                    tell()
                    # A turn of the loop later: what is ready by then goes along.
                    tell = partial(later, self._came.ring)
                kind = self._kind_of(response)
                self.ready.append((response, kind))
                while self.ready and (kind is None or len(self.ready) >= _AHEAD):
                    await self._taken.wait()

    async def close(self) -> None:
        """End the model, and return when it has ended: as if nobody had read ahead."""
        self._is_closed = True
        if self._reader is not None and not self._ended.is_set():
            # Once, and not as a scope of anyio's would: models await while they clean up.
            self._reader.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    async def has_more(self) -> bool:
        """Wait for a response; False if there are no more.

        Raises:
            BaseException: the model broke.
        """
        self._taken.ring()
        while not self.ready and not self._ended.is_set():
            await self._came.wait()
        if not self.ready and self._failure is not None:
            raise self._failure
        return bool(self.ready)
