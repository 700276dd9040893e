"""A voice for a model that has none: each letter is a short tone, a pause is silence.

Nobody will understand it, but it is real audio: its length follows the text, and it can be
played, buffered and cut off.
"""

import math
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

__all__ = ["SAMPLE_RATE", "seconds_of", "spoken"]

SAMPLE_RATE: Final = 24_000
"""Samples per second; 16 bits, one channel, as Gemini speaks."""

_LETTER_SECONDS = 0.06
_CHUNK_BYTES = 2 * SAMPLE_RATE // 10
_LOUDNESS = 6_000  # of 32,767
_LOWEST = 220.0  # Hz
_PITCHES = 24  # half tones above the lowest


def spoken(text: str) -> Iterator[bytes]:
    """Yield the text as 16-bit little-endian PCM, in chunks of a tenth of a second or less."""
    sound = b"".join(_tone(letter) for letter in text)
    for start in range(0, len(sound), _CHUNK_BYTES):
        yield sound[start : start + _CHUNK_BYTES]


def seconds_of(chunk: bytes) -> float:
    """Return how long a chunk plays."""
    return len(chunk) / 2 / SAMPLE_RATE


@lru_cache(maxsize=256)
def _tone(letter: str) -> bytes:
    count = int(SAMPLE_RATE * _LETTER_SECONDS)
    if not letter.isalnum():
        return bytes(2 * count)
    step = 2 * math.pi * _LOWEST * 2 ** (ord(letter) % _PITCHES / 12) / SAMPLE_RATE
    # It swells and fades, for a tone that stops at once clicks.
    return struct.pack(
        f"<{count}h",
        *(
            round(_LOUDNESS * math.sin(math.pi * at / count) * math.sin(step * at))
            for at in range(count)
        ),
    )
