"""Servers killed with SIGKILL at named points, and what is left of their chats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from faults.case import Case
from faults.crew import Crew
from faults.matrix import MATRIX
from faults.points import Kill, Point, point_of
from faults.tally import Tally
from support.postgres import postgres_server

Outcomes = dict[Case, Any]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """Play the whole matrix, two stories at a time."""
    told: Outcomes = {}
    folder: Path = tmp_path_factory.mktemp("faults")
    with postgres_server() as postgres:
        anyio.run(Crew(folder, postgres).play, MATRIX, told.__setitem__)
    return told


@pytest.mark.parametrize("case", MATRIX, ids=str)
def test_a_kill_doubles_nothing_loses_nothing_and_leaves_no_chat_stuck(
    case: Case, outcomes: Outcomes
) -> None:
    outcome = outcomes[case]
    assert [Kill(**kill) for kill in outcome["kills"]] == list(case.kills), "all of them came"
    assert outcome["doubles"] == []
    assert outcome["stuck"] == []
    assert outcome["losses"] == []


def test_every_point_that_must_survive_is_in_the_matrix() -> None:
    around = {
        (kill.point, kill.moment)
        for case in MATRIX
        if case.database == "sqlite" or case.busy is not None
        for kill in case.kills
    }
    named = set(Point) - {Point.LAPSE}
    assert {(point, moment) for point in named for moment in ("before", "after")} <= around


@pytest.mark.parametrize(
    ("statement", "rows", "point"),
    [
        ("INSERT INTO adk_stream_chunk (data)", [{"rows": '[["r", 0, "{}"]]'}], Point.FLUSH),
        ("INSERT INTO adk_stream_chunk (data)", [{"rows": '[["r", 0, null]]'}], Point.END),
        ("INSERT INTO adk_stream_chunk (data)", [{"entries": ("{}",)}], Point.FLUSH),
        ("INSERT INTO adk_stream_chunk (data)", [{"entries": ("{}", None)}], Point.END),
        ("UPDATE adk_stream_call SET state=?", [{"state": "running"}], Point.CLAIM),
        ("UPDATE adk_stream_call SET state=?", [{"state": "approved"}], Point.LAPSE),
        ("UPDATE adk_stream_call SET decided_by=?", [{"decided_by": "me"}], Point.DECISION),
        ("UPDATE adk_stream_call SET delivered_in=?", [{"delivered_in": "r"}], Point.DELIVERY),
        ("UPDATE adk_stream_call SET delivered_in=?", [{"delivered_in": None}], None),
        ("UPDATE adk_stream_turn SET running=?", [{"running": False}], Point.RELEASE),
        ("UPDATE adk_stream_turn SET stopping=?", [{"stopping": True}], Point.STOP),
        ("INSERT INTO adk_stream_waiting (reply_id)", [{"reply_id": "r"}], Point.WAIT),
        ("UPDATE adk_stream_waiting SET stopping=?", [{"stopping": True}], Point.GIVING_UP),
        ("UPDATE adk_stream_waiting SET taken_in=?", [{"taken_in": "r"}], Point.TAKING),
        (
            "UPDATE adk_stream_waiting SET taken_in=?",
            [{"taken_in": "r", "policy_1": "steer"}],
            Point.STEERING,
        ),
        ("UPDATE adk_stream_waiting SET taken_in=?", [{"taken_in": None}], None),
        ("DELETE FROM adk_stream_waiting", [{}], Point.FORGETTING),
        ("UPDATE adk_stream_turn SET lease_until=1", [{}], None),
        ("SELECT * FROM events", [{}], None),
    ],
)
def test_a_statement_is_known_by_its_table_and_what_it_sets(
    statement: str, rows: list[dict[str, Any]], point: Point | None
) -> None:
    assert point_of(statement, rows) is point


def test_a_kill_that_never_came_is_a_failure() -> None:
    tally = Tally()
    clean = {"kills": [], "doubles": [], "stuck": [], "losses": [], "unknown": 0, "unasked": 0}
    tally.add(Case((Kill(Point.CLAIM, "after"),)), clean)
    assert [failure["never killed"] for failure in tally.failures] == [True]
    # How many batches a reply is written in depends on time.
    tally.add(Case((Kill(Point.FLUSH, "after", nth=3),)), clean)
    assert len(tally.failures) == 1
