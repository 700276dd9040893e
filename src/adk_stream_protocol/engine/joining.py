"""Pieces of text that a model has ready at the same time, made one before ADK works on each.

ADK spends some 200 microseconds on a piece, however short. A model that is faster than that is
read ahead, and what has come meanwhile goes on as one piece. Nothing waits for more than one turn
of the event loop, no character is lost, and what is more than text stays as it came. Where an
agent or a plugin looks at each piece, the model is left alone.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections import deque
from collections.abc import AsyncGenerator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from typing_extensions import override

from adk_stream_protocol.engine.reading_ahead import Ahead, looks_at_pieces, watches
from adk_stream_protocol.held_calls.run_scope import Others, RunScope, Start, run_scope

__all__ = ["Joining", "joined"]

_TEXT: Final = frozenset({"text", "thought"})
_JOINED: Final = frozenset({"content", "partial", "model_version", "usage_metadata"})
"""What a piece may say of itself. Of what was used so far, the last one tells."""

_joins: ContextVar[tuple[LlmRequest, RunScope] | None] = ContextVar("joins", default=None)
"""The request whose answer nobody looks at piece by piece, and its run; None: none."""


class Joining(BasePlugin):
    """Lets models join their pieces where nobody looks at each.

    It comes last: what an app's plugins answer for the model is not the model's.
    """

    def __init__(self, root: object, plugins: list[BasePlugin]) -> None:
        """Join what the agents of an app say.

        Args:
            root: the one that runs the others.
            plugins: those of the app.
        """
        super().__init__(name="adk_stream_joining")
        self._root = root
        self._is_watched = any(map(watches, plugins))

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        scope = run_scope.get()
        if self._is_watched or scope is None or scope.start is None:
            return None
        agent = callback_context.get_invocation_context().agent
        if isinstance(agent, LlmAgent) and not looks_at_pieces(agent, self._root):
            _teach(agent.canonical_model)
            _joins.set((llm_request, scope))
        return None


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
        asked, scope = _joins.get() or (None, None)
        if not stream or asked is not llm_request or scope is None or scope.start is None:
            return responses
        return joined(responses, scope.start, scope.others)

    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    body = {**named, "generate_content_async": generate_content_async}
    return types.new_class(
        kind.__name__, (_Joins, kind), exec_body=lambda space: space.update(body)
    )


async def joined(
    responses: AsyncGenerator[LlmResponse, None], start: Start, others: Others | None = None
) -> AsyncGenerator[LlmResponse, None]:
    """Yield what a model says, pieces of text that are ready together as one."""
    ahead = Ahead(responses, _text_of, others)
    start(ahead.read)
    try:
        while await ahead.has_more():
            yield _take(ahead.ready)
    finally:
        await ahead.close()


def _take(ready: deque[tuple[LlmResponse, _Text | None]]) -> LlmResponse:
    """Return the next response, with all that can be joined to it."""
    last, first = ready.popleft()
    if first is None:
        return last
    said = [first.said]
    while ready:
        response, text = ready[0]
        if text is None or not text.goes_on(first):
            break
        ready.popleft()
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
    more = response.model_fields_set - _JOINED
    if more and any(getattr(response, name) is not None for name in more):
        return None
    return _Text(part.text, bool(part.thought), content.role, response.model_version)


def _with_text(response: LlmResponse, text: str) -> LlmResponse:
    """Return a piece of text that says another; the model may still hold the one it said."""
    assert response.content is not None
    assert response.content.parts
    part = response.content.parts[0].model_copy(update={"text": text})
    content = response.content.model_copy(update={"parts": [part]})
    return response.model_copy(update={"content": content})
