"""The two languages of the demo: which one a text is in, and how a text streams.

Knows nothing about intents, tools or models.
"""

import re
import unicodedata
from typing import Literal

__all__ = ["Language", "language_of", "normalise", "split_for_streaming", "token_count"]

Language = Literal["en", "ja"]

_LONGEST = 1000  # characters
_LAST_WORD = re.compile(r"(?<![^\s。、!?])[^\s。、!?]+$")

_JAPANESE = re.compile(r"[\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]")
_LOWERCASE_WORD = re.compile(r"(?<![A-Za-z])[a-z]+")
_TOKEN = re.compile(r"[\u3040-\u9fff]|\w+|[^\w\s]")


def normalise(text: str) -> str:
    """Return the beginning of the text, with full-width forms and curly apostrophes made plain.

    What a user wants of the demo stands in the first thousand characters; looking for it in a
    pasted book would hold up the event loop.
    """
    plain = unicodedata.normalize("NFKC", text[: _LONGEST + 1]).replace("\u2019", "'")
    if len(plain) > _LONGEST:
        # The last word may be cut in two, and half of an amount is another amount.
        plain = _LAST_WORD.sub("", plain[:_LONGEST])
    return plain.strip()


def language_of(text: str) -> Language:
    """Return the language to answer in; a text without any letters counts as English."""
    japanese = len(_JAPANESE.findall(text))
    # A Japanese name in an English sentence, and `BGM` or `Alice` in a Japanese one, are both
    # common: only words in lower case say that the sentence itself is English.
    english = len(_LOWERCASE_WORD.findall(text))
    return "ja" if japanese and japanese >= 3 * english else "en"


def split_for_streaming(text: str, language: Language) -> list[str]:
    """Return the pieces a model would stream; joined they are the text again.

    English comes word by word, Japanese three characters at a time.
    """
    pattern = r".{1,3}" if language == "ja" else r"\s*\S+|\s+$"
    return re.findall(pattern, text, flags=re.DOTALL)


def token_count(text: str) -> int:
    """Return a plausible number of tokens: words and signs, and each Japanese character."""
    return len(_TOKEN.findall(text))
