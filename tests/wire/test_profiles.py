from __future__ import annotations

import dataclasses

import pytest

from adk_stream_protocol.wire.assembler import assemble
from adk_stream_protocol.wire.chunks import (
    Chunk,
    DataChunk,
    ErrorChunk,
    FinishChunk,
    FinishStepChunk,
    ResetStepChunk,
    SdkVersion,
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
    AnswersStep,
    CallAnswered,
    CallFinished,
    CallHeld,
    Entry,
    HeldKind,
    InputReleased,
    Outcome,
    OwnBegins,
    Progress,
    Resumed,
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
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object, dumps

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


@pytest.mark.parametrize("approved", [True, False])
def test_a_verdict_is_not_told_to_who_gave_it(approved: bool) -> None:
    own = dataclasses.replace(answered("approved" if approved else "denied"), own_verdict=approved)
    assert ToolApprovalResponseChunk not in map(type, rendered(AI_SDK_7, own))
    other = dataclasses.replace(own, own_verdict=not approved)
    assert rendered(AI_SDK_7, other)[0] == ToolApprovalResponseChunk("a1", approved)


@pytest.mark.parametrize(
    ("outcome", "own", "v6", "v7"),
    [
        ("denied", None, ToolOutputDeniedChunk, ToolOutputDeniedChunk),
        ("denied", False, ToolOutputDeniedChunk, ToolOutputDeniedChunk),
        # Its part holds an approval, and only v7 can be told otherwise.
        ("denied", True, ToolOutputErrorChunk, ToolOutputDeniedChunk),
        ("expired", True, ToolOutputErrorChunk, ToolOutputErrorChunk),
        # Its part holds a denial, which a part with an error must not.
        ("expired", False, ToolOutputDeniedChunk, ToolOutputDeniedChunk),
        ("cancelled", False, ToolOutputDeniedChunk, ToolOutputDeniedChunk),
    ],
)
def test_a_call_ends_in_a_state_that_fits_what_its_part_says_of_the_verdict(
    outcome: Outcome, own: bool | None, v6: type[Chunk], v7: type[Chunk]
) -> None:
    entry = dataclasses.replace(answered(outcome), own_verdict=own)
    assert type(rendered(AI_SDK_6, entry)[-1]) is v6
    assert type(rendered(AI_SDK_7, entry)[-1]) is v7


def test_an_own_denial_that_waits_for_others_leaves_the_part_as_it_is() -> None:
    entry = dataclasses.replace(answered("denied"), own_verdict=False, waits=True)
    card = DataChunk("approval", {"status": "denied"}, id="a1")
    assert rendered(AI_SDK_6, entry) == rendered(AI_SDK_7, entry) == [card]
    assert rendered(ADK, entry) == rendered(ADK, answered("denied"))


def test_a_call_that_has_its_result_only_changes_its_card() -> None:
    finished = CallFinished("a1", {"status": "done"})
    card = DataChunk("approval", {"status": "done"}, id="a1")
    assert rendered(AI_SDK_6, finished) == rendered(AI_SDK_7, finished) == [card]
    assert rendered(ADK, finished) == []


LOCATE = ToolInputAvailableChunk("c2", "get_location", {})


def asking(name: str) -> bool:
    return name == "get_location"


@pytest.mark.parametrize("sdk", [6, 7])
def test_the_input_of_a_browser_tool_is_held_back_until_it_is_approved(sdk: SdkVersion) -> None:
    audience = Audience(sdk=sdk, runs_after_approval=asking)
    asked = dataclasses.replace(BROWSER, approval=True)
    shown = rendered(audience, ToolInputStartChunk("c2", "get_location"), LOCATE, asked)
    assert LOCATE not in shown
    assert ToolApprovalRequestChunk("a2", "c2") in shown
    assert rendered(audience, InputReleased("c2", "get_location", {})) == [LOCATE]


def test_a_browser_tool_that_is_not_asked_for_is_shown_though_its_namesake_is() -> None:
    audience = Audience(runs_after_approval=asking)
    assert rendered(audience, LOCATE, BROWSER) == [LOCATE]


def test_other_tools_are_shown_at_once() -> None:
    audience = Audience(runs_after_approval=asking)
    shown = ToolInputAvailableChunk("c1", "pay", {})
    assert rendered(audience, shown) == [shown]


def test_the_adk_profile_shows_the_input_at_once_and_not_again() -> None:
    audience = Audience("adk", runs_after_approval=asking)
    shown = rendered(audience, LOCATE)
    assert shown == [dataclasses.replace(LOCATE, provider_executed=True)]
    assert rendered(audience, InputReleased("c2", "get_location", {})) == []


def test_only_the_adk_profile_gives_answers_a_step_of_their_own() -> None:
    step = [AnswersStep(begins=True), AnswersStep(begins=False)]
    assert rendered(ADK, *step) == [StartStepChunk(), FinishStepChunk()]
    assert rendered(AI_SDK_6, *step) == rendered(AI_SDK_7, *step) == []


PAY = ToolInputAvailableChunk("c1", "pay", {"amount": 5})


@pytest.mark.parametrize("audience", [AI_SDK_6, AI_SDK_7, ADK], ids=["v6", "v7", "adk"])
def test_a_call_that_is_over_is_resumed_without_calling_it(audience: Audience) -> None:
    told: list[Entry] = [
        ToolInputStartChunk("c1", "pay"),
        Resumed(ToolInputDeltaChunk("c1", '{"amount":5}')),
        Resumed(PAY),
        ToolOutputAvailableChunk("c1", {"paid": 5}),
    ]
    chunks = rendered(audience, *told)
    assert [chunk.type for chunk in chunks] == [
        "tool-input-start",
        "tool-input-delta",
        "tool-output-available",
    ]
    assert chunks[1] == ToolInputDeltaChunk("c1", '{"amount":5}')


@pytest.mark.parametrize(
    ("outcome", "progress", "v6", "v7"),
    [
        ("approved", "over", False, True),
        ("approved", "released", False, True),
        # Its helpers send the answers to the others only once this is answered, too.
        ("approved", "recorded", True, True),
        ("denied", "over", False, True),
        ("expired", "over", False, False),
        ("cancelled", "over", False, False),
    ],
)
def test_a_decided_call_is_asked_for_again_only_where_its_part_can_show_the_verdict(
    outcome: Outcome, progress: Progress, v6: bool, v7: bool
) -> None:
    entry = Resumed(HELD, outcome, progress)
    card = DataChunk("approval", {"status": "waiting"}, id="a1")
    request = [ToolApprovalRequestChunk("a1", "c1")]
    assert rendered(AI_SDK_6, entry) == [*(request if v6 else []), card]
    assert rendered(AI_SDK_7, entry) == [*(request if v7 else []), card]


def test_a_denial_is_resumed_as_an_error_where_it_cannot_be_told() -> None:
    denial = answered("denied", "no")
    card = DataChunk("approval", {"status": "denied"}, id="a1")
    entry = Resumed(denial, "denied")
    assert rendered(AI_SDK_6, entry) == [card, ToolOutputErrorChunk("c1", outcome_text(denial))]
    assert rendered(AI_SDK_7, entry) == rendered(AI_SDK_7, denial)
    assert rendered(ADK, entry) == rendered(ADK, denial)


def test_a_call_that_needed_no_approval_is_resumed_in_silence() -> None:
    for audience in (AI_SDK_6, AI_SDK_7, ADK):
        assert rendered(audience, Resumed(BROWSER)) == []


def test_an_answered_confirmation_is_resumed_without_calling_it() -> None:
    asked = rendered(ADK, HELD)[-1]
    assert isinstance(asked, ToolInputAvailableChunk)
    assert rendered(ADK, Resumed(HELD, "approved")) == [
        ToolInputStartChunk("a1", CONFIRMATION_TOOL),
        ToolInputDeltaChunk("a1", dumps(asked.input)),
    ]


def test_the_input_of_a_browser_tool_that_runs_is_resumed_when_it_is_released() -> None:
    entry = Resumed(LOCATE, "approved", "released")
    assert rendered(AI_SDK_6, entry) == rendered(AI_SDK_7, entry) == []
    assert rendered(ADK, entry) == rendered(ADK, LOCATE)
