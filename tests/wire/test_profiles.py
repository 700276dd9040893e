from __future__ import annotations

import dataclasses

import pytest

from adk_stream_protocol.wire.assembler import assemble
from adk_stream_protocol.wire.chunks import (
    Chunk,
    DataChunk,
    ErrorChunk,
    FinishChunk,
    ResetStepChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    ToolApprovalRequestChunk,
    ToolApprovalResponseChunk,
    ToolInputAvailableChunk,
    ToolInputDeltaChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)
from adk_stream_protocol.wire.entries import (
    CallAnswered,
    CallHeld,
    Entry,
    HeldKind,
    Outcome,
    OwnBegins,
)
from adk_stream_protocol.wire.profiles import (
    CONFIRMATION_TOOL,
    DENIED_TEXT,
    NO_OUTPUT_TEXT,
    NO_REPLY_TEXT,
    NOT_DONE_TEXT,
    NOT_REPLIED_TEXT,
    NOT_RUN_TEXT,
    Audience,
    Profile,
    outcome_text,
)
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object

HELD = CallHeld("a1", "c1", "pay", {"amount": 5}, "Pay 5?", card={"status": "waiting"})
BROWSER = CallHeld("a2", "c2", "get_location", {}, "", approval=False, kind="browser")

AI_SDK_6 = Audience()
AI_SDK_7 = Audience(sdk=7)
ADK = Audience(profile="adk")


def answered(outcome: Outcome, reason: str | None = None, *, approval: bool = True) -> CallAnswered:
    return CallAnswered("a1", "c1", outcome, reason, approval=approval, card={"status": outcome})


def let_through(outcome: Outcome, kind: HeldKind) -> CallAnswered:
    """A call that was approved first."""
    return dataclasses.replace(answered(outcome), was_approved=True, kind=kind)


def rendered(audience: Audience, *entries: Entry) -> list[Chunk]:
    return list(audience.render(entries))


@pytest.mark.parametrize("profile", ["ai-sdk", "adk"])
def test_chunks_that_hold_nothing_are_shown_as_they_are(profile: Profile) -> None:
    chunks: list[Entry] = [
        StartChunk("m1"),
        StartStepChunk(),
        TextDeltaChunk("1", "hi"),
        ToolOutputAvailableChunk("c1", 5),
        ErrorChunk("kaput"),
        FinishChunk("stop"),
    ]
    assert rendered(Audience(profile), *chunks) == chunks


@pytest.mark.parametrize("profile", ["ai-sdk", "adk"])
def test_chunk_that_the_readers_sdk_does_not_know_is_left_out(profile: Profile) -> None:
    assert rendered(Audience(profile, 6), ResetStepChunk()) == []
    assert rendered(Audience(profile, 7), ResetStepChunk()) == [ResetStepChunk()]


@pytest.mark.parametrize("audience", [AI_SDK_6, AI_SDK_7, ADK], ids=["v6", "v7", "adk"])
def test_marker_of_the_replys_own_part_is_never_shown(audience: Audience) -> None:
    assert rendered(audience, OwnBegins()) == []


@pytest.mark.parametrize("audience", [AI_SDK_6, AI_SDK_7, ADK], ids=["v6", "v7", "adk"])
def test_call_with_nothing_to_approve_is_held_in_silence(audience: Audience) -> None:
    assert rendered(audience, BROWSER) == []


@pytest.mark.parametrize("audience", [AI_SDK_6, AI_SDK_7], ids=["v6", "v7"])
def test_held_call_is_shown_as_the_sdks_own_approval_with_its_card(audience: Audience) -> None:
    assert rendered(audience, HELD) == [
        ToolApprovalRequestChunk("a1", "c1"),
        DataChunk("approval", {"status": "waiting"}, id="a1"),
    ]


@pytest.mark.parametrize(
    ("outcome", "response", "ending"),
    [
        ("approved", [ToolApprovalResponseChunk("a1", approved=True, reason="r")], []),
        (
            "denied",
            [ToolApprovalResponseChunk("a1", approved=False, reason="r")],
            [ToolOutputDeniedChunk("c1")],
        ),
        ("expired", [], [ToolOutputErrorChunk("c1", outcome_text(answered("expired")))]),
        ("cancelled", [], [ToolOutputErrorChunk("c1", outcome_text(answered("cancelled")))]),
    ],
)
def test_answer_is_told_to_v7_and_only_its_consequence_to_v6(
    outcome: Outcome, response: list[Chunk], ending: list[Chunk]
) -> None:
    card = DataChunk("approval", {"status": outcome}, id="a1")
    assert rendered(AI_SDK_7, answered(outcome, "r")) == [*response, card, *ending]
    assert rendered(AI_SDK_6, answered(outcome, "r")) == [card, *ending]


def test_end_of_a_wait_without_approval_shows_only_its_consequence() -> None:
    expired = answered("expired", approval=False)
    assert rendered(AI_SDK_7, expired) == [ToolOutputErrorChunk("c1", outcome_text(expired))]
    assert rendered(AI_SDK_7, answered("approved", approval=False)) == []
    assert rendered(ADK, expired) == [ToolOutputErrorChunk("c1", outcome_text(expired))]
    assert rendered(ADK, answered("approved", approval=False)) == []


@pytest.mark.parametrize("outcome", ["approved", "denied"])
def test_what_a_policy_decided_is_a_whole_story_to_v7_and_its_end_to_others(
    outcome: Outcome,
) -> None:
    decided = dataclasses.replace(answered(outcome, "policy"), automatic=True)
    card = DataChunk("approval", {"status": outcome}, id="a1")
    denied = [ToolOutputDeniedChunk("c1")] if outcome == "denied" else []
    refused = [ToolOutputErrorChunk("c1", "Denied by policy; no person was asked.")]
    assert rendered(AI_SDK_7, decided) == [
        ToolApprovalRequestChunk("a1", "c1", is_automatic=True),
        ToolApprovalResponseChunk("a1", outcome == "approved", "policy"),
        card,
        *denied,
    ]
    # A part that is denied must hold a denial, of which v6 cannot be told.
    assert rendered(AI_SDK_6, decided) == [card, *(refused if denied else [])]
    assert rendered(ADK, decided) == (refused if denied else [])


def test_adk_profile_shows_a_held_call_as_a_confirmation_tool() -> None:
    asked: JsonValue = {
        "originalFunctionCall": {"id": "c1", "name": "pay", "args": {"amount": 5}},
        "toolConfirmation": {"hint": "Pay 5?", "confirmed": False},
    }
    assert rendered(ADK, HELD) == [
        ToolInputStartChunk("a1", CONFIRMATION_TOOL),
        ToolInputAvailableChunk("a1", CONFIRMATION_TOOL, asked),
    ]


def test_adk_profile_shows_with_the_confirmation_what_a_person_needs_to_decide() -> None:
    shown_to_person: JsonObject = {
        "title": "Send money",
        "risk": "high",
        "expiresAt": "2026-01-01T00:00:00.000Z",
        "step": {"n": 2, "of": 2, "name": "manager", "by": ["bob"], "fourEyes": True},
        "approvedBy": ["ann"],
        "ui": {"icon": "bank"},
    }
    # The rest is known otherwise, or of no use here.
    card = {**shown_to_person, "status": "pending", "toolName": "pay", "hint": "Pay 5?"}
    shown = rendered(ADK, dataclasses.replace(HELD, card=card))[-1]
    assert isinstance(shown, ToolInputAvailableChunk)
    assert as_object(shown.input)["toolConfirmation"] == {
        "hint": "Pay 5?",
        "confirmed": False,
        **shown_to_person,
    }


def test_adk_profile_shows_the_payload_that_a_tool_asks_to_be_filled() -> None:
    held = dataclasses.replace(HELD, payload={"days": 3})
    shown = rendered(ADK, held)[-1]
    assert isinstance(shown, ToolInputAvailableChunk)
    assert shown.input == {
        "originalFunctionCall": {"id": "c1", "name": "pay", "args": {"amount": 5}},
        "toolConfirmation": {"hint": "Pay 5?", "confirmed": False, "payload": {"days": 3}},
    }


@pytest.mark.parametrize("outcome", ["denied", "expired", "cancelled"])
def test_adk_profile_shows_a_refusal_as_not_confirmed_and_failed(outcome: Outcome) -> None:
    answer = answered(outcome, "too much")
    assert rendered(ADK, answer) == [
        # Only a denial is somebody's no.
        ToolOutputAvailableChunk(
            "a1",
            {"confirmed": False} | ({} if outcome == "denied" else {"outcome": outcome}),
        ),
        ToolOutputErrorChunk("c1", outcome_text(answer)),
    ]


def test_adk_profile_shows_an_approval_as_confirmed_and_leaves_the_call_open() -> None:
    assert rendered(ADK, answered("approved")) == [
        ToolOutputAvailableChunk("a1", {"confirmed": True})
    ]


def test_adk_profile_marks_server_tools_so_that_the_client_leaves_them_alone() -> None:
    audience = Audience("adk", runs_in_browser=lambda name: name == "get_location")
    assert rendered(
        audience,
        ToolInputStartChunk("c1", "pay"),
        ToolInputDeltaChunk("c1", "{}"),
        ToolInputAvailableChunk("c1", "pay", {}),
        ToolInputStartChunk("c2", "get_location"),
        ToolInputAvailableChunk("c2", "get_location", {}),
    ) == [
        ToolInputStartChunk("c1", "pay", provider_executed=True),
        ToolInputAvailableChunk("c1", "pay", {}, provider_executed=True),
        ToolInputStartChunk("c2", "get_location"),
        ToolInputAvailableChunk("c2", "get_location", {}),
    ]


def test_without_saying_so_no_tool_runs_in_the_browser() -> None:
    shown = rendered(ADK, ToolInputAvailableChunk("c2", "get_location", {}))
    assert shown == [ToolInputAvailableChunk("c2", "get_location", {}, provider_executed=True)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (answered("denied"), DENIED_TEXT),
        (answered("denied", "too much"), f"{DENIED_TEXT}: too much"),
        (answered("expired", "x"), "No decision came in time; the call was not run."),
        (answered("cancelled"), "The call was cancelled before a decision; it was not run."),
        (answered("approved"), ""),
        (let_through("expired", "browser"), NO_OUTPUT_TEXT),
        (let_through("cancelled", "browser"), NOT_DONE_TEXT),
        (let_through("cancelled", "tool"), NOT_RUN_TEXT),
        (dataclasses.replace(answered("expired", approval=False), kind="browser"), NO_OUTPUT_TEXT),
        (dataclasses.replace(answered("expired", approval=False), kind="input"), NO_REPLY_TEXT),
        (
            dataclasses.replace(answered("cancelled", approval=False), kind="input"),
            NOT_REPLIED_TEXT,
        ),
    ],
)
def test_why_a_call_did_not_run_is_said_in_words(answer: CallAnswered, text: str) -> None:
    assert outcome_text(answer) == text


@pytest.mark.parametrize("outcome", ["expired", "cancelled"])
def test_an_approval_is_not_taken_back_by_what_came_later(outcome: Outcome) -> None:
    answer = let_through(outcome, "browser")
    error = ToolOutputErrorChunk("c1", outcome_text(answer))
    assert rendered(ADK, answer) == [
        ToolOutputAvailableChunk("a1", {"confirmed": True, "outcome": outcome}),
        error,
    ]
    assert rendered(AI_SDK_7, answer) == [
        ToolApprovalResponseChunk("a1", approved=True),
        DataChunk("approval", {"status": outcome}, id="a1"),
        error,
    ]


@pytest.mark.parametrize("audience", [AI_SDK_6, AI_SDK_7, ADK], ids=["v6", "v7", "adk"])
@pytest.mark.parametrize("outcome", ["approved", "denied", "expired", "cancelled"])
def test_whole_story_of_a_held_call_can_be_read_by_every_client(
    audience: Audience, outcome: Outcome
) -> None:
    entries: list[Entry] = [
        StartChunk("m1"),
        StartStepChunk(),
        ToolInputAvailableChunk("c1", "pay", {"amount": 5}),
        HELD,
        answered(outcome, "r"),
    ]
    if outcome == "approved":
        entries.append(ToolOutputAvailableChunk("c1", {"paid": 5}))
    message = assemble(audience.render(entries))
    pay = next(part for part in message.parts if part["type"] == "tool-pay")
    assert pay["state"] in {"output-available", "output-error", "output-denied"}
