"""Laws that hold for whatever ADK may say, in whatever order."""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import anyio
import pytest
from google.adk.events.event import Event
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_stream_protocol.engine.reply import LoggedReply, Shown
from adk_stream_protocol.errors import ClientFault
from adk_stream_protocol.identifiers import ChatId, MessageId, ReplyId
from adk_stream_protocol.lifecycle import CallKind, CallState, HeldCall
from adk_stream_protocol.stores.memory import MemoryLog
from adk_stream_protocol.translation.events import EventTranslator
from adk_stream_protocol.translation.history import PastTurn, retell
from adk_stream_protocol.translation.instructions import Instruction, interpret, may_answer
from adk_stream_protocol.wire.assembler import Assembler, StreamFailed, assemble
from adk_stream_protocol.wire.chunks import (
    Chunk,
    SdkVersion,
    TextDeltaChunk,
    ToolOutputAvailableChunk,
    to_json,
)
from adk_stream_protocol.wire.entries import CallHeld, Entry, Outcome, OwnBegins
from adk_stream_protocol.wire.profiles import Audience, Profile
from adk_stream_protocol.wire.requests import ChatRequest, parse_request
from adk_stream_protocol.wire.values import JsonValue
from translation.builders import (
    INVOCATION,
    answered,
    call,
    confirmation,
    event,
    held_call,
    partial,
    question,
    response,
    sign_in,
    text,
    thought,
)

laws = settings(deadline=None, max_examples=120)

PNG = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
CODE = types.Part(executable_code=types.ExecutableCode(code="1+1"))
CODE_RESULT = types.Part(code_execution_result=types.CodeExecutionResult(output="2"))
CITED = types.CitationMetadata(citations=[types.Citation(uri="https://a")])

LANES = {"root": None, "A": "par.A", "B": "par.B"}
"""The agents that may speak, and their branches."""

AUDIENCES: list[tuple[Profile, SdkVersion]] = [
    ("ai-sdk", 6),
    ("ai-sdk", 7),
    ("adk", 6),
    ("adk", 7),
]
OUTCOMES: tuple[Outcome, ...] = ("approved", "denied", "expired", "cancelled")
ENDINGS: tuple[Literal["finish", "fail", "stop"], ...] = ("finish", "fail", "stop")


# Anything ADK might say


Move: TypeAlias = Callable[["Teller"], None]
"""One thing that happens while a message is made."""


@dataclass
class Teller:
    """Makes a message out of moves, and answers what it is asked."""

    translator: EventTranslator = field(default_factory=lambda: EventTranslator("m1"))
    entries: list[Entry] = field(default_factory=list)
    open: dict[str, CallHeld] = field(default_factory=dict)
    count: int = 0

    def next_id(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def add(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            if isinstance(entry, CallHeld):
                # Of two requests for one call, only the newer can still be answered.
                for older in [one for one in self.open.values() if one.call_id == entry.call_id]:
                    del self.open[older.approval_id]
                self.open[entry.approval_id] = entry

    def feed(self, told: Event) -> None:
        self.add(self.translator.feed(told))


def _part(teller: Teller, kind: str, which: int) -> types.Part:
    makers: dict[str, Callable[[], types.Part]] = {
        "text": lambda: text("ab"[: which % 3]),
        "thought": lambda: thought("hm"),
        "call": lambda: call(teller.next_id("c"), n=which),
        "again": lambda: call(f"c{which}", n=which),
        "result": lambda: response(f"c{which}", ok=which),
        "error": lambda: response(f"c{which}", error="No."),
        "file": lambda: PNG,
        "code": lambda: CODE,
        "code result": lambda: CODE_RESULT,
        "transfer": lambda: call(teller.next_id("c"), "transfer_to_agent", agent_name="A"),
        "confirmation": lambda: confirmation(teller.next_id("adk-"), f"c{which}"),
        "question": lambda: question(teller.next_id("adk-")),
        "sign-in": lambda: sign_in(teller.next_id("adk-"), f"c{which}"),
        "nothing": types.Part,
    }
    return makers[kind]()


PART_KINDS = (
    *("text", "thought", "call", "again", "result", "error", "file", "code", "code result"),
    *("transfer", "confirmation", "question", "sign-in", "nothing"),
)


EVENTS: list[Callable[..., Event]] = [
    event,
    partial,
    partial,
    functools.partial(event, citation_metadata=CITED),
    functools.partial(event, error_code="ValueError"),
    functools.partial(event, error_code="SAFETY"),
    functools.partial(event, output="out"),
    functools.partial(event, output={"n": 1}),
    functools.partial(event, long_running_tool_ids={"c1", "c2"}),
    functools.partial(event, actions={"artifact_delta": {"a.txt": 1}}),
    functools.partial(event, actions={"requested_tool_confirmations": {"c1": {}, "c2": {}}}),
]


@st.composite
def spoken(draw: st.DrawFn) -> Move:
    """An event of some agent, with anything in it."""
    chosen = draw(st.lists(st.tuples(st.sampled_from(PART_KINDS), st.integers(1, 5)), max_size=3))
    author = draw(st.sampled_from(sorted(LANES)))
    make = draw(st.sampled_from(EVENTS))

    def move(teller: Teller) -> None:
        parts = [_part(teller, kind, which) for kind, which in chosen]
        teller.feed(make(*parts, author=author, branch=LANES[author]))

    return move


@st.composite
def answers(draw: st.DrawFn) -> Move:
    """Some of the open calls are answered, in a reply of their own or in this one."""
    outcome = draw(st.sampled_from(OUTCOMES))
    paused = draw(st.booleans())
    many = draw(st.integers(1, 3))

    def move(teller: Teller) -> None:
        if paused:
            teller.add(teller.translator.close())
            teller.add(teller.translator.begin())
        for asked in list(teller.open.values())[:many]:
            del teller.open[asked.approval_id]
            told = answered(asked.approval_id, asked.call_id, outcome, kind=asked.kind, output=1)
            teller.add(teller.translator.answer(told))

    return move


@st.composite
def messages(draw: st.DrawFn) -> list[Entry]:
    """Everything that is said in one message, to its end."""
    teller = Teller()
    teller.add(teller.translator.begin())
    for move in draw(st.lists(st.one_of(spoken(), spoken(), spoken(), answers()), max_size=12)):
        move(teller)
    match draw(st.sampled_from(ENDINGS)):
        case "finish":
            teller.add(teller.translator.finish())
        case "fail":
            teller.add(teller.translator.fail("Sorry."))
        case "stop":
            teller.add(teller.translator.stop())
    return teller.entries


@pytest.mark.parametrize(("profile", "sdk"), AUDIENCES)
@laws
@given(entries=messages())
def test_every_chunk_list_assembles(
    profile: Profile, sdk: SdkVersion, entries: list[Entry]
) -> None:
    assembler = Assembler()
    for chunk in Audience(profile, sdk).render(entries):
        try:
            assembler.feed(chunk)
        except StreamFailed as failed:
            assert failed.error_text == "Sorry."  # noqa: PT017  # any other is a broken stream
    for part in assembler.message.parts:
        assert part.get("state") not in {"streaming", "input-streaming"}


@laws
@given(messages())
def test_blocks_and_steps_that_start_also_end(entries: list[Entry]) -> None:
    opened: set[str] = set()
    in_step = False
    for chunk in map(to_json, Audience().render(entries)):
        block, _, moment = str(chunk["type"]).partition("-")
        if block in {"text", "reasoning"}:
            name = f"{block} {chunk['id']}"
            assert in_step
            assert (name in opened) is (moment != "start")
            (opened.add if moment == "start" else opened.discard)(name)
            if moment == "delta":
                opened.add(name)
        elif chunk["type"] == "start-step":
            assert not in_step
            in_step = True
        elif chunk["type"] == "finish-step":
            assert in_step
            assert not opened
            in_step = False
    assert not opened
    assert not in_step


@laws
@given(messages())
def test_input_is_sent_at_most_once_per_call(entries: list[Entry]) -> None:
    for kind in ("tool-input-start", "tool-input-available"):
        ids = [
            chunk["toolCallId"]
            for chunk in map(to_json, Audience().render(entries))
            if chunk["type"] == kind
        ]
        assert len(ids) == len(set(ids))


@laws
@given(messages())
def test_call_that_is_not_waiting_has_an_end(entries: list[Entry]) -> None:
    """A tool part hangs only if it waits for the client, or may end the run without a result."""
    chunks = [chunk for chunk in Audience().render(entries) if chunk.type != "error"]
    held = {entry.call_id for entry in entries if isinstance(entry, CallHeld)}
    held |= {
        str(entry.input["functionCallId"])
        for entry in entries
        if isinstance(entry, CallHeld)
        and isinstance(entry.input, dict)
        and "functionCallId" in entry.input
    }
    for part in assemble(chunks).parts:
        if part.get("state") == "input-available":
            assert part["toolCallId"] in held | {"c1", "c2"}


# What models say


@dataclass(frozen=True)
class Response:
    """One model response, and what its calls gave."""

    events: list[Event]
    words: str
    """Its text, thoughts aside."""


def _deltas(draw: st.DrawFn, part: types.Part) -> list[types.Part]:
    """Return the part in pieces, as a model streams it."""
    if not part.text:
        return [part]
    cuts = draw(st.lists(st.integers(1, len(part.text)), max_size=3).map(sorted))
    edges = [0, *cuts, len(part.text)]
    pieces = [part.text[start:end] for start, end in itertools.pairwise(edges)]
    return [types.Part(text=piece, thought=part.thought) for piece in pieces if piece]


@st.composite
def responses(draw: st.DrawFn, author: str, alphabet: str) -> Response:
    """A response of one agent: streamed and repeated whole, cut short, or not streamed."""
    words = st.text(alphabet, min_size=1, max_size=6)
    kinds: st.SearchStrategy[types.Part] = st.one_of(
        words.map(text), words.map(thought), st.just(PNG)
    )
    parts = draw(st.lists(kinds, min_size=1, max_size=4))
    joined = _joined(parts)
    deltas = [delta for part in joined for delta in _deltas(draw, part)]
    sent = deltas[: draw(st.sampled_from([0, len(deltas), len(deltas) - 1]))]
    branch = LANES[author]
    events = [partial(delta, author=author, branch=branch) for delta in sent]
    ids = [made.hex for made in draw(st.lists(st.uuids(), max_size=2))]
    calls = [call(call_id, n=1) for call_id in ids]
    events.append(event(*joined, *calls, author=author, branch=branch))
    if ids:
        results = [response(call_id, ok=True) for call_id in ids]
        events.append(event(*results, author=author, branch=branch))
    said = "".join(part.text or "" for part in joined if not part.thought)
    return Response(events, said)


def _joined(parts: Sequence[types.Part]) -> list[types.Part]:
    """Return the parts with neighbouring text made one, as ADK's own aggregator does."""
    joined: list[types.Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if last is not None and last.text and part.text and last.thought == part.thought:
            joined[-1] = types.Part(text=last.text + part.text, thought=part.thought)
        else:
            joined.append(part)
    return joined


ALPHABETS = {"root": "abc", "A": "klm", "B": "xyz"}
"""Each agent has letters of its own, so that its words are known in a mixed stream."""


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[Event], dict[str, str]]:
    """The events of agents that speak at once, and the words of each."""
    queues: list[list[Event]] = []
    words: dict[str, str] = {}
    for author, alphabet in ALPHABETS.items():
        told = draw(st.lists(responses(author, alphabet), max_size=2))
        queues.append([one for said in told for one in said.events])
        words[author] = "".join(said.words for said in told)
    events: list[Event] = []
    while any(queues):
        speaking = [queue for queue in queues if queue]
        events.append(draw(st.sampled_from(speaking)).pop(0))
    return events, words


def _chunks(events: Sequence[Event]) -> list[Chunk]:
    translator = EventTranslator("m1")
    entries = [*translator.begin()]
    for told in events:
        entries += translator.feed(told)
    return list(Audience().render([*entries, *translator.finish()]))


@laws
@given(conversations())
def test_no_character_is_lost_or_doubled(conversation: tuple[list[Event], dict[str, str]]) -> None:
    events, words = conversation
    sent = "".join(chunk.delta for chunk in _chunks(events) if isinstance(chunk, TextDeltaChunk))
    for author, alphabet in ALPHABETS.items():
        assert "".join(letter for letter in sent if letter in alphabet) == words[author]


@laws
@given(st.lists(responses("root", "abc"), max_size=4))
def test_stored_events_give_the_message_that_was_streamed(told: list[Response]) -> None:
    events = [one for said in told for one in said.events]
    stored = [one for one in events if not one.partial]
    turn = PastTurn(INVOCATION, MessageId("m1"), MessageId("u1"), events=stored)
    translator, entries = retell(turn, {})
    again = assemble(Audience().render([*entries, *translator.finish()]))
    streamed = assemble(_chunks(events))
    assert _settled(again.parts) == _settled(streamed.parts)


def _settled(parts: Sequence[dict[str, JsonValue]]) -> list[dict[str, JsonValue]]:
    # Blocks are numbered as they were opened; a response that was cut short opens more of them.
    return [{key: value for key, value in part.items() if key != "id"} for part in parts]


# Logs


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Entry], int, list[int]]:
    """The entries of a reply, where its own begin, and how many are written at a time."""
    count = draw(st.integers(0, 12))
    entries: list[Entry] = [
        ToolOutputAvailableChunk(f"c{index % 4}", index) for index in range(count)
    ]
    begins = draw(st.integers(0, count))
    entries.insert(begins, OwnBegins())
    sizes = draw(st.lists(st.integers(1, 4), min_size=count + 1, max_size=count + 1))
    return entries, begins, sizes


async def _read_while_written(
    readers: Sequence[LoggedReply], log: MemoryLog, batches: Sequence[Sequence[Entry]]
) -> list[list[Entry]]:
    """Return what each reader got; all read, and some late, while the log is written."""
    got: list[list[Entry]] = [[] for _ in readers]

    async def follow(index: int) -> None:
        ended = False
        while not ended:
            batch = await readers[index].next()
            got[index] += batch.entries
            ended = batch.ended

    async with anyio.create_task_group() as tasks:
        for index in range(len(readers)):
            tasks.start_soon(follow, index)
        for batch in batches:
            await log.append(ReplyId("r"), batch)
            await anyio.lowlevel.checkpoint()
        await log.end(ReplyId("r"))
    return got


@laws
@given(logs(), st.data())
def test_replay_from_any_point_equals_the_tail(
    written: tuple[list[Entry], int, list[int]], data: st.DataObject
) -> None:
    entries, begins, sizes = written
    cut = data.draw(st.integers(0, len(entries)))
    known = data.draw(st.sets(st.sampled_from(["c0", "c1", "c2", "c3"])))
    batches: list[list[Entry]] = []
    rest = list(entries)
    for size in sizes:
        batches.append(rest[:size])
        rest = rest[size:]

    async def read() -> list[list[Entry]]:
        log = MemoryLog(lambda: 0.0)
        await log.open(ReplyId("r"))
        chat = ChatId("chat")
        readers = [
            LoggedReply(chat, log, ReplyId("r")),
            LoggedReply(chat, log, ReplyId("r"), _cursor=cut),
            LoggedReply(chat, log, ReplyId("r"), own_only=True),
            LoggedReply(chat, log, ReplyId("r"), shown=Shown(frozenset(known))),
        ]
        first = await _read_while_written(readers, log, batches)
        late = LoggedReply(chat, log, ReplyId("r"), own_only=True)
        return [*first, list((await late.next()).entries)]

    whole, tail, own, unknown, late = anyio.run(read)
    told = [entry for entry in entries if not isinstance(entry, OwnBegins)]
    assert whole == told
    assert tail == [entry for entry in entries[cut:] if not isinstance(entry, OwnBegins)]
    assert own == late == told[begins:]
    assert unknown == [
        entry
        for entry in told
        if not (isinstance(entry, ToolOutputAvailableChunk) and entry.tool_call_id in known)
    ]


# Requests


def _names() -> st.SearchStrategy[str]:
    return st.sampled_from(["pay", "adk_request_confirmation", "adk_request_input"])


def _ids() -> st.SearchStrategy[str]:
    return st.sampled_from(["c1", "c2", "adk-1", "adk-2", "adk-3", "unknown", ""])


def _values() -> st.SearchStrategy[JsonValue]:
    return st.sampled_from([True, False, None, "yes", 1, {}])


def _reasons() -> st.SearchStrategy[JsonValue]:
    return st.sampled_from([None, "", "No.", "x" * 501, 7])


@st.composite
def parts(draw: st.DrawFn) -> dict[str, JsonValue]:
    states = ("approval-responded", "approval-requested", "output-available", "output-error", "?")
    part: dict[str, JsonValue] = {
        "type": draw(st.sampled_from(["step-start", "text", "dynamic-tool", ""])),
        "toolCallId": draw(_ids()),
        "toolName": draw(_names()),
        "state": draw(st.sampled_from(states)),
        "text": "hi",
    }
    if not part["type"]:
        part["type"] = f"tool-{part['toolName']}"
    if draw(st.booleans()):
        part["approval"] = {
            "id": draw(_ids()),
            "approved": draw(_values()),
            "reason": draw(_reasons()),
        }
    if draw(st.booleans()):
        part["output"] = {"confirmed": draw(_values()), "reason": draw(_reasons())}
    return part


@st.composite
def items(draw: st.DrawFn) -> dict[str, JsonValue]:
    key = draw(st.sampled_from(["confirmed", "approved", "paid"]))
    return {
        "type": draw(st.sampled_from(["tool-result", "text"])),
        "text": "hi",
        "toolCallId": draw(_ids()),
        "toolName": draw(st.one_of(_names(), st.just(""))),
        "result": {key: draw(_values()), "reason": draw(_reasons())},
    }


@st.composite
def requests(draw: st.DrawFn) -> ChatRequest:
    roles = ("user", "assistant", "assistant", "system")
    sent: list[JsonValue] = [
        {
            "id": f"m{index}",
            "role": draw(st.sampled_from(roles)),
            "parts": draw(st.lists(parts(), max_size=4)),
            "content": draw(st.lists(items(), max_size=2)),
        }
        for index in range(draw(st.integers(1, 3)))
    ]
    return parse_request(
        {
            "messages": sent,
            "trigger": draw(st.sampled_from(["submit-message"] * 3 + ["regenerate-message"])),
            "messageId": draw(st.sampled_from(["m0", "m1", "m2", ""])),
        }
    )


@st.composite
def ledgers(draw: st.DrawFn) -> list[HeldCall]:
    ids = draw(st.lists(st.sampled_from(["adk-1", "adk-2"]), unique=True))
    held = [
        held_call(
            approval_id,
            f"c{approval_id[-1]}",
            kind=draw(st.sampled_from([CallKind.TOOL, CallKind.BROWSER])),
            state=draw(st.sampled_from(list(CallState))),
        )
        for approval_id in ids
    ]
    asked = held_call("adk-3", "adk-3", kind=CallKind.INPUT, approval=False)
    return [*held, asked]


def _interpreted(request: ChatRequest, held: Sequence[HeldCall]) -> Instruction | tuple[str, str]:
    try:
        return interpret(request, held)
    except ClientFault as fault:
        return fault.code, fault.message


@settings(laws, max_examples=300)
@given(requests(), ledgers())
def test_interpreting_a_request_changes_nothing_and_is_repeatable(
    request: ChatRequest, held: list[HeldCall]
) -> None:
    before = copy.deepcopy((request, held))
    first = copy.deepcopy(_interpreted(request, held))
    assert (request, held) == before
    assert _interpreted(request, held) == first
    assert _interpreted(*before) == first


@settings(laws, max_examples=300)
@given(requests(), ledgers())
def test_a_request_that_answers_nothing_is_read_without_held_calls(
    request: ChatRequest, held: list[HeldCall]
) -> None:
    assert may_answer(request) or _interpreted(request, held) == _interpreted(request, ())
