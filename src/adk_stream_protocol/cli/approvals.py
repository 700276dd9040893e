"""`adk-stream approvals`: decides what a running server asks, over its HTTP API."""

from __future__ import annotations

import datetime
import json
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlsplit

import httpx

from adk_stream_protocol.cli.arguments import ApprovalsOptions
from adk_stream_protocol.cli.text import json_text, table, visible
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.routes import CLI_AGENT
from adk_stream_protocol.wire.values import JsonValue, as_object

__all__ = ["approvals"]

_SECONDS: Final = 30.0
_LONGEST_INPUT: Final = 60
_FIELDS: Final = (
    ("id", "id"),
    ("chat", "chatId"),
    ("tool", "toolName"),
    ("title", "title"),
    ("hint", "hint"),
    ("risk", "risk"),
    ("status", "status"),
    ("created", "createdAt"),
    ("expires", "expiresAt"),
    ("decided", "decidedAt"),
    ("by", "decidedBy"),
    ("reason", "reason"),
)


def approvals(options: ApprovalsOptions) -> int:
    """Do it and return the exit code; 1 if the server cannot be reached or says no.

    Raises:
        BadRequest: the server's address is none.
    """
    host = _host(options.server)
    try:
        with httpx.Client(
            base_url=options.server,
            headers=[("user-agent", CLI_AGENT), *options.headers],
            timeout=_SECONDS,
            # A proxy does not reach this machine.
            trust_env=host not in {"localhost", "127.0.0.1", "::1"},
        ) as client:
            return _do(options, client)
    except httpx.HTTPError as error:
        said = str(error) or type(error).__name__
        _complain(
            f"No server answers at {options.server} ({said}). Start one with `adk-stream serve`, "
            "or name another with --server."
        )
        return 1


def _host(server: str) -> str:
    try:
        address = urlsplit(server)
        _ = address.port
    except ValueError:
        address = urlsplit("")
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise BadRequest(
            f"{server!r} is no server. Write --server http://HOST:PORT.", code="bad_server"
        )
    return address.hostname


def _do(options: ApprovalsOptions, client: httpx.Client) -> int:
    if options.approval_id is None:
        query = {} if options.status is None else {"status": options.status}
        response = client.get("/api/approvals", params=query)
    else:
        path = f"/api/approvals/{quote(options.approval_id, safe='')}"
        response = client.get(path) if options.action == "show" else _decide(options, client, path)
    try:
        answer = as_object(response.json())
    except ValueError:
        answer = {}
    if response.status_code == 409 and "status" in answer:
        return _settled_before(options, answer)
    if response.status_code != 200 or not answer:
        return _refused(response, answer)
    _show(options, answer)
    return 0


def _decide(options: ApprovalsOptions, client: httpx.Client, path: str) -> httpx.Response:
    # The id makes a repeated request of this one command recognisable.
    body: dict[str, JsonValue] = {
        "approved": options.action == "approve",
        "decisionId": f"cli-{uuid.uuid4()}",
    }
    if options.reason is not None:
        body["reason"] = options.reason
    return client.post(path, json=body)


def _show(options: ApprovalsOptions, answer: Mapping[str, JsonValue]) -> None:
    if options.as_json:
        print(json.dumps(answer, indent=2))
        return
    match options.action:
        case "list":
            found = answer.get("approvals")
            _print_list(found if isinstance(found, list) else [], options.status)
        case "show":
            _print_one(answer)
        case "approve" | "deny":
            what = "Approved" if options.action == "approve" else "Denied"
            tool = visible(str(answer.get("toolName")))
            print(f"{what}: {tool} {json_text(answer.get('input'))}. The chat continues by itself.")


def _print_list(found: Sequence[JsonValue], status: str | None) -> None:
    if not found:
        print(f"No {status} approvals." if status else "No approvals.")
        return
    now = datetime.datetime.now(datetime.UTC)
    rows = [["ID", "TOOL", "INPUT", "RISK", "STATUS", "EXPIRES"]]
    for approval in map(as_object, found):
        arguments = json_text(approval.get("input"))
        if len(arguments) > _LONGEST_INPUT:
            arguments = f"{arguments[: _LONGEST_INPUT - 1]}…"
        pending = approval.get("status") == "pending"
        rows.append(
            [
                visible(str(approval.get("id"))),
                visible(str(approval.get("toolName"))),
                arguments,
                visible(str(approval.get("risk") or "-")),
                visible(str(approval.get("status"))),
                _until(str(approval.get("expiresAt")), now) if pending else "-",
            ]
        )
    print("\n".join(table(rows)))


def _print_one(approval: Mapping[str, JsonValue]) -> None:
    for label, name in _FIELDS:
        if approval.get(name):
            print(f"{label:<8} {visible(str(approval[name]))}")
    print("input")
    for name, value in as_object(approval.get("input")).items():
        print(f"  {visible(name)} = {json_text(value)}")


def _until(moment: str, now: datetime.datetime) -> str:
    try:
        left = (datetime.datetime.fromisoformat(moment) - now).total_seconds()
    except (ValueError, TypeError):
        return visible(moment)
    if left <= 0:
        return "now"
    return f"in {left:.0f} s" if left < 90 else f"in {left / 60:.0f} min"


def _settled_before(options: ApprovalsOptions, approval: Mapping[str, JsonValue]) -> int:
    if options.as_json:
        print(json.dumps(approval, indent=2))
    by = approval.get("decidedBy")
    reason = approval.get("reason")
    _complain(
        f"Too late: {visible(str(approval.get('toolName')))} is {approval.get('status')} already"
        + (f", decided by {visible(str(by))}" if by else "")
        + (f" ({visible(str(reason))})" if reason else "")
        + ". Nothing was changed."
    )
    return 1


def _refused(response: httpx.Response, answer: Mapping[str, JsonValue]) -> int:
    told = as_object(answer.get("error"))
    message = visible(str(told.get("message", "this is not an adk-stream server")))
    hint = " List what there is with `adk-stream approvals list`." * (response.status_code == 404)
    _complain(f"The server answered {response.status_code}: {message}{hint}")
    return 1


def _complain(message: str) -> None:
    print(f"adk-stream: {message}", file=sys.stderr)
