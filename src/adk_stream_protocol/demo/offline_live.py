"""The offline model's side of a live run, in the shape of ADK's own connection to Gemini.

It answers by the rules of unary runs, and listens while it speaks, so it can be interrupted by
text and by voice. A session to resume and a context to compress are ignored: what was said before
the connection is what ADK sends as history.
"""

import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from enum import Enum, auto
from typing import NamedTuple

import anyio
import anyio.lowlevel
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_stream_protocol.demo.conversation import Conversation
from adk_stream_protocol.demo.hearing import Ear, Sound
from adk_stream_protocol.demo.languages import language_of, split_for_streaming
from adk_stream_protocol.demo.rules import answer_to, count_usage
from adk_stream_protocol.demo.tones import SAMPLE_RATE, seconds_of, spoken

__all__ = ["OfflineConnection"]

_RATE = re.compile(r"rate=(\d+)")
_DEFAULT_RATE = 16_000


class _Signal(Enum):
    """What can come in beside a content."""

    HISTORY = auto()  # its last message has no answer yet
    SPEECH_BEGAN = auto()
    SPEECH_ENDED = auto()


_News = types.Content | _Signal


class _Piece(NamedTuple):
    """A response in the middle of a text."""

    words: str
    response: LlmResponse
    lasts: float  # seconds until the next one


class OfflineConnection(BaseLlmConnection):
    """One live conversation; one task sends and one receives.

    What comes in is taken up in its order, and nothing is dropped: a result that comes after the
    user went on to something else is told once that has its answer.
    """

    def __init__(
        self,
        request: LlmRequest,
        *,
        delay: float,
        speech_pace: float,
        heard: Sequence[str],
        calls_end_turn: bool,
    ) -> None:
        config = request.live_connect_config
        self._request = request
        self._delay = delay
        self._speech_pace = speech_pace
        self._heard = heard
        self._calls_end_turn = calls_end_turn
        # Gemini speaks if nothing is said about it.
        self._speaks = types.Modality.TEXT not in (config.response_modalities or ())
        self._tells_heard = config.input_audio_transcription is not None
        self._tells_spoken = config.output_audio_transcription is not None
        self._conversation = Conversation()
        self._ear = Ear()
        self._inbox: deque[_News] = deque()  # what was not taken up yet
        self._changed = anyio.Event()  # set by whatever comes in; new for each wait
        self._closed = False

    async def send_history(self, history: list[types.Content]) -> None:
        """Remember the conversation so far; its last message is answered if it is the user's."""
        self._conversation.begin(*history)
        if history and history[-1].role == "user":
            self._put(_Signal.HISTORY)

    async def send_content(self, content: types.Content) -> None:
        """Take a message of the user, which interrupts, or results of calls, which do not."""
        self._put(content)

    async def send_realtime(
        self,
        blob: types.Blob | types.ActivityStart | types.ActivityEnd | types.LiveClientRealtimeInput,
    ) -> None:
        """Listen to 16-bit PCM, or to the client's word about it; anything else is not heard."""
        for sound in self._sounds(blob):
            self._put(_Signal.SPEECH_BEGAN if sound == "began" else _Signal.SPEECH_ENDED)

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """Wait for something to answer and yield one turn; nothing once closed."""
        awaited: Sequence[str] = ()  # ids of the calls of this turn, which waits for their results
        while (news := await self._next(awaited)) is not None:
            if awaited and _interrupts(news):
                self._inbox.appendleft(news)
                yield self._response(interrupted=True)
                yield self._response(turn_complete=True)
                return
            if not self._take_up(news):
                continue
            if news is _Signal.SPEECH_ENDED and self._tells_heard:
                for response in self._transcription():
                    yield response
            async with aclosing(self._answer()) as responses:
                async for response in responses:
                    yield response
                    if response.turn_complete:
                        return
            awaited = self._conversation.newest_calls

    async def close(self) -> None:
        """End the conversation, also in the middle of a sentence; safe to repeat."""
        self._closed = True
        self._changed.set()

    def _sounds(self, realtime: object) -> list[Sound]:
        match realtime:
            case types.ActivityStart():
                return self._ear.begin()
            case types.ActivityEnd() | types.LiveClientRealtimeInput(audio_stream_end=True):
                return self._ear.end()
            case types.Blob(mime_type=str(kind), data=bytes(pcm)) if kind.startswith("audio/pcm"):
                rate = _RATE.search(kind)
                return self._ear.hear(pcm, int(rate[1]) if rate else _DEFAULT_RATE)
            case _:
                return []

    def _put(self, news: _News) -> None:
        self._inbox.append(news)
        self._changed.set()

    async def _next(self, awaited: Sequence[str]) -> _News | None:
        """Take what came first; a turn that waits for results leaves those of others for later."""
        while not self._closed:
            for news in self._inbox:
                if not awaited or _interrupts(news) or _brings(news, awaited):
                    self._inbox.remove(news)
                    return news
            await self._change()
        return None

    async def _change(self) -> None:
        self._changed = anyio.Event()
        await self._changed.wait()

    def _take_up(self, news: _News) -> bool:
        """Add it to the conversation; return whether there is something to answer now."""
        match news:
            case _Signal.HISTORY:
                return True
            case _Signal.SPEECH_BEGAN:
                return False
            case _Signal.SPEECH_ENDED:
                self._conversation.begin(types.UserContent(self._guess()))
                return True
            case types.Content() if results := _results(news):
                return self._conversation.settle(results)
            case types.Content():
                self._conversation.begin(news)
                return True

    def _guess(self) -> str:
        """Return what the user may have said: the next of the phrases, also after a reconnect."""
        contents = self._conversation.contents
        texts = [part.text for content in contents for part in content.parts or []]
        return self._heard[sum(text in self._heard for text in texts) % len(self._heard)]

    def _transcription(self) -> Iterator[LlmResponse]:
        """Yield what the user just said, in pieces and then as a whole."""
        [part] = self._conversation.contents[-1].parts or []
        text = part.text or ""
        for piece in split_for_streaming(text, language_of(text)):
            heard = types.Transcription(text=piece, finished=False)
            yield self._response(input_transcription=heard, partial=True)
        heard = types.Transcription(text=text, finished=True)
        yield self._response(input_transcription=heard, partial=False)

    async def _answer(self) -> AsyncGenerator[LlmResponse, None]:
        """Yield the answer; without a `turn_complete` if its calls wait for their results."""
        asked = self._conversation.contents
        answer = answer_to(asked, tools=set(self._request.tools_dict))
        calls = [part.function_call for part in answer.parts if part.function_call]
        for part in answer.parts:
            async with aclosing(self._say(part, answer.pieces(part))) as responses:
                async for response in responses:
                    yield response
                    if response.interrupted:
                        yield self._response(turn_complete=True)
                        return
            if self._closed:
                return
        yield self._response(usage_metadata=count_usage(self._request, asked, answer.parts))
        if calls:
            content = self._conversation.call(calls)
            # A copy: ADK may write into what it is given.
            yield self._response(content=content.model_copy(deep=True))
        if not calls or self._calls_end_turn:
            yield self._response(turn_complete=True)

    async def _say(
        self, part: types.Part, pieces: Sequence[str]
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield a text in pieces and then as a whole, or as far as it came when interrupted."""
        aloud = self._speaks and not part.thought
        said = ""
        interrupted = False
        lasts = 0.0
        for piece in self._spoken(pieces) if aloud else self._written(part, pieces):
            if said and not await self._goes_on(lasts):
                interrupted = True
                break
            said += piece.words
            lasts = piece.lasts
            yield piece.response
        if self._closed or not said:
            return
        whole = types.Part(text=said, thought=part.thought)
        self._conversation.say(_model(whole))
        if not aloud:
            yield self._response(content=_model(whole), partial=False, interrupted=interrupted)
            return
        if self._tells_spoken:
            told = types.Transcription(text=said, finished=True)
            yield self._response(output_transcription=told, partial=False)
        if interrupted:
            yield self._response(interrupted=True)

    def _written(self, part: types.Part, pieces: Sequence[str]) -> Iterator[_Piece]:
        for text in pieces:
            delta = _model(types.Part(text=text, thought=part.thought))
            yield _Piece(text, self._response(content=delta, partial=True), self._delay)

    def _spoken(self, pieces: Sequence[str]) -> Iterator[_Piece]:
        for text in pieces:
            words = text
            if self._tells_spoken:
                told = types.Transcription(text=text, finished=False)
                yield _Piece(words, self._response(output_transcription=told, partial=True), 0.0)
                words = ""
            for chunk in spoken(text):
                sound = types.Blob(data=chunk, mime_type=f"audio/pcm;rate={SAMPLE_RATE}")
                response = self._response(content=_model(types.Part(inline_data=sound)))
                yield _Piece(words, response, self._speech_pace * seconds_of(chunk))
                words = ""

    async def _goes_on(self, pause: float) -> bool:
        """Wait, but no longer than until somebody speaks; return whether nobody does."""
        if pause:
            with anyio.move_on_after(pause):
                while not self._is_disturbed():
                    await self._change()
        else:
            # Without it nobody else, and so no interruption, would get a turn.
            await anyio.lowlevel.checkpoint()
        return not self._is_disturbed()

    def _is_disturbed(self) -> bool:
        return self._closed or any(_interrupts(news) for news in self._inbox)

    def _response(self, **told: object) -> LlmResponse:
        return LlmResponse.model_validate({"model_version": self._request.model, **told})


def _interrupts(news: _News) -> bool:
    return not (news is _Signal.HISTORY or (isinstance(news, types.Content) and _results(news)))


def _brings(news: _News, awaited: Sequence[str]) -> bool:
    return isinstance(news, types.Content) and any(
        result.id in awaited for result in _results(news)
    )


def _results(content: types.Content) -> list[types.FunctionResponse]:
    return [part.function_response for part in content.parts or [] if part.function_response]


def _model(part: types.Part) -> types.Content:
    return types.Content(role="model", parts=[part])
