from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from adk_stream_protocol.cli.text import json_text, table, visible


def test_what_could_mislead_is_shown_by_its_number() -> None:
    assert visible("Bob\u202eevil\x1b[31m") == "Bob⟦U+202E⟧evil⟦U+001B⟧[31m"
    assert visible("花子 🎉 é") == "花子 🎉 é"


@given(st.text())
def test_nothing_is_left_hidden(text: str) -> None:
    kinds = {unicodedata.category(char) for char in visible(text)}
    assert kinds.isdisjoint({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})


def test_json_is_one_line_in_which_nothing_is_hidden() -> None:
    assert json_text({"to": "花子\n\u200b"}) == '{"to": "花子\\n⟦U+200B⟧"}'


def test_columns_line_up_beside_japanese() -> None:
    assert table([["NAME", "N"], ["花子", "1"], ["Bo", "22"]]) == ["NAME  N", "花子  1", "Bo    22"]
