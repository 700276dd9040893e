"""Turns: stop, deadlines, expiry, decisions elsewhere, restarts."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from typing_extensions import override

from adk_stream_protocol.held_calls.policy import ToolRule
from adk_stream_protocol.identifiers import ChatId
from adk_stream_protocol.ports import Batch
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.sql import sqlite_stores
from support.joining import joined
from support.scripted import ScriptedModel, call
from support.serving import serving
from support.stage import Answered, Stage, staged, user_message

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


async def in_thread(stage: Stage) -> None:
    with anyio.fail_after(10):
        assert await anyio.to_thread.run_sync(stage.tool_started.wait, 10)


async def test_stop_lets_a_running_tool_finish_and_shows_its_result(stage: Stage) -> None:
    asked = await stage.say("c", "pay slowly")
    answers: list[Answered] = []

    async def approve() -> None:
        answers.append(await stage.post("/api/chat", asked.approving("c", True)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(approve)
        await in_thread(stage)
        stopped = await stage.http.post("/api/chat/c/stop")
        assert stopped.json() == {"stopped": True}
        stage.tool_may_end.set()
    assert stage.payments == [9]
    assert answers[0].only("tool-output-available")[0]["output"] == {"paid": 9}
    assert answers[0].types[-1] == "abort"
    assert len(stage.model.prompts) == 1
    approval = (await stage.http.get(f"/api/approvals/{asked.approvals[0]}")).json()
    assert approval["status"] == "done"
    history = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert history[1]["parts"][1]["output"] == {"paid": 9}
    again = await stage.say("c", "hi")
    assert again.text == "Hello."


class Dawdling(BasePlugin):
    """Takes a tool's result, and takes its time before ADK may tell it."""

    def __init__(self) -> None:
        super().__init__(name="dawdling")
        self.reached, self.may_go_on = anyio.Event(), anyio.Event()

    @override
    async def after_tool_callback(self, **_: Any) -> None:
        self.reached.set()
        await self.may_go_on.wait()


async def test_stop_shows_the_result_of_a_tool_that_has_just_ended() -> None:
    plugin, answers = Dawdling(), list[Answered]()

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    script = {"add": [[call("add", a=1, b=2)], ["It is 3."]]}
    agent = LlmAgent(name="a", model=ScriptedModel(script=script), tools=[add])
    app = create_app(App(name="app", root_agent=agent, plugins=[plugin]), settings=Settings())
    async with serving(app) as url, httpx.AsyncClient(base_url=url) as http:

        async def say() -> None:
            body = {"id": "c", "messages": [user_message("add")]}
            answers.append(Answered.of(await http.post("/api/chat", json=body)))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(say)
                await plugin.reached.wait()
                assert (await http.post("/api/chat/c/stop")).json() == {"stopped": True}
                await anyio.wait_all_tasks_blocked()
                plugin.may_go_on.set()
    [answer] = answers
    assert [chunk["output"] for chunk in answer.only("tool-output-available")] == [{"result": 3}]
    assert answer.types[-1] == "abort"
    assert answer.text == ""


async def test_stop_while_a_call_is_held_gives_it_up(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    stopped = await stage.http.post("/api/chat/c/stop")
    assert stopped.json() == {"stopped": True}
    late = await stage.http.post(f"/api/approvals/{asked.approvals[0]}", json={"approved": True})
    assert (late.status_code, late.json()["status"]) == (409, "cancelled")
    resumed = Answered.of(await stage.http.get("/api/chat/c/stream"))
    assert "cancelled" in resumed.only("tool-output-error")[0]["errorText"]
    history = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert history[1]["parts"][2]["state"] == "output-error"
    answered = await stage.post("/api/chat", asked.approving("c", True))
    assert "cancelled" in answered.only("tool-output-error")[0]["errorText"]
    assert stage.payments == []
    again = await stage.http.post("/api/chat/c/stop")
    assert again.json() == {"stopped": False}


async def test_an_expired_payment_is_not_made_and_the_model_is_told() -> None:
    async with staged(rules={"pay": ToolRule(expires_in=0.05)}) as stage:
        asked = await stage.say("c", "pay 5")
        with anyio.fail_after(10):
            while True:
                resumed = Answered.of(await stage.http.get("/api/chat/c/stream"))
                if "Result told." in resumed.text:
                    break
        assert "No decision came in time" in resumed.only("tool-output-error")[0]["errorText"]
        assert "No decision came in time" in str(stage.model.prompts[-1])
        late = await stage.post("/api/chat", asked.approving("c", True))
        assert late.status == 200
        assert "No decision" in late.only("tool-output-error")[0]["errorText"]
        assert late.only("data-approval")[0]["data"]["status"] == "expired"
        assert stage.payments == []


async def test_a_rule_decides_how_a_call_is_shown() -> None:
    rule = ToolRule(title="Payment", hint="Money leaves.", risk="high", ui={"icon": "cash"})
    async with staged(rules={"pay": rule}) as stage:
        asked = await stage.say("c", "pay 5")
        card = asked.only("data-approval")[0]
        assert card["id"] == asked.approvals[0]
        assert card["data"]["title"] == "Payment"
        assert card["data"]["hint"] == "Money leaves."
        assert card["data"]["risk"] == "high"
        assert card["data"]["ui"] == {"icon": "cash"}
        approval = (await stage.http.get("/api/approvals")).json()["approvals"][0]
        assert approval["input"] == {"amount": 5}
        assert approval["chatId"] == "c"


async def test_a_turn_that_takes_too_long_is_stopped() -> None:
    async with staged(settings=dataclasses.replace(Settings(), turn_seconds=0.2)) as stage:
        answered = await stage.say("c", "long")
        assert answered.text == "One. "
        assert answered.types[-1] == "abort"


async def test_a_tool_that_takes_too_long_is_abandoned_as_unknown() -> None:
    async with staged(settings=dataclasses.replace(Settings(), tool_seconds=0.2)) as stage:
        asked = await stage.say("c", "pay slowly")
        answered = await stage.post("/api/chat", asked.approving("c", True))
        assert answered.types[-1] == "abort"
        approval = (await stage.http.get(f"/api/approvals/{asked.approvals[0]}")).json()
        assert approval["status"] == "unknown"
        assert answered.only("data-approval")[-1]["data"]["status"] == "unknown"
        again = await stage.post("/api/chat", asked.approving("c", True))
        assert again.status == 200
        stage.tool_may_end.set()
    assert stage.payments in ([], [9])


async def test_a_sync_tool_does_not_block_the_server(stage: Stage) -> None:
    asked = await stage.say("c", "pay slowly")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stage.post, "/api/chat", asked.approving("c", True))
        await in_thread(stage)
        other = await stage.say("d", "hi")
        assert other.text == "Hello."
        stage.tool_may_end.set()


async def test_an_answer_while_another_turn_runs_waits_its_turn(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    answers: list[Answered] = []

    async def approve() -> None:
        answers.append(await stage.post("/api/chat", asked.approving("c", True)))

    body = {"id": "c", "messages": [user_message("long")]}
    async with (
        anyio.create_task_group() as tasks,
        stage.http.stream("POST", "/api/chat", json=body) as running,
    ):
        async for line in running.aiter_lines():
            if "One." in line:
                tasks.start_soon(approve)
                await until_decided(stage, asked.approvals[0])
                assert stage.payments == []
                stage.more.set()
    assert answers[0].text == "Result told."
    assert answers[0].message_id == asked.message_id
    assert stage.payments == [5]


async def until_decided(stage: Stage, approval_id: str) -> None:
    with anyio.fail_after(10):
        while True:
            approval = (await stage.http.get(f"/api/approvals/{approval_id}")).json()
            if approval["status"] != "pending":
                return


async def test_a_decision_that_travels_with_a_message_comes_first(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    body = asked.approving("c", True)
    said = {"id": "c", "messages": [*body["messages"], user_message("hi")]}
    answered = await stage.post("/api/chat", said)
    assert answered.text == "Hello."
    assert stage.payments == [5]
    history = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert [message["role"] for message in history] == ["user", "assistant", "user", "assistant"]
    assert history[1]["parts"][-1]["text"] == "Result told."


async def test_only_so_many_turns_of_one_user_run(stage: Stage) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(stage.say, f"c{number}", "long")
        with anyio.fail_after(10):
            while len(stage.model.prompts) < 4:
                await stage.http.get("/healthz")
        fifth = await stage.say("c5", "hi")
        assert (fifth.status, fifth.error["code"]) == (429, "too_many")
        other = await stage.say("c6", "hi", **{"x-user": "bob"})
        assert other.text == "Hello."
        stage.more.set()


async def test_only_so_many_calls_wait_for_one_user() -> None:
    async with staged(settings=dataclasses.replace(Settings(), max_pending=1)) as stage:
        await stage.say("c", "pay 5")
        second = await stage.say("d", "pay 5")
        assert "Too many calls wait" in second.only("tool-output-error")[0]["errorText"]
        assert second.text == "Paying. Result told."
        assert len((await stage.http.get("/api/approvals")).json()["approvals"]) == 1


async def test_a_message_sent_twice_is_answered_once(stage: Stage) -> None:
    body = {"id": "c", "trigger": "submit-message", "messages": [user_message("hi")]}
    first = await stage.post("/api/chat", body)
    second = await stage.post("/api/chat", body)
    assert joined(second.chunks) == joined(first.chunks)
    await stage.say("c", "hello")
    third = await stage.post("/api/chat", body)
    assert joined(third.chunks) == joined(first.chunks)
    assert len(stage.model.prompts) == 2


async def test_regenerating_what_never_arrived_says_it(stage: Stage) -> None:
    body = {
        "id": "c",
        "trigger": "regenerate-message",
        "messages": [user_message("hi")],
    }
    answered = await stage.post("/api/chat", body)
    assert answered.text == "Hello."


async def test_a_deleted_chat_is_gone(stage: Stage) -> None:
    asked = await stage.say("c", "pay 5")
    assert (await stage.http.delete("/api/chats/c")).status_code == 204
    assert (await stage.http.get("/api/chats/c")).status_code == 404
    assert (await stage.http.get("/api/chat/c/stream")).status_code == 204
    assert (await stage.http.delete("/api/chats/c")).status_code == 404
    late = await stage.http.post(f"/api/approvals/{asked.approvals[0]}", json={"approved": True})
    assert (late.status_code, late.json()["status"]) == (409, "cancelled")


async def test_deleting_a_chat_stops_its_turn(stage: Stage) -> None:
    body = {"id": "c", "messages": [user_message("long")]}
    async with stage.http.stream("POST", "/api/chat", json=body) as running:
        async for line in running.aiter_lines():
            if "One." in line:
                assert (await stage.http.delete("/api/chats/c")).status_code == 204
    assert (await stage.http.get("/api/chats")).json() == {"chats": []}


async def test_an_approval_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path}/sessions.db"
    async with (
        DatabaseSessionService(url) as sessions,
        staged(services=Services(sessions=sessions)) as before,
    ):
        asked = await before.say("c", "pay 5")
    async with (
        DatabaseSessionService(url) as sessions,
        staged(services=Services(sessions=sessions)) as stage,
    ):
        history = (await stage.http.get("/api/chats/c")).json()["messages"]
        assert history[1]["parts"][2]["approval"]["id"] == asked.approvals[0]
        answered = await stage.post("/api/chat", asked.approving("c", True))
        assert answered.text == "Result told."
        assert answered.message_id == asked.message_id
        assert stage.payments == [5]


async def test_history_shows_an_approved_call_that_waits_for_its_sibling(stage: Stage) -> None:
    asked = await stage.say("c", "pay both")
    await stage.http.post(f"/api/approvals/{asked.approvals[0]}", json={"approved": True})
    history = (await stage.http.get("/api/chats/c")).json()["messages"]
    states = [part["state"] for part in history[1]["parts"] if part["type"] == "tool-pay"]
    assert states == ["approval-responded", "approval-requested"]


async def test_everything_survives_a_restart_with_a_database(tmp_path: Path) -> None:
    file = tmp_path / "all.db"
    url = f"sqlite+aiosqlite:///{file}"
    async with (
        DatabaseSessionService(url) as sessions,
        staged(services=Services(sessions=sessions), stores=sqlite_stores(str(file))) as before,
    ):
        asked = await before.say("c", "pay 5")
        pending = (await before.http.get("/api/approvals")).json()
        other = await before.say("d", "hi")
    async with (
        DatabaseSessionService(url) as sessions,
        staged(services=Services(sessions=sessions), stores=sqlite_stores(str(file))) as stage,
    ):
        assert (await stage.http.get("/api/approvals")).json() == pending
        resumed = Answered.of(await stage.http.get("/api/chat/d/stream"))
        assert joined(resumed.chunks) == joined(other.chunks)
        foreign = await stage.say("c", "hi", **{"x-user": "bob"})
        assert foreign.status == 404
        decided = await stage.http.post(
            f"/api/approvals/{asked.approvals[0]}", json={"approved": True}
        )
        assert decided.status_code == 200
        continued = Answered.of(await stage.http.get("/api/chat/c/stream"))
        assert continued.text == "Paying. Result told."
        assert stage.payments == [5]


async def test_no_chunk_is_shown_before_the_message_is_stored() -> None:
    stores = memory_stores()
    shown: list[Batch | None] = []

    class Sessions(InMemorySessionService):
        async def append_event(self, session: Session, event: Event) -> Event:
            if event.author == "user" and event.content is not None:
                turn = await stores.turns.latest(ChatId(session.id))
                assert turn is not None
                batch = None
                with anyio.move_on_after(0):
                    batch = await stores.log.read(turn.reply_id, 0)
                shown.append(batch)
            return await super().append_event(session, event)

    async with staged(services=Services(sessions=Sessions()), stores=stores) as stage:
        assert (await stage.say("chat", "hi")).text == "Hello."
    assert shown == [None]


async def test_a_turn_reads_its_chat_once_and_knows_all_of_it() -> None:
    reads: list[str] = []

    class Sessions(InMemorySessionService):
        async def get_session(
            self,
            *,
            app_name: str,
            user_id: str,
            session_id: str,
            config: GetSessionConfig | None = None,
        ) -> Session | None:
            reads.append(session_id)
            return await super().get_session(
                app_name=app_name, user_id=user_id, session_id=session_id, config=config
            )

    async with staged(services=Services(sessions=Sessions())) as stage:
        await stage.say("chat", "hi")
        assert reads == ["chat"]
        reads.clear()
        await stage.say("chat", "hello")
        assert reads == ["chat"]
        said = [part.text for content in stage.model.prompts[-1] for part in content.parts or ()]
        assert said == ["hi", "Hello.", "hello"]


class Noted:
    """Hands everything to a store, and notes what it was asked."""

    def __init__(self, store: object, asked: list[str]) -> None:
        self._store = store
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        self._asked.append(name)
        return getattr(self._store, name)


async def test_a_message_in_a_chat_without_calls_asks_the_stores_little() -> None:
    asked: list[str] = []
    stores = memory_stores()
    turns: Any = Noted(stores.turns, asked)
    calls: Any = Noted(stores.calls, asked)
    noted = dataclasses.replace(stores, turns=turns, calls=calls)
    async with staged(stores=noted, checked=False) as stage:
        await stage.say("c", "hi")
        await stage.say("c", "hello")
    # What follows a reply is done by now. Other questions are asked whatever is said.
    told = Counter(asked)
    assert (told["owner_of"], told["latest"], told["begin"], told["end"]) == (2, 0, 2, 2)
    # Before the first turn nobody knows whether there are any; after each there may be.
    assert told["of_chat"] == 3


class SlowSessions(InMemorySessionService):
    """Sessions that are read only when they may be, once there is someone to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = anyio.Event()
        self.may_read: anyio.Event | None = None  # None: at once

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        if self.may_read is not None:
            self.asked.set()
            await self.may_read.wait()
        return await super().get_session(
            app_name=app_name, user_id=user_id, session_id=session_id, config=config
        )


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_turn_that_is_stopped_before_it_runs_asks_no_model(elsewhere: bool) -> None:
    stores, sessions = memory_stores(), SlowSessions()
    answers: list[Answered] = []
    async with staged(services=Services(sessions=sessions), stores=stores) as stage:
        await stage.say("c", "hi")

        async def say() -> None:
            answers.append(await stage.say("c", "hello"))

        sessions.may_read = anyio.Event()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(say)
                await sessions.asked.wait()
                if elsewhere:
                    assert await stores.turns.ask_to_stop(ChatId("c")) is not None
                    stores.wake.hint("turns")
                    await anyio.wait_all_tasks_blocked()
                else:
                    stopped = await stage.http.post("/api/chat/c/stop")
                    assert stopped.json() == {"stopped": True}
                sessions.may_read.set()
        assert answers[0].types[-1] == "abort"
        assert len(stage.model.prompts) == 1


async def test_a_message_edited_back_is_answered_anew(stage: Stage) -> None:
    def edited(text: str) -> dict[str, object]:
        return {"id": "c", "messageId": "u1", "messages": [user_message(text, "u1")]}

    await stage.post("/api/chat", {"id": "c", "messages": [user_message("hi", "u1")]})
    assert (await stage.post("/api/chat", edited("hello"))).text == "Hello again."
    back = await stage.post("/api/chat", edited("hi"))
    assert (back.text, len(stage.model.prompts)) == ("Hello.", 3)
    again = await stage.post("/api/chat", edited("hi"))
    assert joined(again.chunks) == joined(back.chunks)
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    assert messages[0]["parts"] == [{"type": "text", "text": "hi"}]
