"""What a live model says while its last piece is on its way: joined before ADK works on each.

ADK and we spend some 200 microseconds on a piece, however short. A model that is faster is read
ahead, and what has come until the piece before is at the client's socket goes on as one: text with
text, sound with sound. Nothing waits for more to come, no character or sample is lost, and what is
anything else stays as it came. Where an agent or a plugin looks at each piece, the model is left
alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from types import new_class
from typing import Final, Literal, NamedTuple, TypeAlias

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from adk_stream_protocol.engine.onlookers import is_adks, looks_at_pieces, watches
from adk_stream_protocol.engine.reading_ahead import Ahead, Start
from adk_stream_protocol.translation.live_turns import is_sound

__all__ = ["joined", "joins_pieces", "read_ahead"]

_ON_ITS_WAY: Final = 6
"""How many turns of the event loop a piece is given: after three it is at the client's socket, and
as many are for all else there is to do. A model that is faster goes on in fewer, larger pieces."""

_PLAIN: Final = frozenset(
    {"content", "output_transcription", "partial", "model_version", "live_session_id"}
)
"""What a piece may say of itself."""

_TEXT: Final = frozenset({"text", "thought"})
_SOUND: Final = frozenset({"inline_data"})

_Receive: TypeAlias = Callable[[], AsyncGenerator[LlmResponse, None]]

_start: ContextVar[Start | None] = ContextVar("start", default=None)
"""What starts the reading of models ahead; None: they are not."""


def read_ahead(start: Start) -> None:
    """Let the models that this task connects to be read ahead, in tasks that `start` starts."""
    _start.set(start)


def joins_pieces(root: object, plugins: Iterable[BasePlugin]) -> bool:
    """Prepare the live models of an agent and of those below it, unless one looks at each piece.

    Returns:
        Whether they may be read ahead.
    """
    if not isinstance(root, BaseAgent) or any(map(watches, plugins)):
        return False
    all_agents = list(_with_those_below(root))
    agents = [agent for agent in all_agents if isinstance(agent, LlmAgent)]
    if not all(map(is_adks, all_agents)) or any(looks_at_pieces(each, root) for each in agents):
        return False
    with contextlib.suppress(Exception):
        # An unknown model's name, or what a class of the app's says to being extended: the run
        # tells, if it matters.
        for agent in agents:
            _teach(agent.canonical_live_model)
    return True


def _with_those_below(agent: BaseAgent) -> Iterator[BaseAgent]:
    yield agent
    for below in agent.sub_agents:
        yield from _with_those_below(below)


class _ReadAhead:
    """Marks kinds of models that can be read ahead."""


def _teach(model: BaseLlm) -> None:
    kind = type(model)
    # ADK takes a model whose class has its own `connect` for one that can run live.
    if kind.connect is not BaseLlm.connect and not issubclass(kind, _ReadAhead):
        # In place: agents and apps hold this very object, and ADK looks at its kind.
        object.__setattr__(model, "__class__", _taught(kind))


@functools.cache
def _taught(kind: type[BaseLlm]) -> type[BaseLlm]:
    """Return a kind of model that is like another, and is read ahead where it is asked to."""

    def connect(
        self: BaseLlm, llm_request: LlmRequest
    ) -> AbstractAsyncContextManager[BaseLlmConnection]:
        opened = kind.connect(self, llm_request)
        start = _start.get()
        return opened if start is None else _connected(opened, start)

    body = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "connect": connect}
    return new_class(kind.__name__, (_ReadAhead, kind), exec_body=lambda named: named.update(body))


@asynccontextmanager
async def _connected(
    opened: AbstractAsyncContextManager[BaseLlmConnection], start: Start
) -> AsyncIterator[BaseLlmConnection]:
    async with opened as connection:
        # Of one object, which ADK may ask for more than this knows of.
        vars(connection)["receive"] = functools.partial(joined, connection.receive, start)
        try:
            yield connection
        finally:
            vars(connection).pop("receive", None)


async def joined(receive: _Receive, start: Start) -> AsyncGenerator[LlmResponse, None]:
    """Yield what a model says, pieces that have come meanwhile as one."""
    ahead = Ahead(receive(), _kind_of)
    start(ahead.read)
    try:
        while await ahead.has_more():
            plain = ahead.ready[0][1] is not None
            for response in _take(ahead.ready):
                yield response
            for _ in range(_ON_ITS_WAY if plain else 0):
                await asyncio.sleep(0)
    finally:
        await ahead.close()


def _take(ready: deque[tuple[LlmResponse, _Kind | None]]) -> list[LlmResponse]:
    """Return the next response, with all that can be joined to it or handed on beside it."""
    taken: dict[_Kind, list[LlmResponse]] = {}
    while ready:
        response, kind = ready[0]
        if taken and (kind is None or not kind.goes_with(taken)):
            break
        ready.popleft()
        if kind is None:
            return [response]
        taken.setdefault(kind, []).append(response)
    return [_one(kind, responses) for kind, responses in taken.items()]


class _Kind(NamedTuple):
    """What must be the same of pieces that are joined."""

    says: Literal["text", "said", "sound"]
    role: str | None
    form: str | bool | None
    """The kind of sound; whether text is a thought."""
    version: str | None
    session: str | None

    def goes_with(self, others: Iterable[_Kind]) -> bool:
        """Whether it can be handed on with others, whichever of them came first.

        Sound goes to a socket of its own: whether it or the words come first makes no difference.
        """
        heard = self.says == "sound"
        return all(self == other or heard != (other.says == "sound") for other in others)


def _kind_of(response: LlmResponse) -> _Kind | None:
    """Return what a piece can be joined with; None if it says anything but text or sound."""
    for name in response.model_fields_set:
        if name not in _PLAIN and getattr(response, name) is not None:
            return None
    content, said = response.content, response.output_transcription
    version, session = response.model_version, response.live_session_id
    if content is None:
        if said is None or not said.text or said.finished or not response.partial:
            return None
        return _Kind("said", None, None, version, session)
    if said is not None or content.parts is None or len(content.parts) != 1:
        return None
    part = content.parts[0]
    fields = {name for name in part.model_fields_set if getattr(part, name) is not None}
    if response.partial and part.text and fields <= _TEXT:
        return _Kind("text", content.role, bool(part.thought), version, session)
    blob = part.inline_data
    if not response.partial and fields == _SOUND and blob is not None and is_sound(blob):
        return _Kind("sound", content.role, blob.mime_type, version, session)
    return None


def _one(kind: _Kind, responses: list[LlmResponse]) -> LlmResponse:
    """Return a piece that says what all say; the model may still hold them."""
    first = responses[0]
    if len(responses) == 1:
        return first
    if kind.says == "said":
        told = [response.output_transcription for response in responses]
        words = "".join(each.text or "" for each in told if each is not None)
        said = types.Transcription(text=words, finished=False)
        return first.model_copy(update={"output_transcription": said})
    parts = [part for response in responses for part in _parts(response)]
    if kind.says == "sound":
        blobs = [part.inline_data for part in parts if part.inline_data is not None]
        data = b"".join(blob.data or b"" for blob in blobs)
        part = types.Part(inline_data=blobs[0].model_copy(update={"data": data}))
    else:
        text = "".join(part.text or "" for part in parts)
        part = parts[0].model_copy(update={"text": text})
    content = types.Content(role=kind.role, parts=[part])
    return first.model_copy(update={"content": content})


def _parts(response: LlmResponse) -> list[types.Part]:
    return (response.content.parts if response.content else None) or []
