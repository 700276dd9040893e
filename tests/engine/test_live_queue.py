"""What is sent to the model of a live run."""

from __future__ import annotations

import pytest
from google.genai import types

from adk_stream_protocol.engine.live_queue import LiveQueue
from adk_stream_protocol.errors import TooMany

pytestmark = pytest.mark.anyio


async def test_sound_makes_room_for_everything_else() -> None:
    queue = LiveQueue(2, lambda: None, {})
    for piece in (b"aa", b"bb"):
        queue.send_realtime(types.Blob(data=piece, mime_type="audio/pcm"))
    typed = types.Content(role="user", parts=[types.Part(text="Hello")])
    queue.send_content(typed)
    queue.send_audio_stream_end()
    assert (await queue.get()).content == typed
    assert (await queue.get()).audio_stream_end


async def test_a_result_always_finds_room() -> None:
    queue = LiveQueue(1, lambda: None, {})
    typed = types.Content(role="user", parts=[types.Part(text="Hello")])
    queue.send_content(typed)
    with pytest.raises(TooMany):
        queue.send_content(typed)
    response = types.FunctionResponse(id="1", name="pay", response={})
    # ADK sends it, and would end the run.
    queue.send_content(types.Content(role="user", parts=[types.Part(function_response=response)]))
