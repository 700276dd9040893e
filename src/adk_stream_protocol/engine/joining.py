"""Pieces of text that a model has ready at the same time, made one before ADK works on each.

ADK spends some 200 microseconds on a piece, however short. A model that is faster than that is
read ahead, and what has come meanwhile goes on as one piece. Nothing waits for more than one turn
of the event loop, no character is lost, and what is more than text stays as it came. Where an
agent or a plugin looks at each piece, the model is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import types
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import anyio
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from typing_extensions import override

from adk_stream_protocol.bell import Bell
from adk_stream_protocol.held_calls.run_scope import Start, run_scope

__all__ = ["Joining", "joined"]

_AHEAD: Final = 64
"""How many pieces are read ahead at most."""

_TEXT: Final = frozenset({"text", "thought"})
_JOINED: Final = frozenset({"content", "partial", "model_version", "usage_metadata"})
"""What a piece may say of itself. Of what was used so far, the last one tells."""

_joins: ContextVar[tuple[LlmRequest, Start] | None] = ContextVar("joins", default=None)
"""The request whose answer nobody looks at piece by piece, and what reads ahead; None: none."""


class Joining(BasePlugin):
    """Lets models join their pieces where nobody looks at each.

    It comes last: what an app's plugins answer for the model is not the model's.
    """

    def __init__(self, plugins: list[BasePlugin]) -> None:
        super().__init__(name="adk_stream_joining")
        self._is_watched = any(map(_watches, plugins))

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        scope = run_scope.get()
        if self._is_watched or scope is None or scope.start is None:
            return None
        agent = callback_context.get_invocation_context().agent
        if isinstance(agent, LlmAgent) and not _looks_at_pieces(agent):
            _teach(agent.canonical_model)
            _joins.set((llm_request, scope.start))
        return None


def _watches(plugin: BasePlugin) -> bool:
    """Whether a plugin is shown every piece."""
    kind = type(plugin)
    return (
        kind.after_model_callback is not BasePlugin.after_model_callback
        or kind.on_event_callback is not BasePlugin.on_event_callback
    )


def _looks_at_pieces(agent: LlmAgent) -> bool:
    """Whether the agent, or one that runs it, may be shown every piece."""
    if agent.after_model_callback or agent.planner is not None:
        return True
    above: BaseAgent | None = agent
    while above is not None:
        if not type(above).__module__.startswith("google.adk."):
            return True
        above = above.parent_agent
    return False


def _teach(model: BaseLlm) -> None:
    """Teach a model to join its pieces where it is asked to, if its kind can be extended."""
    if not isinstance(model, _Joins):
        # In place: agents and apps hold this very object, and ADK looks at its kind.
        with contextlib.suppress(Exception):
            object.__setattr__(model, "__class__", _joining(type(model)))


class _Joins:
    """Marks kinds of models that join their pieces."""


@functools.cache
def _joining(kind: type[BaseLlm]) -> type[BaseLlm]:
    """Return a kind of model that is like another, and joins where it is asked to."""

    def generate_content_async(
        self: BaseLlm, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        responses = kind.generate_content_async(self, llm_request, stream)
        asked, start = _joins.get() or (None, None)
        if not stream or asked is not llm_request or start is None:
            return responses
        return joined(responses, start)

    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    body = {**named, "generate_content_async": generate_content_async}
    return types.new_class(
        kind.__name__, (_Joins, kind), exec_body=lambda space: space.update(body)
    )


async def joined(
    responses: AsyncGenerator[LlmResponse, None], start: Start
) -> AsyncGenerator[LlmResponse, None]:
    """Yield what a model says, pieces of text that are ready together as one."""
    ahead = _Ahead(responses)
    start(ahead.read)
    try:
        while await ahead.has_more():
            yield ahead.take()
    finally:
        await ahead.close()


class _Ahead:
    """Responses that were read before they were asked for."""

    def __init__(self, responses: AsyncGenerator[LlmResponse, None]) -> None:
        self._responses = responses
        # Each with its text, if it is a piece of text and no more.
        self._ready: deque[tuple[LlmResponse, _Text | None]] = deque()
        self._came = Bell()
        self._taken = Bell()
        self._reader: asyncio.Task[object] | None = None  # None until it begins
        self._is_closed = False
        self._ended = anyio.Event()
        self._failure: Exception | None = None  # Why the model ended; None: it was done

    async def read(self) -> None:
        """Read until the model is done; ahead of whoever takes, while it says plain text."""
        self._reader = asyncio.current_task()
        assert self._reader is not None
        try:
            if not self._is_closed:
                await self._read()
        except asyncio.CancelledError:
            if not self._is_closed:
                raise
            self._reader.uncancel()
        except Exception as error:  # noqa: BLE001  # whoever takes raises it
            self._failure = error
        finally:
            self._ended.set()
            self._came.ring()

    async def _read(self) -> None:
        tell = asyncio.get_running_loop().call_soon
        async with aclosing(self._responses) as responses:
            async for response in responses:
                if not self._ready:
                    # Told a turn of the loop later: what is ready by then goes along.
                    tell(self._came.ring)
                text = _text_of(response)
                self._ready.append((response, text))
                while self._ready and (text is None or len(self._ready) >= _AHEAD):
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
            Exception: the model broke.
        """
        self._taken.ring()
        while not self._ready and not self._ended.is_set():
            await self._came.wait()
        if not self._ready and self._failure is not None:
            raise self._failure
        return bool(self._ready)

    def take(self) -> LlmResponse:
        """Return the next response, with all that can be joined to it."""
        last, first = self._ready.popleft()
        if first is None:
            return last
        said = [first.said]
        while self._ready:
            response, text = self._ready[0]
            if text is None or not text.goes_on(first):
                break
            self._ready.popleft()
            last = response
            said.append(text.said)
        return last if len(said) == 1 else _with_text(last, "".join(said))


@dataclass(frozen=True, slots=True)
class _Text:
    """A piece of text, and what must be the same of the next one."""

    said: str
    thought: bool
    role: str | None
    model_version: str | None

    def goes_on(self, first: _Text) -> bool:
        """Whether it can be joined to a piece that came before."""
        return (self.thought, self.role, self.model_version) == (
            first.thought,
            first.role,
            first.model_version,
        )


def _text_of(response: LlmResponse) -> _Text | None:
    """Return a response's text; None if it is whole, or says anything else."""
    content = response.content
    if not response.partial or content is None or not content.parts or len(content.parts) != 1:
        return None
    part = content.parts[0]
    if not part.text or not part.model_fields_set <= _TEXT or type(response) is not LlmResponse:
        return None
    if any(value is not None for name, value in response if name not in _JOINED):
        return None
    return _Text(part.text, bool(part.thought), content.role, response.model_version)


def _with_text(response: LlmResponse, text: str) -> LlmResponse:
    """Return a piece of text that says another; the model may still hold the one it said."""
    assert response.content is not None
    assert response.content.parts
    part = response.content.parts[0].model_copy(update={"text": text})
    content = response.content.model_copy(update={"parts": [part]})
    return response.model_copy(update={"content": content})
