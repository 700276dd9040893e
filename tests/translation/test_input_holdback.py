"""A call is shown as complete once it is known whether a client must answer it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.translation.input_holdback import InputHoldback
from adk_stream_protocol.wire.chunks import (
    FinishChunk,
    FinishStepChunk,
    TextDeltaChunk,
    ToolInputAvailableChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.entries import CallHeld, Entry


def shown(*calls: str) -> list[Entry]:
    """What the model's calls look like, one after the other."""
    return [
        chunk
        for call in calls
        for chunk in (ToolInputStartChunk(call, "pay"), ToolInputAvailableChunk(call, "pay", {}))
    ]


def held(call: str) -> CallHeld:
    return CallHeld(f"approval-{call}", call, "pay", {}, "")


def words(entries: Sequence[Entry]) -> list[str]:
    """The entries in short, as `start a`, `complete a`, `held a`."""
    return [_word(entry) for entry in entries]


def _word(entry: Entry) -> str:
    match entry:
        case ToolInputStartChunk(call):
            return f"start {call}"
        case ToolInputAvailableChunk(call):
            return f"complete {call}"
        case ToolOutputAvailableChunk(call) | ToolOutputErrorChunk(call):
            return f"end {call}"
        case CallHeld():
            return f"held {entry.call_id}"
        case TextDeltaChunk():
            return "text"
        case _:
            return "end"


def test_what_has_no_call_passes_unchanged() -> None:
    entries = (TextDeltaChunk("1", "a"), FinishChunk("stop"))
    assert InputHoldback().add(entries) is entries


def test_a_call_is_written_with_its_request_and_in_its_order() -> None:
    holdback = InputHoldback()
    text = TextDeltaChunk("1", "Paying.")
    assert words(holdback.add([text, *shown("a", "b")])) == ["text"]
    # An event that shows nothing decides nothing.
    assert words(holdback.add([])) == []
    assert words(holdback.add([held("a"), held("b")])) == [
        "start a",
        "complete a",
        "start b",
        "complete b",
        "held a",
        "held b",
    ]


def test_a_call_that_runs_is_written_before_it_does() -> None:
    holdback = InputHoldback()
    assert words(holdback.add(shown("a"))) == []
    assert words(holdback.runs(["other"])) == []
    assert words(holdback.runs(["a"])) == ["start a", "complete a"]
    assert words(holdback.add([ToolOutputAvailableChunk("a", 1)])) == ["end a"]


def test_a_call_that_runs_does_not_wait_for_one_that_may_be_held() -> None:
    holdback = InputHoldback()
    holdback.add(shown("held", "runs"))
    assert words(holdback.runs(["runs"])) == ["start held", "start runs", "complete runs"]
    assert words(holdback.add([ToolOutputAvailableChunk("runs", 1)])) == ["end runs"]
    assert words(holdback.add([held("held")])) == ["complete held", "held held"]


def test_it_does_not_matter_whether_a_tool_starts_before_its_call_is_written() -> None:
    holdback = InputHoldback()
    assert words(holdback.runs(["runs"])) == []
    assert words(holdback.add(shown("held", "runs"), running=["runs"])) == [
        "start held",
        "start runs",
        "complete runs",
    ]


def test_a_call_that_nobody_ran_is_written_with_its_result() -> None:
    holdback = InputHoldback()
    holdback.add(shown("a"))
    assert words(holdback.add([ToolOutputErrorChunk("a", "Stopped.")])) == [
        "start a",
        "complete a",
        "end a",
    ]


def test_what_is_said_meanwhile_is_not_held_back() -> None:
    holdback = InputHoldback()
    holdback.add(shown("a"))
    assert words(holdback.add([TextDeltaChunk("1", "b")])) == ["start a", "text"]
    assert words(holdback.runs(["a"])) == ["complete a"]


def test_nothing_stays_behind_the_end_of_a_step() -> None:
    holdback = InputHoldback()
    holdback.add(shown("a"))
    assert words(holdback.add([FinishStepChunk()])) == ["start a", "complete a", "end"]
    assert words(InputHoldback().add([*shown("a"), FinishChunk()])) == [
        "start a",
        "complete a",
        "end",
    ]


def test_code_that_the_model_ran_itself_waits_for_nobody() -> None:
    code = ToolInputAvailableChunk("code-1", "code_execution", {}, provider_executed=True)
    assert words(InputHoldback().add([code])) == ["complete code-1"]


CALLS = ["a", "b", "c"]
steps = st.lists(
    st.one_of(
        st.sampled_from(CALLS).map(lambda call: ("show", call)),
        st.sampled_from(CALLS).map(lambda call: ("held", call)),
        st.sampled_from(CALLS).map(lambda call: ("runs", call)),
        st.just(("text", "")),
    ),
    unique=True,
)


@given(steps)
def test_nothing_is_lost_and_no_call_is_complete_before_it_is_known(
    told: list[tuple[str, str]],
) -> None:
    holdback = InputHoldback()
    written: list[str] = []
    known: set[str] = set()
    seen: set[str] = set()
    for kind, call in told:
        if kind == "show":
            seen.add(call)
            written += words(holdback.add(shown(call), running=known))
        elif kind == "text":
            written += words(holdback.add([TextDeltaChunk("1", "x")]))
        elif kind == "runs":
            known.add(call)
            written += words(holdback.runs(known))
        elif call in seen:
            # A request follows the call it is about.
            known.add(call)
            written += words(holdback.add([held(call)]))
        assert {call for call in CALLS if f"complete {call}" in written} <= known
    written += words(holdback.add([FinishStepChunk()]))
    for call in seen:
        assert written.count(f"start {call}") == written.count(f"complete {call}") == 1
        assert written.index(f"start {call}") < written.index(f"complete {call}")
        if f"held {call}" in written:
            assert written.index(f"complete {call}") < written.index(f"held {call}")
