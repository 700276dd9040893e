"""Clients of the live servers: one socket, one turn after another, each read to its end."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urlencode

import anyio
import httpx
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.live_model import SOUND, word
from benchmarks.talkers import APP, USER

__all__ = ["Say", "talking"]

Say: TypeAlias = Callable[[str], Coroutine[None, None, None]]
"""Says something and reads the reply to its end."""

_END: Final = '{"type":"end"'
_ERROR: Final = '{"type":"error"'


@asynccontextmanager
async def talking(variant: str, kind: str, http: httpx.AsyncClient) -> AsyncIterator[Say]:
    """Open a chat for turns of one kind, `text` or `audio`."""
    chat = f"chat-{uuid.uuid4()}"
    if variant == "adk":
        path = f"/apps/{APP}/users/{USER}/sessions/{chat}"
        (await http.post(path, json={})).raise_for_status()
        asked = {"app_name": APP, "user_id": USER, "session_id": chat, "modalities": kind.upper()}
        async with _socket(http, f"/run_live?{urlencode(asked)}") as connection:
            yield partial(_say_to_adk, connection)
        return
    async with _socket(http, "/api/chat/live") as connection:
        say = partial(_say_to_us, connection, chat)
        if kind == "text":
            yield say
            return
        async with _socket(http, f"/api/chat/{chat}/audio") as sound:
            yield partial(_say_and_listen, say, sound)


@asynccontextmanager
async def _socket(http: httpx.AsyncClient, path: str) -> AsyncIterator[ClientConnection]:
    address = f"{str(http.base_url).rstrip('/').replace('http', 'ws', 1)}{path}"
    async with connect(address, compression=None, max_size=None, proxy=None) as connection:
        yield connection


async def _say_to_adk(connection: ClientConnection, text: str) -> None:
    await connection.send(json.dumps({"content": {"role": "user", "parts": [{"text": text}]}}))
    await _read(connection, text, lambda frame: '"turnComplete":true' in frame)


async def _say_to_us(connection: ClientConnection, chat: str, text: str) -> None:
    message = {
        "id": f"user-{uuid.uuid4()}",
        "role": "user",
        "parts": [{"type": "text", "text": text}],
    }
    head = {"type": "send", "requestId": uuid.uuid4().hex, "trigger": "submit-message"}
    body = {"id": chat, "messages": [message], "headers": {}, "body": {}}
    await connection.send(json.dumps({**head, **body}))
    await _read(connection, text, lambda frame: frame.startswith(_END))


async def _read(connection: ClientConnection, text: str, is_end: Callable[[str], bool]) -> None:
    """Read a reply; fails unless its last word came before its end."""
    kind, _, count = text.partition(" ")
    last = word((int(count) if kind == "text" else int(count) // 2) - 1)
    complete = False
    while not is_end(frame := str(await connection.recv())):
        assert not frame.startswith(_ERROR), frame
        complete = complete or last in frame
    assert complete


async def _say_and_listen(say: Say, sound: ClientConnection, text: str) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(say, text)
        missing = int(text.partition(" ")[2]) // 2 * len(SOUND)
        while missing:
            missing -= len(await sound.recv())
