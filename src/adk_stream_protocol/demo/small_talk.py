"""Answers what needs no tool: greetings, names, help, a story, a thought, and the rest."""

import re
from collections.abc import Sequence

from adk_stream_protocol.demo.exchange import Exchange, Outcome
from adk_stream_protocol.demo.languages import normalise
from adk_stream_protocol.demo.payment_intents import asks_about_payments, mentions_payment
from adk_stream_protocol.demo.phrases import Phrases
from adk_stream_protocol.demo.sentences import describe_outcomes
from adk_stream_protocol.demo.weather_intents import mentions_weather

__all__ = ["answer", "find_thought"]


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_NAME_TOLD = _pattern(
    r"\bmy name(?:'s| is)\s+(?P<a>[^\W\d_][\w'-]*(?:\s+(?-i:[A-Z])[\w'-]*)*)",
    r"\bcall me\s+(?P<b>[^\W\d_][\w'-]*)",
    r"(?:私|僕|俺|わたし|ぼく)?の?名前は\s*(?P<c>[^\s、。!?]+?)\s*(?:です|だよ|と(?:言|い|申))",
    r"(?:私|僕|俺|わたし|ぼく)は\s*(?P<d>[^\s、。!?]+?)\s*と(?:言い|いい|申し)ます",
)
_NAME_ASKED = _pattern(
    r"\b(?:what(?:'s| is| was) my name|who am i|(?:know|remember|tell me) my name)\b",
    r"(?:私|僕|俺|わたし|ぼく)の名前(?:は(?:何|なん|\?|$)|を(?:覚え|知|言)|、?(?:わか|分か|覚え))",
    r"(?:私|僕|俺)は誰",
)
_STORY = _pattern(
    r"\b(?:tell|write|read|give)\b.*\bstory\b", r"\ba story\b", r"物語|お話を?して|昔話"
)
_THANKS = _pattern(r"\b(?:thanks|thank you|thx|cheers)\b", r"ありがと|感謝|サンキュー|助かりました")
_HELP = _pattern(
    r"\bhelp\b",
    r"\bwhat (?:can|do) you do\b",
    r"\bhow do(?:es)? (?:this|it) work\b",
    r"何ができ|なにができ|できること|ヘルプ|助けて|使い方|手伝って",
)
_INTRODUCTION = _pattern(
    r"\b(?:who|what) are you\b",
    r"\byour name\b",
    r"あなたは(?:誰|だれ|何)|君は誰|お名前は|自己紹介",
)
_GREETING = _pattern(
    r"^(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings|howdy)\b",
    r"^(?:こんにち[はわ]|おはよう|こんばん[はわ]|はじめまして|やあ|どうも|もしもし)",
)
_GOODBYE = _pattern(
    r"\b(?:bye|goodbye|see you|good night)\b", r"さようなら|さよなら|またね|おやすみ|じゃあね"
)
_ACKNOWLEDGED = _pattern(
    r"^(?:ok|okay|yes|no|sure|fine|great|nice|cool|good|perfect|all ?right)\b[\w\s,]{0,20}[.!]*$",
    r"^(?:はい|いいえ|うん|了解|わかった|わかりました|いいね|すごい|なるほど|オッケー|OK)(?:です)?[。!]*$",
)
_THINK = _pattern(
    r"\bthink (?:\w+ly |hard |it |this )*(?:about|over|through)\s+(?P<a>[^.?!]+)",
    r"^(?:please )?think\b",
    r"\bthink (?:hard|carefully|deeply|step by step|first|it over)\b",
    r"(?P<b>[^。!?、]+?)について[^。!?]*考え",
    r"考えて",
)


def find_thought(text: str, phrases: Phrases) -> str | None:
    """Return what a message asks to think about, or None if it does not ask for thinking."""
    match = _THINK.search(normalise(text))
    if match is None:
        return None
    topic = (match["a"] or match["b"] or "").strip()
    return re.sub(r"\s+please$", "", topic, flags=re.IGNORECASE) or phrases.nothing_special


def answer(exchange: Exchange, phrases: Phrases) -> str:
    """Return the answer to a message that asks for no tool; there always is one."""
    text = normalise(exchange.text)
    if asks_about_payments(text):
        return _payments_so_far(exchange.earlier_outcomes, phrases)
    about_names = _about_names(text, exchange.earlier_texts, phrases)
    if about_names is not None:
        return about_names
    for pattern, phrase in (
        (_STORY, phrases.story),
        (_THINK, phrases.thought_answer.format(topic=find_thought(text, phrases))),
        (_THANKS, phrases.thanks),
        (_HELP, phrases.help),
        (_INTRODUCTION, phrases.introduction),
        (_GOODBYE, phrases.goodbye),
        (_GREETING, _greeting(exchange.earlier_texts, phrases)),
        (_ACKNOWLEDGED, phrases.acknowledged),
    ):
        if pattern.search(text):
            return phrase
    return _unclear(text, phrases)


def _about_names(text: str, earlier: Sequence[str], phrases: Phrases) -> str | None:
    if _NAME_ASKED.search(text):
        name = _name_in(earlier)
        return phrases.name_known.format(name=name) if name else phrases.name_unknown
    told = _name_in([text])
    return phrases.name_told.format(name=told) if told else None


def _name_in(texts: Sequence[str]) -> str | None:
    """Return the name told last in these texts."""
    for text in reversed(texts):
        match = _NAME_TOLD.search(normalise(text))
        if match is not None:
            return next(name for name in match.groups() if name)
    return None


def _greeting(earlier: Sequence[str], phrases: Phrases) -> str:
    name = _name_in(earlier)
    return phrases.greeting_by_name.format(name=name) if name else phrases.greeting


def _payments_so_far(outcomes: Sequence[Outcome], phrases: Phrases) -> str:
    payments = [outcome for outcome in outcomes if outcome.call.tool == "process_payment"]
    if not payments:
        return phrases.no_payments
    return phrases.separator.join(describe_outcomes(payments, phrases))


def _unclear(text: str, phrases: Phrases) -> str:
    if mentions_weather(text):
        return phrases.which_city
    if mentions_payment(text):
        return phrases.which_payment
    return phrases.fallback
