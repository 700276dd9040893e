"""Held calls under anything that can happen to them, in any order, against a plain model.

Hypothesis makes up the orders: calls are held, decided, claimed, finished, expired and stopped
while turns begin, end and die. After each step the ruling and every row must be what the model
says. The model knows the words of the lifecycle and nothing of the stores.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, ParamSpec, TypeAlias, TypeVar
from uuid import uuid4

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from adk_stream_protocol.identifiers import (
    ApprovalId,
    CallId,
    ChatId,
    InvocationId,
    ReplyId,
    UserId,
)
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.ports import Began, Busy, Ruling, Stores, TurnRecord, Verdict
from adk_stream_protocol.stores.memory import memory_stores
from adk_stream_protocol.stores.rulings import MOST_RUNS, WITHDRAWN
from adk_stream_protocol.stores.sql import postgres_stores, sqlite_stores
from support.postgres import PostgresServer

P = ParamSpec("P")
T = TypeVar("T")

LONG_AGO, NEVER = 1.0, 1e11
"""When a call expires, by any clock."""
INVOCATIONS = ("e-1", "e-2")
Data: TypeAlias = st.DataObject
_RARELY = st.sampled_from([False, False, False, True])
_OUTCOMES: st.SearchStrategy[tuple[int, str | None]] = st.tuples(
    st.sampled_from([1, 2]), st.sampled_from([None, "No."])
)
_numbers = itertools.count(1)


# The model


@dataclass
class Row:
    """What the model knows of a call."""

    chat: str
    invocation: str
    kind: CallKind
    approval: bool
    due: bool
    idempotent: bool
    state: str
    fence: int = 0
    holder: str | None = None
    verdict: bool | None = None
    decided_by: str | None = None
    decision_id: str | None = None
    outcome: tuple[object, str | None] = (None, None)
    """Its result and its error."""
    delivered_in: str | None = None
    trail: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.state == "pending" or (self.state == "approved" and self.kind != "tool")

    def give_up(self) -> None:
        """End it; if it ran, at least in part, nobody can say that it was cancelled."""
        if self.fence > 0:
            self.becomes("unknown", "lapse")
        else:
            self.becomes("cancelled", "cancel")

    def becomes(self, state: str, event: str) -> None:
        self.state = state
        self.trail.append(event)
        if state != "running":
            self.holder = None


@dataclass
class Chat:
    """What the model knows of a chat's newest turn."""

    reply: str | None = None
    state: str = "ended"
    """`running`, `lapsed` or `ended`."""
    replies: list[str] = field(default_factory=list)
    """All that it ever had."""

    def begins(self, reply: str) -> None:
        self.reply, self.state = reply, "running"
        self.replies.append(reply)


def ruling_of(row: Row, verdict: Verdict) -> Ruling:
    """Return what a decision is worth, and note it if it counts."""
    if row.state == "pending" and row.approval:
        if row.due:
            row.becomes("expired", "expire")
            return "conflict"
        row.verdict, row.decided_by = verdict.approved, verdict.by
        row.decision_id = verdict.decision_id
        if verdict.approved:
            row.becomes("approved", "approve")
        else:
            row.becomes("denied", "deny")
        return "accepted"
    if verdict.decision_id is not None and verdict.decision_id == row.decision_id:
        return "repeat"
    stands = row.verdict is verdict.approved and row.state not in {"expired", "cancelled"}
    return "repeat" if stands else "conflict"


# The machine


@dataclass(frozen=True)
class Backend:
    """A store to drive."""

    portal: BlockingPortal
    stores: Stores
    shrinks: bool = True


class Machine(RuleBasedStateMachine):
    """Everything that can happen to the calls of two chats of one user."""

    backend: ClassVar[Backend]
    happened: ClassVar[Counter[str]]
    """What the calls of all examples went through."""

    def __init__(self) -> None:
        super().__init__()
        self.stores = self.backend.stores
        # The store is shared by all examples; each has a user and chats of its own.
        name = next(_numbers)
        self.owner = UserId(f"user-{name}")
        self.chats = {f"{name}-{letter}": Chat() for letter in "ab"}
        self.rows: dict[ApprovalId, Row] = {}

    def ask(self, method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the store."""

        async def call() -> T:
            return await method(*args, **kwargs)

        return self.backend.portal.call(call)

    def mine(self, calls: Sequence[HeldCall]) -> list[ApprovalId]:
        return sorted(call.approval_id for call in calls if call.owner == self.owner)

    def pick(self, data: Data, *states: str) -> tuple[ApprovalId, Row]:
        """Draw a call: one in a state where something can be done with it, more often than not."""
        fitting = [name for name, row in self.rows.items() if row.state in states]
        anyone = not fitting or data.draw(_RARELY, label="any call")
        name = data.draw(st.sampled_from(list(self.rows) if anyone else fitting), label="call")
        return name, self.rows[name]

    def pick_chat(self, data: Data) -> tuple[ChatId, Chat]:
        name = data.draw(st.sampled_from(list(self.chats)), label="chat")
        return ChatId(name), self.chats[name]

    @initialize(data=st.data())
    def start(self, data: Data) -> None:
        for _ in self.chats:
            self.hold(data)
            self.begin(data)

    @rule(data=st.data(), times=st.integers(3, 8))
    def go_on(self, data: Data, times: int) -> None:
        """What usually happens next, so that most calls get somewhere."""
        for _ in range(times):
            states = {row.state for row in self.rows.values() if row.state in self.usual}
            state = data.draw(st.sampled_from(sorted(states or {"none"})), label="state")
            self.usual[state](data)

    @property
    def usual(self) -> dict[str, Callable[[Data], None]]:
        """What usually happens to a call in each state; once all are settled, another comes."""
        return {
            "none": self.hold,
            "approved": self.claim_in_a_turn,
            "pending": self.decide,
            "running": self.end_run,
            "unknown": self.resolve,
        }

    def claim_in_a_turn(self, data: Data) -> None:
        name, row = self.pick(data, "approved")
        if row.kind != "tool":
            self.give(data)
            return
        chat = self.chats[row.chat]
        if chat.state != "running":
            self.try_begin(ChatId(row.chat), over=chat.reply if chat.state == "lapsed" else None)
        self.try_claim(name, chat.reply or "nobody")

    def end_run(self, data: Data) -> None:
        name, row = self.pick(data, "running")
        ending = data.draw(st.sampled_from(["finish", "dies", "fail", "finish"]), label="ending")
        if ending == "dies":
            self.try_end_turn(ChatId(row.chat), row.holder or "nobody", dies=True)
            self.sweep()
        else:
            self.try_end_call(name, ending, row.fence)

    # Calls

    @rule(data=st.data())
    def hold(self, data: Data) -> None:
        chat, _ = self.pick_chat(data)
        browser = data.draw(_RARELY, label="browser")
        # Only a browser's call may need no decision.
        approval = not browser or data.draw(st.booleans(), label="approval")
        row = Row(
            chat=chat,
            invocation=data.draw(st.sampled_from(INVOCATIONS)),
            kind=CallKind.BROWSER if browser else CallKind.TOOL,
            approval=approval,
            due=data.draw(_RARELY, label="due"),
            idempotent=data.draw(st.booleans(), label="idempotent"),
            state="pending" if approval else "approved",
        )
        number = next(_numbers)
        approval_id = ApprovalId(f"adk-{number:08}")
        self.rows[approval_id] = row
        self.ask(self.stores.calls.open, self.opened(approval_id, row, number))

    def opened(self, approval_id: ApprovalId, row: Row, number: float) -> HeldCall:
        return HeldCall(
            approval_id=approval_id,
            call_id=CallId(f"call-{approval_id}"),
            owner=self.owner,
            chat_id=ChatId(row.chat),
            invocation_id=InvocationId(row.invocation),
            tool_name="pay",
            arguments={"amount": 5},
            arguments_hash="hash",
            created_at=number,
            expires_at=LONG_AGO if row.due else NEVER,
            kind=row.kind,
            approval=row.approval,
            idempotent=row.idempotent,
            state=CallState.PENDING if row.approval else CallState.APPROVED,
        )

    def hold_again(self, data: Data) -> None:
        name, row = self.pick(data)
        assert self.ask(self.stores.calls.open, self.opened(name, row, 0.0)).state == row.state

    @rule(data=st.data())
    def decide(self, data: Data) -> None:
        name, row = self.pick(data, "pending")
        verdict = Verdict(
            approved=not data.draw(_RARELY, label="deny"),
            by=data.draw(st.sampled_from(["ann", "bob"])),
            decision_id=data.draw(st.sampled_from([None, "d1", "d2"])),
        )
        ruling, call = self.ask(self.stores.calls.decide, name, verdict)
        assert ruling == ruling_of(row, verdict)
        assert call.state == row.state
        self.happened[ruling] += 1

    def give(self, data: Data) -> None:
        name, row = self.pick(data, "approved")
        output, error = data.draw(_OUTCOMES, label="outcome")
        ruling, _ = self.ask(self.stores.calls.give, name, output=output, error=error)
        if row.state == "approved" and row.kind != "tool":
            assert ruling == "accepted"
            row.outcome = (output, error)
            row.becomes("failed" if error else "done", "output_error" if error else "output")
        else:
            assert ruling == self.outcome_ruling(row, output, error)

    def outcome_ruling(self, row: Row, output: object, error: str | None) -> Ruling:
        same = row.state in {"done", "failed"} and row.outcome == (output, error)
        return "repeat" if same else "conflict"

    # Runs

    @rule(data=st.data())
    def claim(self, data: Data) -> None:
        name, row = self.pick(data, "approved")
        chat = self.chats[row.chat]
        # The newest turn, or one that was, or never was.
        known = [*[chat.reply or "nobody"] * 4, *chat.replies, "nobody"]
        self.try_claim(name, data.draw(st.sampled_from(known), label="holder"))

    def try_claim(self, name: ApprovalId, holder: str) -> None:
        row = self.rows[name]
        chat = self.chats[row.chat]
        claimed = self.ask(self.stores.calls.claim, name, ReplyId(holder))
        lives = chat.state == "running" and chat.reply == holder
        if row.state == "approved" and row.kind == "tool" and lives:
            assert claimed is not None
            row.becomes("running", "claim")
            row.fence, row.holder = row.fence + 1, holder
            assert claimed.fence == row.fence
        else:
            assert claimed is None
            self.happened["claim refused"] += 1

    @rule(data=st.data())
    def end_call(self, data: Data) -> None:
        """A run ends, or one that was overtaken does, or nobody knows."""
        name, row = self.pick(data, "running")
        ending = data.draw(st.sampled_from(["finish", "fail", "lapse"]))
        behind = data.draw(st.sampled_from([0, 0, 0, 1, -1]), label="behind")
        self.try_end_call(name, ending, row.fence - behind)

    def try_end_call(self, name: ApprovalId, ending: str, fence: int) -> None:
        row = self.rows[name]
        error = "No." if ending == "fail" else None
        store = self.stores.calls
        if ending == "lapse":
            counted = self.ask(store.lapse, name, fence)
        else:
            counted = self.ask(store.finish, name, fence, result=fence, error=error)
        assert counted == (row.state == "running" and fence == row.fence)
        if not counted:
            self.happened[f"{ending} ignored"] += 1
            return
        row.becomes({"finish": "done", "fail": "failed", "lapse": "unknown"}[ending], ending)
        if ending != "lapse":
            row.outcome = (fence, error)

    @rule()
    def sweep(self) -> None:
        swept = self.mine(self.ask(self.stores.calls.lapse_orphans))
        orphans = [name for name, row in self.rows.items() if self.is_orphan(row)]
        assert swept == orphans
        for name in orphans:
            row = self.rows[name]
            if row.idempotent and row.fence < MOST_RUNS:
                row.becomes("approved", "release")
            else:
                row.becomes("unknown", "lapse")

    def is_orphan(self, row: Row) -> bool:
        chat = self.chats[row.chat]
        lives = chat.state == "running" and chat.reply == row.holder
        return row.state == "running" and not lives

    @rule(data=st.data())
    def resolve(self, data: Data) -> None:
        name, row = self.pick(data, "unknown")
        result, error = data.draw(_OUTCOMES, label="outcome")
        knows = Verdict(approved=error is None, by="ann")
        ruling, _ = self.ask(self.stores.calls.resolve, name, knows, result=result, error=error)
        if row.state == "unknown":
            assert ruling == "accepted"
            row.outcome = (result, error)
            event = "resolve_failed" if error else "resolve_done"
            row.becomes("failed" if error else "done", event)
        else:
            assert ruling == self.outcome_ruling(row, result, error)

    # What is rarer

    @rule(data=st.data())
    def rarely(self, data: Data) -> None:
        rare = [self.deliver, self.give, self.hold_again, self.expire, self.abort, self.stop]
        data.draw(st.sampled_from(rare), label="rare")(data)

    def expire(self, _data: Data) -> None:
        expired = self.mine(self.ask(self.stores.calls.expire))
        due = [name for name, row in self.rows.items() if row.due and row.is_open]
        assert expired == due
        for name in due:
            self.rows[name].becomes("expired", "expire")

    def stop(self, data: Data) -> None:
        chat, _ = self.pick_chat(data)
        only = data.draw(st.sampled_from([None, *INVOCATIONS]))
        among = None if only is None else [InvocationId(only)]
        cancelled = self.mine(self.ask(self.stores.calls.cancel, chat, among))
        meant = {
            name: row
            for name, row in self.rows.items()
            if row.chat == chat and only in {None, row.invocation}
        }
        free = [name for name, row in meant.items() if row.state in {"pending", "approved"}]
        assert cancelled == free
        for name, row in meant.items():
            if name in free:
                row.give_up()
            elif row.state != "cancelled" and row.delivered_in is None:
                row.delivered_in = WITHDRAWN

    def abort(self, data: Data) -> None:
        name, row = self.pick(data)
        self.ask(self.stores.calls.abort, name)
        if row.state == "approved":
            row.give_up()

    def deliver(self, data: Data) -> None:
        name, row = self.pick(data)
        row.delivered_in = data.draw(st.sampled_from([None, "reply-1", "reply-2"]))
        if row.delivered_in is None:
            self.ask(self.stores.calls.undeliver, [name])
        else:
            self.ask(self.stores.calls.deliver, [name], ReplyId(row.delivered_in))

    # Turns

    @rule(data=st.data())
    def begin(self, data: Data) -> None:
        """A turn begins, in place of one that lapsed or not, if the chat is free for it."""
        name, chat = self.pick_chat(data)
        takes_over = chat.state == "lapsed" or data.draw(_RARELY, label="takes over")
        self.try_begin(name, over=chat.reply if takes_over else None)

    def try_begin(self, name: ChatId, *, over: str | None) -> None:
        chat = self.chats[name]
        lapsed = None if over is None else ReplyId(over)
        reply = ReplyId(f"reply-{next(_numbers)}")
        turn = TurnRecord(name, self.owner, reply, key=f"say:{reply}", origin=lapsed)
        begun = self.ask(self.stores.turns.begin, turn, repeatable=False, over=lapsed)
        free = chat.state == ("ended" if over is None else "lapsed")
        assert isinstance(begun, Began if free else Busy)
        if free:
            chat.begins(reply)

    @rule(data=st.data())
    def end_turn(self, data: Data) -> None:
        """A turn ends or dies; if another has the chat by now, nothing happens."""
        name, chat = self.pick_chat(data)
        reply = data.draw(st.sampled_from([*chat.replies[-2:], chat.reply or "nobody"]))
        self.try_end_turn(name, reply, dies=data.draw(st.booleans(), label="dies"))

    def try_end_turn(self, name: ChatId, reply: str, *, dies: bool) -> None:
        chat = self.chats[name]
        end = self.stores.turns.release if dies else self.stores.turns.end
        self.ask(end, name, ReplyId(reply))
        if reply == chat.reply and not dies:
            chat.state = "ended"
        elif reply == chat.reply and chat.state == "running":
            chat.state = "lapsed"

    # After each step

    @invariant()
    def everything_is_what_the_model_says(self) -> None:
        calls, turns = self.ask(self.look)
        assert {call.approval_id: _seen(call) for call in calls} == {
            name: _said(row) for name, row in self.rows.items()
        }
        assert [call.approval_id for call in calls] == list(self.rows)
        assert turns == [(chat.reply, chat.state) for chat in self.chats.values()]

    async def look(self) -> tuple[Sequence[HeldCall], list[tuple[str | None, str]]]:
        """Return the calls, and the newest turn of each chat."""
        turns = [await self.stores.turns.latest(ChatId(name)) for name in self.chats]
        return await self.stores.calls.of_owner(self.owner), [_standing(turn) for turn in turns]

    def teardown(self) -> None:
        for row in self.rows.values():
            self.happened.update(row.trail)
        for name in self.chats:
            self.ask(self.stores.turns.forget, ChatId(name))


def _standing(turn: TurnRecord | None) -> tuple[str | None, str]:
    if turn is None:
        return None, "ended"
    return turn.reply_id, "running" if turn.running else "lapsed" if turn.lapsed else "ended"


def _seen(call: HeldCall) -> dict[str, object]:
    return {
        "state": call.state.value,
        "fence": call.fence,
        "holder": call.holder,
        "by": call.decided_by,
        "decision": call.decision_id,
        "outcome": (call.result, call.error),
        "delivered": call.delivered_in,
        "trail": [entry["event"] for entry in call.trail],
    }


def _said(row: Row) -> dict[str, object]:
    return {
        "state": row.state,
        "fence": row.fence,
        "holder": row.holder,
        "by": row.decided_by,
        "decision": row.decision_id,
        "outcome": row.outcome,
        "delivered": row.delivered_in,
        "trail": row.trail,
    }


# The stores


def run(backend: Backend, *, examples: int, steps: int = 40) -> Counter[str]:
    """Run the machine on a store; return what happened to its calls, and how often."""
    happened: Counter[str] = Counter()
    machine = type("Driven", (Machine,), {"backend": backend, "happened": happened})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            phases=[phase for phase in Phase if backend.shrinks or phase is not Phase.shrink],
        ),
    )
    return happened


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    def stores() -> Stores:
        if request.param == "sqlite":
            return sqlite_stores(str(tmp_path / "stores.db"))
        if request.param == "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")
            return postgres_stores(server.create(f"machine-{uuid4().hex}"))
        return memory_stores()

    with start_blocking_portal() as portal:
        opened = stores()
        with portal.wrap_async_context_manager(opened.serving()):
            yield Backend(portal, opened, shrinks=request.param != "memory")


def test_calls_do_what_the_model_says(backend: Backend) -> None:
    happened = run(backend, examples=20)
    # Else the orders were dull, and nothing was tried.
    assert {"accepted", "conflict", "claim", "claim refused", "finish"} <= set(happened)


def test_what_began_is_never_called_cancelled(backend: Backend) -> None:
    calls, turns = backend.stores.calls, backend.stores.turns
    call_id, chat, reply = ApprovalId("adk-began"), ChatId("began"), ReplyId("reply-began")

    async def stopped() -> CallState | None:
        call = HeldCall(
            approval_id=call_id,
            call_id=CallId("call-began"),
            owner=UserId("ann"),
            chat_id=chat,
            invocation_id=InvocationId("e-1"),
            tool_name="pay",
            arguments={},
            arguments_hash="hash",
            created_at=1.0,
            expires_at=NEVER,
            idempotent=True,
        )
        await calls.open(call)
        await calls.decide(call_id, Verdict(approved=True, by="ann"))
        await turns.begin(TurnRecord(chat, UserId("ann"), reply, key="say:1"), repeatable=False)
        assert await calls.claim(call_id, reply) is not None
        await turns.release(chat, reply)
        await calls.lapse_orphans()
        await calls.cancel(chat)
        row = await calls.get(call_id)
        return None if row is None else row.state

    assert backend.portal.call(stopped) is CallState.UNKNOWN
