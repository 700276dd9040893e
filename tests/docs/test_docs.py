"""The documentation is true: its code runs, its references are complete, its links lead somewhere.

The Python blocks of a page run from top to bottom in one namespace. Whenever a block makes a new
`app`, it is served and talked to over HTTP, with a model that calls every tool it is offered.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import json
import logging
import re
import shlex
import shutil
import subprocess
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from fastapi import FastAPI
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.models.registry import LLMRegistry
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types

import adk_stream_protocol
from adk_stream_protocol import Settings, create_app, errors
from adk_stream_protocol.cli.arguments import ServeOptions, parse_arguments
from adk_stream_protocol.stores.opening import parse_database
from adk_stream_protocol.stores.sql_schema import CALLS, VERSION
from adk_stream_protocol.wire.chunks import Chunk, DataChunk, fit
from adk_stream_protocol.wire.data_parts import DataPart
from support.serving import serving
from support.stage import Answered, user_message

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES.append(ROOT / "deploy/README.md")
PAGES += sorted((ROOT / "examples").glob("*/README.md"))


# Pages


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    code: str
    line: int
    """Where its code begins, counted from 1."""


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks_of(page: Path, *languages: str) -> list[Block]:
    """Return the page's blocks of some languages; fails if a fence is not closed."""
    found: list[Block] = []
    opened: Block | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        if not line.startswith("```"):
            lines.append(line)
        elif opened is None:
            opened, lines = Block(line.removeprefix("```").strip(), "", number + 1), []
            assert opened.language, f"{name_of(page)}:{number}: a fence names its language"
        else:
            assert line == "```", f"{name_of(page)}:{number}: a fence inside a fence"
            found.append(dataclasses.replace(opened, code="\n".join([*lines, ""])))
            opened = None
    assert opened is None, f"{name_of(page)}: the fence before line {opened.line} is not closed"
    return [block for block in found if block.language in languages]


def prose_of(page: Path) -> str:
    """Return the page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def with_blocks(*languages: str) -> list[Any]:
    """Return the pages that have blocks of some languages, as parameters."""
    pages = [page for page in PAGES if blocks_of(page, *languages)]
    return [pytest.param(page, id=name_of(page)) for page in pages]


def all_pages() -> list[Any]:
    return [pytest.param(page, id=name_of(page)) for page in PAGES]


def section(name: str, heading: str) -> str:
    """Return the text under a heading of the second level."""
    pattern = rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)"
    found = re.search(pattern, text_of(name), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{name} has no section {heading!r}"
    return found[1]


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of all table rows, heads and rules left out."""
    rows = [line.strip().strip("|") for line in text.splitlines() if line.startswith("| `")]
    rows += [line.strip().strip("|") for line in text.splitlines() if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


# The source, as a parser sees it


def parsed() -> dict[str, ast.Module]:
    """Return all modules by name."""
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): (
            ast.parse(path.read_text("utf-8"))
        )
        for path in sorted(SOURCE.rglob("*.py"))
    }


def imported_by(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that the public names or the command lead to; others serve nobody yet."""
    trees = parsed()
    waiting = ["adk_stream_protocol", *(name for name in trees if ".cli" in name)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in trees and name not in seen:
            seen.add(name)
            waiting += imported_by(trees[name])
            yield name, trees[name]


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def constant(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


# Python blocks


SAID = "Pay 50 dollars to Hanako."
ARGUMENTS: Mapping[str, dict[str, object]] = {
    "process_payment": {"amount": 50, "recipient": "Hanako"},
    "book_days_off": {"days": 3},
    "change_bgm": {"track": "jazz"},
    "get_location": {},
}
OUTPUTS: Mapping[str, object] = {
    "change_bgm": {"playing": "jazz"},
    "get_location": {"latitude": 35.6, "longitude": 139.7},
}
"""What the browser answers for the tools it runs."""

HEADERS: Mapping[str, dict[str, str]] = {
    "docs/howto/deploy.md": {"x-authenticated-user": "hanako"},
    "docs/howto/existing-fastapi-app.md": {"cookie": "session=3f9c"},
    "docs/reference/api.md": {"x-authenticated-user": "hanako"},
}
"""What a page's `identify` wants to see."""


class CallsEveryTool(BaseLlm):
    """Calls each tool it is offered once, in one step, and then says that it is done."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or []]
        if any(part.function_call for part in parts):
            said = [types.Part(text="Done.")]
        else:
            said = [
                types.Part(function_call=types.FunctionCall(name=name, args=ARGUMENTS[name]))
                for name in llm_request.tools_dict
            ]
        yield LlmResponse(content=types.Content(role="model", parts=said), partial=False)


@dataclass(frozen=True)
class Talk:
    """What an app of a page answered: first, and once everything held was let through."""

    asked: Answered
    answered: Answered


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Give every model name to the model of this file; undo what pages do to loggers and files."""
    named = ("", "adk_stream_protocol", "google_adk", "google_genai")
    levels = {name: logging.getLogger(name).level for name in named}
    handlers = list(logging.getLogger().handlers)
    monkeypatch.setattr(
        LLMRegistry, "new_llm", staticmethod(lambda model: CallsEveryTool(model=model))
    )
    monkeypatch.chdir(tmp_path)
    yield
    logging.getLogger().handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


async def run(page: Path) -> list[Talk]:
    """Run the page's Python, talk to each app it makes, and return what was said."""
    namespace: dict[str, Any] = {"__name__": "page", "__builtins__": builtins}
    talks: list[Talk] = []
    app: FastAPI | None = None
    for block in blocks_of(page, "python"):
        source = "\n" * (block.line - 1) + block.code
        code = compile(source, name_of(page), "exec", dont_inherit=True)
        exec(code, namespace)  # noqa: S102  # what the page says, as it says it
        if namespace.get("app") not in {None, app}:
            app = namespace["app"]
            assert isinstance(app, FastAPI)
            talks.append(await talk_to(app, HEADERS.get(name_of(page), {})))
    for value in namespace.values():
        if isinstance(value, DatabaseSessionService):
            await value.close()
    return talks


async def talk_to(app: FastAPI, headers: Mapping[str, str]) -> Talk:
    path = next(path for path in app.openapi()["paths"] if path.endswith("/api/chat"))
    async with (
        serving(app) as url,
        httpx.AsyncClient(base_url=url, headers=dict(headers), timeout=20) as http,
    ):
        body: dict[str, Any] = {"id": "chat", "messages": [user_message(SAID)]}
        asked = Answered.of(await http.post(path, json=body))
        assert asked.status == 200, asked.raw
        parts = [answer_to(call, asked) for call in asked.only("tool-input-start")]
        message = {"id": asked.message_id, "role": "assistant", "parts": parts}
        answered = await http.post(path, json={"id": "chat", "messages": [message]})
        return Talk(asked, Answered.of(answered))


def answer_to(call: Mapping[str, Any], asked: Answered) -> dict[str, Any]:
    """Return the part with which a stock client lets a call through."""
    name, call_id = call["toolName"], call["toolCallId"]
    part = {"type": f"tool-{name}", "toolCallId": call_id, "state": "approval-responded"}
    for request in asked.only("tool-approval-request"):
        if request["toolCallId"] == call_id:
            part["approval"] = {"id": request["approvalId"], "approved": True}
    if name in OUTPUTS:
        part |= {"state": "output-available", "output": OUTPUTS[name]}
    return part


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("page", with_blocks("python"))
async def test_the_python_of_a_page_runs_and_its_apps_pay_once_approved(page: Path) -> None:
    makes_apps = "app = " in "".join(block.code for block in blocks_of(page, "python"))
    talks = await run(page)
    assert bool(talks) == makes_apps
    for talk in talks:
        assert talk.asked.chunks[-1]["finishReason"] == "tool-calls"
        assert talk.answered.status == 200, talk.answered.raw
        assert talk.answered.types[-1] == "finish"
        assert talk.answered.chunks[-1]["finishReason"] == "stop"
        assert talk.answered.text
        assert not talk.answered.only("tool-output-error")


@pytest.mark.usefixtures("offline")
async def test_the_pages_about_approvals_show_what_their_rules_say() -> None:
    (talk,) = await run(ROOT / "docs/howto/approvals.md")
    cards = {card["data"]["toolName"]: card["data"] for card in talk.asked.only("data-approval")}
    assert cards["process_payment"]["title"] == "Payment"
    assert cards["process_payment"]["ui"] == {"icon": "cash"}
    assert cards["book_days_off"]["payload"] == {"days": 3}
    for browser in await run(ROOT / "docs/howto/browser-tools.md"):
        (card,) = browser.asked.only("data-approval")
        assert card["data"]["title"] == "Your location"
        assert not browser.answered.only("tool-output-available")


@pytest.mark.usefixtures("offline")
async def test_the_readme_serves_the_second_app_under_its_prefix() -> None:
    first, second = await run(ROOT / "README.md")
    for talk in (first, second):
        (told,) = talk.answered.only("tool-output-available")
        assert told["output"] == {"status": "paid", "amount": 50, "recipient": "Hanako"}


# Other blocks


def checked(*command: str) -> str:
    """Return what a command complains about; empty if it does not."""
    program = shutil.which(command[0])
    assert program is not None, f"{command[0]} is needed"
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)  # noqa: S603  # our own files
    return done.stderr if done.returncode else ""


@pytest.mark.parametrize("page", with_blocks("js"))
def test_the_javascript_of_a_page_parses(page: Path, tmp_path: Path) -> None:
    for block in blocks_of(page, "js"):
        file = tmp_path / f"block-{block.line}.mjs"
        file.write_text(block.code, "utf-8")
        assert checked("node", "--check", str(file)) == ""


@pytest.mark.parametrize("page", with_blocks("json"))
def test_the_json_of_a_page_parses(page: Path) -> None:
    for block in blocks_of(page, "json"):
        json.loads(block.code)


@pytest.mark.parametrize("page", with_blocks("bash"))
def test_the_commands_of_a_page_exist(page: Path, tmp_path: Path) -> None:
    routes = [re.sub(r"\{\w+\}", "[^/]+", path) for _, path in real_routes()]
    for block in blocks_of(page, "bash"):
        file = tmp_path / "block.sh"
        file.write_text(block.code, "utf-8")
        assert checked("bash", "-n", str(file)) == ""
        for command in re.findall(r"^(?:\S*/)?adk-stream (.*)$", block.code, re.MULTILINE):
            options = parse_arguments(shlex.split(command))
            if isinstance(options, ServeOptions):
                parse_database(options.database)
        for target in re.findall(r"^make (\w+)", block.code, re.MULTILINE):
            assert f"\n{target}:" in text_of("Makefile")
        for path in re.findall(r"http://127\.0\.0\.1:8000(/[^\s?']*)", block.code):
            assert any(re.fullmatch(route, path) for route in routes), path


@pytest.mark.parametrize("page", all_pages())
def test_every_fence_is_closed_and_of_a_kind_that_is_checked(page: Path) -> None:
    known = {"python", "js", "json", "bash", "ts", "tsx", "text", "vue", "svelte"}
    everything = re.findall(r"^```(\w+)$", page.read_text("utf-8"), re.MULTILINE)
    assert set(everything) <= known
    assert len(blocks_of(page, *known)) == len(everything)


# Links and paths


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors_of(page: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)}


@pytest.mark.parametrize("page", all_pages())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{name_of(page)}: {target}"
        assert linked.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors_of(linked), f"{name_of(page)}: {target}"


@pytest.mark.parametrize("page", all_pages())
def test_every_path_setting_and_variable_that_is_mentioned_exists(page: Path) -> None:
    text = page.read_text("utf-8")
    for path in re.findall(r"`((?:src/adk_stream_protocol|tests|docs|\.ci)/[^`\s]*)`", text):
        assert (ROOT / path).exists(), path
    fields = {f"ADK_STREAM_{field.name.upper()}" for field in dataclasses.fields(Settings)}
    assert set(re.findall(r"\bADK_STREAM_[A-Z_]*[A-Z]\b", text)) <= fields


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs/README.md"
    targets = re.findall(r"\]\(([^)#]+)", index.read_text("utf-8"))
    linked = {(index.parent / target).resolve() for target in targets}
    assert [page for page in PAGES[2:] if page not in linked and page != index] == []


# References


def test_every_public_name_has_an_entry_with_its_arguments() -> None:
    for name in adk_stream_protocol.__all__:
        entry = section("docs/reference/api.md", name)
        assert "```python" in entry, f"{name} has no example"
        public = getattr(adk_stream_protocol, name)
        if inspect.isclass(public) and name == "Settings":
            continue  # Its fields have a page of their own.
        if inspect.isclass(public) or inspect.isfunction(public):
            missing = [each for each in inspect.signature(public).parameters if each not in entry]
            assert missing == [], name
    headings = re.findall(r"^## (.*)$", text_of("docs/reference/api.md"), re.MULTILINE)
    assert sorted(headings) == sorted(adk_stream_protocol.__all__)


def test_every_setting_has_its_real_default_and_variable() -> None:
    rows = {row[0]: row[1:3] for row in rows_of(text_of("docs/reference/settings.md"))}
    assert rows == {
        f"`{field.name}`": [f"`{field.default!r}`", f"`ADK_STREAM_{field.name.upper()}`"]
        for field in dataclasses.fields(Settings)
    }


def chunk_of(kind: Any) -> Chunk:
    """Return a chunk of a kind, its required fields filled with something."""
    required = [
        field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING
    ]
    chunk: Chunk = kind(**dict.fromkeys(required, "x"))
    return chunk


def test_every_chunk_type_is_told_and_who_gets_it() -> None:
    never = quoted(section("docs/reference/chunks.md", "Never sent").partition("If something")[0])
    told: dict[str, str] = {}
    for heading in ("The reply", "Text, thoughts, files, sources", "Tools"):
        for row in rows_of(section("docs/reference/chunks.md", heading)):
            told[row[0].strip("`")] = row[-1]
    kinds = [kind for kind in get_args(Chunk) if kind is not DataChunk]
    assert set(told) == {kind.type for kind in kinds} - set(never)
    assert {kind.type for kind in kinds} <= set(told) | set(never)
    for kind in kinds:
        if kind.type in told:
            only_v7 = fit(chunk_of(kind), 6) is None
            assert told[kind.type] == ("only v7" if only_v7 else "v6"), kind.type


def test_every_data_part_is_told() -> None:
    rows = rows_of(section("docs/reference/chunks.md", "Data parts"))
    assert [row[0].strip("`") for row in rows] == [
        f"data-{part.name}" for part in get_args(DataPart)
    ]


def test_every_data_chunk_is_of_a_part_that_is_known() -> None:
    known = {part.name for part in get_args(DataPart)}
    made = {
        name
        for _, tree in modules()
        for call in calls(tree)
        if isinstance(call.func, ast.Name) and call.func.id == "DataChunk"
        if call.args and (name := constant(call.args[0]))
    }
    assert made <= known, "give it a type in wire/data_parts.py"


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def test_every_field_of_a_chunk_that_is_told_is_real() -> None:
    kinds = {kind.type: kind for kind in get_args(Chunk) if kind is not DataChunk}
    for heading in ("The reply", "Text, thoughts, files, sources", "Tools"):
        for row in rows_of(section("docs/reference/chunks.md", heading)):
            real = {camel(field.name) for field in dataclasses.fields(kinds[row[0].strip("`")])}
            assert {re.sub(r"[?:].*", "", field) for field in quoted(row[1])} <= real, row[0]


def real_routes() -> set[tuple[str, str]]:
    app = create_app(LlmAgent(name="routes"), settings=Settings())
    # OpenAPI knows nothing of them.
    sockets = {
        ("WS", path)
        for _, tree in modules()
        for call in calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "websocket"
        if call.args and (path := constant(call.args[0]))
    }
    return sockets | {
        (method.upper(), path)
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }


def test_every_route_is_in_the_protocol_and_no_other() -> None:
    rows = rows_of(section("docs/reference/protocol.md", "Routes"))
    told = [row[0].strip("`").split(" ") for row in rows if re.match(r"`[A-Z]+ /", row[0])]
    assert {(method, path) for method, path in told} == real_routes()


def test_every_operation_id_is_listed_with_its_route() -> None:
    app = create_app(LlmAgent(name="routes"), settings=Settings())
    real = {
        (f"`{operation['operationId']}`", f"`{method.upper()} {path}`")
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    }
    rows = rows_of(section("docs/reference/openapi.md", "Operations"))
    assert {(row[0], row[1]) for row in rows} == real


def test_every_table_is_told_and_the_version_that_is_known() -> None:
    rows = rows_of(section("docs/howto/database.md", "What is stored"))
    assert {row[0].strip("`") for row in rows} == set(CALLS.metadata.tables)
    refused = section("docs/howto/database.md", "A newer database is refused")
    assert f"knows up to {VERSION}." in refused


def test_the_strict_clients_are_those_that_are_tested() -> None:
    tested = json.loads(text_of("tests/conformance/package.json"))["dependencies"]
    strict = {tested[name].rpartition("@")[2] for name in ("ai6strict", "ai7strict")}
    told = section("docs/reference/chunks.md", "Strict clients")
    assert set(re.findall(r"\b[67]\.\d+\.\d+\b", told)) == strict


def test_the_client_is_checked_against_what_is_tested_and_needs_what_is_told() -> None:
    tested = json.loads(text_of("tests/conformance/package.json"))["dependencies"]
    client = json.loads(text_of("client/transport/package.json"))
    checked = client["devDependencies"]
    assert (f"npm:ai@{checked['ai']}", checked["ai7"]) == (tested["ai6"], tested["ai7"])
    told = section("docs/reference/websocket.md", "With ai 6")
    oldest = re.findall(r"\b6\.\d+\.\d+\b", told)
    early = tested["ai7early"].rpartition("@")[2]
    assert client["peerDependencies"]["ai"] == f">={oldest[0]} <7 || >={early} <8"


def raised_codes() -> dict[str, int]:
    """Return every error code of the source and the status it comes with."""
    found = {
        kind.default_code: kind.status
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.AdkStreamError)
    }
    for _, tree in modules():
        for call in calls(tree):
            given = [word.value for word in call.keywords if word.arg == "code"]
            code = constant(given[0]) if given else None
            if code is not None and isinstance(call.func, ast.Name):
                found[code] = getattr(errors, call.func.id).status
    return found


def test_every_error_code_is_in_the_protocol_with_its_status() -> None:
    text = section("docs/reference/protocol.md", "Errors")
    told = {row[1].strip("`"): int(row[0]) for row in rows_of(text)}
    elsewhere = set(quoted(text[text.index("Codes of exceptions") :])) - {"error", "adk-stream"}
    raised = raised_codes()
    assert set(raised) == set(told) | elsewhere
    assert {code: raised[code] for code in told} == told


def logged() -> set[tuple[str, str, str]]:
    """Return logger, level and message of every log call in the source."""
    return {
        (module, call.func.attr.upper(), constant(call.args[0]) or "")
        for module, tree in modules()
        for call in calls(tree)
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id in {"logger", "logging"}
        and call.func.attr in {"debug", "info", "warning", "error", "exception", "critical", "log"}
    }


def log_rows() -> list[list[str]]:
    return rows_of(section("docs/howto/logging.md", "Every log call").split("| extra |")[0])


def test_every_log_call_is_listed_and_no_other() -> None:
    assert {(row[0].strip("`"), row[1], row[2].strip("`")) for row in log_rows()} == logged()


@pytest.mark.usefixtures("offline")
async def test_log_lines_carry_the_extras_that_are_listed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listed = {row[2].strip("`"): set(quoted(row[3])) for row in log_rows()}
    plain = set(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
    caplog.set_level(logging.INFO, "adk_stream_protocol")
    await run(ROOT / "README.md")
    ours = [record for record in caplog.records if record.name.startswith("adk_stream_protocol")]
    assert {record.msg for record in ours} >= {"turn started", "turn ended", "call held"}
    for record in ours:
        assert set(vars(record)) - plain == listed[record.msg]
        assert SAID not in record.getMessage()
