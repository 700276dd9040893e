"""What a live model says while its last piece is on its way: joined before ADK works on each.

ADK and we spend some 200 microseconds on a piece, however short. A model that is faster is read
ahead, and what has come until the piece before is at the client's socket goes on as one: text with
text, sound with sound. Nothing waits for more to come, no character or sample is lost, and what is
anything else stays as it came. Where an agent or a plugin looks at each piece, the model is left
alone.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from contextvars import ContextVar
from types import new_class
from typing import Final, Literal, NamedTuple, TypeAlias

import anyio
from anyio.abc import TaskGroup
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from adk_stream_protocol.bell import Bell
from adk_stream_protocol.translation.live_turns import is_sound

__all__ = ["joined", "joins_pieces", "reads_ahead"]

logger = logging.getLogger(__name__)

_AHEAD: Final = 64
"""How many pieces are read ahead at most."""

_ON_ITS_WAY: Final = 4
"""How many turns of the event loop a piece takes to the client: it passes as many tasks, ADK's two,
the turn's and the socket's."""

_PLAIN: Final = frozenset(
    {"content", "output_transcription", "partial", "model_version", "live_session_id"}
)
"""What a piece may say of itself."""

_TEXT: Final = frozenset({"text", "thought"})
_SOUND: Final = frozenset({"inline_data"})

_Receive: TypeAlias = Callable[[], AsyncGenerator[LlmResponse, None]]

_readers: ContextVar[TaskGroup | None] = ContextVar("readers", default=None)
"""Where models are read ahead; None: they are not."""


def reads_ahead(tasks: TaskGroup) -> None:
    """Let the models that this task connects to be read ahead, by tasks of this group."""
    _readers.set(tasks)


def joins_pieces(root: object, plugins: Iterable[BasePlugin]) -> bool:
    """Prepare the live models of an agent, and of those below it; False if they are left alone."""
    if not isinstance(root, BaseAgent) or any(map(_watches, plugins)):
        return False
    agents = list(_with_those_below(root))
    if any(map(_looks_at_pieces, agents)):
        return False
    try:
        for agent in agents:
            if isinstance(agent, LlmAgent):
                _teach(agent.canonical_live_model)
    except Exception:  # what an app's class says to being extended; an unknown name
        logger.debug("model not read ahead", exc_info=True)
        return False
    return True


def _with_those_below(agent: BaseAgent) -> Iterator[BaseAgent]:
    yield agent
    for below in agent.sub_agents:
        yield from _with_those_below(below)


def _watches(plugin: BasePlugin) -> bool:
    """Whether a plugin is shown every piece."""
    kind = type(plugin)
    return not kind.__module__.startswith("adk_stream_protocol.") and (
        kind.after_model_callback is not BasePlugin.after_model_callback
        or kind.on_event_callback is not BasePlugin.on_event_callback
    )


def _looks_at_pieces(agent: BaseAgent) -> bool:
    """Whether an agent may be shown every piece."""
    if not type(agent).__module__.startswith("google.adk."):
        return True
    return isinstance(agent, LlmAgent) and bool(
        agent.after_model_callback or agent.planner or agent.code_executor
    )


class _ReadAhead:
    """Marks kinds of models that can be read ahead."""


def _teach(model: BaseLlm) -> None:
    kind = type(model)
    if not issubclass(kind, _ReadAhead):
        # In place: agents and apps hold this very object, and ADK looks at its kind.
        object.__setattr__(model, "__class__", _taught(kind))


@functools.cache
def _taught(kind: type[BaseLlm]) -> type[BaseLlm]:
    """Return a kind of model that is like another, and is read ahead where it is asked to."""

    def connect(
        self: BaseLlm, llm_request: LlmRequest
    ) -> AbstractAsyncContextManager[BaseLlmConnection]:
        opened = kind.connect(self, llm_request)
        tasks = _readers.get()
        return opened if tasks is None else _read_ahead(opened, tasks)

    body = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "connect": connect}
    return new_class(kind.__name__, (_ReadAhead, kind), exec_body=lambda named: named.update(body))


@asynccontextmanager
async def _read_ahead(
    opened: AbstractAsyncContextManager[BaseLlmConnection], tasks: TaskGroup
) -> AsyncIterator[BaseLlmConnection]:
    async with opened as connection:
        # Of one object, which ADK may ask for more than this knows of.
        vars(connection)["receive"] = functools.partial(joined, connection.receive, tasks)
        try:
            yield connection
        finally:
            vars(connection).pop("receive", None)


async def joined(receive: _Receive, tasks: TaskGroup) -> AsyncGenerator[LlmResponse, None]:
    """Yield what a model says, pieces that have come meanwhile as one."""
    ahead = _Ahead(receive())
    tasks.start_soon(ahead.read)
    try:
        while ready := await ahead.next():
            for response in ready:
                yield response
    finally:
        # The model ends before this does, as if nobody had read ahead.
        await ahead.close()


class _Ahead:
    """Responses that were read before they were asked for."""

    def __init__(self, responses: AsyncGenerator[LlmResponse, None]) -> None:
        self._responses = responses
        self._ready: deque[tuple[LlmResponse, _Kind | None]] = deque()
        # The last one that was taken is still on its way.
        self._is_busy = False
        # Why there are no more; None: there may be, or the model is done.
        self._failure: Exception | None = None
        self._reading = anyio.CancelScope()
        self._over = anyio.Event()
        self._came = Bell()
        self._asked = Bell()

    async def read(self) -> None:
        """Read until the model is done: ahead of whoever takes, while nothing needs an answer."""
        try:
            with self._reading:
                async with aclosing(self._responses) as responses:
                    async for response in responses:
                        await self._add(response)
        except Exception as error:  # noqa: BLE001  # the edge: whoever takes the next one raises it
            self._failure = error
        finally:
            self._over.set()
            self._came.ring()

    async def _add(self, response: LlmResponse) -> None:
        kind = _kind_of(response)
        self._ready.append((response, kind))
        self._came.ring()
        # ADK may have to act on this one: it is read on when ADK has, and asks for more.
        goes_on = kind is not None and len(self._ready) < _AHEAD
        while not goes_on:
            await self._asked.wait()
            goes_on = not self._ready

    async def next(self) -> list[LlmResponse]:
        """Wait for responses and return what is ready, joined; none if there are no more.

        Raises:
            Exception: the model's connection broke.
        """
        self._asked.ring()
        if self._is_busy:
            for _ in range(_ON_ITS_WAY):
                await asyncio.sleep(0)
        while not self._ready:
            if self._over.is_set():
                if self._failure is not None:
                    raise self._failure
                return []
            await self._came.wait()
        return list(self._take())

    def _take(self) -> Iterator[LlmResponse]:
        taken: dict[_Kind, list[LlmResponse]] = {}
        while self._ready:
            response, kind = self._ready[0]
            if taken and (kind is None or not kind.goes_with(taken)):
                break
            self._ready.popleft()
            if kind is None:
                self._is_busy = False
                yield response
                return
            taken.setdefault(kind, []).append(response)
        self._is_busy = True
        for kind, responses in taken.items():
            yield responses[0] if len(responses) == 1 else _one(kind, responses)

    async def close(self) -> None:
        """Read no more; return when the model has ended."""
        self._reading.cancel()
        with anyio.CancelScope(shield=True):
            await self._over.wait()


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
        is_sound = self.says == "sound"
        return all(self == other or is_sound != (other.says == "sound") for other in others)


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
    """Return a piece that says what several say; the model may still hold those."""
    first = responses[0]
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
