"""Every unary recording of ADK, as chunks: pinned, and read by our assembler and the real clients.

`pytest tests/golden --golden-update` writes the files in `expected` anew; read what changed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast, get_args

import anyio
import pytest

from adk_stream_protocol.lifecycle import HeldCall
from adk_stream_protocol.translation.aftermath import Aftermath, aftermath_of
from adk_stream_protocol.translation.history import messages_of, past_turns
from adk_stream_protocol.wire.assembler import Assembler, StreamFailed
from adk_stream_protocol.wire.chunks import Chunk, encode, to_json
from adk_stream_protocol.wire.entries import Entry
from adk_stream_protocol.wire.messages import Part, UIMessage
from adk_stream_protocol.wire.profiles import CONFIRMATION_TOOL, Audience, Profile
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, as_text
from golden.replay import DUMPS, Dump, Reply, Told, read_dump, replay
from support import conformance
from support.conformance import SDK_VERSIONS, Reading, ReadInput, SdkVersion, read_with_real_clients

EXPECTED = Path(__file__).parent / "expected"
NAMES = sorted(path.stem for path in DUMPS.glob("*.jsonl"))
PROFILES: tuple[Profile, ...] = get_args(Profile)

every_dump = pytest.mark.parametrize("name", NAMES)
every_profile = pytest.mark.parametrize("profile", PROFILES)


@dataclasses.dataclass(frozen=True)
class Recording:
    dump: Dump
    messages: list[Told]
    calls: list[HeldCall]


@functools.cache
def recording(name: str) -> Recording:
    dump = read_dump(DUMPS / f"{name}.jsonl")
    messages, calls = anyio.run(replay, dump)
    return Recording(dump, messages, calls)


def rendered(entries: Sequence[Entry], profile: Profile) -> list[Chunk]:
    return list(Audience(profile).render(entries))


def replies(name: str, profile: Profile) -> Iterator[list[Chunk]]:
    for message in recording(name).messages:
        for reply in message.replies:
            yield rendered(reply.own, profile)


def chunks(name: str, profile: Profile) -> list[JsonObject]:
    return [to_json(chunk) for reply in replies(name, profile) for chunk in reply]


# What is sent


@every_profile
@every_dump
def test_chunks_are_those_of_the_golden_file(
    name: str, profile: Profile, request: pytest.FixtureRequest
) -> None:
    lines = [encode(chunk) for reply in replies(name, profile) for chunk in reply]
    path = EXPECTED / profile / f"{name}.jsonl"
    if request.config.getoption("golden_update", default=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert lines == path.read_text(encoding="utf-8").splitlines()


def test_every_golden_file_belongs_to_a_recording() -> None:
    found = {path.relative_to(EXPECTED).as_posix() for path in EXPECTED.rglob("*.jsonl")}
    assert found == {f"{profile}/{name}.jsonl" for profile in PROFILES for name in NAMES}


@every_profile
@every_dump
def test_reply_has_one_start_and_one_end(name: str, profile: Profile) -> None:
    for reply in replies(name, profile):
        types = [chunk.type for chunk in reply]
        ends = [kind for kind in types if kind in {"finish", "abort", "error"}]
        assert types.count("start") == len(ends) == 1
        assert (types[0], types[-1]) == ("start", ends[0])


@every_profile
@every_dump
def test_blocks_and_steps_that_start_also_end(name: str, profile: Profile) -> None:
    for reply in replies(name, profile):
        opened: list[str] = []
        for chunk in map(to_json, reply):
            block, _, moment = as_text(chunk["type"]).partition("-")
            if chunk["type"] in {"start-step", "finish-step"}:
                assert not opened
            elif moment == "start" and block != "tool":
                opened.append(f"{block} {chunk['id']}")
            elif moment == "end":
                opened.remove(f"{block} {chunk['id']}")
            elif as_text(chunk["type"]).startswith("tool-input"):
                assert not opened, "text ends before a tool begins"
        assert not opened
        steps = [chunk.type for chunk in reply if chunk.type.endswith("-step")]
        assert steps == ["start-step", "finish-step"] * (len(steps) // 2)


@every_profile
@every_dump
def test_each_input_is_sent_once_and_each_result_at_most_once(name: str, profile: Profile) -> None:
    sent = chunks(name, profile)
    for kinds in (
        {"tool-input-start"},
        {"tool-input-available"},
        {"tool-approval-request"},
        {"tool-output-available", "tool-output-error", "tool-output-denied"},
    ):
        ids = [chunk["toolCallId"] for chunk in sent if chunk["type"] in kinds]
        assert len(ids) == len(set(ids)), kinds


@every_profile
@every_dump
def test_results_of_an_earlier_reply_come_before_the_next_step(name: str, profile: Profile) -> None:
    for reply in replies(name, profile):
        here: set[JsonValue] = set()
        stepped = False
        for chunk in map(to_json, reply):
            stepped = stepped or chunk["type"] == "start-step"
            if chunk["type"] == "tool-input-start":
                here.add(chunk["toolCallId"])
            elif as_text(chunk["type"]).startswith("tool-output") and stepped:
                assert chunk["toolCallId"] in here


@every_profile
@every_dump
def test_no_inner_text_leaves_the_server(name: str, profile: Profile) -> None:
    sent = "".join(encode(chunk) for reply in replies(name, profile) for chunk in reply)
    for secret in (
        "SECRET-SAUCE",
        "client_secret",
        "clientId",
        "tokenUrl",
        "rawAuthCredential",
        "code=abc",
        "model down",
        "kaput",
        "requires confirmation, please approve",
        "This tool call is rejected",
        "c2ln",
    ):
        assert secret not in sent


# What clients make of it


@dataclasses.dataclass(frozen=True)
class Stream:
    """What one client reads, on top of what it has, and what our assembler makes of it."""

    key: str
    chunks: list[Chunk]
    before: UIMessage | None
    after: UIMessage
    error: str | None


def read_by_us(key: str, stream: list[Chunk], before: UIMessage | None) -> Stream:
    assembler = Assembler(before)
    error: str | None = None
    for chunk in stream:
        try:
            assembler.feed(chunk)
        except StreamFailed as failed:
            error = failed.error_text
    return Stream(key, stream, before, assembler.message, error)


def streams(name: str, profile: Profile) -> Iterator[Stream]:
    """Yield each reply as the client reads it that asked, and as one reads it that resumes."""
    for message in recording(name).messages:
        held: UIMessage | None = None
        for number, reply in enumerate(message.replies):
            key = f"{profile} {name} {message.message_id} {number}"
            before = None if held is None else answered(held, reply)
            asked = read_by_us(key, rendered(reply.own, profile), before)
            held = asked.after
            yield asked
            if number:
                yield read_by_us(f"{key} resumed", rendered(reply.whole, profile), None)


def answered(message: UIMessage, reply: Reply) -> UIMessage:
    """Return the message as a client has it that sends these answers."""
    parts = [dict(part) for part in message.parts]
    for call in reply.answered:
        for part in parts:
            _answer(part, call)
    return dataclasses.replace(message, parts=parts)


def _answer(part: Part, call: HeldCall) -> None:
    approval = as_object(part.get("approval"))
    if approval.get("id") == call.approval_id:
        part["state"] = "approval-responded"
        part["approval"] = {**approval, "approved": call.approved}
    elif part.get("toolCallId") == call.approval_id and call.approval:
        part.update(state="output-available", output={"confirmed": call.approved})
    elif part.get("toolCallId") == call.call_id and not call.approval:
        part.update(state="output-available", output=call.result)


@functools.cache
def readings() -> dict[tuple[str, SdkVersion], Reading]:
    """Return what the real clients make of every stream, all in one process."""
    inputs: list[ReadInput] = []
    for profile in PROFILES:
        for name in NAMES:
            for stream in streams(name, profile):
                given: ReadInput = {
                    "name": stream.key,
                    "chunks": cast(
                        "list[conformance.Chunk]",
                        [to_json(chunk) for chunk in stream.chunks],
                    ),
                }
                if stream.before is not None:
                    given["message"] = cast("conformance.UIMessage", stream.before.to_json())
                inputs.append(given)
    return {(read.name, read.version): read for read in read_with_real_clients(inputs)}


def as_read_by(version: SdkVersion, part: Part) -> Part:
    """Return the part as this version has it: the older ones keep no id of reasoning."""
    if version.endswith("strict") and part["type"] == "reasoning":
        return {key: value for key, value in part.items() if key != "id"}
    return part


@pytest.mark.parametrize("version", SDK_VERSIONS)
@every_profile
@every_dump
def test_real_clients_read_it_as_our_assembler_does(
    name: str, profile: Profile, version: SdkVersion
) -> None:
    for stream in streams(name, profile):
        read = readings()[stream.key, version]
        assert read.refused == []
        assert read.error == stream.error
        assert read.replies == 1
        assert read.message is not None
        assert read.message["id"] == stream.after.id
        assert read.message["parts"] == [as_read_by(version, part) for part in stream.after.parts]
        assert read.message.get("metadata") == stream.after.metadata


# What a reloaded page shows


def stored(name: str, profile: Profile, *, ledger: bool = True) -> dict[str, list[Part]]:
    found = recording(name)
    calls = found.calls if ledger else []
    messages = messages_of(found.dump.session, calls, Audience(profile))
    return {message.id: message.parts for message in messages if message.role == "assistant"}


NOT_AS_STREAMED = {
    "abort_signal": {"3332": []},
    "disconnect_aclose_midstream": {
        "3beb": [],
        "ae19": ["step-start", "text next"],
    },
    "unary_llm_raises_midstream": {"38e2": ["step-start", "data-adk-error"]},
    "unary_tool_raises": {
        "9555": ["step-start", "tool-boom", "step-start", "data-adk-error"],
        "6fae": ["step-start", "text recovered"],
    },
    "unary_final_text_rewritten_by_callback": {"b18f": ["step-start", "text [redacted]"]},
    "multi_parallel_agents": {"0184": ["step-start", "text A1 A2", "step-start", "text B1 B2"]},
}
"""Recordings whose history differs from the stream, and what it shows, by the message id's end.

- Only partial events had the text, and ADK stores none of those: `abort_signal` (the engine stores
  the text of a stop itself, see `Turn.keep_text`), `disconnect_aclose_midstream`,
  `unary_llm_raises_midstream`.
- An `error` chunk leaves no part, so history says it with one: `unary_llm_raises_midstream`,
  `unary_tool_raises`.
- What a callback took back is only in the stream: `unary_final_text_rewritten_by_callback`.
- Parallel agents share a step while they stream; stored, one follows the other:
  `multi_parallel_agents`.
"""


@every_profile
@pytest.mark.parametrize("name", NOT_AS_STREAMED)
def test_history_that_differs_from_the_stream_is_known(name: str, profile: Profile) -> None:
    outlines = {
        message.message_id[-4:]: [
            f"text {part['text']}" if part["type"] == "text" else part["type"]
            for part in stored(name, profile).get(message.message_id, [])
        ]
        for message in recording(name).messages
    }
    assert outlines == NOT_AS_STREAMED[name]


@every_profile
@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_AS_STREAMED])
def test_history_shows_what_was_streamed(name: str, profile: Profile) -> None:
    shown = {
        stream.after.id: stream.after.parts
        for stream in streams(name, profile)
        if not stream.key.endswith("resumed")
    }
    assert stored(name, profile) == shown


@every_profile
@every_dump
def test_history_needs_no_ledger_but_for_the_cards(name: str, profile: Profile) -> None:
    with_ledger, without = stored(name, profile), stored(name, profile, ledger=False)
    for part in [part for parts in (*with_ledger.values(), *without.values()) for part in parts]:
        if part["type"] == "data-approval":
            part["data"] = None
        elif part["type"] == f"tool-{CONFIRMATION_TOOL}":
            shown = as_object(as_object(part["input"])["toolConfirmation"])
            own = {key: shown[key] for key in ("hint", "confirmed", "payload") if key in shown}
            part["input"] = {**as_object(part["input"]), "toolConfirmation": own}
    assert without == with_ledger


# What is left to do of it

UNFINISHED = {
    "abort_signal": "aborted before the model had said anything that is stored",
    "abort_signal_tool_in_flight": "aborted before the model could answer the tool's result",
    "disconnect_aclose_midstream": "cut off in the model's first words",
    "unary_llm_raises_midstream": "the model failed in its first words",
    "unary_tool_raises": "the tool's failure ended the run without a result",
}


@every_dump
def test_a_recorded_turn_that_ended_leaves_nothing_to_do(name: str) -> None:
    recorded = recording(name)
    unfinished = False
    for turn in past_turns(recorded.dump.session):
        rows = [call for call in recorded.calls if call.invocation_id == turn.invocation_id]
        unfinished |= aftermath_of(turn, rows) != Aftermath()
        for length in range(1, len(turn.events)):
            # Wherever it is cut off, one thing is next, or nothing.
            cut = dataclasses.replace(turn, events=turn.events[:length])
            after = aftermath_of(cut, rows)
            assert sum([after.rerun, bool(after.deliver), bool(after.respond)]) <= 1
    assert unfinished is (name in UNFINISHED)
