"""What the offline model says, in English and Japanese.

Only texts; which of them fits is decided elsewhere. Both languages fill the same fields, so a
sentence that exists in one exists in the other.
"""

# ruff: noqa: RUF001 - full-width punctuation is how Japanese is written

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from adk_stream_protocol.demo.cities import Condition
from adk_stream_protocol.demo.languages import Language

__all__ = ["Phrases", "phrases_in"]


@dataclass(frozen=True)
class Phrases:
    """The texts of one language; those with `{names}` are formats."""

    separator: str  # between two sentences
    list_separator: str  # between two things of one sentence

    greeting: str
    greeting_by_name: str
    introduction: str
    help: str
    thanks: str
    goodbye: str
    acknowledged: str
    fallback: str
    name_told: str
    name_known: str
    name_unknown: str
    which_city: str
    which_payment: str
    no_payments: str
    story: str
    thought: str
    thought_answer: str
    thought_of_tools: str
    nothing_special: str
    attachment: str
    attachments: Mapping[str, str]  # kind of file -> its name

    weather: str
    conditions: Mapping[Condition, str]  # as the tool says it -> as we say it, where that differs
    payment_made: str
    transaction: str
    payment_denied: str
    payment_expired: str
    payment_failed: str
    location: str
    accuracy: str
    location_unknown: str
    music_changed: str
    music_unchanged: str
    result: str
    failure: str
    reason: str
    waiting: str
    offer: str
    no_tool: str
    subjects: Mapping[str, str]  # tool name -> what its call is about
    money: str
    currencies: Mapping[str, str]  # currency code -> how an amount of it is written


def phrases_in(language: Language) -> Phrases:
    """Return the texts of that language."""
    match language:
        case "en":
            return _ENGLISH
        case "ja":
            return _JAPANESE
        case _:
            assert_never(language)


_ENGLISH = Phrases(
    separator=" ",
    list_separator=", ",
    greeting="Hello! I am the demo assistant. Ask me about the weather, or try a payment.",
    greeting_by_name="Hello again, {name}! What can I do for you?",
    introduction=(
        "I am the demo assistant. I run on your machine, without a network and without a key."
    ),
    help=(
        "I can tell you the weather in a city, make a payment when you approve it, find out where "
        'you are, and change the background music. Try "weather in Tokyo and Paris", "send 50 '
        'dollars to Hanako", "where am I?" or "play some jazz".'
    ),
    thanks="You are welcome! Tell me if there is anything else.",
    goodbye="Goodbye, and have a good day!",
    acknowledged="All right. What shall we do next?",
    fallback=(
        "I am a small offline model, so I cannot say much about that. I can tell you the weather, "
        "make a payment, find your location, change the music, or tell you a story."
    ),
    name_told="Nice to meet you, {name}! I will remember your name in this chat.",
    name_known="Your name is {name}.",
    name_unknown='You have not told me your name yet. Say "my name is ..." and I will remember it.',
    which_city="For which city would you like to know the weather?",
    which_payment=(
        'Whom shall I pay, and how much? For example: "send 50 dollars to Hanako". '
        "I will ask for your approval before any money moves."
    ),
    no_payments="No payment has been asked for in this chat.",
    story=(
        "Once upon a time a small lighthouse stood at the end of a long pier. Its keeper, an old "
        "woman named Ume, climbed the stairs every evening, trimmed the wick and wrote one line in "
        "a thick book: the light is on.\n\n"
        "One winter night a storm took the lamp's glass and blew out the flame. Ume lit it again, "
        "and the wind blew it out again. Out at sea a single boat waited, turning in circles, "
        "because its captain would not guess where the rocks were.\n\n"
        "So Ume fetched every mirror of the village. The baker brought a tray of polished tin, the "
        "children brought spoons, and the tailor brought a box of silver buttons. They stood along "
        "the pier in the rain, each holding something that shone, and passed the light of one "
        "candle from hand to hand until it reached the end.\n\n"
        "The captain saw a thin, trembling line of light. It was not much, but it did not lie, and "
        "it told him where the harbour was. He came in slowly and tied up his boat.\n\n"
        "In the thick book Ume wrote two lines that night: the light went out, and, below it, the "
        "light is on. People still say that the second line is only worth reading because of the "
        "first."
    ),
    thought=(
        "The user wants me to think about {topic}. I look at what is really asked, then at what I "
        "know for certain, and I choose the simplest answer that is honest."
    ),
    thought_answer=(
        "I have thought about {topic}. My short answer: begin with the smallest step that teaches "
        "you something, look at what happened, and decide again. What matters most to you in it?"
    ),
    thought_of_tools="The user asks for {subjects}. I have tools for this, so I will call them.",
    nothing_special="this",
    attachment="I received {kind} ({media_type}, {size}).",
    attachments={
        "image": "your image",
        "audio": "your recording",
        "video": "your video",
        "file": "your file",
    },
    weather="The weather in {city}: {condition}, {temperature} °C.",
    conditions={},
    payment_made="I sent {money} to {recipient}{transaction}.",
    transaction=" (transaction {id})",
    payment_denied=(
        "The payment of {money} to {recipient} was not made, because you did not approve it."
    ),
    payment_expired=(
        "The payment of {money} to {recipient} was not made: the request expired before a decision "
        "came."
    ),
    payment_failed="The payment of {money} to {recipient} was not made: {error}",
    location="You are at latitude {latitude}, longitude {longitude}{accuracy}.",
    accuracy=" (within {metres} m)",
    location_unknown="I could not learn your location.",
    music_changed="The music is now: {track}.",
    music_unchanged="The music was not changed.",
    result="This is the result for {subject}: {result}",
    failure="I could not get {subject}: {error}",
    reason="Your reason: {reason}.",
    waiting="I am waiting for your decision on {subjects}.",
    offer="Tell me if I can help in another way.",
    no_tool="I cannot help with {subjects} here, because I have no tool for it.",
    subjects={
        "get_weather": "the weather in {city}",
        "process_payment": "the payment of {money} to {recipient}",
        "get_location": "your location",
        "change_bgm": "the music",
    },
    money="{amount} {currency}",
    currencies={},
)

_JAPANESE = Phrases(
    separator="",
    list_separator="、",
    greeting="こんにちは！デモのアシスタントです。天気を聞いたり、送金を試したりしてみてください。",
    greeting_by_name="{name}さん、こんにちは！ご用件は何でしょうか。",
    introduction="デモのアシスタントです。ネットワークもキーも使わず、このパソコンの中で動いています。",
    help=(
        "街の天気を調べること、承認をいただいたうえでの送金、現在地の確認、BGMの変更ができます。"
        "たとえば「東京とパリの天気」「花子さんに50ドル送金してください」「現在地は？」"
        "「BGMをジャズに変えて」と話しかけてください。"
    ),
    thanks="どういたしまして。ほかにもあれば、いつでもどうぞ。",
    goodbye="さようなら。よい一日をお過ごしください！",
    acknowledged="わかりました。次は何をしましょうか。",
    fallback=(
        "小さなオフラインモデルなので、それについては詳しくお答えできません。"
        "天気、送金、現在地、BGMの変更、それに物語ならお手伝いできます。"
    ),
    name_told="{name}さん、はじめまして！このチャットの間、お名前を覚えておきます。",
    name_known="お名前は{name}さんです。",
    name_unknown="まだお名前をうかがっていません。「私の名前は…です」と教えてください。",
    which_city="どの街の天気をお調べしましょうか。",
    which_payment=(
        "どなたに、いくら送金しましょうか。たとえば「花子さんに50ドル送金してください」と"
        "お話しください。送金の前に必ず承認をおたずねします。"
    ),
    no_payments="このチャットでは、まだ送金のご依頼はありません。",
    story=(
        "むかし、長い桟橋の先に小さな灯台がありました。灯台守のウメというおばあさんは、毎晩階段をのぼり、"
        "灯心を整えては、厚い帳面に「灯りはついている」と一行だけ書きました。\n\n"
        "ある冬の夜、嵐がランプのガラスを割り、火を吹き消してしまいました。ウメは何度も火をつけましたが、"
        "そのたびに風が消してしまいます。沖では一そうの船が、岩の場所がわからないまま、"
        "ぐるぐると回って待っていました。\n\n"
        "そこでウメは村じゅうの鏡を集めました。パン屋は磨いたお盆を、子どもたちはスプーンを、"
        "仕立屋は銀のボタンの箱を持ってきました。みんなは雨の桟橋に並び、光るものを手に持って、"
        "一本のろうそくの灯りを手から手へ、桟橋の先まで届けたのです。\n\n"
        "船長は、細くふるえる一筋の光を見つけました。小さな光でしたが、うそをつかず、港の場所を教えてくれました。"
        "船はゆっくりと港に入り、綱をつなぎました。\n\n"
        "その夜、ウメは帳面に二行書きました。「灯りが消えた」。そしてその下に「灯りはついている」。"
        "一行目があるからこそ二行目に読む値打ちがあるのだと、村の人は今も言います。"
    ),
    thought=(
        "{topic}について考えるよう頼まれた。まず本当に聞かれていることを確かめ、次に確かに知っていることを見て、"
        "いちばん簡単で正直な答えを選ぼう。"
    ),
    thought_answer=(
        "{topic}について考えてみました。まずは、何かを学べるいちばん小さな一歩から始めて、結果を見てから次を"
        "決めるのがよいと思います。いちばん大切にしたいことは何ですか。"
    ),
    thought_of_tools="{subjects}を頼まれている。使えるツールがあるので、呼び出そう。",
    nothing_special="このこと",
    attachment="{kind}を受け取りました（{media_type}、{size}）。",
    attachments={"image": "画像", "audio": "音声", "video": "動画", "file": "ファイル"},
    weather="{city}の天気は{condition}、気温は{temperature}度です。",
    conditions={
        "sunny": "晴れ",
        "partly cloudy": "晴れ時々くもり",
        "cloudy": "くもり",
        "light rain": "小雨",
        "windy": "風が強め",
        "foggy": "霧",
        "snow": "雪",
    },
    payment_made="{recipient}さんに{money}を送金しました{transaction}。",
    transaction="（取引番号 {id}）",
    payment_denied="承認されなかったため、{recipient}さんへの{money}の送金は行いませんでした。",
    payment_expired=(
        "{recipient}さんへの{money}の送金は、承認の期限が切れたため行いませんでした。"
    ),
    payment_failed="{recipient}さんへの{money}の送金はできませんでした。理由：{error}",
    location="現在地は緯度{latitude}、経度{longitude}です{accuracy}。",
    accuracy="（誤差は約{metres}メートル）",
    location_unknown="現在地を確認できませんでした。",
    music_changed="BGMを「{track}」に変えました。",
    music_unchanged="BGMは変更できませんでした。",
    result="{subject}の結果です：{result}",
    failure="{subject}を確認できませんでした：{error}",
    reason="いただいた理由：「{reason}」。",
    waiting="{subjects}について、ご判断をお待ちしています。",
    offer="ほかにお手伝いできることがあれば教えてください。",
    no_tool="ここでは使えるツールがないため、{subjects}についてはお手伝いできません。",
    subjects={
        "get_weather": "{city}の天気",
        "process_payment": "{recipient}さんへの{money}の送金",
        "get_location": "現在地",
        "change_bgm": "BGM",
    },
    money="{amount} {currency}",
    currencies={
        "USD": "{amount}ドル",
        "EUR": "{amount}ユーロ",
        "JPY": "{amount}円",
        "GBP": "{amount}ポンド",
    },
)
