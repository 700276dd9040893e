"""A chat whose server went away goes on with the next one, on the same database."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.to_thread import run_sync
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService, ListSessionsResponse
from google.adk.sessions.session import Session
from google.genai import types
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from adk_stream_protocol.held_calls import reconciling
from adk_stream_protocol.held_calls.policy import Reconciled, ToolRule
from adk_stream_protocol.identifiers import ApprovalId, ChatId, MessageId, ReplyId, UserId
from adk_stream_protocol.ports import Stores, TurnRecord, Verdict
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.server.wiring import Services
from adk_stream_protocol.stores.opening import SqliteFile
from adk_stream_protocol.translation.history import past_turns
from adk_stream_protocol.translation.rewinds import RewindNote
from support.joining import joined
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def life(
    folder: Path, rules: Mapping[str, ToolRule] | None = None
) -> AsyncIterator[tuple[Stage, Stores]]:
    """Serve until the block ends; what runs then is cut off."""
    async with (
        open_database(SqliteFile(folder / "chats.db")) as opened,
        staged(
            rules=rules,
            services=Services(sessions=opened.sessions),
            stores=opened.stores,
            cut_off=True,
        ) as stage,
    ):
        yield stage, opened.stores


async def begun(stage: Stage, body: Mapping[str, object], *, until: str) -> None:
    """Make a request and leave once something was seen."""
    async with stage.http.stream("POST", "/api/chat", json=body) as response:
        seen = ""
        async for piece in response.aiter_text():
            seen += piece
            if until in seen:
                return


async def resumed(stage: Stage, chat: str = "c") -> Answered:
    return Answered.of(await stage.http.get(f"/api/chat/{chat}/stream"))


async def settled(stage: Stage, ending: str = "finish") -> Answered:
    """Return the newest reply once it ends in a certain way."""
    with anyio.fail_after(60):
        while ending not in (reply := await resumed(stage)).types:
            await anyio.lowlevel.checkpoint()
    return reply


async def state_of(stage: Stage) -> str:
    approvals = (await stage.http.get("/api/approvals")).json()["approvals"]
    return str(approvals[-1]["status"])


async def parts_of(stage: Stage, chat: str = "c") -> list[dict[str, Any]]:
    messages = (await stage.http.get(f"/api/chats/{chat}")).json()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    parts: list[dict[str, Any]] = messages[1]["parts"]
    return parts


async def test_a_reply_cut_off_in_its_text_is_given_again(tmp_path: Path) -> None:
    body = {"id": "c", "trigger": "submit-message", "messages": [user_message("long", "u1")]}
    async with life(tmp_path) as (stage, _):
        await begun(stage, body, until="One. ")
    async with life(tmp_path) as (stage, _):
        stage.more.set()
        assert (await settled(stage)).text == "One. Two."
        again = await stage.post("/api/chat", body)
        assert (again.text, again.types[-1]) == ("One. Two.", "finish")
        assert len(stage.model.prompts) == 1
        assert (await stage.say("c", "hi")).text == "Hello."


async def test_an_earlier_message_sent_again_after_a_recovery_finds_its_own_answer(
    tmp_path: Path,
) -> None:
    first = {
        "id": "c",
        "trigger": "submit-message",
        "messages": [user_message("hi", "u1")],
    }
    async with life(tmp_path) as (stage, _):
        await stage.post("/api/chat", first)
        await begun(stage, {"id": "c", "messages": [user_message("long", "u2")]}, until="One. ")
    async with life(tmp_path) as (stage, _):
        stage.more.set()
        assert (await settled(stage)).text == "One. Two."
        # What was cut off was taken back and answered anew; nothing before it was.
        assert (await stage.post("/api/chat", first)).text == "Hello."
        assert len(stage.model.prompts) == 1


async def test_results_that_the_model_never_answered_are_answered(tmp_path: Path) -> None:
    body = {"id": "c", "trigger": "submit-message", "messages": [user_message("add late", "u1")]}
    async with life(tmp_path) as (stage, _):
        await begun(stage, body, until="tool-output-available")
    async with life(tmp_path) as (stage, _):
        stage.more.set()
        reply = await settled(stage)
        assert reply.text == "It is 3."
        assert [chunk["output"] for chunk in reply.only("tool-output-available")] == [{"sum": 3}]
        again = await stage.post("/api/chat", body)
        # Who resumes is not told to run it again.
        first = [chunk for chunk in again.chunks if chunk["type"] != "tool-input-available"]
        assert joined(first) == joined(reply.chunks)
        parts = await parts_of(stage)
        assert [part["type"] for part in parts if part["type"] != "step-start"] == [
            "tool-add",
            "text",
        ]


@pytest.mark.parametrize("resend", [False, True])
async def test_a_payment_made_before_the_cut_is_told_and_not_made_again(
    tmp_path: Path, resend: bool
) -> None:
    async with life(tmp_path) as (stage, _):
        answer = (await stage.say("c", "pay late")).approving("c", True)
        await begun(stage, answer, until="tool-output-available")
        assert stage.payments == [5]
    async with life(tmp_path) as (stage, _):
        stage.more.set()
        reply = await stage.post("/api/chat", answer) if resend else await settled(stage)
        assert reply.text == "Late told."
        assert [chunk["output"] for chunk in reply.only("tool-output-available")] == [{"paid": 5}]
        assert (stage.payments, await state_of(stage)) == ([], "done")
        assert (await parts_of(stage))[1]["state"] == "output-available"


async def test_a_decision_that_nobody_acted_on_is_acted_on_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with life(tmp_path) as (stage, stores):
        approval = ApprovalId((await stage.say("c", "pay 5")).approvals[0])
    async with open_database(SqliteFile(tmp_path / "chats.db")) as opened:
        # As if the process had died right after the decision.
        await opened.stores.calls.decide(approval, Verdict(approved=True, by="alice"))
    async with life(tmp_path) as (stage, stores):
        with anyio.fail_after(15):
            while await state_of(stage) != "done":
                await anyio.lowlevel.checkpoint()
        assert (await settled(stage)).text.endswith("Result told.")
        assert stage.payments == [5]
        assert await stores.calls.undelivered() == []


async def test_a_decision_is_acted_on_though_its_turn_had_only_taken_the_chat(
    tmp_path: Path,
) -> None:
    async with life(tmp_path) as (stage, _):
        asked = await stage.say("c", "pay 5")
        approval = ApprovalId(asked.approvals[0])
    async with open_database(SqliteFile(tmp_path / "chats.db")) as opened:
        await opened.stores.calls.decide(approval, Verdict(approved=True, by="alice"))
        taken = TurnRecord(ChatId("c"), UserId("alice"), ReplyId("r"), key=f"answers:{approval}")
        await opened.stores.turns.begin(taken, repeatable=False)
    async with life(tmp_path) as (stage, _):
        reply = await resumed(stage)
        assert "error" not in reply.types
        assert reply.text.endswith("Result told.")
        assert stage.payments == [5]
        # The same answer again is given the reply that made up for the lost one.
        assert (await stage.post("/api/chat", asked.approving("c", True))).text == "Result told."


async def cut_while_paying(
    folder: Path, rules: Mapping[str, ToolRule] | None = None
) -> dict[str, Any]:
    async with life(folder, rules) as (stage, _):
        answer = (await stage.say("c", "pay slowly")).approving("c", True)
        async with stage.http.stream("POST", "/api/chat", json=answer):
            await run_sync(stage.tool_started.wait, 10)
    return answer


async def test_a_payment_cut_off_is_not_known_and_never_made_again(tmp_path: Path) -> None:
    answer = await cut_while_paying(tmp_path)
    async with life(tmp_path) as (stage, _):
        reply = await settled(stage)
        (told,) = reply.only("tool-output-error")
        assert "not known whether it took effect" in told["errorText"]
        assert reply.text == "Slowly told."
        assert (stage.payments, await state_of(stage)) == ([], "unknown")
        assert (await stage.post("/api/chat", answer)).only("tool-output-error") == [told]
        assert stage.payments == []


async def test_an_idempotent_payment_cut_off_is_made_under_the_same_key(tmp_path: Path) -> None:
    rules = {"pay_slowly": ToolRule(idempotent=True)}
    await cut_while_paying(tmp_path, rules)
    async with life(tmp_path, rules) as (stage, stores):
        stage.tool_may_end.set()
        reply = await settled(stage)
        assert reply.text == "Slowly told."
        assert (stage.payments, await state_of(stage)) == ([9], "done")
        (call,) = await stores.calls.of_chat(ChatId("c"))
        events = [entry["event"] for entry in call.trail]
        assert events == ["open", "approve", "claim", "release", "claim", "finish"]


async def test_a_tool_that_can_tell_what_it_did_is_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    async def reconcile(key: str) -> Reconciled:
        asked.append(key)
        return Reconciled({"paid": 9})

    rules = {"pay_slowly": ToolRule(reconcile=reconcile)}
    answer = await cut_while_paying(tmp_path, rules)
    async with life(tmp_path, rules) as (stage, _):
        reply = await settled(stage)
        assert [chunk["output"] for chunk in reply.only("tool-output-available")] == [{"paid": 9}]
        assert (stage.payments, await state_of(stage)) == ([], "done")
        assert asked == [answer["messages"][0]["parts"][0]["toolCallId"]]


async def test_a_tool_that_cannot_tell_at_first_is_asked_again_by_the_sweeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "_FIRST_PAUSE", 0.0)
    asked: list[str] = []

    async def reconcile(key: str) -> Reconciled:
        asked.append(key)
        if len(asked) == 1:
            raise ConnectionError("The bank is down for a second.")
        return Reconciled({"paid": 9})

    rules = {"pay_slowly": ToolRule(reconcile=reconcile)}
    await cut_while_paying(tmp_path, rules)
    async with life(tmp_path, rules) as (stage, _):
        with anyio.fail_after(15):
            while await state_of(stage) != "done":
                await anyio.lowlevel.checkpoint()
        assert (stage.payments, len(asked)) == ([], 2)


async def test_a_request_that_was_stored_without_its_row_can_be_approved(tmp_path: Path) -> None:
    async with life(tmp_path) as (stage, _):
        await stage.say("c", "pay 5")
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}")
    async with engine.begin() as connection:
        await connection.execute(text("DELETE FROM adk_stream_call"))
        await connection.execute(text("UPDATE adk_stream_turn SET running = 1"))
    await engine.dispose()
    async with life(tmp_path) as (stage, _):
        reply = await settled(stage)
        assert len(reply.approvals) == 1
        told = await stage.post("/api/chat", reply.approving("c", True))
        assert (told.text, stage.payments) == ("Result told.", [5])


async def test_a_request_that_is_shown_can_be_answered_before_its_turn_is_recovered(
    tmp_path: Path,
) -> None:
    async with life(tmp_path) as (stage, _):
        await stage.say("c", "pay 5")
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}")
        async with engine.begin() as connection:
            # As if another process had died after ADK's request, and its lease had not lapsed.
            await connection.execute(text("DELETE FROM adk_stream_call"))
            dead = "UPDATE adk_stream_turn SET running = 1, holder = 'dead', lease_until = 1e12"
            await connection.execute(text(dead))
        await engine.dispose()
        (part,) = [part for part in await parts_of(stage) if "approval" in part]
        decided = await stage.http.post(
            f"/api/approvals/{part['approval']['id']}", json={"approved": True}
        )
        assert (decided.status_code, decided.json()["status"]) == (200, "approved")


async def taken_back_while_answered(folder: Path) -> None:
    """Leave a chat whose process died right after the rewind of a recovery or a regeneration."""
    body = {"id": "c", "messages": [user_message("long", "u1")]}
    async with life(folder) as (stage, _):
        await begun(stage, body, until="One. ")
    async with open_database(SqliteFile(folder / "chats.db")) as opened:
        found = await opened.sessions.get_session(app_name="stage", user_id="alice", session_id="c")
        assert found is not None
        rewind = EventActions(rewind_before_invocation_id=found.events[-1].invocation_id)
        await opened.sessions.append_event(
            found, Event(author="user", invocation_id="e-rewind", actions=rewind)
        )


async def test_a_message_taken_back_is_not_answered_anew_if_that_was_stopped(
    tmp_path: Path,
) -> None:
    await taken_back_while_answered(tmp_path)
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}")
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE adk_stream_turn SET stopping = 1"))
    await engine.dispose()
    async with life(tmp_path) as (stage, _):
        await settled(stage, "abort")
        assert stage.model.prompts == []


@pytest.mark.parametrize("key", ["say", "regenerate:"])
async def test_a_message_taken_back_to_be_answered_anew_is_not_lost(
    tmp_path: Path, key: str
) -> None:
    await taken_back_while_answered(tmp_path)
    if key != "say":
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}")
        async with engine.begin() as connection:
            anew = "UPDATE adk_stream_turn SET key = 'regenerate:', reply_id = 'another'"
            await connection.execute(text(anew))
        await engine.dispose()
    async with life(tmp_path) as (stage, _):
        stage.more.set()
        assert (await settled(stage)).text == "One. Two."
        messages = (await stage.http.get("/api/chats/c")).json()["messages"]
        assert (messages[0]["id"], messages[0]["role"]) == ("u1", "user")
        assert len(messages) == 2


async def test_a_message_that_was_never_stored_can_be_sent_again(tmp_path: Path) -> None:
    body = {"id": "c", "messages": [user_message("hi", "u1")]}
    async with life(tmp_path) as (stage, _):
        await stage.post("/api/chat", body)
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'chats.db'}")
    async with engine.begin() as connection:
        await connection.execute(text("DELETE FROM events"))
        await connection.execute(text("UPDATE adk_stream_turn SET running = 1"))
    await engine.dispose()
    async with life(tmp_path) as (stage, _):
        assert "Please send it again" in (await settled(stage, "error")).raw
        assert (await stage.post("/api/chat", body)).text == "Hello."


async def test_a_chat_that_was_cut_off_can_be_stopped_and_deleted(tmp_path: Path) -> None:
    body = {"id": "c", "messages": [user_message("long", "u1")]}
    async with life(tmp_path) as (stage, _):
        await begun(stage, body, until="One. ")
        await begun(stage, {**body, "id": "d"}, until="One. ")
    async with life(tmp_path) as (stage, _):
        for chat in ("c", "d"):
            await stage.http.post(f"/api/chat/{chat}/stop")
        assert (await stage.http.delete("/api/chats/d")).status_code == 204
        assert (await stage.say("c", "hi")).text == "Hello."


async def lapse(folder: Path, *statements: str) -> None:
    """Make the newest turn look as if its process had died, after some changes."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{folder / 'chats.db'}")
    async with engine.begin() as connection:
        for statement in (*statements, "UPDATE adk_stream_turn SET running = 1"):
            await connection.execute(text(statement))
    await engine.dispose()


async def test_a_turn_that_was_being_stopped_is_not_taken_up_again(tmp_path: Path) -> None:
    async with life(tmp_path) as (stage, _):
        asked = await stage.say("c", "pay 5")
    approved = "UPDATE adk_stream_call SET state = 'approved', delivered_in = 'r', decided_at = 1"
    taken = "UPDATE adk_stream_turn SET stopping = 1, reply_id = 'r', key = 'answers:'"
    await lapse(tmp_path, approved, taken)
    async with open_database(SqliteFile(tmp_path / "chats.db")) as opened:
        # A first recovery took it over and died, too.
        lapsed = TurnRecord(ChatId("c"), UserId("alice"), ReplyId("r"), "answers:")
        again = dataclasses.replace(lapsed, reply_id=ReplyId("r2"), origin=ReplyId("r"))
        await opened.stores.turns.release(lapsed.chat_id, lapsed.reply_id)
        await opened.stores.turns.begin(again, repeatable=False, over=lapsed.reply_id)
        await opened.stores.turns.release(lapsed.chat_id, again.reply_id)
    async with life(tmp_path) as (stage, _):
        await settled(stage, "abort")
        assert (stage.payments, await state_of(stage)) == ([], "cancelled")
        late = await stage.post("/api/chat", asked.approving("c", True))
        assert late.status == 200
        assert stage.payments == []


async def test_a_turn_that_ends_each_process_is_given_up(tmp_path: Path) -> None:
    body = {"id": "c", "messages": [user_message("long", "u1")]}
    async with life(tmp_path) as (stage, _):
        await begun(stage, body, until="One. ")
    asked = 0
    for _ in range(8):
        async with life(tmp_path) as (stage, _):
            with anyio.move_on_after(10):
                async with stage.http.stream("GET", "/api/chat/c/stream") as response:
                    async for piece in response.aiter_text():
                        if "One. " in piece or "given up" in piece:
                            break
            asked += len(stage.model.prompts)
    assert asked == 5
    async with life(tmp_path) as (stage, _):
        assert "given up" in (await resumed(stage)).raw
        assert (await stage.say("c", "hi")).text == "Hello."


async def history(stage: Stage) -> list[tuple[str, str]]:
    """Return the chat's messages: the user's ids, and all texts."""
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    return [
        (
            message["id"] if message["role"] == "user" else "assistant",
            "".join(part["text"] for part in message["parts"] if part["type"] == "text"),
        )
        for message in messages
    ]


class Dying(BaseSessionService):
    """Hands everything to another service, until it is to store a certain event."""

    def __init__(self, inner: BaseSessionService, dies_at: Callable[[Event], bool]) -> None:
        self._inner = inner
        self._dies_at = dies_at
        # Set once nothing more is stored.
        self.is_dead = anyio.Event()

    async def append_event(self, session: Session, event: Event) -> Event:
        if self._dies_at(event):
            self.is_dead.set()
            await anyio.sleep_forever()
        return await self._inner.append_event(session, event)

    async def create_session(self, **named: Any) -> Session:
        return await self._inner.create_session(**named)

    async def get_session(self, **named: Any) -> Session | None:
        return await self._inner.get_session(**named)

    async def list_sessions(self, **named: Any) -> ListSessionsResponse:
        return await self._inner.list_sessions(**named)

    async def delete_session(self, **named: Any) -> None:
        await self._inner.delete_session(**named)


def says(said: str) -> Callable[[Event], bool]:
    """Return what knows the event in which the user says something."""

    def is_said(event: Event) -> bool:
        parts = (event.content.parts if event.content else None) or []
        return event.author == "user" and any(part.text == said for part in parts)

    return is_said


async def killed(
    folder: Path, body: Mapping[str, object], dies_at: Callable[[Event], bool]
) -> Path:
    """Return what is left of a server that was killed before it could store an event."""
    left = folder / "left"
    left.mkdir()
    async with open_database(SqliteFile(folder / "chats.db")) as opened:
        dying = Dying(opened.sessions, dies_at)
        services = Services(sessions=dying)
        async with (
            staged(services=services, stores=opened.stores, cut_off=True) as stage,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(stage.post, "/api/chat", body)
            with anyio.fail_after(60):
                await dying.is_dead.wait()
            # What the database holds now is all that a next process finds.
            with (
                closing(sqlite3.connect(folder / "chats.db")) as found,
                closing(sqlite3.connect(left / "chats.db")) as copy,
            ):
                found.backup(copy)
            tasks.cancel_scope.cancel()
    return left


async def two_messages(folder: Path) -> tuple[str, str]:
    """Begin a chat with two messages; return the ids of the answers."""
    async with life(folder) as (stage, _):
        replies = [
            await stage.post("/api/chat", {"id": "c", "messages": [user_message(said, name)]})
            for name, said in (("u1", "hi"), ("u2", "pay 5"))
        ]
    return replies[0].message_id, replies[1].message_id


AGAIN = {"trigger": "regenerate-message"}


@pytest.mark.parametrize(
    ("message_id", "more", "is_repeat"),
    [
        ("u2", {"messageId": "u2"}, True),
        ("u2", {}, False),
        ("u2", AGAIN, False),
        ("u3", {"parentId": "answer"}, True),
        ("u3", {"parentId": "answer", **AGAIN}, False),
    ],
    ids=["edit", "edit in place", "edit by regenerate", "branch", "branch by regenerate"],
)
async def test_a_message_is_not_lost_with_those_that_were_taken_back_for_it(
    tmp_path: Path, message_id: str, more: Mapping[str, object], is_repeat: bool
) -> None:
    first, _ = await two_messages(tmp_path)
    body = {"id": "c", "messages": [user_message("hello", message_id)], **more}
    if "parentId" in more:
        body["parentId"] = first
    left = await killed(tmp_path, body, says("hello"))
    async with life(left) as (stage, stores):
        assert (await settled(stage)).text == "Hello again."
        assert await history(stage) == [
            ("u1", "hi"),
            ("assistant", "Hello."),
            (message_id, "hello"),
            ("assistant", "Hello again."),
        ]
        assert len(stage.model.prompts) == 1
        assert [call.state for call in await stores.calls.of_chat(ChatId("c"))] == ["cancelled"]
        # The same again is what it would have been without the kill.
        again = await stage.post("/api/chat", body)
        assert (again.text, len(stage.model.prompts)) == ("Hello again.", 1 if is_repeat else 2)
        assert len(await history(stage)) == 4


async def test_a_file_is_not_lost_with_the_message_that_was_taken_back_for_it(
    tmp_path: Path,
) -> None:
    await two_messages(tmp_path)
    file = {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk="}
    message = {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "hello"}, file]}
    left = await killed(tmp_path, {"id": "c", "message": message}, says("hello"))
    async with life(left) as (stage, _):
        await settled(stage)
        messages = (await stage.http.get("/api/chats/c")).json()["messages"]
        assert messages[2]["parts"] == message["parts"]


@pytest.mark.parametrize("dies_at", ["pay 5", "hello"])
async def test_a_message_that_stays_without_its_answer_is_not_lost(
    tmp_path: Path, dies_at: str
) -> None:
    await two_messages(tmp_path)
    body = {"id": "c", "messages": [user_message("hello", "u3")], "parentId": "u2"}
    left = await killed(tmp_path, body, says(dies_at))
    async with life(left) as (stage, _):
        assert (await settled(stage)).text == "Hello again."
        assert await history(stage) == [
            ("u1", "hi"),
            ("assistant", "Hello."),
            ("u2", "pay 5"),
            ("u3", "hello"),
            ("assistant", "Hello again."),
        ]


@pytest.mark.parametrize("named", ["answer", "message", "nothing"])
async def test_an_answer_that_was_taken_back_for_another_is_given(
    tmp_path: Path, named: str
) -> None:
    _, second = await two_messages(tmp_path)
    names = {"answer": {"messageId": second}, "message": {"messageId": "u2"}, "nothing": {}}
    left = await killed(tmp_path, {"id": "c", **AGAIN, **names[named]}, says("pay 5"))
    async with life(left) as (stage, _):
        assert (await settled(stage)).text == "Paying. "
        assert [said for said, _ in await history(stage)] == ["u1", "assistant", "u2", "assistant"]


async def test_a_recovery_that_dies_after_its_own_rewind_is_recovered(tmp_path: Path) -> None:
    first, _ = await two_messages(tmp_path)
    body = {"id": "c", "messages": [user_message("long", "u3")], "parentId": first}
    async with life(tmp_path) as (stage, _):
        # It has stored the message, and none of the answer: a recovery rewinds it.
        await begun(stage, body, until="One. ")
    left = await killed(tmp_path, {"id": "other", "message": user_message("hi")}, says("long"))
    async with life(left) as (stage, _):
        stage.more.set()
        assert (await settled(stage)).text == "One. Two."
        assert [said for said, _ in await history(stage)] == ["u1", "assistant", "u3", "assistant"]


async def test_a_branch_of_a_live_run_goes_on_live(tmp_path: Path) -> None:
    await two_messages(tmp_path)
    note = RewindNote(
        ReplyId("r"),
        MessageId("u3"),
        types.Content(role="user", parts=[types.Part(text="hello")]),
        live=True,
    )
    async with open_database(SqliteFile(tmp_path / "chats.db")) as opened:
        found = await opened.sessions.get_session(app_name="stage", user_id="alice", session_id="c")
        assert found is not None
        rewind = EventActions(rewind_before_invocation_id=found.events[-1].invocation_id)
        marked = Event(
            author="user",
            invocation_id="e-rewind",
            actions=rewind,
            custom_metadata=note.metadata(),
        )
        await opened.sessions.append_event(found, marked)
        taken = TurnRecord(ChatId("c"), UserId("alice"), ReplyId("r"), key="say:u3:hash")
        await opened.stores.turns.begin(taken, repeatable=False)
    async with life(tmp_path) as (stage, _):
        assert (await settled(stage)).text == "Hello again."
        assert [said for said, _ in await history(stage)] == ["u1", "assistant", "u3", "assistant"]
    async with open_database(SqliteFile(tmp_path / "chats.db")) as opened:
        found = await opened.sessions.get_session(app_name="stage", user_id="alice", session_id="c")
        assert found is not None
        assert past_turns(found.events)[-1].live
