"""The messages of Gemini's Live wire: what the server sends, and what a client's mean."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import JsonValue

__all__ = [
    "GENERATION_COMPLETE",
    "INTERRUPTED",
    "NOT_RESUMABLE",
    "TURN_COMPLETE",
    "Frame",
    "FunctionCall",
    "Message",
    "audio",
    "call",
    "filler",
    "go_away",
    "heard",
    "resumption",
    "spoken",
    "text",
    "tool_call",
    "tool_call_cancellation",
    "usage",
]

Frame: TypeAlias = dict[str, JsonValue]
"""One `BidiGenerateContentServerMessage`, as it goes over the wire."""

FunctionCall: TypeAlias = dict[str, JsonValue]

GENERATION_COMPLETE: Frame = {"serverContent": {"generationComplete": True}}
TURN_COMPLETE: Frame = {"serverContent": {"turnComplete": True}}
INTERRUPTED: Frame = {"serverContent": {"interrupted": True}}

NOT_RESUMABLE: Frame = {"sessionResumptionUpdate": {"newHandle": "", "resumable": False}}
"""What Gemini sends where it cannot resume: while it generates, and while a call is out."""


def text(words: str) -> Frame:
    """Return a piece of the answer."""
    return _model_turn({"text": words})


def audio(pcm: bytes, *, rate: int = 24_000) -> Frame:
    """Return a piece of the answer's sound, 16 bit PCM."""
    data = base64.b64encode(pcm).decode()
    return _model_turn({"inlineData": {"mimeType": f"audio/pcm;rate={rate}", "data": data}})


def heard(words: str) -> Frame:
    """Return a piece of the transcription of what the user said."""
    return {"serverContent": {"inputTranscription": {"text": words}}}


def spoken(words: str) -> Frame:
    """Return a piece of the transcription of what the model says."""
    return {"serverContent": {"outputTranscription": {"text": words}}}


def call(name: str, args: dict[str, JsonValue], call_id: str | None = None) -> FunctionCall:
    """Return a call for `tool_call`; one without an id gets it from the connection."""
    function_call: FunctionCall = {"name": name, "args": args}
    if call_id is not None:
        function_call["id"] = call_id
    return function_call


def tool_call(*calls: FunctionCall) -> Frame:
    return {"toolCall": {"functionCalls": list(calls)}}


def tool_call_cancellation(*call_ids: str) -> Frame:
    return {"toolCallCancellation": {"ids": list(call_ids)}}


def resumption(handle: str) -> Frame:
    """Return an update with a handle the session can be resumed with from here."""
    return {"sessionResumptionUpdate": {"newHandle": handle, "resumable": True}}


def go_away(time_left: str = "2s") -> Frame:
    return {"goAway": {"timeLeft": time_left}}


def usage(*, prompt_tokens: int = 3, answer_tokens: int = 2) -> Frame:
    """Return a count of tokens; Live names the answer's differently than the unary API."""
    return {
        "usageMetadata": {
            "promptTokenCount": prompt_tokens,
            "responseTokenCount": answer_tokens,
            "totalTokenCount": prompt_tokens + answer_tokens,
        }
    }


def filler(count: int) -> list[Frame]:
    """Return frames that mean nothing to a chat, for a socket that is to be kept busy."""
    return [usage(prompt_tokens=number) for number in range(count)]


def _model_turn(part: JsonValue) -> Frame:
    return {"serverContent": {"modelTurn": {"role": "model", "parts": [part]}}}


@dataclass(frozen=True)
class Message:
    """One message of the client. All keys are in camel case: google-genai mixes both."""

    kind: str  # setup, clientContent, realtimeInput or toolResponse
    body: dict[str, Any]

    @classmethod
    def read(cls, raw: str | bytes) -> "Message":
        [(kind, body)] = _camel(json.loads(raw)).items()
        return cls(kind, body)

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The contents of a `clientContent`; none of other messages."""
        turns: list[dict[str, Any]] = self.body.get("turns", [])
        return turns

    @property
    def text(self) -> str:
        """What the user typed: the last turn's text, or the realtime text."""
        if self.kind == "realtimeInput":
            return str(self.body.get("text", ""))
        return "".join(part.get("text", "") for part in self._last_parts())

    @property
    def results(self) -> dict[str, Any]:
        """Call id -> response, of a `toolResponse` or of a last turn that holds responses."""
        responses = self.body.get("functionResponses", [])
        replayed = [part["functionResponse"] for part in self._last_parts(with_responses=True)]
        return {r.get("id", r["name"]): r.get("response") for r in (*responses, *replayed)}

    @property
    def audio(self) -> bytes:
        """The sound of a `realtimeInput`; 3.x has it in `audio`, 2.x in `mediaChunks`."""
        blobs: Sequence[dict[str, Any]] = self.body.get("mediaChunks", [])
        if "audio" in self.body:
            blobs = [self.body["audio"]]
        # google-genai spells base64 with the alphabet that is safe in addresses.
        return b"".join(base64.urlsafe_b64decode(blob["data"]) for blob in blobs)

    @property
    def ends_speech(self) -> bool:
        return "activityEnd" in self.body or bool(self.body.get("audioStreamEnd"))

    def _last_parts(self, *, with_responses: bool = False) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = self.turns[-1].get("parts", []) if self.turns else []
        return [part for part in parts if not with_responses or "functionResponse" in part]


# Below these keys lies what belongs to the tools, to be left as it is.
_OPAQUE = {"args", "response", "parameters", "parametersJsonSchema"}


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {_camel_key(key): item for key, item in value.items()}
    return {key: item if key in _OPAQUE else _camel(item) for key, item in renamed.items()}


def _camel_key(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)
