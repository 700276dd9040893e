"""What `/openapi.json` says is what the routes do: every status, every type, every body.

Routes that are added later are held to it, too: nothing here names the operations but where one
needs a request of its own.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator
from typing import Any, get_args

import anyio
import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents.llm_agent import LlmAgent
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.genai import types
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types
from starlette.requests import HTTPConnection

from adk_stream_protocol import Services, Settings, create_app, create_router
from adk_stream_protocol.errors import StoreLost
from adk_stream_protocol.playback import Playlist
from adk_stream_protocol.server.openapi import CHUNK_SCHEMA_PATH
from adk_stream_protocol.server.replay import create_replay
from adk_stream_protocol.wire.chunk_schema import SCHEMA_ID, chunk_schema
from adk_stream_protocol.wire.data_parts import ApprovalStatus
from support.openapi import Contract, Operation
from support.stage import Answered, Stage, staged, user_by_header, user_message

pytestmark = pytest.mark.anyio

PUBLIC = {"getHealth", "getReadiness", "getMetrics", "getChunkSchema"}
"""What is served without asking who calls."""

NOT_ERRORS = {
    ("decideApproval", 409): "ApprovalShape",
    ("resolveApproval", 409): "ApprovalShape",
    ("getReadiness", 503): "ReadinessShape",
}
"""Refusals that tell the real state, and not just that something was wrong."""

SMALL = dataclasses.replace(
    Settings(),
    allowed_hosts=("127.0.0.1",),
    body_bytes=2_000,
    body_with_files_bytes=4_000,
    max_turns=1,
    tool_seconds=0.2,
)
"""Limits that a test can reach."""

MINE = "mine"
"""A chat of alice's."""


def app(settings: Settings | None = None) -> FastAPI:
    return create_app(LlmAgent(name="agent"), settings=settings or Settings())


@functools.cache
def document() -> dict[str, Any]:
    return app().openapi()


def operations() -> list[Operation]:
    return list(Contract(document()).operations())


every_operation = pytest.mark.parametrize("operation", operations(), ids=lambda each: each.id)


# What is described


@every_operation
def test_every_error_of_every_operation_has_the_schema_of_errors(operation: Operation) -> None:
    responses = operation.described["responses"]
    assert "default" in responses
    assert "422" not in responses
    for status, described in responses.items():
        if status == "default" or int(status) >= 400:
            key = (operation.id, 0 if status == "default" else int(status))
            name = NOT_ERRORS.get(key, "ErrorShape")
            schema = described["content"]["application/json"]["schema"]
            assert schema == {"$ref": f"#/components/schemas/{name}"}, status


@every_operation
def test_every_operation_that_asks_who_calls_can_refuse_and_fail(operation: Operation) -> None:
    if operation.id not in PUBLIC:
        assert {403, 500, 503} <= operation.statuses


@every_operation
def test_errors_of_chat_routes_can_also_be_a_sentence(operation: Operation) -> None:
    of_chats = operation.described["tags"][0].startswith("chat (")
    for described in operation.described["responses"].values():
        kinds = described.get("content", {})
        if kinds.get("application/json") == {"schema": {"$ref": "#/components/schemas/ErrorShape"}}:
            # JSON first: some generators take just one.
            assert list(kinds) == ["application/json", *(["text/plain"] if of_chats else [])]
            assert {"x-adk-stream-error", "x-adk-stream-error-id"} <= set(described["headers"])


@every_operation
def test_every_event_stream_names_the_schema_of_its_chunks(operation: Operation) -> None:
    for described in operation.described["responses"].values():
        stream = described.get("content", {}).get("text/event-stream")
        if stream is not None:
            data = stream["itemSchema"]["properties"]["data"]
            assert data["contentMediaType"] == "application/json"
            for text in (stream["schema"]["description"], data["contentSchema"]["$comment"]):
                assert SCHEMA_ID in text
                assert CHUNK_SCHEMA_PATH in text


@every_operation
def test_every_operation_is_named_by_hand_and_summed_up(operation: Operation) -> None:
    assert operation.described["summary"]
    assert operation.described["tags"]
    # FastAPI's own ids are made of the path, with underscores.
    assert operation.id.isalpha()


@every_operation
def test_choices_of_parameters_are_enums(operation: Operation) -> None:
    choices = {"sdk": ["6", "7"], "status": list(get_args(ApprovalStatus))}
    for parameter in operation.parameters("query"):
        if parameter["name"] in choices:
            assert parameter["schema"]["enum"] == choices[parameter["name"]]
        assert {"type": "null"} not in parameter["schema"].get("anyOf", ())


def test_operation_ids_are_unique_also_with_two_agents_in_one_app() -> None:
    own = [operation.id for operation in operations()]
    assert len(own) == len(set(own))
    both = FastAPI()
    both.include_router(create_router(LlmAgent(name="one")), prefix="/support")
    both.include_router(create_router(LlmAgent(name="two")), prefix="/our-sales/v2")
    found = [operation.id for operation in Contract(both.openapi()).operations()]
    assert set(found) == {
        f"{prefix}{each[0].upper()}{each[1:]}"
        for prefix in ("support", "ourSalesV2")
        for each in own
    }
    assert len(found) == 2 * len(own)


def test_a_replay_names_its_operations_as_the_server_does() -> None:
    recorded = create_replay(Playlist({}, []), settings=Settings()).openapi()
    own = {(each.id, each.method, each.path) for each in operations()}
    replayed = {(each.id, each.method, each.path) for each in Contract(recorded).operations()}
    assert replayed
    assert replayed < own


def test_an_approval_of_the_api_has_all_that_its_card_has() -> None:
    schemas = document()["components"]["schemas"]
    defined: Any = chunk_schema()["$defs"]
    for shape, data, own in (
        ("StepShape", "ApprovalStepData", set()),
        ("ResolutionShape", "ResolutionData", set()),
        (
            "ApprovalShape",
            "ApprovalData",
            {"id", "chatId", "owner", "input", "argumentsHash", "inputSchema"},
        ),
    ):
        assert set(schemas[shape]["properties"]) == set(defined[data]["properties"]) | own
        assert set(schemas[shape]["required"]) == set(defined[data]["required"]) | (
            own - {"inputSchema"}
        )


# What a client may send


def body_schema(operation_id: str) -> Draft202012Validator:
    (found,) = [each for each in operations() if each.id == operation_id]
    content = found.described["requestBody"]["content"]
    return Draft202012Validator(content["application/json"]["schema"])


MESSAGE = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
BODIES: list[dict[str, Any]] = [
    {"id": "c", "messages": [MESSAGE]},
    {"id": "c", "messages": [MESSAGE], "trigger": "submit-message", "messageId": "u1"},
    {"id": "c", "messages": [MESSAGE], "surprise": {"of": ["the page"]}},
    {"messages": [{"role": "user", "content": "hi"}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
    {"messages": [{**MESSAGE, "metadata": {"at": 1}, "createdAt": "2026-11-01"}]},
    {"id": "c", "message": MESSAGE},
    {"id": "c", "message": MESSAGE, "parentId": None, "busy": "queue"},
    {"id": "c", "trigger": "regenerate-message", "messageId": "m1"},
    {"prompt": "hi"},
]


@pytest.mark.parametrize("body", BODIES, ids=str)
@pytest.mark.parametrize("operation_id", ["sendMessage", "sendMessageAdk"])
def test_the_described_body_takes_what_clients_send(
    operation_id: str, body: dict[str, Any]
) -> None:
    assert list(body_schema(operation_id).iter_errors(body)) == []


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"messages": []},
        {"messages": [{"parts": []}]},
        {"messages": [{"role": "robot", "parts": []}]},
        {"messages": [{"role": "user", "parts": [{"text": "hi"}]}]},
        {"messages": [MESSAGE], "trigger": "shout"},
        {"messages": [MESSAGE], "busy": "later"},
        {"messages": [MESSAGE], "id": ""},
        {"messages": [MESSAGE], "parentId": 1},
        {"prompt": ["hi"]},
    ],
    ids=str,
)
def test_the_described_body_refuses_what_makes_no_sense(body: object) -> None:
    assert list(body_schema("sendMessage").iter_errors(body))


# What is answered


def identify(request: HTTPConnection) -> str | None:
    """Name the user by a header; fail for two of the names."""
    match request.headers.get("x-user"):
        case "breaks":
            raise RuntimeError("SECRET directory")
        case "loses":
            raise StoreLost
        case _:
            return user_by_header(request)


def ids_in(operation: Operation, value: str) -> str:
    return operation.path.format(
        **{parameter["name"]: value for parameter in operation.parameters("path")}
    )


def odd_requests(operation: Operation) -> Iterator[dict[str, Any]]:
    """Yield requests that anybody could make of an operation, most of them wrong."""
    plain = {"method": operation.method, "url": ids_in(operation, "nobody")}
    yield plain
    for headers in (
        {"origin": "https://elsewhere.example"},
        {"host": "elsewhere.example"},
        {"x-user": ""},
        {"x-user": "breaks"},
        {"x-user": "loses"},
    ):
        yield {**plain, "headers": headers}
    for value in ("x" * 200, "%00", MINE):
        yield {**plain, "url": ids_in(operation, value), "headers": {"x-user": "bob"}}
    for parameter in operation.parameters("query"):
        yield {**plain, "params": {parameter["name"]: "nonsense"}}
    if "requestBody" in operation.described:
        yield {**plain, "content": "{}"}
        for content in ("{", "[]", "{}", '{"messages": 1}', f'"{"x" * 5_000}"'):
            yield {**plain, "content": content, "headers": {"content-type": "application/json"}}


async def talk(stage: Stage, contract: Contract) -> None:
    """Use every operation as it is meant, and as it is not."""

    async def ask(method: str, url: str, **options: Any) -> httpx.Response:
        return contract.check(await stage.http.request(method, url, **options))

    async def say(path: str, chat: str, text: str, message_id: str | None = None) -> Answered:
        body = {"id": chat, "messages": [user_message(text, message_id)]}
        return Answered.of(await ask("POST", path, json=body))

    empty = await ask("GET", "/api/audit", headers={"accept": "application/json"})
    assert empty.json() == {"trail": []}
    for path, chat in (("/api/chat", MINE), ("/stream", "other")):
        await ask("GET", f"{path}/{chat}/stream")
        await say(path, chat, "hi", f"first of {chat}")
        await say(path, chat, "hello")
        # An id that was used before.
        await say(path, chat, "hello", f"first of {chat}")
        bobs = {"id": chat, "messages": [user_message("hi")]}
        await ask("POST", path, json=bobs, headers={"x-user": "bob"})
        await ask("GET", f"{path}/{chat}/stream?sdk=7")
        await ask("POST", f"{path}/{chat}/stop")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(say, path, "busy", "long")
            with anyio.fail_after(60):
                while not (await stage.http.get("/api/chats/busy")).is_success:
                    await anyio.lowlevel.checkpoint()
            assert (await say(path, "another", "hi")).status == 429
            stage.more.set()
        await stage.http.delete("/api/chats/busy")
        stage.more = anyio.Event()

    held = await say("/api/chat", MINE, "pay 5")
    approval = f"/api/approvals/{held.approvals[0]}"
    await ask("GET", "/api/approvals?status=pending")
    await ask("GET", approval)
    await ask("POST", "/api/approvals/nobody", json={"approved": True})
    await ask("POST", "/api/approvals/nobody/resolve", json={"outcome": "done"})
    await ask("POST", f"{approval}/resolve", json={"outcome": "done"})
    await ask("POST", approval, json={"approved": True, "reason": "Fine.", "decisionId": "d1"})
    await ask("POST", approval, json={"approved": False})
    await ask("GET", f"{approval}/trail")
    await ask("GET", "/api/audit?arguments=true")
    whole = await ask("GET", "/api/audit", headers={"accept": "text/html, application/json;q=0.9"})
    lines = await ask("GET", "/api/audit", headers={"accept": "*/*"})
    assert whole.json() == {"trail": [json.loads(line) for line in lines.text.splitlines()]}
    slow = await say("/api/chat", MINE, "pay slowly")
    lost = f"/api/approvals/{slow.approvals[0]}"
    await ask("POST", lost, json={"approved": True})
    with anyio.fail_after(60):
        while (await ask("GET", lost)).json()["status"] != "unknown":
            await anyio.lowlevel.checkpoint()
    await ask("POST", f"{lost}/resolve", json={"outcome": "failed", "reason": "Nothing was paid."})
    first = (await ask("GET", "/api/chats?limit=1")).json()
    await ask("GET", f"/api/chats?cursor={first['nextCursor']}&archived=all")
    await ask("PATCH", f"/api/chats/{MINE}", json={"title": "Mine", "archived": True})
    await ask("PATCH", "/api/chats/nobody", json={"title": "Mine"})
    for profile in ("ai-sdk", "adk"):
        await ask("GET", f"/api/chats/{MINE}?profile={profile}&sdk=7")
    await ask("GET", f"/api/chats/{MINE}/artifacts/note.md?version=0")
    assert (await ask("GET", CHUNK_SCHEMA_PATH)).json() == chunk_schema()
    for path in ("/healthz", "/readyz", "/metrics"):
        await ask("GET", path)
    await ask("DELETE", "/api/chats/other")


async def read_text(stage: Stage, contract: Contract) -> None:
    """Read replies as text alone, also what text cannot show."""

    async def ask(method: str, url: str, **options: Any) -> httpx.Response:
        return contract.check(await stage.http.request(method, url, **options))

    for path, chat in (("/api/chat", "text"), ("/stream", "text of adk")):
        await ask("POST", f"{path}?stream=text", json={"id": chat, "prompt": "hi"})
        await ask("GET", f"{path}/{chat}/stream?stream=text")
        held = await ask("POST", f"{path}?stream=text", json={"id": chat, "prompt": "pay"})
        again = await ask("GET", f"{path}/{chat}/stream?stream=text")
        assert (held.status_code, again.status_code) == (409, 409)


async def down(contract: Contract) -> None:
    """Ask a server whose lifespan never ran, and that shows no metrics."""
    settings = dataclasses.replace(Settings(), metrics=False)
    transport = httpx.ASGITransport(app(settings))
    async with httpx.AsyncClient(transport=transport, base_url="http://down.example") as http:
        for path in ("/readyz", "/metrics", "/healthz"):
            contract.check(await http.get(path))


@pytest.fixture
async def artifacts() -> InMemoryArtifactService:
    saved = InMemoryArtifactService()
    note = types.Part(inline_data=types.Blob(data=b"# Note", mime_type="text/markdown"))
    await saved.save_artifact(
        app_name="stage", user_id="alice", session_id=MINE, filename="note.md", artifact=note
    )
    return saved


async def test_every_answer_is_described_and_every_description_happens(
    artifacts: InMemoryArtifactService,
) -> None:
    services = Services(artifacts=artifacts)
    async with staged(settings=SMALL, services=services, identify=identify) as stage:
        contract = Contract((await stage.http.get("/openapi.json")).json())
        await talk(stage, contract)
        await read_text(stage, contract)
        for operation in contract.operations():
            for request in odd_requests(operation):
                contract.check(await stage.http.request(**request))
    await down(contract)
    described = {operation.id: operation.statuses for operation in contract.operations()}
    assert dict(contract.seen) == described
