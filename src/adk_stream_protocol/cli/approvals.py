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
from adk_stream_protocol.cli.explain import explained, step_text
from adk_stream_protocol.cli.text import json_text, table, visible
from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.server.routes import CLI_AGENT
from adk_stream_protocol.wire.values import JsonObject, JsonValue, as_object

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
    ("owner", "owner"),
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
    if options.action == "export":
        return _export(options, client)
    response = _ask(options, client)
    answer = _object(response)
    if response.status_code == 409 and "status" in answer:
        return _settled_before(options, answer)
    if response.status_code != 200 or not answer:
        return _refused(response, answer)
    if options.action == "explain":
        return _explain(options, client, answer)
    _show(options, answer)
    return 0


def _ask(options: ApprovalsOptions, client: httpx.Client) -> httpx.Response:
    match options.action:
        case "list":
            query = {} if options.status is None else {"status": options.status}
            return client.get("/api/approvals", params=query)
        case "approve" | "deny":
            return client.post(_path(options), json=_decision(options))
        case "resolve":
            return client.post(f"{_path(options)}/resolve", json=_resolution(options))
        case _:
            return client.get(_path(options))


def _path(options: ApprovalsOptions) -> str:
    return f"/api/approvals/{quote(options.approval_id or '', safe='')}"


def _object(response: httpx.Response) -> JsonObject:
    try:
        return as_object(response.json())
    except ValueError:
        return {}


def _decision(options: ApprovalsOptions) -> dict[str, JsonValue]:
    # The id makes a repeated request of this one command recognisable.
    body: dict[str, JsonValue] = {
        "approved": options.action == "approve",
        "decisionId": f"cli-{uuid.uuid4()}",
    }
    if options.reason is not None:
        body["reason"] = options.reason
    if options.remember:
        body["remember"] = True
    if options.shown_hash is not None:
        body["argumentsHash"] = options.shown_hash
    if options.edited is not None:
        body["input"] = _json("--input", options.edited)
    return body


def _resolution(options: ApprovalsOptions) -> dict[str, JsonValue]:
    body: dict[str, JsonValue] = {"outcome": options.outcome}
    if options.result is not None:
        body["result"] = _json("--result", options.result)
    if options.reason is not None:
        body["reason"] = options.reason
    return body


def _json(name: str, text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        raise BadRequest(
            f"{name} is not JSON. Write it as one word, such as {name} '{{\"amount\": 5}}'.",
            code="bad_json",
        ) from None
    return value


def _explain(options: ApprovalsOptions, client: httpx.Client, approval: JsonObject) -> int:
    response = client.get(f"{_path(options)}/trail")
    told = _object(response)
    if response.status_code != 200:
        return _refused(response, told)
    if options.as_json:
        print(json.dumps({"approval": approval, "trail": told.get("trail")}, indent=2))
    else:
        entries = told.get("trail")
        trail = map(as_object, entries if isinstance(entries, list) else [])
        print("\n".join(explained(approval, list(trail))))
    return 0


def _export(options: ApprovalsOptions, client: httpx.Client) -> int:
    query = {} if options.since is None else {"since": options.since}
    if options.with_arguments:
        query["arguments"] = "true"
    with client.stream("GET", "/api/audit", params=query) as response:
        if response.status_code != 200:
            response.read()
            return _refused(response, _object(response))
        for line in response.iter_lines():
            print(line)
    return 0


def _show(options: ApprovalsOptions, answer: Mapping[str, JsonValue]) -> None:
    if options.as_json:
        print(json.dumps(answer, indent=2))
        return
    match options.action:
        case "list":
            found = answer.get("approvals")
            _print_list(found if isinstance(found, list) else [], options.status)
        case "show" | "explain" | "export":
            _print_one(answer)
        case "approve" | "deny":
            what = "Approved" if options.action == "approve" else "Denied"
            tool = visible(str(answer.get("toolName")))
            arguments = answer.get("editedInput") or answer.get("input")
            print(f"{what}: {tool} {json_text(arguments)}. {_next(answer)}")
        case "resolve":
            tool = visible(str(answer.get("toolName")))
            print(f"Resolved: {tool} is {answer.get('status')} now.")


def _next(approval: JsonObject) -> str:
    """Return what follows a decision."""
    if approval.get("status") != "pending":
        return "The chat continues by itself."
    return f"It waits for {step_text(approval)} now."


def _print_list(found: Sequence[JsonValue], status: str | None) -> None:
    if not found:
        print(f"No {status} approvals." if status else "No approvals.")
        return
    now = datetime.datetime.now(datetime.UTC)
    rows = [["ID", "TOOL", "INPUT", "RISK", "STATUS", "EXPIRES"]]
    for approval in map(as_object, found):
        arguments = json_text(approval.get("editedInput") or approval.get("input"))
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
    if approval.get("step"):
        print(f"step     {step_text(approval)}")
    print("input")
    for name, value in as_object(approval.get("input")).items():
        print(f"  {visible(name)} = {json_text(value)}")
    if approval.get("editedInput"):
        print(f"run with {json_text(approval['editedInput'])}")
    if approval.get("editedInput") and approval.get("status") == "pending":
        print(f"hash     {visible(str(approval.get('editedArgumentsHash')))}")


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
    if options.action == "approve" and approval.get("status") == "pending":
        _complain(_look_again(approval))
        return 1
    by = approval.get("decidedBy")
    reason = approval.get("reason")
    _complain(
        f"{'Too late' if options.action != 'resolve' else 'Not unknown'}: "
        f"{visible(str(approval.get('toolName')))} is {approval.get('status')} already"
        + (f", decided by {visible(str(by))}" if by else "")
        + (f" ({visible(str(reason))})" if reason else "")
        + ". Nothing was changed."
    )
    return 1


def _look_again(approval: Mapping[str, JsonValue]) -> str:
    """Return what to do about arguments that are not those that were approved."""
    tool = visible(str(approval.get("toolName")))
    if "editedInput" not in approval:
        return f"Not approved: {tool} would run with other arguments. Nothing was changed."
    return (
        f"Not approved: {visible(str(approval.get('editedBy')))} changed the arguments of {tool} "
        f"to {json_text(approval['editedInput'])}. If they are right, approve them with "
        f"--arguments-hash {visible(str(approval.get('editedArgumentsHash')))}."
    )


def _refused(response: httpx.Response, answer: Mapping[str, JsonValue]) -> int:
    told = as_object(answer.get("error"))
    message = visible(str(told.get("message", "this is not an adk-stream server")))
    hint = " List what there is with `adk-stream approvals list`." * (response.status_code == 404)
    _complain(f"The server answered {response.status_code}: {message}{hint}")
    return 1


def _complain(message: str) -> None:
    print(f"adk-stream: {message}", file=sys.stderr)
