"""What the server has of a story's chats, checked by the real `ai` packages at its end."""

from __future__ import annotations

import json
from typing import Any

import anyio
import httpx

from support.validation import check_messages, check_streams

__all__ = ["check_chats"]

_PATIENCE = 10.0


async def check_chats(http: httpx.AsyncClient) -> None:
    """Check the chats that the caller can see: as they are loaded, and as they are resumed.

    A server that a story left broken, or busy for good, is not asked.
    """
    try:
        with anyio.move_on_after(_PATIENCE):
            listed = await http.get("/api/chats")
            for chat in listed.json()["chats"] if listed.status_code == 200 else ():
                await _check(http, chat["id"])
    except httpx.HTTPError:
        return


async def _check(http: httpx.AsyncClient, chat: str) -> None:
    loaded = [await http.get(f"/api/chats/{chat}?profile={name}") for name in ("ai-sdk", "adk")]
    if any(response.status_code != 200 for response in loaded):
        return
    await check_messages(response.json()["messages"] for response in loaded)
    if loaded[0].json()["activeStreamId"] is not None:
        # It would go on for as long as what runs.
        return
    streams = [await _resumed(http, f"{path}/{chat}/stream") for path in ("/api/chat", "/stream")]
    await check_streams(streams)
    newest = await _resumed(http, f"/api/chat/{chat}/stream?sdk=7")
    # Only current versions of ai 7 know a message in the middle of another.
    is_steered = any(chunk["type"] == "steering-message" for chunk in newest)
    await check_streams([newest], only="ai7 newest" if is_steered else "ai7")


async def _resumed(http: httpx.AsyncClient, path: str) -> list[dict[str, Any]]:
    lines = (await http.get(path)).text.split("\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
