"""Labels of chats in a table: a row for each chat that somebody renamed or archived."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import ColumnElement, and_, delete, select
from sqlalchemy.ext.asyncio import AsyncEngine

from adk_stream_protocol.identifiers import ChatId, UserId
from adk_stream_protocol.ports import ChatChange, ChatLabel
from adk_stream_protocol.stores.sql_calls import insert_into
from adk_stream_protocol.stores.sql_connections import reading, writing
from adk_stream_protocol.stores.sql_schema import LABELS

__all__ = ["SqlChatLabels"]


class SqlChatLabels:
    """The labels of each user's chats, of all processes."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, chat_id: ChatId, owner: UserId) -> ChatLabel:
        query = select(LABELS.c.title, LABELS.c.archived).where(_of(chat_id, owner))
        async with reading(self._engine) as connection:
            row = (await connection.execute(query)).one_or_none()
        return ChatLabel() if row is None else ChatLabel(row.title, bool(row.archived))

    async def of_owner(self, owner: UserId) -> Mapping[ChatId, ChatLabel]:
        query = select(LABELS).where(LABELS.c.owner == owner)
        async with reading(self._engine) as connection:
            rows = (await connection.execute(query)).all()
        return {ChatId(row.chat_id): ChatLabel(row.title, bool(row.archived)) for row in rows}

    async def change(self, chat_id: ChatId, owner: UserId, change: ChatChange) -> ChatLabel:
        changed: dict[str, object] = {}
        if change.title is not None:
            changed["title"] = change.title
        if change.archived is not None:
            changed["archived"] = change.archived
        if not changed:
            return await self.get(chat_id, owner)
        new = {"owner": owner, "chat_id": chat_id, "title": "", "archived": False} | changed
        # One statement, of the given columns alone: a change of the others at the same time stays.
        statement = (
            insert_into(self._engine, LABELS)
            .values(**new)
            .on_conflict_do_update(index_elements=[LABELS.c.owner, LABELS.c.chat_id], set_=changed)
            .returning(LABELS.c.title, LABELS.c.archived)
        )
        async with writing(self._engine) as connection:
            row = (await connection.execute(statement)).one()
        return ChatLabel(row.title, bool(row.archived))

    async def forget(self, chat_id: ChatId, owner: UserId) -> None:
        async with writing(self._engine) as connection:
            await connection.execute(delete(LABELS).where(_of(chat_id, owner)))


def _of(chat_id: ChatId, owner: UserId) -> ColumnElement[bool]:
    return and_(LABELS.c.owner == owner, LABELS.c.chat_id == chat_id)
