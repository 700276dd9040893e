"""`WS /live`: the envelope 1.0, turn by turn, and every line that the seed documents ask for."""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx
import pytest
from google.adk.agents.llm_agent import LlmAgent
from websockets.exceptions import ConnectionClosed, InvalidStatus

from adk_stream_protocol.demo.agent import build_agent
from adk_stream_protocol.identifiers import ChatId, ReplyId
from adk_stream_protocol.ports import Batch, TurnRecord, turns_topic
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import create_app, turns_of
from adk_stream_protocol.stores.memory import MemoryLog, MemoryTurns, memory_stores
from support.envelope import CONFIRM, DONE, Envelope, enveloped
from support.joining import joined
from support.postgres import PostgresServer
from support.scripted import call
from support.serving import serving
from support.stage import Answered, Stage, staged, user_by_header, user_message

pytestmark = pytest.mark.anyio

JAPANESE = "花子さんに50ドル送金してください"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        yield stage


@pytest.fixture
async def live(stage: Stage) -> AsyncIterator[Envelope]:
    async with enveloped(stage.url) as live:
        yield live


async def asked_to(live: Envelope, text: str = "pay 5") -> Answered:
    await live.say(text)
    return await live.reply()


def confirmation_of(asked: Answered) -> dict[str, Any]:
    (found,) = [c for c in asked.only("tool-input-available") if c["toolName"] == CONFIRM]
    return found


def refusals(live: Envelope) -> list[dict[str, Any]]:
    return [each for each in live.heard if each != DONE and each["type"] == "refused"]


async def pending(stage: Stage) -> list[dict[str, Any]]:
    found = await stage.http.get("/api/approvals?status=pending")
    return list(found.json()["approvals"])


# The checklist of the BIDI document


async def test_1_the_client_receives_the_confirmation_with_its_input(live: Envelope) -> None:
    asked = await asked_to(live, JAPANESE)
    assert confirmation_of(asked)["input"]["toolConfirmation"]["confirmed"] is False


async def test_2_the_confirmation_tells_what_the_ui_shows_of_the_original_call(
    live: Envelope,
) -> None:
    asked = await asked_to(live, JAPANESE)
    assert confirmation_of(asked)["input"]["originalFunctionCall"] == {
        "id": asked.calls[0],
        "name": "pay",
        "args": {"amount": 50},
    }


@pytest.mark.parametrize("confirmed", [True, False])
async def test_3_to_5_a_tool_result_with_the_confirmations_id_decides(
    stage: Stage, live: Envelope, confirmed: bool
) -> None:
    asked = await asked_to(live, JAPANESE)
    await live.put(
        {
            "type": "tool_result",
            "version": "1.0",
            "data": {
                "toolCallId": confirmation_of(asked)["toolCallId"],
                "toolName": CONFIRM,
                "result": {"confirmed": confirmed},
            },
        }
    )
    told = await live.turn()
    assert told.chunks[1]["output"] == {"confirmed": confirmed}
    assert stage.payments == ([50] if confirmed else [])
    assert await pending(stage) == []


async def test_6_the_original_tool_runs_once_approved_and_not_before(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live, JAPANESE)
    assert stage.payments == []
    await live.confirm(asked.calls[1], True)
    told = await live.turn()
    assert told.chunks[2] == {
        "type": "tool-output-available",
        "toolCallId": asked.calls[0],
        "output": {"paid": 50},
    }
    assert stage.payments == [50]


async def test_7_the_model_says_what_came_of_it(live: Envelope) -> None:
    asked = await asked_to(live, JAPANESE)
    await live.confirm(asked.calls[1], True)
    assert (await live.turn()).text == "花子さんに50ドルを送金しました。"


async def test_a_denial_is_an_error_of_the_original_call(live: Envelope) -> None:
    asked = await asked_to(live)
    await live.answer(asked.calls[1], {"confirmed": False, "reason": "too much"}, CONFIRM)
    (refused,) = (await live.turn()).only("tool-output-error")
    assert refused["toolCallId"] == asked.calls[0]
    assert refused["errorText"] == "User denied execution: too much"


# The five cases of ADR 0010


async def test_a_tool_that_needs_no_confirmation_passes_unchanged(live: Envelope) -> None:
    await live.say("add")
    told = await live.turn()
    assert [c["toolName"] for c in told.only("tool-input-available")] == ["add"]
    assert told.text == "It is 3."


async def test_a_tool_that_needs_confirmation_gets_the_two_chunks_of_it(live: Envelope) -> None:
    asked = await asked_to(live)
    confirming = [c for c in asked.chunks if c.get("toolName") == CONFIRM]
    assert [c["type"] for c in confirming] == ["tool-input-start", "tool-input-available"]
    assert "Please approve or reject" in confirming[1]["input"]["toolConfirmation"]["hint"]


async def test_the_original_call_comes_before_its_confirmation(live: Envelope) -> None:
    asked = await asked_to(live)
    tools = [c for c in asked.chunks if c["type"].startswith("tool-")]
    assert [(c["type"], c["toolName"]) for c in tools] == [
        ("tool-input-start", "pay"),
        ("tool-input-available", "pay"),
        ("tool-input-start", CONFIRM),
        ("tool-input-available", CONFIRM),
    ]


async def test_the_confirmations_id_leads_to_the_original_call(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live, "pay both")
    confirmations = [c for c in asked.only("tool-input-available") if c["toolName"] == CONFIRM]
    second = confirmations[1]
    await live.confirm(second["toolCallId"], True)
    assert (await live.reply()).types == ["start", "tool-output-available", "finish"]
    await live.confirm(confirmations[0]["toolCallId"], False)
    told = await live.turn()
    (paid,) = [c for c in told.only("tool-output-available") if "paid" in c["output"]]
    assert paid["toolCallId"] == second["input"]["originalFunctionCall"]["id"]
    assert stage.payments == [2]


async def test_several_confirmations_never_share_an_id(live: Envelope) -> None:
    asked = await asked_to(live, "pay both")
    assert len(set(asked.calls)) == len(asked.calls) == 4
    confirmations = [c for c in asked.only("tool-input-available") if c["toolName"] == CONFIRM]
    assert all(re.fullmatch(r"adk-[0-9a-f-]{36}", c["toolCallId"]) for c in confirmations)


# Every form of an answer


@pytest.mark.parametrize(
    ("target", "name", "result"),
    [
        ("confirmation", CONFIRM, {"confirmed": True}),
        ("confirmation", None, {"confirmed": True}),
        ("original", "pay", {"approved": True, "user_message": "User approved"}),
        ("original", None, {"approved": True}),
    ],
)
async def test_a_tool_result_may_name_the_confirmation_or_the_original_call(
    stage: Stage, live: Envelope, target: str, name: str | None, result: object
) -> None:
    original, confirmation = (await asked_to(live)).calls
    await live.answer(confirmation if target == "confirmation" else original, result, name)
    assert (await live.turn()).text == "Result told."
    assert stage.payments == [5]


async def test_a_browser_tools_output_is_a_tool_result(stage: Stage, live: Envelope) -> None:
    asked = await asked_to(live, "play jazz")
    await live.answer(asked.calls[0], {"playing": "jazz"})
    told = await live.turn()
    assert told.text == "Music told."
    (output,) = told.only("tool-output-available")
    assert (output["toolCallId"], output["output"]) == (asked.calls[0], {"playing": "jazz"})
    assert "playing" in str(stage.model.prompts[-1])


async def test_a_browser_tools_approval_and_output_come_one_after_the_other(
    live: Envelope,
) -> None:
    location, confirmation = (await asked_to(live, "where am I")).calls
    await live.confirm(confirmation, True)
    assert (await live.reply()).only("tool-output-available")[0]["output"] == {"confirmed": True}
    await live.answer(location, {"latitude": 35.6})
    assert (await live.turn()).text == "Place told."


@pytest.mark.parametrize("confirmed", [True, False])
async def test_an_output_that_comes_before_the_approval_is_kept_until_the_decision(
    stage: Stage, live: Envelope, confirmed: bool
) -> None:
    location, confirmation = (await asked_to(live, "where am I")).calls
    for _ in range(2):
        await live.answer(location, {"latitude": 35.6})
    assert await live.is_silent()
    assert "35.6" not in (await stage.http.get(f"/api/approvals/{confirmation}")).text
    await live.confirm(confirmation, confirmed)
    told = await live.turn()
    assert told.text == "Place told."
    assert refusals(live) == []
    outputs = {c["toolCallId"]: c["output"] for c in told.only("tool-output-available")}
    assert outputs.get(location) == ({"latitude": 35.6} if confirmed else None)
    assert ("35.6" in str(stage.model.prompts[-1])) is confirmed


async def test_an_output_that_is_kept_counts_when_the_approval_comes_from_elsewhere(
    stage: Stage, live: Envelope
) -> None:
    location, _ = (await asked_to(live, "where am I")).calls
    await live.answer(location, {"latitude": 35.6})
    assert await live.is_silent()
    await rest(stage)
    assert (await live.turn()).text == "Place told."
    assert "35.6" in str(stage.model.prompts[-1])


# One end for each turn


async def test_a_held_turn_is_open_until_it_was_answered_and_told(live: Envelope) -> None:
    asked = await asked_to(live, "pay in turn")
    assert await live.is_silent()
    await live.confirm(asked.calls[1], True)
    again = await live.reply()
    assert await live.is_silent()
    await live.confirm(again.calls[1], True)
    assert (await live.turn()).text == "All told."
    assert live.heard.count(DONE) == 1
    assert await live.is_silent()


async def test_a_turn_that_fails_ends_too(live: Envelope) -> None:
    await live.say("break")
    assert (await live.turn()).types[-1] == "error"
    await live.say("hi")
    assert (await live.turn()).text == "Hello."


async def test_typing_instead_of_answering_leaves_the_first_turn_open(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    await live.say("hi")
    assert (await live.turn()).text == "Hello."
    await live.confirm(asked.calls[1], True)
    told = await live.turn()
    assert told.message_id == asked.message_id
    assert told.text == "Result told."
    assert stage.payments == [5]


# Answers from elsewhere


async def rest(stage: Stage, approved: bool = True) -> None:
    (approval,) = await pending(stage)
    decided = await stage.http.post(f"/api/approvals/{approval['id']}", json={"approved": approved})
    assert decided.status_code == 200


async def test_a_decision_made_elsewhere_continues_the_turn_on_the_socket(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    await rest(stage)
    told = await live.turn()
    assert told.message_id == asked.message_id
    assert told.types == [
        "start",
        "tool-output-available",
        "tool-output-available",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ]
    assert told.chunks[1]["output"] == {"confirmed": True}
    assert await live.is_silent()
    assert stage.payments == [5]


async def test_answers_in_another_tab_over_post_continue_the_turn_on_the_socket(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    item = {
        "type": "tool-result",
        "toolCallId": asked.calls[1],
        "toolName": CONFIRM,
        "result": {"confirmed": True},
    }
    body = {"id": "c", "messages": [{"role": "user", "content": [item]}]}
    posted = await stage.post("/stream", body)
    assert joined(posted.chunks) == joined((await live.turn()).chunks)


async def test_chained_decisions_made_elsewhere_come_without_a_gap(
    stage: Stage, live: Envelope
) -> None:
    await asked_to(live, "pay in turn")
    await rest(stage)
    again = await live.reply()
    await rest(stage)
    told = await live.turn()
    assert (again.message_id, told.text) == (told.message_id, "All told.")
    assert stage.payments == [1, 2]


async def test_an_approval_that_expires_ends_the_turn() -> None:
    settings = dataclasses.replace(Settings(), approval_seconds=0.3)
    async with staged(settings=settings) as stage, enveloped(stage.url) as live:
        await asked_to(live)
        told = await live.turn()
    assert told.chunks[1]["output"] == {"confirmed": False, "outcome": "expired"}
    assert "No decision came in time" in told.only("tool-output-error")[0]["errorText"]
    assert stage.payments == []


async def test_what_another_tab_says_in_the_chat_is_sent_here_too(
    stage: Stage, live: Envelope
) -> None:
    await live.say("hi")
    await live.turn()
    elsewhere = await stage.say("c", "hello", path="/stream")
    assert (await live.turn()).chunks == elsewhere.chunks


async def test_a_decision_on_another_instance_continues_the_turn_here(
    stage: Stage, postgres: PostgresServer
) -> None:
    database = postgres.create("envelope")

    def app() -> Any:
        agent = LlmAgent(name="stage", model=stage.model, tools=list(stage.tools()))
        return create_app(agent, identify=user_by_header, settings=Settings(), database=database)

    async with (
        serving(app()) as here,
        serving(app()) as there,
        enveloped(here) as live,
        httpx.AsyncClient(base_url=there, timeout=20) as http,
    ):
        asked = await asked_to(live)
        decided = await http.post(f"/api/approvals/{asked.calls[1]}", json={"approved": True})
        assert decided.status_code == 200
        told = await live.turn()
    assert told.message_id == asked.message_id
    assert told.text == "Result told."
    assert stage.payments == [5]


# Answers that change nothing


async def test_an_answer_given_again_is_silent_while_its_outcome_follows(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live, "pay late")
    for _ in range(3):
        await live.confirm(asked.calls[1], True)
    assert (await live.next())["type"] == "start"
    stage.more.set()
    assert (await live.turn()).text == "Late told."
    # Requests are carried out in order: by now all of them were.
    await live.say("hi")
    assert (await live.turn()).text == "Hello."
    assert refusals(live) == []
    assert stage.payments == [5]


async def test_one_of_two_answers_given_again_is_silent_while_the_other_is_awaited(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live, "pay both")
    first, second = asked.calls[2:]
    await live.confirm(first, True)
    assert (await live.reply()).types == ["start", "tool-output-available", "finish"]
    await live.confirm(first, True)
    assert await live.is_silent()
    await live.confirm(second, True)
    assert (await live.turn()).text == "Both told."
    assert stage.payments == [1, 2]


async def test_an_output_given_again_is_silent_while_its_outcome_follows(
    stage: Stage, live: Envelope
) -> None:
    stage.model.script["play late"] = [[call("change_bgm", track="jazz")], [stage.more, "Late."]]
    asked = await asked_to(live, "play late")
    for _ in range(2):
        await live.answer(asked.calls[0], {"playing": "jazz"})
    await live.answer(asked.calls[0], {"playing": "rock"})
    assert await live.refused() == (
        "change_bgm was answered before, and is done. This answer changes nothing."
    )
    stage.more.set()
    assert (await live.turn()).text == "Late."
    assert await live.is_silent()


async def test_a_second_answer_is_told_the_real_state(stage: Stage, live: Envelope) -> None:
    asked = await asked_to(live)
    await live.confirm(asked.calls[1], True)
    await live.turn()
    for verdict in (True, False):
        await live.confirm(asked.calls[1], verdict)
        assert await live.refused() == (
            "pay was answered before, and is done. This answer changes nothing."
        )
    assert await live.is_silent()
    assert stage.payments == [5]


async def test_two_answers_at_once_run_the_tool_once(stage: Stage, live: Envelope) -> None:
    asked = await asked_to(live)
    await live.confirm(asked.calls[1], True)
    await live.confirm(asked.calls[1], False)
    told = [await live.next() for _ in range(11)]
    (refused,) = refusals(live)
    assert refused["message"].startswith("pay was answered before, and is ")
    assert (refused["code"], refused["toolCallId"]) == ("already_answered", asked.calls[1])
    assert DONE in told
    assert stage.payments == [5]


async def test_an_answer_that_came_too_late_is_told_what_was_decided_elsewhere(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    await rest(stage, approved=False)
    await live.turn()
    await live.confirm(asked.calls[1], True)
    assert "is denied" in await live.refused()
    assert stage.payments == []


async def test_a_confirmation_of_a_browser_tool_counts_once(live: Envelope) -> None:
    location, confirmation = (await asked_to(live, "where am I")).calls
    await live.confirm(confirmation, True)
    await live.reply()
    await live.confirm(confirmation, False)
    assert "get_location was answered before, and is approved" in await live.refused()
    await live.answer(location, {"latitude": 35.6})
    assert (await live.turn()).text == "Place told."


async def test_an_unknown_id_is_told_and_the_right_one_still_counts(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    await live.confirm("adk-not-there", True)
    assert "No call waits under the id 'adk-not-there'" in await live.refused()
    await live.confirm(asked.calls[1], True)
    assert (await live.turn()).text == "Result told."
    assert stage.payments == [5]


async def test_another_users_call_is_no_call(stage: Stage, live: Envelope) -> None:
    asked = await asked_to(live)
    async with enveloped(stage.url, headers={"x-user": "mallory"}) as other:
        await other.confirm(asked.calls[1], True)
        assert "No call waits" in await other.refused()
    assert stage.payments == []
    assert len(await pending(stage)) == 1


# Interrupt


async def test_interrupt_stops_what_streams(stage: Stage, live: Envelope) -> None:
    await live.say("long")
    await live.until_text("One.")
    await live.write("interrupt")
    assert (await live.turn()).types[-1] == "abort"
    stage.more.set()
    await live.say("hi")
    assert (await live.turn()).text == "Hello."


async def test_interrupt_gives_up_what_waits_and_the_turn_ends(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    await live.write("interrupt")
    told = await live.turn()
    assert told.message_id == asked.message_id
    assert told.only("tool-output-error")[0]["toolCallId"] == asked.calls[0]
    await live.confirm(asked.calls[1], True)
    assert "is cancelled" in await live.refused()
    assert stage.payments == []


async def test_interrupt_lets_a_running_tool_finish(stage: Stage, live: Envelope) -> None:
    asked = await asked_to(live, "pay slowly")
    await live.confirm(asked.calls[1], True)
    await anyio.to_thread.run_sync(stage.tool_started.wait)
    await live.write("interrupt")
    assert await live.next()
    stage.tool_may_end.set()
    told = await live.turn()
    assert told.types[-1] == "abort"
    assert stage.payments == [9]


async def test_interrupt_right_behind_a_message_stops_it(stage: Stage, live: Envelope) -> None:
    await live.say("hi")
    await live.turn()
    await live.say("long")
    await live.write("interrupt")
    assert (await live.turn()).types[-1] == "abort"
    assert not stage.more.is_set()


async def test_interrupt_of_nothing_says_nothing(live: Envelope) -> None:
    await live.write("interrupt")
    await live.say("hi")
    await live.turn()
    await live.write("interrupt")
    assert await live.is_silent()


# Chats


async def test_a_socket_that_names_no_chat_gets_one(stage: Stage, live: Envelope) -> None:
    for text in ("hi", "hello"):
        await live.say(text, chat=None)
        await live.turn()
    (chat,) = (await stage.http.get("/api/chats")).json()["chats"]
    assert chat["title"] == "hi"


async def test_the_address_may_name_the_chat(stage: Stage) -> None:
    async with enveloped(stage.url, chat="mine") as live:
        await live.say("hi", chat=None)
        await live.turn()
    assert (await stage.http.get("/api/chats/mine")).status_code == 200


@pytest.mark.parametrize("by_address", [True, False])
async def test_a_socket_is_of_one_chat(stage: Stage, by_address: bool) -> None:
    query = {"chat": "c"} if by_address else {"sdk": "6"}
    async with enveloped(stage.url, headers=None, **query) as live:
        if not by_address:
            await live.say("hi")
            await live.turn()
        await live.say("hi", chat="other")
        assert await live.refused() == "This socket is of the chat 'c'. Open another for another."
        assert await live.next() == DONE
        await live.say("hello")
        assert (await live.turn()).text == "Hello again."
    assert (await stage.http.get("/api/chats/other")).status_code == 404


async def test_another_users_chat_is_no_chat(stage: Stage, live: Envelope) -> None:
    await live.say("hi")
    await live.turn()
    async with enveloped(stage.url, headers={"x-user": "mallory"}) as other:
        await other.say("hi")
        assert await other.refused() == "No such chat."
        assert await other.next() == DONE
        await other.say("hi", chat="own")
        assert (await other.turn()).text == "Hello."
    async with enveloped(stage.url, chat="c", headers={"x-user": "mallory"}) as other:
        assert await other.refused() == "No such chat."
        await stage.say("c", "hello")
        assert await other.is_silent()


async def test_a_busy_chat_refuses_the_second_message_and_not_the_first(
    stage: Stage, live: Envelope
) -> None:
    await live.say("long")
    await live.until_text("One.")
    await live.write("message", id="c", messages=[user_message("hi")], busy="reject")
    assert (await live.refused()).startswith("A reply is running in this chat.")
    stage.more.set()
    assert "Two." in (await live.turn()).text


async def test_a_message_while_it_answers_interrupts(live: Envelope) -> None:
    await live.say("long")
    await live.until_text("One.")
    await live.say("hi")
    assert (await live.turn()).types[-1] == "abort"
    assert (await live.turn()).text == "Hello."
    assert await live.is_silent()


async def test_the_same_message_again_does_not_double_the_reply(
    stage: Stage, live: Envelope
) -> None:
    message = user_message("long")
    await live.write("message", id="c", messages=[message])
    await live.until_text("One.")
    await live.write("message", id="c", messages=[message])
    assert await live.is_silent()
    stage.more.set()
    assert (await live.turn()).text == "Two."
    assert await live.is_silent()


async def test_the_older_form_of_a_message_is_read(live: Envelope) -> None:
    text = [{"type": "text", "text": "hi"}]
    await live.write("message", messages=[{"role": "user", "content": text}])
    assert (await live.turn()).text == "Hello."


# What is refused is told beside the stream


async def test_a_refusal_is_no_event_of_the_stream(live: Envelope) -> None:
    await live.answer("adk-not-there", {"confirmed": True}, CONFIRM)
    with anyio.fail_after(60):
        text = await live.connection.recv()
    assert isinstance(text, str)
    assert not text.startswith("data:")
    refused = json.loads(text)
    message = "No call waits under the id 'adk-not-there' in this chat. Send the id that came with"
    assert refused.pop("message").startswith(message)
    assert refused == {
        "type": "refused",
        "version": "1.0",
        "code": "unknown_call",
        "toolCallId": "adk-not-there",
    }


EMPTY = {"role": "user", "content": [{"type": "text", "text": " "}]}


@pytest.mark.parametrize(
    "written",
    [
        json.dumps({"type": "message", "version": "1.0", "data": {"messages": [EMPTY]}}),
        json.dumps({"type": "message", "version": "1.0", "messages": []}),
        json.dumps({"type": "message", "version": "1.0", "messages": ["花" * 400_000]}),
    ],
)
async def test_a_message_that_is_refused_leaves_no_stream_open(
    live: Envelope, written: str
) -> None:
    await live.put(written)
    assert await live.refused()
    assert await live.next() == DONE
    await live.say("hi")
    assert (await live.turn()).text == "Hello."


async def test_a_message_that_is_refused_does_not_end_a_turn_that_waits(
    live: Envelope,
) -> None:
    asked = await asked_to(live)
    await live.write("message", messages=[EMPTY])
    assert await live.refused() == "The message is empty: it needs text or a file."
    assert await live.is_silent()
    await live.confirm(asked.calls[1], True)
    assert (await live.turn()).text == "Result told."
    assert live.heard.count(DONE) == 1


async def test_an_answer_that_is_refused_ends_nothing(live: Envelope) -> None:
    item = {"type": "tool-result", "toolCallId": "x", "toolName": "pay", "result": {}}
    await live.write("message", messages=[{"role": "user", "content": [item]}])
    assert "No call waits" in await live.refused()
    assert await live.is_silent()


async def test_an_answer_to_a_chat_that_is_not_followed_yet_gets_its_outcome(
    stage: Stage,
) -> None:
    async with enveloped(stage.url) as live:
        asked = await asked_to(live)
        await live.confirm(asked.calls[1], True)
        told = await live.turn()
    part = {
        "type": f"tool-{CONFIRM}",
        "toolCallId": asked.calls[1],
        "state": "output-available",
        "output": {"confirmed": True},
    }
    message = {"id": asked.message_id, "role": "assistant", "parts": [part]}
    async with enveloped(stage.url) as live:
        # As a client whose socket was cut, and that does not know whether it was heard.
        await live.write("message", id="c", messages=[message])
        assert joined((await live.turn()).chunks) == joined(told.chunks)
    assert stage.payments == [5]


# Frames without `data`, as later clients write them


async def test_frames_may_be_flat(stage: Stage, live: Envelope) -> None:
    said = [user_message("pay 5")]
    head = {"version": "1.0", "timestamp": 1}
    await live.put({"type": "message", **head, "id": "c", "messages": said})
    asked = await live.reply()
    result = {"confirmed": True}
    await live.put({"type": "tool_result", **head, "toolCallId": asked.calls[1], "result": result})
    assert (await live.turn()).text == "Result told."
    assert stage.payments == [5]
    await live.put({"type": "interrupt", **head, "reason": "user_abort"})
    assert await live.is_silent()


async def test_a_pong_returns_the_timestamp_of_its_ping(live: Envelope) -> None:
    await live.put({"type": "ping", "version": "1.0", "timestamp": 1_766_000_000_123})
    assert await live.next() == {
        "type": "pong",
        "version": "1.0",
        "timestamp": 1_766_000_000_123,
    }
    await live.write("ping", timestamp=7.5)
    assert (await live.next())["timestamp"] == 7.5
    assert await live.is_silent()


# The other profile


async def test_the_address_may_ask_for_the_other_profile(stage: Stage) -> None:
    async with enveloped(stage.url, profile="ai-sdk") as live:
        asked = await asked_to(live)
        assert asked.types[-5:] == [
            "tool-input-available",
            "tool-approval-request",
            "data-approval",
            "finish-step",
            "finish",
        ]
        await live.write("message", **asked.approving("c", True))
        told = await live.turn()
    assert told.text == "Result told."
    assert told.only("data-approval")[0]["data"]["status"] == "approved"
    assert stage.payments == [5]


async def test_the_profiles_are_shown_side_by_side(stage: Stage, live: Envelope) -> None:
    async with enveloped(stage.url, chat="c", profile="ai-sdk") as other:
        await asked_to(live)
        asked = await other.reply()
        await other.write("message", **asked.approving("c", False))
        assert (await other.turn()).only("tool-output-denied")
        (denied,) = (await live.turn()).only("tool-output-error")
        assert denied["errorText"] == "User denied execution"


# Frames


async def test_each_chunk_is_the_text_of_an_event_in_a_frame_of_its_own(live: Envelope) -> None:
    await live.say("hi")
    frames: list[str] = []
    with anyio.fail_after(5):
        while not frames or frames[-1] != "data: [DONE]\n\n":
            frames.append(str(await live.connection.recv()))
    assert all(re.fullmatch(r"data: \{[^\n]*\}\n\n", frame) for frame in frames[:-1])
    assert json.loads(frames[0].removeprefix("data: "))["type"] == "start"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{", "The frame is not JSON"),
        ("[1]", "A frame must be a JSON object."),
        ('{"type":"message","version":"2.0","data":{}}', 'version "1.0", not "2.0"'),
        ('{"type":"ping"}', 'This server speaks version "1.0"'),
        ('{"type":"dance","version":"1.0"}', '"type" must be "message"'),
        ('{"type":"message","version":"1.0","data":{}}', '"messages"'),
        ('{"type":"message","version":"1.0","data":{"messages":[{"role":"x"}]}}', '"role"'),
        ('{"type":"tool_result","version":"1.0","data":{"toolCallId":"x"}}', '"result"'),
        ('{"type":"audio_chunk","version":"1.0","data":{"chunk":"?"}}', "base64"),
        ("花" * 400_000, "larger than 1048576 bytes"),
    ],
)
async def test_a_bad_frame_is_answered_and_nothing_is_lost(
    stage: Stage, live: Envelope, written: str, said: str
) -> None:
    asked = await asked_to(live)
    await live.put(written)
    assert said in await live.refused()
    await live.confirm(asked.calls[1], True)
    assert (await live.turn()).text == "Result told."
    assert stage.payments == [5]


async def test_a_binary_frame_is_refused(live: Envelope) -> None:
    await live.connection.send(b"\x00")
    assert "text frames" in await live.refused()
    assert await live.is_silent()


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"sampleRate": 24_000}, "16,000 samples a second"),
        ({"channels": 2}, "one channel"),
        ({"bitDepth": 8}, "16 bits"),
        ({"chunk": "AA=="}, "even number of bytes"),
        ({}, "Name the chat first"),
    ],
)
async def test_sound_that_cannot_be_heard_is_refused(
    live: Envelope, other: dict[str, object], said: str
) -> None:
    chunk = base64.b64encode(b"\x00\x00").decode()
    await live.write("audio_chunk", **({"chunk": chunk, "sampleRate": 16_000} | other))
    assert said in await live.refused()
    assert await live.is_silent()


async def test_what_the_microphone_hears_is_a_turn_of_the_chat() -> None:
    app = create_app(build_agent(), settings=Settings())
    voice, silence = b"\x00\x20" * 3_200, bytes(16_000)
    async with serving(app) as url, enveloped(url, chat="c") as live:
        for pcm in (voice, silence):
            chunk = base64.b64encode(pcm).decode()
            await live.write("audio_chunk", chunk=chunk, sampleRate=16_000, channels=1, bitDepth=16)
        told = await live.turn()
        await live.say("Play some jazz")
        assert (await live.reply()).only("tool-input-available")[0]["toolName"] == "change_bgm"
    assert [c["toolName"] for c in told.only("tool-input-available")] == ["get_weather"]
    assert "Tokyo" in told.text


async def test_push_to_talk_says_when_the_microphone_is_off() -> None:
    app = create_app(build_agent(), settings=Settings())
    voice = base64.b64encode(b"\x00\x20" * 3_200).decode()
    async with serving(app) as url, enveloped(url, chat="c") as live:
        await live.put({"type": "audio_control", "version": "1.0", "action": "start"})
        await live.write("audio_chunk", chunk=voice)
        # No silence follows: the key is up, and with it the microphone.
        await live.put({"type": "audio_control", "version": "1.0", "action": "stop"})
        told = await live.turn()
        assert "Tokyo" in told.text
        await live.write("audio_control", action="louder")
        assert '"start" or "stop"' in await live.refused()


async def test_push_to_talk_without_a_chat_is_accepted(live: Envelope) -> None:
    for action in ("start", "stop"):
        await live.put({"type": "audio_control", "version": "1.0", "action": action})
    assert await live.is_silent()


async def test_who_speaks_while_another_reply_runs_is_not_heard(stage: Stage) -> None:
    async with enveloped(stage.url, chat="c") as live, anyio.create_task_group() as tasks:
        tasks.start_soon(stage.say, "c", "long")
        await live.until_text("One.")
        await live.write("audio_chunk", chunk=base64.b64encode(bytes(640)).decode())
        assert await live.is_silent()
        stage.more.set()
        assert (await live.turn()).text == "Two."


async def test_requests_beyond_the_limit_are_refused_one_by_one(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    await live.say("long")
    await live.until_text("One.")
    # The answer waits for the running turn, and what follows waits for the answer.
    await live.confirm(asked.calls[1], True)
    for _ in range(32):
        await live.confirm(asked.calls[1], True)
    assert (await live.refused()).startswith("32 requests are open on this socket.")
    stage.more.set()
    assert (await live.turn()).text == "Two."
    assert (await live.turn()).text == "Result told."
    assert stage.payments == [5]


# Opening and leaving


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"origin": "https://evil.example"}, {}, 403),
        ({"x-user": ""}, {}, 403),
        ({}, {"chat": "a/b"}, 400),
        ({}, {"sdk": "9"}, 400),
        ({}, {"profile": "other"}, 400),
    ],
)
async def test_who_may_not_is_refused_before_the_socket_is_accepted(
    stage: Stage, headers: dict[str, str], query: dict[str, str], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with enveloped(stage.url, headers=headers, **query):
            pass
    assert refused.value.response.status_code == status


async def test_a_user_has_so_many_sockets_of_all_kinds() -> None:
    settings = dataclasses.replace(Settings(), max_sockets=1)
    async with staged(settings=settings) as stage, enveloped(stage.url):
        with pytest.raises(InvalidStatus) as refused:
            async with enveloped(stage.url):
                pass
    assert refused.value.response.status_code == 429


async def test_a_socket_that_is_cut_while_text_streams_is_opened_again(stage: Stage) -> None:
    async with enveloped(stage.url) as live:
        await live.say("long")
        await live.until_text("One.")
        live.connection.transport.abort()
    async with enveloped(stage.url, chat="c") as live:
        await live.until_text("One.")
        stage.more.set()
        assert (await live.turn()).text == "Two."


async def test_a_socket_that_is_cut_while_a_call_is_held_is_opened_again(stage: Stage) -> None:
    async with enveloped(stage.url) as live:
        asked = await asked_to(live)
        live.connection.transport.abort()
    async with enveloped(stage.url, chat="c") as live:
        assert (await live.reply()).chunks == asked.chunks
        assert await live.is_silent()
        await live.confirm(asked.calls[1], True)
        assert (await live.turn()).text == "Result told."
    assert stage.payments == [5]


async def test_a_chain_that_is_cut_goes_on_where_it_was(stage: Stage) -> None:
    async with enveloped(stage.url) as live:
        asked = await asked_to(live, "pay in turn")
        await live.confirm(asked.calls[1], True)
        again = await live.reply()
    async with enveloped(stage.url, chat="c") as live:
        replayed = await live.reply()
        assert replayed.chunks[-len(again.chunks) :] == again.chunks
        assert replayed.message_id == asked.message_id
        assert await live.is_silent()
        await live.confirm(again.calls[1], True)
        assert (await live.turn()).text == "All told."
        assert await live.is_silent()
    assert stage.payments == [1, 2]


async def test_a_chat_in_which_nothing_goes_on_is_opened_in_silence(stage: Stage) -> None:
    await stage.say("c", "hi")
    for chat in ("c", "new"):
        async with enveloped(stage.url, chat=chat) as live:
            assert await live.is_silent()
            await live.say("hello", chat=None)
            assert (await live.turn()).text == "Hello again."


async def test_an_answer_on_a_new_socket_needs_no_chat(stage: Stage) -> None:
    async with enveloped(stage.url) as live:
        asked = await asked_to(live)
    async with enveloped(stage.url) as live:
        await live.confirm(asked.calls[1], True)
        assert (await live.turn()).text == "Result told."
    assert stage.payments == [5]


async def test_one_of_two_answers_on_a_new_socket_replays_nothing(stage: Stage) -> None:
    async with enveloped(stage.url) as live:
        asked = await asked_to(live, "pay both")
    async with enveloped(stage.url) as live:
        await live.confirm(asked.calls[2], True)
        assert (await live.reply()).types == ["start", "tool-output-available", "finish"]
        assert await live.is_silent()
        await live.confirm(asked.calls[3], True)
        assert (await live.turn()).text == "Both told."
        assert await live.is_silent()
    assert stage.payments == [1, 2]


async def test_what_was_sent_is_done_though_the_client_leaves_at_once(stage: Stage) -> None:
    async with enveloped(stage.url) as live:
        asked = await asked_to(live)
        await live.confirm(asked.calls[1], True)
    async with enveloped(stage.url, chat="c") as live, enveloped(stage.url, chat="c") as other:
        # Frames are carried out in order, so that both have looked.
        await live.write("ping")
        await other.write("ping")
        with anyio.fail_after(5):
            while not stage.payments:
                await stage.http.get("/healthz")
    assert stage.payments == [5]


async def test_a_call_asked_over_sse_is_answered_live_and_the_other_way_round(
    stage: Stage,
) -> None:
    asked = await stage.say("c", "pay 5", path="/stream")
    async with enveloped(stage.url, chat="c") as live:
        assert (await live.reply()).chunks == asked.chunks
        await live.confirm(asked.calls[1], True)
        assert (await live.turn()).text == "Result told."
        held = await asked_to(live)
        item = {
            "type": "tool-result",
            "toolCallId": held.calls[1],
            "toolName": CONFIRM,
            "result": {"confirmed": True},
        }
        await stage.post("/stream", {"messages": [{"role": "user", "content": [item]}]})
        assert (await live.turn()).text == "Result told."
    assert stage.payments == [5, 5]


async def test_a_client_that_reads_too_slowly_is_dropped_and_can_open_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    settings = dataclasses.replace(Settings(), send_seconds=0.3)
    async with staged(settings=settings) as stage:
        stage.model.script["huge"] = [["x" * 100_000] * 200 + [stage.more]]
        async with enveloped(stage.url) as live:
            live.connection.transport.pause_reading()
            await live.say("huge")
            with anyio.fail_after(20):
                while "socket dropped" not in {r.getMessage() for r in caplog.records}:
                    await stage.http.get("/healthz")
            live.connection.transport.abort()
        async with enveloped(stage.url, chat="c") as live:
            stage.more.set()
            text = (await live.turn()).text
    assert len(text) == 20_000_000


async def test_a_chat_that_is_deleted_while_a_call_waits_can_be_begun_anew(
    stage: Stage, live: Envelope
) -> None:
    asked = await asked_to(live)
    assert (await stage.http.delete("/api/chats/c")).status_code == 204
    await live.say("hi")
    assert (await live.turn()).text == "Hello."
    await live.confirm(asked.calls[1], True)
    assert "is cancelled" in await live.refused()
    assert stage.payments == []


async def test_a_server_that_drains_ends_what_runs_and_then_the_socket(stage: Stage) -> None:
    app = create_app(
        LlmAgent(name="drained", model=stage.model, tools=list(stage.tools())), settings=Settings()
    )
    async with serving(app) as url, enveloped(url) as live:
        await live.say("long")
        await live.until_text("One.")
        turns_of(app).drain.begin()
        await live.say("hi", chat=None)
        assert (await live.refused()).startswith("This server is about to end.")
        stage.more.set()
        assert (await live.turn()).text == "Two."
        with pytest.raises(ConnectionClosed), anyio.fail_after(5):
            await live.connection.recv()
        assert live.connection.close_code == 1012


class BrokenLog(MemoryLog):
    """A log that cannot be read any more."""

    def __init__(self) -> None:
        super().__init__()
        self.is_broken = False

    async def read(self, reply_id: ReplyId, after: int) -> Batch | None:
        batch = await super().read(reply_id, after)
        if self.is_broken:
            raise OSError("SECRET")
        return batch


async def test_a_reply_that_cannot_be_read_is_told_and_the_socket_stays_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = BrokenLog()
    stores = dataclasses.replace(memory_stores(), log=log)
    async with staged(stores=stores) as stage, enveloped(stage.url) as live:
        await live.say("long")
        await live.until_text("One.")
        log.is_broken = True
        stage.more.set()
        assert (await live.broken_off()).startswith("The server failed. Please try again. (error ")
        log.is_broken = False
        with anyio.fail_after(5):
            # Another message is taken when the reply that nobody reads has ended.
            while (turn := await stores.turns.latest(ChatId("c"))) is None or turn.running:
                await anyio.lowlevel.checkpoint()
        await live.say("hello")
        assert (await live.turn()).text == "Hello again."
    assert "SECRET" not in caplog.text


class DownAtTimes(MemoryTurns):
    """Turns whose database does not always answer."""

    def __init__(self) -> None:
        super().__init__()
        self.is_down = False
        self.missed = anyio.Event()

    async def latest(self, chat_id: ChatId) -> TurnRecord | None:
        if self.is_down:
            self.missed.set()
            raise OSError("SECRET")
        return await super().latest(chat_id)


async def test_a_database_that_does_not_answer_ends_no_socket(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns = DownAtTimes()
    stores = dataclasses.replace(memory_stores(), turns=turns)
    async with staged(stores=stores) as stage, enveloped(stage.url) as live:
        await live.say("hi")
        await live.turn()
        turns.is_down = True
        stores.wake.hint(turns_topic(ChatId("c")))
        with anyio.fail_after(5):
            await turns.missed.wait()
        await live.write("interrupt")
        assert (await live.refused()).startswith("The server failed.")
        turns.is_down = False
        await stage.say("c", "hello")
        assert (await live.turn()).text == "Hello again."
    told = {record.getMessage().partition("\n")[0] for record in caplog.records}
    assert told == {"chat not watched: OSError", "request failed: OSError"}


async def test_sockets_that_come_and_go_leave_no_task_behind(stage: Stage) -> None:
    await stage.say("held", "pay 5")
    await stage.say("idle", "hi")
    before = len(anyio.get_running_tasks())
    for _ in range(100):
        async with enveloped(stage.url, chat="held") as live:
            await live.reply()
            live.connection.transport.abort()
        async with enveloped(stage.url, chat="idle") as live:
            await live.is_silent()
    with anyio.fail_after(20):
        while len(anyio.get_running_tasks()) > before:
            await stage.http.get("/healthz")
