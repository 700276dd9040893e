"""The rules by which the offline model answers, in a unary run and in a live one.

Pure functions of a conversation: the same contents and tools always give the same answer.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_stream_protocol.demo.exchange import Exchange, read_exchange
from adk_stream_protocol.demo.intents import Step, ToolRequest, find_follow_up, find_steps
from adk_stream_protocol.demo.languages import (
    Language,
    language_of,
    split_for_streaming,
    token_count,
)
from adk_stream_protocol.demo.phrases import Phrases, phrases_in
from adk_stream_protocol.demo.sentences import (
    describe_attachments,
    describe_outcomes,
    describe_subjects,
)
from adk_stream_protocol.demo.small_talk import answer, find_thought

__all__ = ["Answer", "answer_to", "count_usage"]


@dataclass(frozen=True)
class Answer:
    """What the model answers: a text or calls, maybe after a thought."""

    parts: list[types.Part]
    language: Language

    def pieces(self, part: types.Part) -> list[str]:
        """Return the text of a part in the pieces that stream; a call has none."""
        return split_for_streaming(part.text or "", self.language)


def answer_to(contents: Sequence[types.Content], *, tools: set[str]) -> Answer:
    """Return the answer to the last user message, or to the results of the calls made for it."""
    exchange = read_exchange(contents)
    language = _language(exchange)
    return Answer(_respond(exchange, phrases_in(language), tools=tools), language)


def count_usage(
    request: LlmRequest, contents: Iterable[types.Content], parts: Sequence[types.Part]
) -> types.GenerateContentResponseUsageMetadata:
    """Return plausible numbers of tokens for an answer of these parts to these contents."""
    instruction = request.config.system_instruction
    asked = [part for content in contents for part in content.parts or []]
    prompt = _tokens(asked) + token_count(instruction if isinstance(instruction, str) else "")
    thoughts = _tokens(part for part in parts if part.thought)
    said = _tokens(part for part in parts if not part.thought)
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=prompt,
        candidates_token_count=said,
        thoughts_token_count=thoughts or None,
        total_token_count=prompt + said + thoughts,
    )


def _language(exchange: Exchange) -> Language:
    """Return the language of the last text; a message may be a file and nothing else."""
    return language_of(exchange.text or next(reversed(exchange.earlier_texts), ""))


def _respond(exchange: Exchange, phrases: Phrases, *, tools: set[str]) -> list[types.Part]:
    """Return either the next calls or a text, after a thought if one was asked for."""
    steps = find_steps(exchange.text)
    if not steps and exchange.earlier_texts:
        follow_up = find_follow_up(exchange.text, exchange.earlier_texts[-1])
        steps = (follow_up,) if follow_up else ()
    asked = [call for step in steps for call in step]
    missing = [call for call in asked if call.tool not in tools]
    calls = _next_calls(exchange, steps, tools=tools)
    thought = None if exchange.rounds else find_thought(exchange.text, phrases)
    parts: list[types.Part] = []
    if thought is not None:
        words = (
            phrases.thought_of_tools.format(subjects=describe_subjects(asked, phrases))
            if asked
            else phrases.thought.format(topic=thought)
        )
        parts.append(types.Part(text=words, thought=True))
    if calls:
        return parts + [_call_part(call) for call in calls]
    return [*parts, types.Part(text=_text(exchange, phrases, missing=missing))]


def _next_calls(exchange: Exchange, steps: Sequence[Step], *, tools: set[str]) -> Step:
    """Return the calls of the first step that was not made yet, once the one before has results."""
    if any(outcome.state == "waiting" for outcome in exchange.outcomes):
        return ()
    possible = [tuple(call for call in step if call.tool in tools) for step in steps]
    # One round of calls per step, whatever came back: a call is never made twice.
    remaining = [step for step in possible if step][len(exchange.rounds) :]
    return remaining[0] if remaining else ()


def _text(exchange: Exchange, phrases: Phrases, *, missing: Sequence[ToolRequest]) -> str:
    sentences = describe_attachments(exchange.attachments, phrases)
    sentences += describe_outcomes(exchange.outcomes, phrases)
    if missing:
        sentences.append(phrases.no_tool.format(subjects=describe_subjects(missing, phrases)))
    if not sentences or (exchange.text and not exchange.rounds and not missing):
        sentences.append(answer(exchange, phrases))
    return phrases.separator.join(sentences)


def _call_part(call: ToolRequest) -> types.Part:
    # No id: ADK gives one that is unique in the world, which a stateless model cannot.
    return types.Part(function_call=types.FunctionCall(name=call.tool, args=dict(call.arguments)))


def _tokens(parts: Iterable[types.Part]) -> int:
    return sum(_tokens_of(part) for part in parts)


def _tokens_of(part: types.Part) -> int:
    if part.function_call is not None:
        call = part.function_call
        return token_count(f"{call.name} {json.dumps(call.args, default=str)}")
    if part.function_response is not None:
        return token_count(json.dumps(part.function_response.response, default=str))
    # What Gemini counts for a small image.
    return 258 if part.inline_data is not None else token_count(part.text or "")
