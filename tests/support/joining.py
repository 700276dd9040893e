"""Chunks compared however they came: which pieces of text are sent together is a matter of time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["joined"]

_PIECES = {"text-delta", "reasoning-delta"}


def joined(chunks: Iterable[Any]) -> list[Any]:
    """Return the chunks, with neighbouring pieces of a block made one; all else stays as it is."""
    told: list[Any] = []
    for chunk in chunks:
        if told and _goes_on(told[-1], chunk):
            told[-1] = {**chunk, "delta": told[-1]["delta"] + chunk["delta"]}
        else:
            told.append(chunk)
    return told


def _goes_on(last: Any, chunk: Any) -> bool:
    if not isinstance(last, dict) or not isinstance(chunk, dict):
        return False
    alike = {**last, "delta": ""} == {**chunk, "delta": ""}
    return alike and chunk.get("type") in _PIECES and "providerMetadata" not in chunk
