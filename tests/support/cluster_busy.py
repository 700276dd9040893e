"""What the tests of busy chats on several servers share: their messages, rows and endings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from support.cluster import Cluster
from support.cluster_plays import Beat, new_name, play, wait
from support.cluster_tabs import Tab, saying

__all__ = ["Rows", "answers", "asking", "rows_of", "said", "until_said"]

_PATIENCE_SECONDS = 180


class Rows:
    """What is left in the database."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def check_at_rest(self, *chats: str) -> None:
        """Check that nothing waits for these chats, and that no turn runs in them."""
        async with self._engine.connect() as connection:
            waiting = await connection.execute(text("SELECT chat_id FROM adk_stream_waiting"))
            turns = await connection.execute(
                text("SELECT chat_id FROM adk_stream_turn WHERE running")
            )
            assert not set(chats).intersection(waiting.scalars())
            assert not set(chats).intersection(turns.scalars())

    async def waiting(self, chat: str) -> int:
        """Return how many requests wait for a chat, or are being carried out."""
        query = text("SELECT count(*) FROM adk_stream_waiting WHERE chat_id = :chat")
        async with self._engine.connect() as connection:
            return int((await connection.execute(query, {"chat": chat})).scalar_one())


@asynccontextmanager
async def rows_of(cluster: Cluster) -> AsyncIterator[Rows]:
    """Open the servers' database."""
    url = cluster.postgres.url().replace("postgresql://", "postgresql+asyncpg://")
    engine = create_async_engine(url)
    try:
        yield Rows(engine)
    finally:
        await engine.dispose()


def asking(chat: str, *beats: Beat, name: str = "", **more: object) -> dict[str, Any]:
    """Return a request with a message of its own; it waits at its name unless it has beats."""
    name = name or new_name()
    return {**saying(chat, play(name, [*(beats or ("Half ", wait(name), "whole."))])), **more}


def answers(messages: list[dict[str, Any]]) -> list[str]:
    """Return the texts of the assistant's messages."""
    return [_text(message) for message in messages if message["role"] == "assistant"]


def said(messages: list[dict[str, Any]]) -> list[str]:
    """Return the plays that the user asked for, in order, into running answers, too."""
    return [found for message in messages for found in _said(message)]


def _said(message: dict[str, Any]) -> Iterator[str]:
    if message["role"] == "user":
        yield _text(message)
    for part in message["parts"]:
        if part["type"] == "data-adk-steering":
            yield _text(part["data"])


def _text(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


async def until_said(tab: Tab, chat: str, *bodies: dict[str, Any]) -> None:
    """Wait until a server shows these messages: it has accepted them."""
    names = {body["messages"][-1]["id"] for body in bodies}
    with anyio.fail_after(_PATIENCE_SECONDS):
        while not names <= {message["id"] for message in await tab.history(chat)}:
            pass
