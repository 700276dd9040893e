"""Asks the real `ai` packages, through Node, what they make of us.

`read_with_real_clients` folds chunks as each version would; `StockChat` is a whole `useChat`
without a browser, against a running server. Both talk to the scripts in `tests/conformance`, whose
README describes the lines they exchange. Nothing here knows our own code.
"""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, NotRequired, Self, TypedDict, get_args

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import JsonValue

from support.node import CLIENT_BUILD, NODE_DIR, node
from support.validation import check_messages

__all__ = [
    "CLIENT_BUILD",
    "NODE_DIR",
    "SDK_VERSIONS",
    "SOCKET_VERSIONS",
    "Approval",
    "AutomaticSends",
    "ChatState",
    "ErrorKind",
    "Finish",
    "Part",
    "Prepared",
    "ReadInput",
    "Reading",
    "RefusedChunk",
    "RequestBody",
    "Resume",
    "SdkVersion",
    "SocketVersion",
    "StockChat",
    "StockChatFailed",
    "ToolCall",
    "UIMessage",
    "read_with_real_clients",
]

SdkVersion = Literal["ai6", "ai6strict", "ai7", "ai7strict"]
SDK_VERSIONS: tuple[SdkVersion, ...] = get_args(SdkVersion)
# The first and the newest that have `WebSocketChatTransport`; and the newest 6, over our own.
SocketVersion = Literal["ai7early", "ai7", "ai6"]
SOCKET_VERSIONS: tuple[SocketVersion, ...] = get_args(SocketVersion)

AutomaticSends = Literal["approvals", "tools", "both", "answered", "none", "approved", "confirmed"]
"""Which `sendAutomaticallyWhen` a page has; the last two are such that send too often."""
Prepared = Literal["all", "documented", "untriggered", "last", "naming", "branching"]
"""What an application sends of its messages: see `prepare.mjs`."""
ErrorKind = Literal["stream", "validation", "protocol", "http", "network"]
Status = Literal["submitted", "streaming", "ready", "error"]
Chunk = Mapping[str, JsonValue]

# Longer than chat.mjs waits for anything (20 s), so that its own explanation arrives first.
_PATIENCE_SECONDS = 30
_LONGEST_ANSWER = 64 * 1024 * 1024


class Approval(TypedDict, total=False):
    id: str
    approved: bool
    reason: str
    requestReason: str
    isAutomatic: bool
    signature: str


class Part(TypedDict, total=False):
    """Any part of a message; which keys there are depends on `type` and `state`."""

    type: str
    state: str
    id: str
    text: str
    toolCallId: str
    toolName: str
    title: str
    input: JsonValue
    rawInput: JsonValue
    output: JsonValue
    errorText: str
    preliminary: bool
    providerExecuted: bool
    approval: Approval
    data: JsonValue
    url: str
    mediaType: str
    filename: str
    sourceId: str
    providerMetadata: dict[str, dict[str, JsonValue]]
    callProviderMetadata: dict[str, dict[str, JsonValue]]


class UIMessage(TypedDict):
    id: str
    role: str
    parts: list[Part]
    metadata: NotRequired[JsonValue]


class RequestBody(TypedDict):
    id: str
    messages: list[UIMessage]
    trigger: str
    messageId: NotRequired[str]


class ToolCall(TypedDict):
    toolCallId: str
    toolName: str
    input: JsonValue
    dynamic: NotRequired[bool]


class Finish(TypedDict):
    isAbort: bool
    isDisconnect: bool
    isError: bool
    finishReason: NotRequired[str]


class Resume(TypedDict):
    """One GET for a stream to resume; `status` is `None` when no response came."""

    status: int | None
    chunks: list[dict[str, JsonValue]]


class RefusedChunk(TypedDict):
    index: int
    error: str


class ReadInput(TypedDict):
    """A stream to read; `message` is the assistant's message that it continues."""

    name: str
    chunks: Sequence[Chunk]
    message: NotRequired[UIMessage]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What one version made of one stream.

    `error` is the first thing that stopped it. `refused` lists every chunk that its schema refuses,
    also those after the first error. `replies` is 1 unless a wrong message id split the reply.
    """

    name: str
    version: SdkVersion
    message: UIMessage | None
    replies: int
    status: Status
    error: str | None
    error_kind: ErrorKind | None
    finish_reason: str | None
    refused: list[RefusedChunk]


@dataclass(frozen=True, kw_only=True)
class ChatState:
    """What a page shows and what it has sent; `bodies` and `chunks` have one entry per POST.

    Over a WebSocket, a `send` frame counts as a POST and a `resume` frame as a GET.
    """

    chat_id: str
    messages: list[UIMessage]
    status: Status
    error: str | None
    error_kind: ErrorKind | None
    requests: int
    bodies: list[RequestBody]
    chunks: list[list[dict[str, JsonValue]]]
    resumes: list[Resume]
    frames: list[dict[str, JsonValue]]
    tool_calls: list[ToolCall]
    finishes: list[Finish]
    active: list[str]
    """The chats for which a page of ours was told that a turn began."""
    runs: list[str]
    """What a page of ours ran, or what a stock page's `onToolCall` did."""

    @property
    def last(self) -> UIMessage:
        return self.messages[-1]

    @property
    def text(self) -> str:
        """The text of the last message."""
        return "".join(part["text"] for part in self.last["parts"] if part["type"] == "text")

    @property
    def tool_parts(self) -> list[Part]:
        """The tool calls of the last message, in order."""
        return [part for part in self.last["parts"] if "toolCallId" in part]

    @property
    def open_approvals(self) -> list[str]:
        """The ids of the approvals the last message still asks for, in order."""
        return [
            part["approval"]["id"]
            for part in self.tool_parts
            if part["state"] == "approval-requested"
        ]

    @property
    def open_confirmations(self) -> list[str]:
        """The same in the profile `adk`."""
        return [
            part["toolCallId"]
            for part in self.tool_parts
            if part["type"] == "tool-adk_request_confirmation"
            and part["state"] == "input-available"
        ]


class StockChatFailed(Exception):
    """A command could not be done, or what it waits for did not come; `state` is how it stands."""

    def __init__(self, message: str, state: ChatState) -> None:
        super().__init__(f"{message} (status {state.status}, {state.requests} requests)")
        self.state = state


def read_with_real_clients(inputs: Sequence[ReadInput]) -> list[Reading]:
    """Reads every stream with every version, in one process: inputs in order, versions within."""
    finished = subprocess.run(  # noqa: S603 - our own script, no shell
        node("read.mjs"),
        input="".join(f"{json.dumps(one)}\n" for one in inputs),
        stdout=subprocess.PIPE,
        cwd=NODE_DIR,
        encoding="utf-8",
        check=True,
        timeout=120,
    )
    # Not `splitlines`: JSON may hold other line ends, such as U+2028.
    return [_reading(json.loads(line)) for line in finished.stdout.split("\n") if line]


class StockChat:
    """The chat of one version with its own transport, as `useChat` runs it in a page.

    With `socket=True` that is `WebSocketChatTransport`, or for ai 6 our `SocketChatTransport`, and
    `api` the address of the socket. With `envelope=True` it is a page that uses all of our client:
    `EnvelopeChatTransport`, `handleConfirmation`, `BrowserTools`, `sendWhenAnswered`.

    With `browser=True` its `onToolCall` runs `get_location` and `change_bgm`.

    Leaving the block is closing the tab: open requests are cut. Methods that send answer when the
    chat has settled (the reply has ended and no automatic send follows), or at once with
    `wait=False`. One method runs at a time; start what must overlap with `wait=False`, or together
    with `act_together`.

    Whatever the page showed must have been valid for every version: that is checked at the end, if
    nothing else failed, unless `always_valid=False`.
    """

    def __init__(
        self,
        api: str,
        sdk: SdkVersion | SocketVersion = "ai6",
        *,
        socket: bool = False,
        envelope: bool = False,
        auto: AutomaticSends = "approvals",
        chat_id: str | None = None,
        resume: bool = False,
        prepare: Prepared = "all",
        browser: bool = False,
        always_valid: bool = True,
    ) -> None:
        self._arguments = ["--sdk", sdk, "--api", api, "--auto", auto, "--prepare", prepare]
        if chat_id is not None:
            self._arguments += ["--chat", chat_id]
        if resume:
            self._arguments += ["--resume"]
        if browser:
            self._arguments += ["--browser"]
        if socket:
            self._arguments += ["--socket"]
        if envelope:
            self._arguments += ["--envelope"]
        # None outside of the `async with` block.
        self._process: Process | None = None
        # The answers, line by line. None outside of the `async with` block.
        self._answers: BufferedByteReceiveStream | None = None
        # The number of the last command; answers carry it back.
        self._sent = 0
        self._turn = anyio.Lock()
        # The messages of every answer. None: nobody checks them.
        self._shown: list[list[UIMessage]] | None = [] if always_valid else None

    async def __aenter__(self) -> Self:
        self._process = await anyio.open_process(
            node("chat.mjs", *self._arguments),
            cwd=NODE_DIR,
            stderr=None,
        )
        assert self._process.stdout is not None
        self._answers = BufferedByteReceiveStream(self._process.stdout)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process, self._process, self._answers = self._process, None, None
        assert process is not None
        with anyio.move_on_after(5, shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
        if error is None:
            await check_messages(self._shown or ())

    async def send(
        self,
        text: str,
        *,
        files: Sequence[Part] = (),
        body: Mapping[str, JsonValue] | None = None,
        wait: bool = True,
    ) -> ChatState:
        """Sends a message; `body` is what the app adds to this one request."""
        return await self._do("send", text=text, files=list(files) or None, body=body, wait=wait)

    async def edit(self, message_id: str, text: str, *, wait: bool = True) -> ChatState:
        """Replaces a user message, dropping what came after it, and sends."""
        return await self._do("edit", messageId=message_id, text=text, wait=wait)

    async def rewrite(self, message_id: str, text: str, *, wait: bool = True) -> ChatState:
        """Edits as Vercel's chatbot does: the new text under the old id, then `regenerate`."""
        return await self._do("rewrite", messageId=message_id, text=text, wait=wait)

    async def branch(self, parent_id: str | None, text: str, *, wait: bool = True) -> ChatState:
        """Edits as assistant-ui does: a new message after the parent, or as the first."""
        return await self._do("branch", parentId=parent_id, text=text, wait=wait)

    async def submit(self, *, wait: bool = True) -> ChatState:
        """Sends what there is, as `sendMessage()` without a message."""
        return await self._do("submit", wait=wait)

    async def regenerate(self, message_id: str | None = None, *, wait: bool = True) -> ChatState:
        return await self._do("regenerate", messageId=message_id, wait=wait)

    async def approve(
        self, approval_id: str, *, reason: str | None = None, wait: bool = True
    ) -> ChatState:
        return await self._do("approve", id=approval_id, approved=True, reason=reason, wait=wait)

    async def deny(
        self, approval_id: str, *, reason: str | None = None, wait: bool = True
    ) -> ChatState:
        return await self._do("approve", id=approval_id, approved=False, reason=reason, wait=wait)

    async def confirm(
        self,
        confirmation: str,
        confirmed: bool,
        *,
        reason: str | None = None,
        wait: bool = True,
    ) -> ChatState:
        """Clicks on a confirmation, in a page of ours."""
        clicked = {"toolCallId": confirmation, "confirmed": confirmed, "reason": reason}
        return await self._do("confirm", **clicked, wait=wait)

    async def interrupt(self, *, wait: bool = True) -> ChatState:
        return await self._do("interrupt", wait=wait)

    async def output(
        self, tool: str, tool_call_id: str, *, output: JsonValue, wait: bool = True
    ) -> ChatState:
        # Not `_do`: here None is a value, not an absent field.
        call = {"tool": tool, "toolCallId": tool_call_id, "output": output}
        return (await self.act_together({"do": "output", **call, "wait": wait}))[0]

    async def output_error(
        self, tool: str, tool_call_id: str, *, error_text: str, wait: bool = True
    ) -> ChatState:
        return await self._do(
            "output-error", tool=tool, toolCallId=tool_call_id, errorText=error_text, wait=wait
        )

    async def stop(self, *, wait: bool = True) -> ChatState:
        return await self._do("stop", wait=wait)

    async def resume(self, *, wait: bool = True) -> ChatState:
        return await self._do("resume", wait=wait)

    async def show(self, chat_id: str) -> ChatState:
        """Shows another chat of the same page; what runs in the one before goes on."""
        return await self._do("show", id=chat_id, wait=False)

    async def cut(self) -> ChatState:
        """Cuts the WebSocket, as a network that is lost."""
        return await self._do("cut")

    async def write(self, text: str) -> ChatState:
        """Writes a frame to the WebSocket that its transport would not."""
        return await self._do("write", text=text, wait=False)

    async def reload(self, messages: Sequence[UIMessage], *, wait: bool = True) -> ChatState:
        """Starts the page again with these messages; with `resume=True` it also resumes."""
        return await self._do("set", messages=list(messages), wait=wait)

    async def state(self) -> ChatState:
        return await self._do("state")

    async def settled(self) -> ChatState:
        return await self._do("wait", **{"for": "settled"})

    async def streaming(self) -> ChatState:
        """Waits for the first thing a reply shows; fails when the reply is already over."""
        return await self._do("wait", **{"for": "streaming"})

    async def text_contains(self, value: str) -> ChatState:
        """Waits for this text in the last message; fails when the chat settles without it."""
        return await self._do("wait", **{"for": "text", "value": value})

    async def part_in_state(self, state: str, tool_call_id: str | None = None) -> ChatState:
        """Waits for a part of the last message in this state; fails when the chat settles first."""
        return await self._do("wait", **{"for": "part", "state": state, "toolCallId": tool_call_id})

    async def requests_made(self, count: int) -> ChatState:
        """Waits until this many POSTs have begun; fails when the chat settles first."""
        return await self._do("wait", **{"for": "requests", "value": count})

    async def confirmations_asked(self, count: int = 1) -> ChatState:
        """Waits until the last message asks for this many; fails when the chat settles first."""
        return await self._do("wait", **{"for": "asked", "value": count})

    async def turns_begun_elsewhere(self, count: int = 1) -> ChatState:
        """Waits until a page of ours was told of this many turns that it did not ask for."""
        return await self._do("wait", **{"for": "active", "value": count})

    async def act_together(self, *commands: Mapping[str, object]) -> list[ChatState]:
        """Gives chat.mjs several commands of its own form at once, as two quick clicks.

        All of them act before the first is answered. The states are in the order of the commands.

        Raises:
            StockChatFailed: for the first command that failed.
        """
        async with self._turn:
            with anyio.fail_after(_PATIENCE_SECONDS):
                answers = await self._exchange(commands)
        states = [(answer, _chat_state(answer)) for answer in answers]
        for answer, state in states:
            if not answer["ok"]:
                raise StockChatFailed(answer["error"] or "failed", state)
        return [state for _, state in states]

    async def _do(self, verb: str, **fields: object) -> ChatState:
        given = {key: value for key, value in fields.items() if value is not None}
        return (await self.act_together({"do": verb, **given}))[0]

    async def _exchange(self, commands: Sequence[Mapping[str, object]]) -> list["_Answer"]:
        assert self._process is not None, "use `async with StockChat(...)`"
        assert self._process.stdin is not None
        assert self._answers is not None
        first = self._sent + 1
        self._sent += len(commands)
        numbered = [{**command, "n": first + index} for index, command in enumerate(commands)]
        lines = "".join(f"{json.dumps(command)}\n" for command in numbered)
        await self._process.stdin.send(lines.encode())
        answers: dict[int, _Answer] = {}
        while len(answers) < len(commands):
            line = await self._answers.receive_until(b"\n", _LONGEST_ANSWER)
            answer: _Answer = json.loads(line)
            # A lower number belongs to a command whose caller was cancelled before the answer.
            if answer["n"] >= first:
                answers[answer["n"]] = answer
            if self._shown is not None:
                self._shown.append(answer["messages"])
        return [answers[number] for number in sorted(answers)]


class _Answer(TypedDict):
    n: int
    ok: bool
    chatId: str
    messages: list[UIMessage]
    status: Status
    error: str | None
    errorKind: ErrorKind | None
    requests: int
    bodies: list[RequestBody]
    chunks: list[list[dict[str, JsonValue]]]
    resumes: list[Resume]
    frames: list[dict[str, JsonValue]]
    toolCalls: list[ToolCall]
    finishes: list[Finish]
    active: list[str]
    runs: list[str]


class _ReadingLine(TypedDict):
    name: str
    version: SdkVersion
    message: UIMessage | None
    replies: int
    status: Status
    error: str | None
    errorKind: ErrorKind | None
    finishReason: str | None
    refused: list[RefusedChunk]


def _reading(line: _ReadingLine) -> Reading:
    return Reading(
        name=line["name"],
        version=line["version"],
        message=line["message"],
        replies=line["replies"],
        status=line["status"],
        error=line["error"],
        error_kind=line["errorKind"],
        finish_reason=line["finishReason"],
        refused=line["refused"],
    )


def _chat_state(answer: _Answer) -> ChatState:
    return ChatState(
        chat_id=answer["chatId"],
        messages=answer["messages"],
        status=answer["status"],
        error=answer["error"],
        error_kind=answer["errorKind"],
        requests=answer["requests"],
        bodies=answer["bodies"],
        chunks=answer["chunks"],
        resumes=answer["resumes"],
        frames=answer["frames"],
        tool_calls=answer["toolCalls"],
        finishes=answer["finishes"],
        active=answer["active"],
        runs=answer["runs"],
    )
