"""Pieces of text that go from a model to the reply at once, past ADK.

ADK spends some 200 microseconds on a piece, however short, and only hands it on: what it stores is
the whole answer that follows. So a piece that goes on with text which is open in the reply is told
to the turn where the model says it, and ADK is given all else. The first piece of an answer goes
through ADK: only if it comes out for the client do others go past. Where an agent or a plugin
looks at each piece, the model is left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import types
from collections.abc import AsyncGenerator
from contextlib import aclosing
from contextvars import ContextVar
from typing import Any, Final

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from typing_extensions import override

from adk_stream_protocol.engine.onlookers import looks_at_pieces, watches
from adk_stream_protocol.held_calls.run_scope import RunScope, run_scope
from adk_stream_protocol.translation.passage import Passage
from adk_stream_protocol.translation.text_blocks import BlockKind

__all__ = ["DirectText", "told"]

_TEXT: Final = frozenset({"text", "thought"})
_PLAIN: Final = frozenset({"content", "partial", "model_version", "usage_metadata"})
"""What a piece may say of itself. How much was used is told by the whole answer, too."""

_STRETCH: Final = 16
"""How many pieces a model may say before others have a turn, though it need not be waited for."""

_ON_ITS_WAY: Final = 8
"""How many turns of the event loop a piece may take through ADK; half of it is usual."""

_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)
"""The newest request whose answer nobody looks at piece by piece; None: there was none."""


class DirectText(BasePlugin):
    """Lets models tell their pieces at once where nobody looks at each.

    It comes last: what an app's plugins answer for the model is not the model's.
    """

    def __init__(self, root: object, plugins: list[BasePlugin]) -> None:
        """Look after what the agents of an app say.

        Args:
            root: the one that runs the others.
            plugins: those of the app.
        """
        super().__init__(name="adk_stream_direct_text")
        self._root = root
        self._is_watched = any(map(watches, plugins))

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        scope = run_scope.get()
        context = callback_context.get_invocation_context()
        agent = context.agent
        if (
            not self._is_watched
            and scope is not None
            and scope.tell is not None
            # An agent that is a tool speaks in a session of its own, and to its caller only.
            and context.session.id == scope.chat_id
            and isinstance(agent, LlmAgent)
            and not looks_at_pieces(agent, self._root)
        ):
            taught = _teach(agent.canonical_model)
            _asked.set(_Asked(llm_request, agent, scope, _like(agent, context)) if taught else None)
        return None


def _like(agent: LlmAgent, context: InvocationContext) -> Event:
    """Return a piece as ADK would hand it on, without its text."""
    config = context.run_config
    return Event(
        invocation_id=context.invocation_id,
        author=agent.name,
        branch=context.branch,
        partial=True,
        custom_metadata=dict(config.custom_metadata or {}) if config is not None else None,
    )


class _Asked:
    """A request whose answer nobody looks at piece by piece."""

    __slots__ = ("_agent", "_request", "like", "scope")

    def __init__(self, request: LlmRequest, agent: LlmAgent, scope: RunScope, like: Event) -> None:
        # None: the agent's model has it.
        self._request: LlmRequest | None = request
        self._agent = agent
        self.scope = scope
        self.like = like

    def take(self, request: LlmRequest, model: BaseLlm) -> bool:
        """Whether a model is asked this by its agent, and for the first time.

        One that another model asks is heard by that one: what it says may be changed.
        """
        # Looked up again: a callback may have given the agent another model since.
        if self._request is not request or self._agent.canonical_model is not model:
            return False
        self._request = None
        return True


def _teach(model: BaseLlm) -> bool:
    """Teach a model to tell its pieces where it is asked to; False if its kind cannot."""
    if "generate_content_async" in vars(model):
        # Something stands before the method of its kind, and may change what it says.
        return False
    if isinstance(model, _Tells):
        return True
    # In place: agents and apps hold this very object, and ADK looks at its kind.
    with contextlib.suppress(Exception):
        object.__setattr__(model, "__class__", _telling(type(model)))
    return isinstance(model, _Tells)


class _Tells:
    """Marks kinds of models that tell their pieces."""


@functools.cache
def _telling(kind: type[BaseLlm]) -> type[BaseLlm]:
    """Return a kind of model that is like another, and tells its pieces where it is asked to."""

    def generate_content_async(
        self: BaseLlm, llm_request: LlmRequest, stream: bool = False, **more: Any
    ) -> AsyncGenerator[LlmResponse, None]:
        responses = kind.generate_content_async(self, llm_request, stream, **more)
        asked = _asked.get()
        if not stream or asked is None or not asked.take(llm_request, self):
            return responses
        return told(responses, asked.scope, asked.like)

    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    body = {**named, "generate_content_async": generate_content_async}
    return types.new_class(
        kind.__name__, (_Tells, kind), exec_body=lambda space: space.update(body)
    )


async def told(
    responses: AsyncGenerator[LlmResponse, None], scope: RunScope, like: Event
) -> AsyncGenerator[LlmResponse, None]:
    """Tell the plain pieces of what a model says, in order, and yield the rest."""
    passage = Passage()
    scope.passages.append(passage)
    patience = _ON_ITS_WAY
    count = 0
    try:
        async with aclosing(responses):
            async for response in responses:
                said = _plain(response)
                while said is not None and passage.is_under_way and patience:
                    # A model that need not be waited for would never see it come out.
                    patience -= 1
                    await asyncio.sleep(0)
                if said is None or not passage.is_clear or not await _tell(scope, like, said):
                    passage.give(response.content)
                    yield response
                    continue
                patience = _ON_ITS_WAY
                count += 1
                if count % _STRETCH == 0:
                    await asyncio.sleep(0)
    finally:
        scope.passages.remove(passage)


async def _tell(scope: RunScope, like: Event, said: tuple[BlockKind, str]) -> bool:
    # ADK ends some agents only when they say something.
    if scope.tell is None or scope.stopping:
        return False
    return await scope.tell(like, *said)


def _plain(response: LlmResponse) -> tuple[BlockKind, str] | None:
    """Return a piece's text; None if the response is whole, or says anything else."""
    content = response.content
    if not response.partial or content is None or not content.parts or len(content.parts) != 1:
        return None
    part = content.parts[0]
    text = part.text
    if not text or not part.model_fields_set <= _TEXT or content.role not in {"model", None}:
        return None
    more = response.model_fields_set - _PLAIN
    if type(response) is not LlmResponse or any(
        getattr(response, name) is not None for name in more
    ):
        return None
    return ("reasoning" if part.thought else "text"), text
