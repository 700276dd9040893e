"""The baselines of the seed documents: the demo agent, frame by frame, over SSE and over WS /live.

`make golden` writes the files in `seeds` anew; read what changed. In a file, `out` is what the
client sends and `in` is what it gets, as in the seeds' own recordings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias

import httpx
import pytest

from adk_stream_protocol import Settings, create_app
from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.demo.offline_model import OfflineModel
from support.conformance import SDK_VERSIONS, read_with_real_clients
from support.envelope import CONFIRM, DONE, Envelope, enveloped
from support.joining import joined
from support.serving import serving
from support.stage import Answered

pytestmark = pytest.mark.anyio

BASELINES = Path(__file__).parent / "seeds"
HERE = {"latitude": 35.68, "longitude": 139.77}

Mode: TypeAlias = Literal["sse", "bidi"]
MODES: tuple[Mode, ...] = ("sse", "bidi")


class Client:
    """A client of the seeds, and the record of what it sent and got."""

    def __init__(self) -> None:
        self.record: list[dict[str, Any]] = []

    async def say(self, text: str) -> Answered:
        content = [{"type": "text", "text": text}]
        return await self._send({"messages": [{"role": "user", "content": content}]})

    async def answer(self, call_id: str, name: str, result: object) -> Answered:
        raise NotImplementedError

    async def _send(self, body: dict[str, Any]) -> Answered:
        raise NotImplementedError

    def note(self, direction: Literal["in", "out"], what: object) -> None:
        self.record.append({"direction": direction, "data": what})


class SseClient(Client):
    def __init__(self, http: httpx.AsyncClient) -> None:
        super().__init__()
        self._http = http

    async def answer(self, call_id: str, name: str, result: object) -> Answered:
        item = {"type": "tool-result", "toolCallId": call_id, "toolName": name, "result": result}
        return await self._send({"messages": [{"role": "user", "content": [item]}]})

    async def _send(self, body: dict[str, Any]) -> Answered:
        self.note("out", body)
        answered = Answered.of(await self._http.post("/stream", json=body))
        for chunk in answered.chunks:
            self.note("in", chunk)
        assert answered.raw.endswith("data: [DONE]\n\n")
        self.note("in", DONE)
        return answered


class BidiClient(Client):
    def __init__(self, envelope: Envelope) -> None:
        super().__init__()
        self._envelope = envelope

    async def answer(self, call_id: str, name: str, result: object) -> Answered:
        data = {"toolCallId": call_id, "toolName": name, "result": result}
        return await self._write({"type": "tool_result", "version": "1.0", "data": data})

    async def _send(self, body: dict[str, Any]) -> Answered:
        return await self._write({"type": "message", "version": "1.0", "data": body})

    async def _write(self, frame: dict[str, Any]) -> Answered:
        self.note("out", frame)
        await self._envelope.put(frame)
        answered = await self._envelope.reply()
        if answered.chunks[-1]["finishReason"] == "tool-calls":
            assert await self._envelope.is_silent()
            ends = []
        else:
            ends = [await self._envelope.next()]
        for chunk in (*answered.chunks, *ends):
            self.note("in", chunk)
        return answered


def paid(confirmed: bool) -> Story:
    async def told(client: Client) -> None:
        asked = await client.say("花子さんに50ドル送金してください")
        await client.answer(asked.calls[1], CONFIRM, {"confirmed": confirmed})

    return told


async def located(client: Client) -> None:
    location, confirmation = (await client.say("Where am I?")).calls
    await client.answer(confirmation, CONFIRM, {"confirmed": True})
    await client.answer(location, "get_location", HERE)


async def not_located(client: Client) -> None:
    _, confirmation = (await client.say("Where am I?")).calls
    await client.answer(confirmation, CONFIRM, {"confirmed": False})


async def forecast(client: Client) -> None:
    await client.say("What is the weather in Tokyo?")


async def music(client: Client) -> None:
    (call,) = (await client.say("Play some jazz")).calls
    await client.answer(call, "change_bgm", {"status": "playing", "track": "jazz"})


Story: TypeAlias = Callable[[Client], Awaitable[None]]
STORIES: Mapping[str, Story] = {
    "get_weather": forecast,
    "get_location-approved": located,
    "get_location-denied": not_located,
    "change_bgm": music,
    "process_payment-approved": paid(True),
    "process_payment-denied": paid(False),
}
every_story = pytest.mark.parametrize("name", STORIES)


def file_of(name: str, mode: Mode) -> Path:
    return BASELINES / f"{name}-{mode}-baseline.jsonl"


async def recorded(name: str, mode: Mode) -> str:
    app = create_app(build_agent(OfflineModel(delay=0.0)), settings=Settings())
    async with (
        serving(app) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as http,
        enveloped(url) as envelope,
    ):
        client = SseClient(http) if mode == "sse" else BidiClient(envelope)
        await STORIES[name](client)
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in named(client.record))


def named(record: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a record with each id named by when it first came, and without times."""
    names: dict[str, str] = {}
    counts = {"message": 0, "call": 0, "confirmation": 0}
    for line in record:
        chunk = line["data"] if isinstance(line["data"], dict) else {}
        for field, kind in (("messageId", "message"), ("toolCallId", "call")):
            found = chunk.get(field)
            if isinstance(found, str) and found not in names:
                of_whom = "confirmation" if chunk.get("toolName") == CONFIRM else kind
                counts[of_whom] += 1
                names[found] = f"{of_whom}-{counts[of_whom]}"
    text = json.dumps(record, ensure_ascii=False)
    for found, name in names.items():
        text = text.replace(json.dumps(found), json.dumps(name))
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "<time>", text)
    text = re.sub(r'("createdAt": )\d+', r"\g<1>0", text)
    read: list[dict[str, Any]] = json.loads(text)
    return read


@pytest.mark.parametrize("mode", MODES)
@every_story
async def test_what_is_said_is_what_the_baseline_holds(
    name: str, mode: Mode, request: pytest.FixtureRequest
) -> None:
    told = await recorded(name, mode)
    path = file_of(name, mode)
    same = path.exists() and read(told) == read(path.read_text(encoding="utf-8"))
    if not same and request.config.getoption("golden_update", default=False):
        path.write_text(told, encoding="utf-8")
    assert read(told) == read(path.read_text(encoding="utf-8"))


def read(told: str) -> list[tuple[str, list[Any]]]:
    """Return what was sent and got in turn; pieces of text that came one by one are joined."""
    record = [json.loads(line) for line in told.splitlines()]
    return [
        (direction, joined(line["data"] for line in lines))
        for direction, lines in groupby(record, itemgetter("direction"))
    ]


def heard(name: str, mode: Mode) -> list[Any]:
    lines = file_of(name, mode).read_text(encoding="utf-8").splitlines()
    record = [json.loads(line) for line in lines]
    return [line["data"] for line in record if line["direction"] == "in"]


@every_story
def test_both_modes_give_the_same_chunks_and_one_end_a_response_or_a_turn(name: str) -> None:
    sse, bidi = heard(name, "sse"), heard(name, "bidi")
    # How many pieces of text a live run joins depends on the moment.
    chunks = [joined(chunk for chunk in heard if chunk != DONE) for heard in (sse, bidi)]
    assert chunks[0] == chunks[1]
    finishes = [chunk for chunk in sse if chunk != DONE and chunk["type"] == "finish"]
    assert sse.count(DONE) == len(finishes)
    assert bidi.count(DONE) == 1
    assert bidi[-1] == DONE


@pytest.mark.parametrize("name", ["get_location-approved", "process_payment-approved"])
def test_the_original_call_comes_first_and_the_confirmation_names_it(name: str) -> None:
    shown = [c for c in heard(name, "bidi") if c != DONE and c["type"] == "tool-input-available"]
    assert shown[0]["toolName"] == name.removesuffix("-approved")
    assert shown[1]["toolName"] == CONFIRM
    assert shown[1]["input"]["originalFunctionCall"]["id"] == shown[0]["toolCallId"]


def test_the_real_clients_read_a_whole_turn_from_one_stream() -> None:
    """A turn that waited holds `finish` and the next `start` in the middle of its stream."""
    inputs: Any = [
        {"name": name, "chunks": [chunk for chunk in heard(name, "bidi") if chunk != DONE]}
        for name in STORIES
    ]
    readings = read_with_real_clients(inputs)
    assert len(readings) == len(STORIES) * len(SDK_VERSIONS)
    for reading in readings:
        told = f"{reading.name} {reading.version}"
        assert (reading.status, reading.error, reading.refused) == ("ready", None, []), told
        assert (reading.replies, reading.finish_reason) == (1, "stop"), told
        assert reading.message is not None, told
        states = {part["state"] for part in reading.message["parts"] if "toolCallId" in part}
        assert states <= {"output-available", "output-error"}, told
        texts = [part["text"] for part in reading.message["parts"] if part["type"] == "text"]
        assert texts[-1], told


def test_every_baseline_belongs_to_a_story() -> None:
    found = {path for path in BASELINES.iterdir() if path.suffix == ".jsonl"}
    assert found == {file_of(name, mode) for name in STORIES for mode in MODES}
