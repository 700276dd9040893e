"""The live runs of a server: at most one per chat, and none beside another turn of it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import anyio
from anyio.abc import TaskGroup
from google.adk.agents.run_config import (  # type: ignore[attr-defined]  # ADK has no __all__
    RunConfig,
    StreamingMode,
)
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from adk_stream_protocol.engine.live_joining import joins_pieces
from adk_stream_protocol.engine.live_run import LiveLimits, LiveRun, run_has_ended
from adk_stream_protocol.engine.live_turn import LiveTurn
from adk_stream_protocol.engine.sessions import Sessions
from adk_stream_protocol.engine.tool_threads import off_the_loop
from adk_stream_protocol.engine.turn_names import TurnNames
from adk_stream_protocol.errors import NotRunning, trace_of
from adk_stream_protocol.held_calls.run_scope import RunScope
from adk_stream_protocol.identifiers import ChatId, ReplyId, UserId
from adk_stream_protocol.ports import AgentRun, Stores, turns_topic

__all__ = ["LiveRuns", "Modality"]

logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[bytes | None], None]
"""Takes what the model says aloud, as PCM of 24 kHz; None: it was interrupted."""

Modality: TypeAlias = Literal["auto", "text", "audio"]
"""What a live model answers with; `auto`: sound if somebody listens, else text."""

_LOOK = 5.0
"""How often a chat is looked at without a hint: hints may be lost."""

_GOODBYE = 1.0
"""How long a run may take to end before another begins. All that it does by then is to close the
model's connection, which takes ten seconds if the model has sent more than was read."""


@dataclass(slots=True)
class LiveRuns:
    """Opens and ends live runs, and makes turns of them."""

    sessions: Sessions
    stores: Stores
    limits: LiveLimits = field(default_factory=LiveLimits)
    modality: Modality = "auto"
    tool_threads: int = 8
    joins: bool = True
    """Whether what a model has ready at the same time goes on as one, if nobody looks at each."""
    plugins: Sequence[BasePlugin] = ()
    """Those of the app."""
    is_ours: Callable[[ReplyId], bool] = lambda _reply: True
    """Whether this process has the chat for a reply: such a turn ends the run itself."""
    spoke: Callable[[LiveRun], None] = lambda _live: None
    """Called when someone speaks whom nobody asked to."""
    _tasks: TaskGroup | None = None
    """Owns the runs; None while the server is not running."""
    _threads: ThreadPoolExecutor = field(init=False)
    """Where plain functions run; there while the server runs."""
    _runs: dict[ChatId, LiveRun] = field(default_factory=dict)
    _present: Counter[ChatId] = field(default_factory=Counter)
    """How many have each chat open."""
    _listeners: dict[tuple[UserId, ChatId], list[Listener]] = field(default_factory=dict)
    """Who hears what the model says: no one in a chat that is, or becomes, another user's."""

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Let live runs run until the block ends."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._threads = ThreadPoolExecutor(self.tool_threads, "adk_stream_tool")
            try:
                yield
            finally:
                self._tasks = None
                for live in list(self._runs.values()):
                    live.end()
                with anyio.move_on_after(5, shield=True):
                    for live in list(self._runs.values()):
                        await live.ended()
                tasks.cancel_scope.cancel()
                # What still runs there ends by itself; nobody waits for it any more.
                self._threads.shutdown(wait=False)

    def count(self) -> int:
        """How many run in this process."""
        return len(self._runs)

    def of(self, chat_id: ChatId) -> LiveRun | None:
        """Return the chat's run, if it has one that goes on."""
        live = self._runs.get(chat_id)
        return None if live is None or live.is_over else live

    def wait_for(self, chat_id: ChatId, requests: Collection[str]) -> bool:
        """Whether the chat's run waits for the answers to these requests."""
        live = self.of(chat_id)
        return live is not None and live.asks.waits_for(requests)

    @contextmanager
    def present(self, chat_id: ChatId) -> Iterator[None]:
        """Keep a chat's run going while someone has the chat open."""
        self._present[chat_id] += 1
        if (live := self.of(chat_id)) is not None:
            live.enter()
        try:
            yield
        finally:
            self._present[chat_id] -= 1
            if not self._present[chat_id]:
                del self._present[chat_id]
            if (live := self.of(chat_id)) is not None:
                live.leave()

    def is_present(self, chat_id: ChatId) -> bool:
        """Whether somebody has a chat open."""
        return self._present[chat_id] > 0

    async def end(self, chat_id: ChatId) -> bool:
        """End the chat's run, as another turn is about to begin; return whether it had one."""
        live = self._runs.get(chat_id)
        if live is None:
            return False
        live.end()
        with anyio.move_on_after(_GOODBYE):
            await live.ended()
        self._forget(live)
        return True

    async def turn(
        self,
        owner: UserId,
        chat_id: ChatId,
        names: TurnNames,
        content: types.Content,
        *,
        previous: ReplyId | None,
    ) -> tuple[RunScope, Sequence[AgentRun]]:
        """Return a turn of the chat's live run, and the run's scope.

        Args:
            owner: whose chat it is.
            chat_id: the chat.
            names: what its events are stored under.
            content: what the user said, or answers to requests.
            previous: the reply of the chat's turn before; None: it is the first.
        """
        requests = _answered(content)
        live = self.of(chat_id)
        start: Callable[[LiveRun], Awaitable[None]] | None = None
        # Another process may have had the chat since, or another user, and no hint of it came.
        is_up_to_date = (
            live is not None
            and live.rests
            and (live.scope.owner, live.last_reply) == (owner, previous)
        )
        if live is not None and is_up_to_date and live.asks.waits_for(requests):
            start = partial(_release, requests=requests, answers=content)
        elif live is not None and is_up_to_date and not requests and not live.asks.waits:
            start = partial(_say, content=content)
        if live is None or start is None:
            await self.end(chat_id)
            live = self._open(owner, chat_id)
            start = partial(self._open_with, content=content)
        live.take()
        return live.scope, [LiveTurn(live, names, start)]

    def spoken(self, chat_id: ChatId, names: TurnNames) -> tuple[RunScope, Sequence[AgentRun]]:
        """Return a turn of the chat's live run in which someone speaks already.

        Raises:
            NotRunning: it has ended meanwhile.
        """
        live = self.of(chat_id)
        if live is None or not live.rests:
            raise run_has_ended()
        live.take()
        return live.scope, [LiveTurn(live, names, _nothing_to_say)]

    @contextmanager
    def listening(self, owner: UserId, chat_id: ChatId, listener: Listener) -> Iterator[None]:
        """Let someone hear what is said in a chat of theirs."""
        place = (owner, chat_id)
        listeners = self._listeners.setdefault(place, [])
        listeners.append(listener)
        try:
            with self.present(chat_id):
                yield
        finally:
            listeners.remove(listener)
            # A run tells those of this very list, also if they come later.
            if not listeners and not self._is_open(place):
                del self._listeners[place]

    async def aloud(self, owner: UserId, chat_id: ChatId) -> LiveRun | None:
        """Return the chat's run for someone who speaks; None: another turn has the chat."""
        live = self._hearing(owner, chat_id)
        if live is not None:
            return live
        turn = await self.stores.turns.latest(chat_id)
        if turn is not None and turn.running:
            return None
        if self._hearing(owner, chat_id) is None:
            await self.end(chat_id)
        if self.of(chat_id) is not None:
            # Another was faster, while this took its time.
            return self._hearing(owner, chat_id)
        live = self._open(owner, chat_id)
        live.rest()
        turn = await self.stores.turns.latest(chat_id)
        live.last_reply = None if turn is None else turn.reply_id
        if turn is not None and turn.running and not live.is_over:
            # It has not seen this run, and so would not end it.
            live.end()
            self._forget(live)
        if live.is_over:
            return self._hearing(owner, chat_id)
        self._start(live)
        return live

    def _hearing(self, owner: UserId, chat_id: ChatId) -> LiveRun | None:
        """Return the chat's run, if it is one for someone who speaks."""
        live = self.of(chat_id)
        if live is None or live.in_turn or live.asks.waits:
            return live
        is_heard = self.modality != "text" and bool(self._listeners.get((owner, chat_id)))
        # Or it answers in text, and nobody would hear more of it.
        return live if live.rests and (live.speaks or not is_heard) else None

    def _open(self, owner: UserId, chat_id: ChatId) -> LiveRun:
        listeners = self._listeners.setdefault((owner, chat_id), [])
        runner = self.sessions.runner
        live = LiveRun(
            runner,
            owner=owner,
            chat_id=chat_id,
            config=self._config(sound=bool(listeners)),
            limits=self.limits,
            spoke=self.spoke,
            store=self._store,
            listeners=listeners,
            joins=self.joins and joins_pieces(runner.agent, self.plugins),
        )
        for _ in range(self._present[chat_id]):
            live.enter()
        self._runs[chat_id] = live
        return live

    def _start(self, live: LiveRun) -> None:
        if self._tasks is None:
            raise NotRunning(
                "Live runs are not served.",
                public_message="The server is starting or stopping. Try again in a moment.",
            )
        live.starts()
        self._tasks.start_soon(self._serve, live)

    async def _serve(self, live: LiveRun) -> None:
        ids = {"chat": live.chat_id}
        logger.info("live run started", extra=ids)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch, live)
                with off_the_loop(self._threads):
                    await live.serve()
                tasks.cancel_scope.cancel()
        finally:
            self._forget(live)
        if live.failure is None:
            logger.info("live run ended", extra=ids)
        else:
            logger.warning("live run broke: %s", trace_of(live.failure), extra=ids)

    def _forget(self, live: LiveRun) -> None:
        if self._runs.get(live.chat_id) is not live:
            return
        del self._runs[live.chat_id]
        place = (live.scope.owner, live.chat_id)
        if not self._listeners[place]:
            del self._listeners[place]

    def _is_open(self, place: tuple[UserId, ChatId]) -> bool:
        owner, chat_id = place
        live = self._runs.get(chat_id)
        return live is not None and live.scope.owner == owner

    async def _watch(self, live: LiveRun) -> None:
        """End the run when the chat had another turn elsewhere: its session is outdated."""
        while not live.is_over:
            await self.stores.wake.wait(turns_topic(live.chat_id), _LOOK)
            if live.in_turn:
                continue
            try:
                turn = await self.stores.turns.latest(live.chat_id)
            except Exception as error:  # noqa: BLE001  # the edge: a store that is down comes back
                logger.error("chat not watched: %s", trace_of(error), extra={"chat": live.chat_id})  # noqa: TRY400
                continue
            if turn is None or turn.reply_id == live.last_reply or self.is_ours(turn.reply_id):
                continue
            live.end()

    # What a turn begins with

    async def _open_with(self, live: LiveRun, content: types.Content) -> None:
        """Store what is said or answered, then open the run: the model finds it in its history.

        Sent after the history, it would come second: the model answers whatever is open there.
        """
        try:
            await self._store(live, content)
            self._start(live)
        except BaseException:
            self._forget(live)
            raise

    async def _store(self, live: LiveRun, content: types.Content) -> None:
        await self.sessions.append(
            live.chat_id, live.scope.owner, Event(author="user", content=content)
        )
        if live.scope.stored is not None:
            await live.scope.stored()

    def _config(self, *, sound: bool) -> RunConfig:
        aloud = self.modality == "audio" or (self.modality == "auto" and sound)
        heard = types.AudioTranscriptionConfig()
        return RunConfig(
            streaming_mode=StreamingMode.BIDI,
            response_modalities=[types.Modality.AUDIO if aloud else types.Modality.TEXT],
            input_audio_transcription=heard,
            output_audio_transcription=heard if aloud else None,
            session_resumption=types.SessionResumptionConfig(),
            context_window_compression=types.ContextWindowCompressionConfig(
                sliding_window=types.SlidingWindow()
            ),
        )


def _answered(content: types.Content) -> Sequence[str]:
    """Return the requests or calls that a content answers; none: somebody said it."""
    parts = content.parts or []
    given = [part.function_response for part in parts if part.function_response is not None]
    return [response.id or "" for response in given]


async def _say(live: LiveRun, content: types.Content) -> None:
    live.say(content)


async def _nothing_to_say(_live: LiveRun) -> None:
    """Someone speaks already."""


async def _release(live: LiveRun, requests: Sequence[str], answers: types.Content) -> None:
    await live.asks.release(requests, answers)
    if live.scope.stored is not None:
        # A tool may take long: whoever approved it sees at once that it was heard.
        await live.scope.stored()
