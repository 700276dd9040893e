from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from adk_stream_protocol.errors import BadRequest
from adk_stream_protocol.wire.values import (
    JsonValue,
    as_object,
    as_text,
    canonical_json,
    digest,
    dumps,
    jsonable,
    parse_json,
)


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Shape(enum.Enum):
    ROUND = ("round", 1)


class Account(BaseModel):
    owner_name: str = Field(serialization_alias="ownerName")
    limit: float | None = None


class Anything(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    held: object


@dataclasses.dataclass
class Box:
    held: object


@dataclasses.dataclass
class Sneaky:
    prototype: int = 1


class Named:
    def __str__(self) -> str:
        return "named"


KEYS = st.text(max_size=5) | st.sampled_from(["__proto__", "constructor", "prototype"])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes()
    | st.sampled_from([Colour.RED, Level.HIGH, Shape.ROUND, Sneaky(), Named(), Named]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS | st.integers(), inner, max_size=3)
        | st.builds(Box, inner)
        | st.builds(Anything, held=inner)
    ),
    max_leaves=8,
)


def holds_unsafe_key(value: JsonValue) -> bool:
    if isinstance(value, Mapping):
        inner = value.get("constructor")
        return (
            "__proto__" in value
            or (isinstance(inner, Mapping) and "prototype" in inner)
            or any(holds_unsafe_key(item) for item in value.values())
        )
    return isinstance(value, list) and any(holds_unsafe_key(item) for item in value)


@given(ANYTHING)
def test_anything_becomes_json_that_a_client_parses(value: object) -> None:
    plain = jsonable(value)
    json.dumps(plain, allow_nan=False)
    sent = dumps(plain).encode()
    assert not holds_unsafe_key(json.loads(sent))


@given(ANYTHING)
def test_plain_json_is_left_as_it_is(value: object) -> None:
    plain = jsonable(value)
    assert jsonable(plain) == plain


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (float("-inf"), None),
        (1.5, 1.5),
        (2**64, 2**64),
        ((1, "a"), [1, "a"]),
        ({3}, [3]),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        (b"\xff\x00", "/wA="),
        (bytearray(b"a"), "YQ=="),
        (datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC), "2026-01-02T03:04:00+00:00"),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (datetime.time(3, 4), "03:04:00"),
        (Shape.ROUND, ["round", 1]),
        (Account(owner_name="Ann"), {"ownerName": "Ann"}),
        (Account(owner_name="Ann", limit=float("inf")), {"ownerName": "Ann", "limit": None}),
        (Box(Box(1)), {"held": {"held": 1}}),
        (Named(), "named"),
        ({"__proto__": 1, "a": {"__proto__": 2}}, {"a": {}}),
        ({"constructor": {"prototype": 1}}, {}),
        ({"constructor": Sneaky()}, {}),
        ({"constructor": "Ford", "prototype": 1}, {"constructor": "Ford", "prototype": 1}),
    ],
)
def test_value_becomes_its_nearest_json(value: object, expected: object) -> None:
    assert jsonable(value) == expected


def test_integer_that_is_an_infinity_to_a_client_becomes_null() -> None:
    # Not a parameter: pytest could not write it into the test's name either.
    assert jsonable([10**5000, -(10**5000)]) == [None, None]


def test_member_of_a_text_or_integer_enum_is_written_as_its_value() -> None:
    assert dumps(jsonable({"colour": Colour.RED, "level": Level.HIGH})) == (
        '{"colour":"red","level":3}'
    )


def test_class_is_written_as_text_and_not_taken_for_its_instance() -> None:
    assert jsonable(Box) == str(Box)


def test_model_with_a_field_pydantic_cannot_write_is_still_written() -> None:
    assert jsonable(Anything(held=Named())) == {"held": "named"}
    assert jsonable(Anything(held=b"\xff")) == {"held": "/w=="}


def test_dataclass_with_a_field_that_cannot_be_copied_is_still_written() -> None:
    written = jsonable(Box(threading.Lock()))
    assert "lock" in as_text(as_object(written)["held"])


def test_nesting_without_end_is_cut_off() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert dumps(jsonable(endless)) == "[" * 24 + '"…"' + "]" * 24


def test_half_a_character_is_written_as_an_escape() -> None:
    assert dumps({"name": "é\udcff"}) == '{"name":"é\\udcff"}'
    assert json.loads(dumps("\udcff")) == "\udcff"
    assert canonical_json("\udcff") == '"\\udcff"'


def test_dumps_refuses_what_jsonable_repairs() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        dumps(float("inf"))


def test_equal_values_have_one_canonical_form_and_one_digest() -> None:
    assert canonical_json({"b": 1, "a": [{"d": 2, "c": 3}]}) == '{"a":[{"c":3,"d":2}],"b":1}'
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    assert digest({"a": 1}) != digest({"a": 2})
    assert digest("\ud800") != digest("\\ud800")


def test_digest_is_sha256_of_the_canonical_form() -> None:
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_document_of_a_client_is_parsed() -> None:
    text = '{"a": [1, 2.5, -1e3, "x\\"]}", {"b": null}]}'
    assert parse_json(text, max_depth=3) == {"a": [1, 2.5, -1000.0, 'x"]}', {"b": None}]}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "not_json"),
        ("", "not_json"),
        ('"abc\\', "not_json"),
        ("NaN", "not_json"),
        ("[-Infinity]", "not_json"),
        ("1e999", "not_json"),
        ("[" + "1" * 5000 + "]", "not_json"),
        ('{"a": 1, "a": 2}', "duplicate_key"),
        ("[" * 100_000, "too_deep"),
        ('{"a": [[1]]}', "too_deep"),
    ],
    ids=lambda text: text[:12],
)
def test_ambiguous_or_absurd_document_is_a_bad_request(text: str, code: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_json(text, max_depth=2)
    assert caught.value.code == code


def test_brackets_inside_a_string_do_not_count_as_nesting() -> None:
    assert parse_json('"[[[[\\"[["', max_depth=0) == '[[[["[['


def test_where_the_document_breaks_is_told() -> None:
    with pytest.raises(BadRequest, match="at line 2, column 1"):
        parse_json("[1,\n", max_depth=2)


def test_value_of_another_kind_reads_as_empty() -> None:
    assert as_object({"a": 1}) == {"a": 1}
    assert as_object([1]) == {}
    assert as_object(None) == {}
    assert as_text("a") == "a"
    assert as_text(1) == ""
    assert as_text(None) == ""
