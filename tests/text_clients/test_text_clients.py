"""The hooks of the real `@ai-sdk/react`, ai 6 and 7, that read a reply as plain text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from google.adk.agents.llm_agent import LlmAgent
from pydantic import BaseModel

from adk_stream_protocol import create_app
from support.scripted import ScriptedModel
from support.serving import serving
from support.stage import Stage, staged

pytestmark = pytest.mark.anyio

TEXT = "/api/chat?stream=text"
SCRIPT = Path(__file__).parent / "hooks.mjs"


class Hooks:
    """A page that uses one hook after another."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked = process.stdin
        self._told = BufferedByteReceiveStream(process.stdout)

    async def use(
        self,
        hook: str,
        api: str,
        asked: Mapping[str, object],
        *,
        shown: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        """Use a hook and return what it shows in the end.

        Args:
            hook: which.
            api: the address it calls.
            asked: what else it is given.
            shown: called when some text is shown.
        """
        await self._asked.send(json.dumps({"hook": hook, "api": api, **asked}).encode() + b"\n")
        with anyio.fail_after(120):
            while "result" not in (told := await self._line()):
                if shown is not None:
                    shown()
        found: dict[str, Any] = told["result"]
        return found

    async def _line(self) -> dict[str, Any]:
        line: dict[str, Any] = json.loads(await self._told.receive_until(b"\n", 1_000_000))
        return line


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=["6", "7"])
async def hooks(request: pytest.FixtureRequest) -> AsyncIterator[Hooks]:
    """The hooks of one line of the AI SDK."""
    command = ["node", str(SCRIPT), request.param]
    async with await anyio.open_process(command, stderr=None) as process:
        yield Hooks(process)
        process.kill()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with staged() as stage:
        late = {"break late": [["Some ", stage.more, RuntimeError("SECRET model")]]}
        stage.model.script = {**stage.model.script, **late}
        yield stage


# useCompletion


@pytest.mark.parametrize(
    ("path", "protocol"), [(TEXT, "text"), ("/api/chat", "data"), ("/api/chat", None)]
)
async def test_a_completion_is_shown_in_either_protocol(
    stage: Stage, hooks: Hooks, path: str, protocol: str | None
) -> None:
    asked = {"protocol": protocol, "prompt": "think"}
    told = await hooks.use("completion", stage.url + path, asked)
    assert told == {"text": "Done.", "error": None, "finished": "Done."}


async def test_completions_of_a_chat_follow_each_other(stage: Stage, hooks: Hooks) -> None:
    for prompt in ("hi", "hello", "hi"):
        asked = {"protocol": "text", "prompt": prompt, "body": {"id": "c"}}
        assert (await hooks.use("completion", stage.url + TEXT, asked))["error"] is None
    messages = (await stage.http.get("/api/chats/c")).json()["messages"]
    said = [part["text"] for each in messages for part in each["parts"] if part["type"] == "text"]
    assert said == ["hi", "Hello.", "hello", "Hello again.", "hi", "Hello."]


async def test_a_completion_that_breaks_at_once_shows_why(stage: Stage, hooks: Hooks) -> None:
    asked = {"protocol": "text", "prompt": "break at once"}
    told = await hooks.use("completion", stage.url + TEXT, asked)
    assert told["error"].startswith("The agent could not finish this reply (error ")
    assert (told["text"], told["finished"]) == ("", None)


async def test_a_completion_that_breaks_in_the_middle_is_not_taken_for_whole(
    stage: Stage, hooks: Hooks
) -> None:
    asked = {"protocol": "text", "prompt": "break late"}
    told = await hooks.use("completion", stage.url + TEXT, asked, shown=stage.more.set)
    assert told["text"].startswith("Some \n\nThe agent could not finish this reply (error ")
    # Node's words for a connection that broke; browsers say "network error".
    assert (told["error"], told["finished"]) == ("terminated", None)


async def test_a_completion_that_needs_an_approval_says_so(stage: Stage, hooks: Hooks) -> None:
    asked = {"protocol": "text", "prompt": "pay"}
    told = await hooks.use("completion", stage.url + TEXT, asked)
    assert told["error"].startswith("This reply waits for the approval of pay.")
    after_text = {"protocol": "text", "prompt": "pay 5"}
    told = await hooks.use("completion", stage.url + TEXT, after_text)
    assert told["text"].startswith("Paying. \n\nThis reply waits for the approval of pay.")
    assert told["error"] is None


# useObject


class City(BaseModel):
    name: str
    people: int


CITY = {"name": "Tokyo", "people": 14_000_000}
SCHEMA: Mapping[str, object] = {"schema": City.model_json_schema(), "required": ["name", "people"]}


@asynccontextmanager
async def cities(*, breaks: bool = False) -> AsyncIterator[tuple[str, anyio.Event]]:
    """Serve an agent with an output schema, whose model goes on at an event."""
    go_on = anyio.Event()
    end = RuntimeError("SECRET") if breaks else ', "people": 14000000}'
    model = ScriptedModel(script={"Tokyo": [['{"name": "To', 'kyo"', go_on, end]]})
    app = create_app(LlmAgent(name="cities", model=model, output_schema=City))
    async with serving(app) as url:
        yield url, go_on


@pytest.mark.parametrize(
    "given",
    [
        "Tokyo",
        {"prompt": "Tokyo"},
        {"messages": [{"role": "user", "parts": [{"type": "text", "text": "Tokyo"}]}]},
    ],
)
async def test_an_object_grows_until_it_is_whole(hooks: Hooks, given: object) -> None:
    async with cities() as (url, go_on):
        told = await hooks.use("object", url + TEXT, {"input": given, **SCHEMA}, shown=go_on.set)
    assert told == {"object": CITY, "error": None, "finished": {"object": CITY}}


async def test_an_object_that_breaks_in_the_middle_is_not_taken_for_whole(hooks: Hooks) -> None:
    async with cities(breaks=True) as (url, go_on):
        told = await hooks.use("object", url + TEXT, {"input": "Tokyo", **SCHEMA}, shown=go_on.set)
    assert (told["error"], told["finished"]) == ("terminated", None)


async def test_an_object_that_needs_an_approval_says_so(stage: Stage, hooks: Hooks) -> None:
    told = await hooks.use("object", stage.url + TEXT, {"input": "pay", **SCHEMA})
    assert told["error"].startswith("This reply waits for the approval of pay.")


async def test_an_input_that_is_no_prompt_is_told_what_to_send(stage: Stage, hooks: Hooks) -> None:
    told = await hooks.use("object", stage.url + TEXT, {"input": {"topic": "cats"}, **SCHEMA})
    assert '"prompt"' in told["error"]


# TextStreamChatTransport


async def test_a_chat_of_text_goes_on(stage: Stage, hooks: Hooks) -> None:
    says = ["hi", "add", "think"]
    told = await hooks.use("chat", stage.url + TEXT, {"id": "c", "says": says})
    assert told["said"] == [
        ["user", "hi"],
        ["assistant", "Hello."],
        ["user", "add"],
        ["assistant", "It is 3."],
        ["user", "think"],
        ["assistant", "Done."],
    ]
    assert (told["status"], told["error"]) == ("ready", None)
    resumed = await hooks.use("chat", stage.url + TEXT, {"id": "c", "resume": True})
    assert (resumed["said"], resumed["status"]) == ([["assistant", "Done."]], "ready")


async def test_a_chat_of_text_is_in_error_where_text_cannot_say_it(
    stage: Stage, hooks: Hooks
) -> None:
    told = await hooks.use("chat", stage.url + TEXT, {"id": "a", "says": ["pay"]})
    assert told["status"] == "error"
    assert told["error"].startswith("This reply waits for the approval of pay.")
    asked = {"id": "b", "says": ["break late"]}
    told = await hooks.use("chat", stage.url + TEXT, asked, shown=stage.more.set)
    assert (told["status"], told["error"]) == ("error", "terminated")
    assert told["said"][1][1].startswith("Some ")
