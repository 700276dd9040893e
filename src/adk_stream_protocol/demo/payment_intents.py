"""Finds the payments that a sentence asks for, in English and Japanese.

Works from the amounts outwards: each amount looks for the people beside it. What is not clearly
a request to pay somebody some amount yields nothing, because a wrong guess here is about money.
"""

import re
from dataclasses import dataclass

__all__ = [
    "Payment",
    "asks_about_payments",
    "find_payments",
    "has_japanese_payment_verb",
    "mentions_payment",
]


@dataclass(frozen=True)
class Payment:
    """One payment that was asked for; `position` is where its amount stands in the sentence."""

    amount: int | float
    recipient: str
    currency: str
    position: int


_VERBS = r"(?:pay|send|transfer|wire|give|remit)"
_JAPANESE_TOPIC = re.compile(r"送金|支払|払[いっう]|送っ|送り|振り?込")
_JAPANESE_SENTENCE = re.compile(rf"{_JAPANESE_TOPIC.pattern}|ドル|円|ユーロ|ポンド|[にへ]\s*\d")
_TOPIC = re.compile(
    rf"\b(?:{_VERBS}|payment|remittance)\b|{_JAPANESE_TOPIC.pattern}", re.IGNORECASE
)
# `send` and `give` are left out: they are about other things as often as about money.
_CLEAR_TOPIC = re.compile(
    r"\b(?:pay|payment|remit|remittance|transfer|(?:send|wire|give)\b.*\bmoney)\b"
    r"|送金|支払|払って|振り?込",
    re.IGNORECASE,
)
_NOT_A_REQUEST = re.compile(
    r"\b(?:don'?t|do not|never|did|have you|has|had)\b|ないで|しましたか|した\?|できた",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\b(?:did|have|has|was|were)\b.*\b(?:pay|paid|payments?|send|sent|transfer(?:red)?)\b"
    r"|(?:送金|支払い?|振り?込み?)(?:は|を)?(?:しましたか|した\?|できた|済|完了し)",
    re.IGNORECASE,
)

_MONEY = re.compile(
    r"(?P<sign>[$€£¥])?\s?(?<![\w.\-])(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"\s?(?P<scale>k|千|万)?"
    r"\s?(?P<unit>dollars?|bucks?|usd|euros?|eur|yen|jpy|pounds?|gbp|ドル|円|ユーロ|ポンド)?"
    r"(?![A-Za-z\d])",
    re.IGNORECASE,
)
# In Japanese a digit may follow a word directly: `Aliceに30ドル`.
_JAPANESE_MONEY = re.compile(
    _MONEY.pattern.replace(r"(?<![\w.\-])", r"(?<![\d.\-])"), re.IGNORECASE
)
_SCALES = {"k": 1_000, "千": 1_000, "万": 10_000}
_CURRENCIES = {
    "USD": ("$", "dollar", "dollars", "buck", "bucks", "usd", "ドル"),
    "EUR": ("€", "euro", "euros", "eur", "ユーロ"),
    "JPY": ("¥", "yen", "jpy", "円"),
    "GBP": ("£", "pound", "pounds", "gbp", "ポンド"),
}
_CURRENCY_OF = {word: currency for currency, words in _CURRENCIES.items() for word in words}

_CAPITALISED = r"[^\W\d_a-z][\w'.-]*"
_AFTER_TO = re.compile(
    rf"\s*to\s+(?P<names>(?:(?:my|the)\s+)?[^\W\d_][\w'-]*(?:\s+{_CAPITALISED})*"
    rf"(?:(?:\s*,\s*(?:and\s+)?|\s+(?:and|&)\s+){_CAPITALISED}(?=\s*(?:$|[.,!?;]|and\b|each\b)))*)"
)
_AFTER_VERB = re.compile(rf"\b{_VERBS}\s+(?P<names>[^\d]*?)[\s$€£¥]*$", re.IGNORECASE)
_CONTINUED = re.compile(
    rf"^[\s,;&.]*(?:(?:and|then|also|finally)\s+)*(?:{_VERBS}\s+)?(?P<names>[^\d]*?)[\s$€£¥]*$",
    re.IGNORECASE,
)
_FILLERS = re.compile(r"(?:\s*\b(?:another|exactly|about|only|just|a total of)\b)+$", re.IGNORECASE)
_NOT_IN_NAMES = re.compile(
    r"\b(?:pay|send|transfer|wire|give|to|in|of|the|a|play|track|change|music|bgm|weather|forecast"
    r"|where|what|how|is|am|i|me|it|please|can|could|you|tell|show|for|on|at|number)\b",
    re.IGNORECASE,
)

_JAPANESE_NAMES = r"(?P<names>(?:[A-Za-z]+ )*[^\s、。,!?を]+?)\s*(?:宛|あて)?(?:に|へ)"
_BEFORE_AMOUNT = re.compile(_JAPANESE_NAMES + r"は?\s*[$€£¥]?$")
_AFTER_AMOUNT = re.compile(r"\s*(?:ずつ)?を?、?\s*" + _JAPANESE_NAMES)
_JAPANESE_LEAD = re.compile(
    r"^(?:まずは?|最初に|次に|じゃあ|では|あと|また|そして|それと|(?:私|僕|俺)[はが])+"
)
# `と` also stands inside names such as `さとう`; it is "and" after a title or after no hiragana.
_AND = re.compile(r"(?<![ぁ-ん])と|(?<=さん|くん|ゃん|さま)と|・")
_HONORIFIC = re.compile(r"(?:さん|さま|様|くん|君|ちゃん|氏)$|(?<=\w)-san$")


def mentions_payment(text: str) -> bool:
    """Return whether the text is clearly about sending money, even if it does not say to whom."""
    return bool(_CLEAR_TOPIC.search(text))


def has_japanese_payment_verb(text: str) -> bool:
    """Return whether a Japanese verb of paying stands in the text.

    It comes last, so it also belongs to parts of the text that stand before it.
    """
    return bool(_JAPANESE_TOPIC.search(text))


def asks_about_payments(text: str) -> bool:
    """Return whether the text asks what was paid, rather than asking to pay."""
    return bool(_QUESTION.search(text))


def find_payments(text: str, *, continued: bool = False) -> list[Payment]:
    """Return the payments asked for, in the order of the text.

    `continued` says that the text around this sentence is about payments, so that `Bob 40` is
    enough. A question about payments and a request not to pay yield nothing.
    """
    if _NOT_A_REQUEST.search(text) or not (continued or _TOPIC.search(text)):
        return []
    japanese = bool(_JAPANESE_SENTENCE.search(text))
    beside = _people_beside_japanese if japanese else _people_beside_english
    payments: list[Payment] = []
    cursor = 0
    for money in (_JAPANESE_MONEY if japanese else _MONEY).finditer(text):
        people, cursor = beside(text, money, cursor, continued or bool(payments))
        payments.extend(
            Payment(_amount(money), person, _currency(money), money.start()) for person in people
        )
    return payments


def _people_beside_english(
    text: str, money: re.Match[str], cursor: int, continued: bool
) -> tuple[list[str], int]:
    after = _AFTER_TO.match(text, money.end())
    if after is not None:
        return _english_names(after["names"]), after.end()
    between = text[cursor : money.start()]
    before = _AFTER_VERB.search(between) or (_CONTINUED.match(between) if continued else None)
    return (_english_names(before["names"]) if before else []), money.end()


def _people_beside_japanese(
    text: str, money: re.Match[str], cursor: int, _continued: bool
) -> tuple[list[str], int]:
    before = _BEFORE_AMOUNT.search(text[cursor : money.start()])
    if before is not None:
        return _japanese_names(before["names"]), money.end()
    after = _AFTER_AMOUNT.match(text, money.end())
    if after is not None:
        return _japanese_names(after["names"]), after.end()
    return [], money.end()


def _english_names(text: str) -> list[str]:
    names = [
        _HONORIFIC.sub("", name.strip(" .,:;"))
        for name in re.split(r"\s*,\s*(?:and\s+)?|\s+(?:and|&)\s+", _FILLERS.sub("", text.strip()))
    ]
    # One word that cannot be in a name means the words were not names at all.
    return names if all(_could_be_a_name(name) for name in names) else []


def _could_be_a_name(text: str) -> bool:
    person = re.sub(r"^(?:my|the)\s+", "", text, flags=re.IGNORECASE)
    return 1 <= len(person.split()) <= 3 and not _NOT_IN_NAMES.search(person)


def _japanese_names(text: str) -> list[str]:
    names = (_HONORIFIC.sub("", _JAPANESE_LEAD.sub("", name.strip())) for name in _AND.split(text))
    return [name for name in names if name and not re.search(r"天気|現在地|音楽|BGM", name)]


def _amount(money: re.Match[str]) -> int | float:
    value = float(money["number"].replace(",", "")) * _SCALES.get((money["scale"] or "").lower(), 1)
    return int(value) if value.is_integer() else value


def _currency(money: re.Match[str]) -> str:
    return _CURRENCY_OF.get((money["unit"] or money["sign"] or "$").lower(), "USD")
