"""`adk-stream approvals` against a running server: what it prints, and what happens there."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
import anyio.to_thread
import pytest

from adk_stream_protocol.cli import main
from adk_stream_protocol.held_calls.policy import ToolRule
from adk_stream_protocol.lifecycle import ApprovalStep
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.wire.values import digest
from support.stage import Answered, Stage, staged

pytestmark = pytest.mark.anyio


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    rule = ToolRule(title="Send money", hint="Really?", risk="high")
    async with staged(rules={"pay": rule}) as stage:
        yield stage


@dataclass
class Printed:
    code: int
    out: str
    err: str


class Commands:
    """Runs commands in a thread, beside the server's event loop."""

    def __init__(self, stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
        self._server = ["--server", stage.url]
        self._capsys = capsys

    async def __call__(self, *arguments: str) -> Printed:
        command = ["approvals", *arguments, *self._server]
        code = await anyio.to_thread.run_sync(main, command)
        printed = self._capsys.readouterr()
        return Printed(code, printed.out, printed.err)


@pytest.fixture
def approvals(stage: Stage, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(stage, capsys)


async def continuation(stage: Stage) -> Answered:
    return Answered.of(await stage.http.get("/api/chat/chat-1/stream"))


async def test_what_waits_is_listed_and_shown(stage: Stage, approvals: Commands) -> None:
    nothing = await approvals("list")
    asked = await stage.say("chat-1", "pay both")
    first, second = asked.approvals
    listed = await approvals("list")
    shown = await approvals("show", second)

    assert (nothing.code, nothing.out) == (0, "No pending approvals.\n")
    head, *rows = listed.out.splitlines()
    assert head.split() == ["ID", "TOOL", "INPUT", "RISK", "STATUS", "EXPIRES"]
    assert [re.split(r" {2,}", row)[:5] for row in rows] == [
        [first, "pay", '{"amount": 1}', "high", "pending"],
        [second, "pay", '{"amount": 2}', "high", "pending"],
    ]
    assert all(row.endswith("in 60 min") for row in rows)
    assert shown.code == 0
    for line in ("title    Send money", "hint     Really?", "status   pending", "  amount = 2"):
        assert line in shown.out.splitlines()


async def test_an_approval_pays_and_the_chat_continues_by_itself(
    stage: Stage, approvals: Commands
) -> None:
    asked = await stage.say("chat-1", "pay 5")
    decided = await approvals("approve", asked.approvals[0], "--reason", "fine by me")

    assert decided.code == 0
    assert decided.out == 'Approved: pay {"amount": 5}. The chat continues by itself.\n'
    assert (await continuation(stage)).text.endswith("Result told.")
    assert stage.payments == [5]
    listed = await approvals("list", "--status", "done")
    assert asked.approvals[0] in listed.out


async def test_an_approval_may_change_the_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    async with staged(rules={"pay": ToolRule(editable=True)}) as stage:
        approvals = Commands(stage, capsys)
        (pay,) = (await stage.say("chat-1", "pay 5")).approvals
        bad = await approvals("approve", pay, "--input", '{"amount": "lots"}')
        decided = await approvals("approve", pay, "--input", '{"amount": 3}')
        await continuation(stage)
        shown = await approvals("show", pay)
        told = await approvals("explain", pay)

    assert bad.code == 1
    assert "$.amount: 'lots' is not of type 'integer'" in bad.err
    assert decided.out == 'Approved: pay {"amount": 3}. The chat continues by itself.\n'
    assert shown.out.endswith('  amount = 5\nrun with {"amount": 3}\n')
    assert "alice approved it with other arguments, via cli" in told.out
    assert stage.payments == [3]


async def test_a_later_approver_names_the_arguments_that_they_saw(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = (ApprovalStep("manager", by=("bob",)), ApprovalStep("owner", by=("alice",)))
    async with staged(rules={"pay": ToolRule(editable=True, steps=steps)}) as stage:
        approvals = Commands(stage, capsys)
        (pay,) = (await stage.say("chat-1", "pay 5")).approvals
        await stage.http.post(
            f"/api/approvals/{pay}",
            json={"approved": True, "input": {"amount": 3}},
            headers={"x-user": "bob"},
        )
        listed = await approvals("list")
        shown = await approvals("show", pay)
        blind = await approvals("approve", pay)
        wrong = await approvals("approve", pay, "--arguments-hash", "0")
        edited = digest({"amount": 3})
        seen = await approvals("approve", pay, "--arguments-hash", edited)
        await continuation(stage)

    assert '{"amount": 3}' in listed.out
    assert shown.out.endswith(f'run with {{"amount": 3}}\nhash     {edited}\n')
    assert (blind.code, wrong.code, seen.code) == (1, 1, 0)
    assert 'bob changed the arguments of pay to {"amount": 3}' in blind.err
    assert f"--arguments-hash {edited}." in blind.err
    assert stage.payments == [3]


async def test_a_hash_of_other_arguments_approves_nothing(
    stage: Stage, approvals: Commands
) -> None:
    (pay,) = (await stage.say("chat-1", "pay 5")).approvals
    wrong = await approvals("approve", pay, "--arguments-hash", "0")
    assert wrong.code == 1
    assert "Not approved: pay would run with other arguments." in wrong.err
    assert stage.payments == []


async def test_an_approval_may_count_for_later_calls(capsys: pytest.CaptureFixture[str]) -> None:
    async with staged(rules={"pay": ToolRule(remember=True)}) as stage:
        approvals = Commands(stage, capsys)
        (pay,) = (await stage.say("chat-1", "pay 5")).approvals
        await approvals("approve", pay, "--remember")
        await continuation(stage)
        told = await approvals("explain", pay)
        again = await stage.say("chat-1", "pay 5")
        (automatic,) = {card["id"] for card in again.only("data-approval")}
        alone = await approvals("explain", automatic)

    assert "approved it, and all later calls of this tool in this chat, via cli" in told.out
    assert again.approvals == []
    assert "A policy approved it (always, alice)." in alone.out
    assert stage.payments == [5, 5]


async def test_a_denial_pays_nothing_and_gives_its_reason(
    stage: Stage, approvals: Commands
) -> None:
    asked = await stage.say("chat-1", "pay 5")
    decided = await approvals("deny", asked.approvals[0], "--reason", "too much")

    assert decided.code == 0
    assert decided.out.startswith("Denied: pay")
    (refused,) = (await continuation(stage)).only("tool-output-error")
    assert refused["errorText"] == "User denied execution: too much"
    assert stage.payments == []
    assert "reason   too much" in (await approvals("show", asked.approvals[0])).out


async def test_a_decision_that_comes_too_late_is_told_the_real_state(
    stage: Stage, approvals: Commands
) -> None:
    asked = await stage.say("chat-1", "pay 5")
    await approvals("deny", asked.approvals[0], "--reason", "no")
    await continuation(stage)
    late = await approvals("approve", asked.approvals[0])
    raw = await approvals("approve", asked.approvals[0], "--json")

    assert late.code == 1
    assert late.err == (
        "adk-stream: Too late: pay is denied already, decided by alice (no). Nothing was changed.\n"
    )
    assert (raw.code, json.loads(raw.out)["status"]) == (1, "denied")
    assert stage.payments == []


async def test_json_is_the_servers_own(stage: Stage, approvals: Commands) -> None:
    asked = await stage.say("chat-1", "pay 5")
    listed = await approvals("list", "--json")
    decided = await approvals("approve", asked.approvals[0], "--json")

    assert [item["id"] for item in json.loads(listed.out)["approvals"]] == asked.approvals
    assert json.loads(decided.out)["status"] == "approved"


async def test_headers_say_who_asks(stage: Stage, approvals: Commands) -> None:
    asked = await stage.say("chat-1", "pay 5")
    listed = await approvals("list", "--status", "all", "--header", "X-User: mallory")
    decided = await approvals("approve", asked.approvals[0], "--header", "X-User: mallory")

    assert listed.out == "No approvals.\n"
    assert decided.code == 1
    assert "The server answered 404" in decided.err
    assert "adk-stream approvals list" in decided.err
    assert stage.payments == []


async def test_a_reason_that_is_too_long_is_refused(stage: Stage, approvals: Commands) -> None:
    asked = await stage.say("chat-1", "pay 5")
    refused = await approvals("approve", asked.approvals[0], "--reason", "x" * 501)

    assert refused.code == 1
    assert "at most 500 characters" in refused.err
    assert stage.payments == []


async def test_a_life_is_explained_in_sentences(stage: Stage, approvals: Commands) -> None:
    asked = await stage.say("chat-1", "pay both")
    first, second = asked.approvals
    waiting = await approvals("explain", first)
    await approvals("approve", first, "--reason", "fine by me")
    await approvals("deny", second)
    await continuation(stage)
    told = await approvals("explain", first)
    raw = await approvals("explain", second, "--json")

    assert waiting.code == 0
    assert waiting.out.startswith('pay {"amount": 1} in the chat chat-1\n')
    assert "alice asked for it, arguments sha256 " in waiting.out
    assert "alice may decide it" in waiting.out
    assert "it expires: the tool does not run" in waiting.out
    lines = [line.partition(" UTC  ")[2] for line in told.out.splitlines() if " UTC  " in line]
    assert lines[1:] == [
        "alice approved it, via cli 127.0.0.1: fine by me",
        "The tool started.",
        "The tool ended well.",
    ]
    assert told.out.endswith("The tool ran once, and its result is recorded.\n")
    trail = json.loads(raw.out)["trail"]
    assert [entry["event"] for entry in trail] == ["open", "deny"]
    assert json.loads(raw.out)["approval"]["status"] == "denied"


async def test_an_approved_browser_tool_that_timed_out_is_not_told_as_undecided(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [1_000_000.0]
    stores = memory_stores(lambda: now[0])
    async with staged(stores=stores) as stage:
        approvals = Commands(stage, capsys)
        (locate,) = (await stage.say("chat-1", "where am I")).approvals
        await approvals("approve", locate)
        now[0] += 3600
        stores.wake.hint("calls")
        with anyio.fail_after(60):
            while not (await continuation(stage)).text:
                pass
        told = await approvals("explain", locate)

    lines = [line.partition(" UTC  ")[2] for line in told.out.splitlines() if " UTC  " in line]
    assert lines[-1] == "The browser gave no output in time: it expired."
    assert told.out.endswith("gave no output in time. Whether it ran is not known.\n")


async def test_the_audit_trail_is_exported_as_lines(stage: Stage, approvals: Commands) -> None:
    asked = await stage.say("chat-1", "pay 5")
    await approvals("deny", asked.approvals[0], "--reason", "too much")
    await continuation(stage)
    exported = await approvals("export")
    full = await approvals("export", "--with-arguments", "--since", "2026-01-01")
    none = await approvals("export", "--since", "2999-01-01T00:00:00Z")
    bad = await approvals("export", "--since", "yesterday")

    lines = [json.loads(line) for line in exported.out.splitlines()]
    assert [(line["event"], line["by"]) for line in lines] == [("open", "alice"), ("deny", "alice")]
    assert (lines[1]["via"], lines[1]["reason"]) == ("cli 127.0.0.1", "too much")
    assert lines[0]["approvalId"] == asked.approvals[0]
    assert "input" not in exported.out
    assert [json.loads(line)["input"] for line in full.out.splitlines()] == [{"amount": 5}] * 2
    assert (none.code, none.out) == (0, "")
    assert bad.code == 1
    assert "2026-11-01T12:00:00Z" in bad.err


async def test_a_call_of_unknown_end_is_resolved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = dataclasses.replace(Settings(), tool_seconds=0.2)
    async with staged(settings=settings) as stage:
        approvals = Commands(stage, capsys)
        (pay,) = (await stage.say("chat-1", "pay slowly")).approvals
        early = await approvals("resolve", pay, "--done")
        await approvals("approve", pay)
        await continuation(stage)
        told = await approvals("explain", pay)
        bad = await approvals("resolve", pay, "--done", "--result", "{")
        resolved = await approvals(
            "resolve", pay, "--done", "--result", '{"paid": 9}', "--reason", "seen at the bank"
        )
        after = await approvals("explain", pay)
        again = await approvals("resolve", pay, "--failed")

    assert early.code == 1
    assert early.err.startswith("adk-stream: Not unknown: pay_slowly is pending already")
    assert "adk-stream approvals resolve" in told.out
    assert (bad.code, "--result is not JSON" in bad.err) == (2, True)
    assert (resolved.code, resolved.out) == (0, "Resolved: pay_slowly is done now.\n")
    assert "alice found that it took effect, via cli 127.0.0.1: seen at the bank" in after.out
    assert again.code == 1


def test_a_missing_server_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["approvals", "list", "--server", "http://127.0.0.1:1"]) == 1
    told = capsys.readouterr().err
    assert "No server answers at http://127.0.0.1:1" in told
    assert "adk-stream serve" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("server", ["127.0.0.1:8000", "ftp://host", "http://", "http://h:port"])
def test_an_address_that_is_none_is_refused(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["approvals", "list", "--server", server]) == 2
    assert "is no server. Write --server http://HOST:PORT." in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--status", "maybe"],
        ["approve"],
        ["resolve", "adk-1"],
        ["resolve", "adk-1", "--done", "--failed"],
        ["list", "--header", "no colon"],
        ["list", "--header", "X-Token: line\nbreak"],
    ],
)
def test_bad_arguments_get_one_line_that_repeats_no_header(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["approvals", *arguments])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.count("\n") == 1
    assert "line" not in told
