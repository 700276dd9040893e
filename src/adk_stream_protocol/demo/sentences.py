"""Tells what came of tool calls, in the words of one language."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adk_stream_protocol.demo.exchange import Attachment, Outcome
from adk_stream_protocol.demo.intents import ToolRequest
from adk_stream_protocol.demo.phrases import Phrases

__all__ = ["describe_attachments", "describe_outcomes", "describe_subjects"]


def describe_outcomes(outcomes: Sequence[Outcome], phrases: Phrases) -> list[str]:
    """Return a sentence for each call that has a result, then one for those that still wait.

    If something was not done, a last sentence offers help.
    """
    waiting = [outcome.call for outcome in outcomes if outcome.state == "waiting"]
    answered = [outcome for outcome in outcomes if outcome.state != "waiting"]
    sentences = [_describe(outcome, phrases) for outcome in answered]
    if waiting:
        subjects = describe_subjects(waiting, phrases)
        sentences.append(phrases.waiting.format(subjects=subjects))
    elif any(outcome.state != "done" for outcome in answered):
        sentences.append(phrases.offer)
    return sentences


def describe_subjects(calls: Iterable[ToolRequest], phrases: Phrases) -> str:
    """Return what the calls are about, as a list in a sentence."""
    return phrases.list_separator.join(_subject(call, phrases) for call in calls)


def describe_attachments(attachments: Iterable[Attachment], phrases: Phrases) -> list[str]:
    """Return a sentence for each attachment that tells its type and size."""
    return [
        phrases.attachment.format(
            kind=phrases.attachments.get(
                attachment.media_type.partition("/")[0], phrases.attachments["file"]
            ),
            media_type=attachment.media_type,
            size=_size(attachment.size),
        )
        for attachment in attachments
    ]


def _describe(outcome: Outcome, phrases: Phrases) -> str:
    describe = {
        "get_weather": _describe_weather,
        "process_payment": _describe_payment,
        "get_location": _describe_location,
        "change_bgm": _describe_music,
    }.get(outcome.call.tool, _describe_anything)
    sentence = describe(outcome, phrases)
    if outcome.reason and outcome.state == "denied":
        return phrases.separator.join((sentence, phrases.reason.format(reason=outcome.reason)))
    return sentence


def _describe_weather(outcome: Outcome, phrases: Phrases) -> str:
    result = outcome.result or {}
    if "temperature_c" not in result or "condition" not in result:
        return _describe_anything(outcome, phrases)
    return phrases.weather.format(
        city=outcome.call.arguments.get("city", ""),
        temperature=result["temperature_c"],
        condition=phrases.conditions.get(result["condition"], result["condition"]),
    )


def _describe_payment(outcome: Outcome, phrases: Phrases) -> str:
    result = outcome.result or {}
    transaction = result.get("transaction_id")
    # An approver may have changed the arguments: what was done is what counts.
    paid = ToolRequest(
        outcome.call.tool,
        {name: result.get(name, asked) for name, asked in outcome.call.arguments.items()},
    )
    sentence = {
        "done": phrases.payment_made,
        "denied": phrases.payment_denied,
        "expired": phrases.payment_expired,
    }.get(outcome.state, phrases.payment_failed)
    return sentence.format(
        **_details(paid, phrases),
        transaction=phrases.transaction.format(id=transaction) if transaction else "",
        error=outcome.error,
    )


def _describe_location(outcome: Outcome, phrases: Phrases) -> str:
    result = outcome.result or {}
    if outcome.state != "done" or "latitude" not in result or "longitude" not in result:
        return phrases.location_unknown
    metres = result.get("accuracy")
    return phrases.location.format(
        latitude=result["latitude"],
        longitude=result["longitude"],
        accuracy=phrases.accuracy.format(metres=_number(metres)) if metres is not None else "",
    )


def _describe_music(outcome: Outcome, phrases: Phrases) -> str:
    if outcome.state != "done":
        return phrases.music_unchanged
    return phrases.music_changed.format(track=outcome.call.arguments.get("track", ""))


def _describe_anything(outcome: Outcome, phrases: Phrases) -> str:
    subject = _subject(outcome.call, phrases)
    if outcome.error:
        return phrases.failure.format(subject=subject, error=outcome.error)
    result = json.dumps(outcome.result, ensure_ascii=False, default=str)
    return phrases.result.format(subject=subject, result=result)


def _subject(call: ToolRequest, phrases: Phrases) -> str:
    subject = phrases.subjects.get(call.tool)
    return call.tool if subject is None else subject.format(**_details(call, phrases))


def _details(call: ToolRequest, phrases: Phrases) -> Mapping[str, str]:
    arguments = call.arguments
    currency = str(arguments.get("currency", "USD"))
    money = phrases.currencies.get(currency, phrases.money)
    return {
        "city": str(arguments.get("city", "")),
        "recipient": str(arguments.get("recipient", "")),
        "money": money.format(amount=_number(arguments.get("amount")), currency=currency),
    }


def _number(value: Any) -> str:
    if not isinstance(value, int | float):
        return str(value)
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def _size(size: int | None) -> str:
    if size is None:
        return "?"
    if size < 1000:
        return f"{size} B"
    return f"{size / 1000:,.1f} kB" if size < 1_000_000 else f"{size / 1_000_000:,.1f} MB"
