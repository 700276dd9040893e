"""The cities the demo knows, in English and Japanese, and their made-up weather.

The weather is invented and never changes, so that a demo and a test say the same thing.
"""

import re
import zlib
from dataclasses import dataclass
from typing import Literal

__all__ = ["CONDITIONS", "City", "Condition", "find_city", "known_city_pattern"]

Condition = Literal["sunny", "partly cloudy", "cloudy", "light rain", "windy", "foggy", "snow"]

CONDITIONS: tuple[Condition, ...] = (
    "sunny",
    "partly cloudy",
    "cloudy",
    "light rain",
    "windy",
    "foggy",
    "snow",
)


@dataclass(frozen=True)
class City:
    """A city with its weather."""

    name: str
    japanese: tuple[str, ...]
    temperature_c: int
    condition: Condition


_CITIES = (
    City("Tokyo", ("東京",), 18, "partly cloudy"),
    City("Osaka", ("大阪",), 20, "sunny"),
    City("Kyoto", ("京都",), 17, "light rain"),
    City("Sapporo", ("札幌",), 4, "snow"),
    City("Fukuoka", ("福岡",), 19, "cloudy"),
    City("Nagoya", ("名古屋",), 18, "sunny"),
    City("Yokohama", ("横浜",), 18, "windy"),
    City("Sendai", ("仙台",), 12, "cloudy"),
    City("Hiroshima", ("広島",), 18, "sunny"),
    City("Kobe", ("神戸",), 19, "partly cloudy"),
    City("Naha", ("那覇", "沖縄"), 26, "sunny"),
    City("Tsukuba", ("つくば",), 15, "foggy"),
    City("Saitama", ("さいたま",), 17, "sunny"),
    City("Paris", ("パリ",), 14, "light rain"),
    City("London", ("ロンドン",), 11, "foggy"),
    City("New York", ("ニューヨーク",), 13, "windy"),
    City("San Francisco", ("サンフランシスコ",), 16, "foggy"),
    City("Los Angeles", ("ロサンゼルス",), 23, "sunny"),
    City("Chicago", ("シカゴ",), 8, "windy"),
    City("Seattle", ("シアトル",), 10, "light rain"),
    City("Berlin", ("ベルリン",), 9, "cloudy"),
    City("Munich", ("ミュンヘン",), 8, "partly cloudy"),
    City("Vienna", ("ウィーン",), 10, "partly cloudy"),
    City("Rome", ("ローマ",), 20, "sunny"),
    City("Madrid", ("マドリード",), 19, "sunny"),
    City("Barcelona", ("バルセロナ",), 20, "partly cloudy"),
    City("Amsterdam", ("アムステルダム",), 10, "light rain"),
    City("Zurich", ("チューリッヒ",), 7, "foggy"),
    City("Stockholm", ("ストックホルム",), 3, "snow"),
    City("Helsinki", ("ヘルシンキ",), 1, "snow"),
    City("Sydney", ("シドニー",), 24, "sunny"),
    City("Singapore", ("シンガポール",), 30, "light rain"),
    City("Seoul", ("ソウル",), 12, "sunny"),
    City("Beijing", ("北京",), 11, "windy"),
    City("Shanghai", ("上海",), 16, "cloudy"),
    City("Hong Kong", ("香港",), 24, "partly cloudy"),
    City("Taipei", ("台北",), 23, "light rain"),
    City("Bangkok", ("バンコク",), 32, "partly cloudy"),
    City("Delhi", ("デリー",), 27, "foggy"),
    City("Mumbai", ("ムンバイ",), 31, "sunny"),
    City("Dubai", ("ドバイ",), 33, "sunny"),
    City("Cairo", ("カイロ",), 25, "sunny"),
    City("Nairobi", ("ナイロビ",), 21, "partly cloudy"),
    City("Toronto", ("トロント",), 6, "cloudy"),
    City("Mexico City", ("メキシコシティ",), 19, "partly cloudy"),
)

_BY_ALIAS = {alias.casefold(): city for city in _CITIES for alias in (city.name, *city.japanese)}


def find_city(name: str) -> City:
    """Return the city of that name, in either language; an unknown one gets stable weather too."""
    known = _BY_ALIAS.get(name.strip().casefold())
    if known is not None:
        return known
    seed = zlib.crc32(name.strip().casefold().encode())
    # Snow is left out: an invented temperature above zero would contradict it.
    condition = CONDITIONS[seed % (len(CONDITIONS) - 1)]
    return City(name.strip(), (), 5 + seed // 7 % 25, condition)


def known_city_pattern() -> str:
    """Return a regular expression for any known name, longest first, whole words in English."""
    aliases = sorted(_BY_ALIAS, key=len, reverse=True)
    return "|".join(
        rf"\b{re.escape(alias)}\b" if alias.isascii() else re.escape(alias) for alias in aliases
    )
