from __future__ import annotations

import inspect

import pytest
from sqlalchemy.exc import DBAPIError

from adk_stream_protocol import errors
from adk_stream_protocol.errors import (
    AdkStreamError,
    BadFrame,
    BadRequest,
    ChatBusy,
    ClientFault,
    Conflict,
    Draining,
    Forbidden,
    NotFound,
    NotRunning,
    NotYours,
    ReplyFailed,
    ServerFault,
    StoreLost,
    TooLarge,
    TooMany,
    UnsupportedMedia,
    telling_loss,
    trace_of,
)

CLIENT_FAULTS: list[tuple[type[ClientFault], int, str]] = [
    (BadRequest, 400, "bad_request"),
    (BadFrame, 400, "bad_frame"),
    (Forbidden, 403, "forbidden"),
    (NotYours, 403, "not_yours"),
    (NotFound, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (ChatBusy, 409, "chat_busy"),
    (TooLarge, 413, "too_large"),
    (UnsupportedMedia, 415, "unsupported_media"),
    (TooMany, 429, "too_many"),
]
SERVER_FAULTS: list[tuple[type[ServerFault], int, str]] = [
    (NotRunning, 503, "not_running"),
    (Draining, 503, "draining"),
    (StoreLost, 503, "store_lost"),
    (ReplyFailed, 500, "reply_failed"),
]


@pytest.mark.parametrize(("kind", "status", "code"), CLIENT_FAULTS)
def test_client_fault_shows_its_message_status_and_code(
    kind: type[ClientFault], status: int, code: str
) -> None:
    fault = kind("Send less.")
    assert (fault.status, fault.code, fault.public_message) == (status, code, "Send less.")
    assert str(fault) == "Send less."


@pytest.mark.parametrize(("kind", "status", "code"), SERVER_FAULTS)
def test_server_fault_keeps_its_message_from_the_client(
    kind: type[ServerFault], status: int, code: str
) -> None:
    fault = kind("The key sk-1 was refused.", public_message="The model failed.")
    assert (fault.status, fault.code, fault.public_message) == (status, code, "The model failed.")
    assert str(fault) == fault.message == "The key sk-1 was refused."


def test_code_can_say_more_than_the_kind() -> None:
    assert BadRequest("No.", code="bad_trigger").code == "bad_trigger"
    assert NotRunning("x", public_message="y", code="quota").code == "quota"


def test_a_draining_server_says_when_to_come_back() -> None:
    assert Draining().retry_after == 5
    assert Draining().public_message
    assert NotRunning("x", public_message="y").retry_after is None


class Refused(Exception):
    """As PostgreSQL's driver tells it, in the way SQLAlchemy passes it on."""

    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def passed_on(sqlstate: str, *, invalidated: bool = False) -> DBAPIError:
    return DBAPIError("SELECT 1", {}, Refused(sqlstate), connection_invalidated=invalidated)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(),
        TimeoutError(),
        passed_on("57P03"),
        passed_on("08006"),
        passed_on("53300"),
        passed_on("", invalidated=True),
    ],
)
def test_a_database_that_is_away_is_told_as_such(error: Exception) -> None:
    with pytest.raises(StoreLost) as caught, telling_loss():
        raise error
    assert caught.value.__cause__ is error
    assert caught.value.retry_after == 5


@pytest.mark.parametrize("error", [ValueError(), passed_on("23505"), passed_on("22001")])
def test_another_fault_of_a_statement_stays_what_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, telling_loss():
        raise error
    assert caught.value is error


def test_busy_chat_is_caught_as_a_conflict() -> None:
    with pytest.raises(Conflict):
        raise ChatBusy("A turn is running.")


def test_every_error_is_public_and_named_in_the_tree_at_the_top() -> None:
    kinds = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, AdkStreamError)
    }
    assert kinds <= set(errors.__all__)
    assert kinds <= set((errors.__doc__ or "").split())


def test_every_kind_of_error_is_in_the_tables_above() -> None:
    families = {AdkStreamError, ClientFault, ServerFault}
    tabled = {kind for kind, *_ in [*CLIENT_FAULTS, *SERVER_FAULTS]}
    kinds = {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, AdkStreamError)
    }
    assert kinds == families | tabled


def test_trace_for_a_log_names_type_and_place_but_not_the_message() -> None:
    argument = "-".join(["card", "4242"])
    with pytest.raises(ValueError, match="card-4242") as caught:
        int(argument)
    trace = trace_of(caught.value)
    assert trace.startswith("ValueError\n")
    assert "test_errors.py" in trace
    assert "card-4242" not in trace


def test_trace_for_a_log_tells_the_cause_too() -> None:
    with pytest.raises(StoreLost) as caught, telling_loss():
        raise ConnectionRefusedError("sk-1")
    trace = trace_of(caught.value)
    assert trace.startswith("StoreLost\n")
    assert "\nbecause of ConnectionRefusedError\n" in trace
    assert "sk-1" not in trace
